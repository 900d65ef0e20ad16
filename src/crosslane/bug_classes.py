# SPDX-License-Identifier: Apache-2.0
"""The closed list of classes of bugs in optimised block ciphers, which triage names and planted faults expect."""

from __future__ import annotations

__all__ = ["BUG_CLASSES", "UNCLASSIFIED"]

UNCLASSIFIED = "unclassified"
"""What triage says where nothing that it observed decides."""

BUG_CLASSES = {
    "counter": "a counter carries wrongly, in the wrong width, or by a test for a wrap that is wrong",
    "iv_writeback": "the answer is right, and the iv or counter that is left for the next call is not",
    "partial_block": "a block that a call begins or ends within",
    "remainder": "some numbers of blocks and not others: what a wide step leaves over is done wrongly or not at all",
    "step": "what one step hands to the next is wrong: pointer, chain or counter",
    "empty": "a message without data",
    "in_place": "the output over the input",
    "overlap": "an output that overlaps its input otherwise than exactly",
    "stealing": "the stolen tail of a data unit",
    "tweak": "the tweaks from block to block, or the index that they are made of",
    "cts": "the last two blocks of ciphertext stealing in CBC",
    "mac": "what a MAC buffers, and its last block",
    "aead_header": "associated data, lengths, nonces and tag lengths as they are coded",
    "ghash": "the hash that makes the tag",
    "over_read": "memory is read that was not given",
    "over_write": "memory is written that was not given",
    "alignment": "a buffer that is not aligned",
    "abi": "registers or flags that the calling convention keeps",
    "dirty_state": "what lay in registers or on the stack before the call",
    "compiler": "one compiler or level of optimisation and not another",
    "key_schedule": "some keys or key lengths and not others",
    "computation": "the computation of blocks: lanes, constants, operands",
    "dispatch": "code that runs where the CPU cannot run it, or never runs",
    "byte_order": "one byte order or word size and not another",
    "large": "a length that is kept in too few bits",
    "context": "what one use of a context leaves to another",
    "context_changed": "a call that may not writes into its context",
    "input_changed": "a call writes into what it may only read",
    "refusal": "what is legal is refused, what is illegal is done, or a refused call leaves a trace",
    "key_policy": "which keys a policy refuses",
    "tag_check": "a wrong tag is taken",
    "secrets_left": "a secret is left in registers or on the stack",
    "oracle": "the generic implementation itself departs from a published answer or a reference",
    "emulator": "the emulator is suspected: the same program answers otherwise without it",
    "hang": "a call does not come back",
    UNCLASSIFIED: "nothing that was observed decides",
}
"""What is wrong, by the name of the class."""
