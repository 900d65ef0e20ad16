# SPDX-License-Identifier: Apache-2.0
"""The Python libraries as judges: right by published vectors, silent beyond their domain, named where missing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crosslane import refcheck
from crosslane.corpora import VectorFile, load_vectors
from crosslane.data import data_root
from crosslane.errors import BadInput, HarnessFault, MissingTool
from crosslane.generate import generate_batch
from crosslane.model import Algorithm, Registry
from crosslane.names import parse_algorithm
from crosslane.oracles import Oracle, load_oracles, oracle_names
from crosslane.plan import manifest_of
from crosslane.refcheck import Sample, judge_by_oracle, take_samples
from crosslane.reference import Answer, Message
from crosslane.registry import load_registry
from crosslane.wire import Batch, Results

NAMES = oracle_names(data_root())
BLOCK_MODES = ("ecb", "cbc", "cfb", "ofb")
# The algorithms of corpora that each library has.
JUDGES = {
    "cryptography": {
        *(f"{mode}({cipher})" for mode in BLOCK_MODES for cipher in ("aes", "sm4")), "ecb(des3_ede)", "ecb(cast5)",
        "ctr(aes)", "ctr(sm4)", "xts(aes)", "cmac(aes)", "cmac(des3_ede)", "ccm(aes)", "gcm(aes)", "gcm(sm4)",
    },
    "pycryptodome": {
        *(f"{mode}(aes)" for mode in BLOCK_MODES), "ecb(des3_ede)", "ecb(cast5)", "ctr(aes)", "cmac(aes)",
        "cmac(des3_ede)", "ccm(aes)", "gcm(aes)",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def oracles() -> dict[str, Oracle]:
    return {oracle.name: oracle for oracle in load_oracles(data_root())}


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(data_root())


@pytest.fixture(scope="module")
def published() -> tuple[VectorFile, ...]:
    return load_vectors(data_root() / "corpora" / "vectors")


def samples_of(file: VectorFile) -> Iterator[Sample]:
    """Published messages as generic would have answered them."""
    for vector in file.vectors:
        if vector.kind != "message" or vector.iterations != 1 or vector.expect != "ok":
            continue
        texts = (vector.plaintext, vector.ciphertext)
        for decrypting in (False, True):
            if vector.direction not in ("both", "decrypt" if decrypting else "encrypt"):
                continue
            if decrypting and "mac(" in file.algorithm:
                continue
            data, out = texts[::-1] if decrypting else texts
            message = Message(decrypting, vector.key, vector.iv, vector.aad, data, len(vector.tag))
            yield Sample(0, 0, message, out, None, vector.tag, refused=False)


# --- right within the domain ---


def test_there_are_the_oracles_that_the_table_names(oracles: dict[str, Oracle]) -> None:
    assert set(NAMES) == set(oracles) == set(JUDGES)


@pytest.mark.parametrize("name", NAMES)
def test_an_oracle_agrees_with_every_published_vector_of_its_domain(
    oracles: dict[str, Oracle], published: tuple[VectorFile, ...], name: str
) -> None:
    judged: set[str] = set()
    for file in published:
        verdict = judge_by_oracle(oracles[name], parse_algorithm(file.algorithm), list(samples_of(file)))
        assert verdict.wrong == (), f"{file.source} {file.algorithm}"
        judged |= {file.algorithm} if len(verdict.judged) else set()
    assert judged == JUDGES[name]


@pytest.mark.parametrize("name", NAMES)
def test_an_oracle_is_silent_beyond_its_domain_and_never_raises(
    oracles: dict[str, Oracle],
    registry: Registry,
    make_results: Callable[[Batch], Results],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """Every legal message of every algorithm, as a run samples them."""
    monkeypatch.setattr(refcheck, "_EVERY", 1)
    asked = {mode.name: 0 for mode in registry.modes}
    for cipher in registry.ciphers:
        for mode in registry.modes:
            if cipher.block_len not in mode.block_lens:
                continue
            algorithm = Algorithm(mode.name, cipher.name)
            manifest = replace(
                manifest_of(registry, algorithm, "oracles"), sessions_per_batch=32, steering=("lengths", "counters")
            )
            batch = generate_batch(manifest, 0)
            samples = list(take_samples(0, batch, make_results(batch)))
            assert len(samples) > 100
            asked[mode.name] += len(judge_by_oracle(oracles[name], algorithm, samples).judged)
    assert {mode for mode, count in asked.items() if count} == {parse_algorithm(text).mode for text in JUDGES[name]}


# --- wrong oracles and wrong answers are seen ---

AES_ECB = Algorithm("ecb", "aes")


def sample(data: bytes = bytes(32), out: bytes = b"o" * 32, *, iv: bytes | None = None, tag: bytes = b"") -> Sample:
    return Sample(0, 0, Message(False, bytes(16), b"", b"", data, len(tag)), out, iv, tag, refused=False)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (Answer(b"o" * 32, b"", b""), ""),
        (Answer(b"o" * 31 + b"x", b"", b""), "byte 31 of the output differs from wrong"),
        (Answer(b"x" + b"o" * 31, b"", b""), "byte 0 of the output differs from wrong"),
        (Answer(b"", b"", b""), "byte 0 of the output differs from wrong"),
        (Answer(b"o" * 16, b"", b""), "byte 16 of the output differs from wrong"),
        (Answer(b"o" * 33, b"", b""), "byte 32 of the output differs from wrong"),
        (Answer(b"o" * 32, b"\1", b""), "the next iv is 02, wrong gives 01"),
        (Answer(b"o" * 32, b"", b"\1"), "the tag is , wrong gives 01"),
    ],
)
def test_a_wrong_oracle_is_seen(answer: Answer, sentence: str) -> None:
    verdict = judge_by_oracle(Oracle("wrong", lambda *_: answer), AES_ECB, [sample(iv=b"\2")])
    assert (verdict.name, len(verdict.judged)) == ("wrong", 1)
    assert [text for _, text in verdict.wrong] == ([f"the message of 32 bytes: {sentence}"] if sentence else [])


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_answer_of_generic_is_seen(oracles: dict[str, Oracle], name: str) -> None:
    [right] = judge_by_oracle(oracles[name], AES_ECB, [sample()]).wrong
    assert right[0] == sample()
    assert "byte 0 of the output differs from" in right[1]


def test_messages_beyond_the_domain_are_not_counted() -> None:
    def run(mode: str, cipher: str, message: Message) -> Answer | None:
        assert (mode, cipher) == ("ecb", "aes")
        return Answer(message.data, b"", b"") if len(message.data) == 16 else None

    echo = [sample(bytes(n), bytes(n)) for n in (0, 16, 32, 16)]
    verdict = judge_by_oracle(Oracle("echo", run), AES_ECB, echo)
    assert (len(verdict.judged), verdict.wrong) == (2, ())


def test_a_library_that_raises_is_said_in_one_sentence() -> None:
    def run(*_: object) -> Answer | None:
        raise ValueError("no such length")

    with pytest.raises(HarnessFault) as raised:
        judge_by_oracle(Oracle("strict", run), AES_ECB, [sample()])
    assert str(raised.value) == (
        "the library of the oracle strict refuses ecb(aes) with 16 bytes of key and 32 of data "
        "(ValueError: no such length): have its run() return None there"
    )


# --- missing libraries and damaged files ---


@pytest.mark.parametrize(("name", "module"), [("cryptography", "cryptography"), ("pycryptodome", "Crypto")])
def test_a_missing_library_names_its_package(monkeypatch: pytest.MonkeyPatch, name: str, module: str) -> None:
    for known in [known for known in sys.modules if known.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, known)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingTool) as raised:
        load_oracles(data_root())
    assert f"the Python library of the oracle {name} is not installed" in str(raised.value)
    assert f"install {name} (crosslane asks for it), or leave it out with --without {name}" in str(raised.value)
    assert [oracle.name for oracle in load_oracles(data_root(), [name])] == [other for other in NAMES if other != name]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", r"mine\.py: an oracle defines run\(mode, cipher, message\) -> Answer \| None; add it"),
        ("run = 1\n", "an oracle defines run"),
        ("def run(:\n", r"mine\.py: cannot be loaded \(SyntaxError: .*\); correct the file"),
        ("1 / 0\n", r"cannot be loaded \(ZeroDivisionError: division by zero\); correct the file"),
    ],
)
def test_a_file_that_is_no_oracle_is_refused(tmp_path: Path, text: str, message: str) -> None:
    folder = tmp_path / "conformance" / "oracles"
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text(text)
    with pytest.raises(BadInput, match=message):
        load_oracles(tmp_path)
    assert oracle_names(tmp_path) == ("mine",)
    assert load_oracles(tmp_path, ["mine"]) == ()


def test_without_the_folder_there_is_no_oracle(tmp_path: Path) -> None:
    assert (oracle_names(tmp_path), load_oracles(tmp_path)) == ((), ())
