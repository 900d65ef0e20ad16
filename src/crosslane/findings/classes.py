# SPDX-License-Identifier: Apache-2.0
"""The closed list of what the class of a finding can be made of; ``docs/reference/findings.md`` explains each word."""

from __future__ import annotations

import re

from crosslane.errors import BadInput

__all__ = ["CLASSES", "classes_of"]

CLASSES = {
    "any": "nothing in particular",
    "in_place": "output over the input",
    "align": "a buffer at an offset",
    "edge": "a buffer at a guard page",
    "context_edge": "a context at a guard page",
    "policy": "a policy that refuses keys",
    "encrypt": "this direction",
    "decrypt": "this direction",
    "tail": "a partial block",
    "stealing": "a partial block, in a mode that steals",
    "whole": "no partial block, in a mode that takes them",
    "large": "64 KiB of data or more",
    "empty": "a piece of no bytes",
    "blocks": "so many blocks or more; with = just so many",
    "counter": "a counter that carries out of so many low bits",
    "split": "several pieces",
    "messages": "several messages",
    "rekey": "another key in the same context",
    "reinit": "a context that is used anew",
    "clone": "a context that is copied",
    "interleaved": "another context in use before the message ends",
    "overlap": "an output that overlaps its input otherwise than exactly",
    "refused": "an operation that is rightly refused",
    "aad": "associated data",
    "iv": "an iv other than zero; or the iv's buffer",
    "key": "a key other than zero; or the key's buffer",
    "data": "data other than zero",
    "wrong_tag": "a tag that is wrong",
    "tweak": "one tweak and not another",
    "key_len": "a key of so many bytes",
    "iv_len": "a nonce of so many bytes",
    "dirty_state": "noise in registers that hold nothing, or in dead stack",
    "other_context": "what lies in another context than that of the call",
    "neighbours": "other sessions before it in the process",
    "tag": "the tag departs; or the tag's buffer",
    "refuses": "what is legal is refused",
    "accepts": "what is illegal is not refused",
    "register": "the register is not kept",
    "hang": "the call does not come back",
    "exit": "the process ends by itself",
    "signal": "the process is ended by a signal",
    "none": "an address in no buffer",
    "iv_in": "the buffer of the iv that is given",
    "in": "the input's buffer",
    "out": "the output's buffer",
    "ctx": "the context",
    "ctx2": "the second context",
    "results": "the shim's results",
    "batch": "the shared inputs",
    "unshrunk": "not shrunk: departs alone, and nothing smaller does",
    "unrepeatable": "not shrunk: departs at times",
    "vector": "not shrunk: generic departs from a published answer",
    "reference": "not shrunk: generic departs from a judge in Python",
}
"""What the least case needs, or what the watcher saw, by the word in the class."""

_SIGNAL = re.compile("sig[a-z0-9]+|signal_[0-9]+")


def classes_of(text: str) -> tuple[str, ...]:
    """The words of a finding's class without their numbers, each of ``CLASSES``, in order and each once.

    ``in:behind+blocks:=8`` is of ``in`` and ``blocks``. Raises BadInput for a word that is in no class.
    """
    found: dict[str, None] = {}
    for part in text.split("+"):
        word = part.partition(":")[0]
        word = "signal" if _SIGNAL.fullmatch(word) and word not in CLASSES else word
        if word not in CLASSES:
            raise BadInput(f"{text!r} has {part!r}, which is in no class; words are {', '.join(CLASSES)}")
        found[word] = None
    return tuple(found)
