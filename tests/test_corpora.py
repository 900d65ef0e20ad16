# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from crosslane._json_lines import Node, read_json
from crosslane.corpora import (
    MonteCarlo,
    Vector,
    VectorFile,
    check_sources,
    load_sources,
    load_vector_file,
    load_vectors,
)
from crosslane.data import data_root
from crosslane.errors import BadInput

CORPORA = data_root() / "corpora"
FILES = sorted((CORPORA / "vectors").glob("*/*.json"))
MAX_FILE_LEN = 1 << 20

# Line 13 is the key, 14 the iv, 15 and 16 the two parts of the plaintext, 17 the ciphertext.
SOUND = """{
  "version": 1,
  "source": "paper",
  "algorithm": "cbc(toy)",
  "notes": ["From a paper."],
  "num_vectors": 1,
  "groups": [
    {
      "locator": "page 1",
      "vectors": [
        {
          "id": "one",
          "key": "000102030405060708090a0b0c0d0e0f",
          "iv": "0011223344556677",
          "plaintext": ["0011223344556677",
                        "8899aabbccddeeff"],
          "ciphertext": "00000000000000000000000000000000"
        }
      ]
    }
  ]
}
"""
MONTE_CARLO = """{"kind": "monte_carlo", "id": "m", "direction": "decrypt", "num_outer": 3, "num_inner": 2, "rounds": [
{"index": 0, "key": "0000", "input": "00", "output": "11"},
{"index": 1, "key": "0011", "input": "11", "output": "22"},
{"index": 2, "key": "0033", "input": "22", "output": "44"}]}"""
MAINTENANCE = json.dumps(
    {
        "kind": "maintenance",
        "id": "b_2",
        "key": "00" * 15 + "01",
        "plaintext": "00" * 15 + "02",
        "iterations": 3,
        "ciphertext": "00" * 15 + "03",
        "final_key": "00" * 15 + "04",
    }
)
VECTOR_LINE = 11  # of SOUND


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "paper" / "cbc.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def with_vector(vector: str) -> str:
    start = SOUND.index('        {\n          "id"')
    return SOUND[:start] + vector + SOUND[SOUND.index("\n      ]\n") :]


def load_one(tmp_path: Path, vector: dict[str, Any] | str) -> Vector:
    text = vector if isinstance(vector, str) else json.dumps(vector)
    return load_vector_file(write(tmp_path, with_vector(text))).vectors[0]


def refused(load: Callable[[], object]) -> str:
    with pytest.raises(BadInput) as caught:
        load()
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = json.loads((CORPORA / "schemas" / "vectors.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_file_fits_the_schema_and_the_loader(path: Path, validator: Draft202012Validator) -> None:
    validator.validate(json.loads(path.read_text(encoding="utf-8")))
    file = load_vector_file(path)
    assert file.vectors
    assert path.stat().st_size < MAX_FILE_LEN


def test_all_files_are_loaded_in_order() -> None:
    files = load_vectors(CORPORA / "vectors")
    assert [file.path for file in files] == FILES
    assert all(isinstance(file, VectorFile) for file in files)


def test_rows_and_disk_agree_exactly() -> None:
    assert len(check_sources(CORPORA).files) == len(FILES)


def test_no_object_of_the_schema_takes_unknown_fields() -> None:
    schema = json.loads((CORPORA / "schemas" / "vectors.schema.json").read_text(encoding="utf-8"))
    objects = 0
    todo: list[Any] = [schema]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            if item.get("type") == "object":
                objects += 1
                assert item["additionalProperties"] is False
                assert set(item["required"]) <= set(item["properties"])
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
    assert objects == 6


def test_fields_are_read_as_written(tmp_path: Path) -> None:
    file = load_vector_file(write(tmp_path, SOUND))
    vector = file.vectors[0]
    assert (file.source, file.algorithm, file.notes) == ("paper", "cbc(toy)", ("From a paper.",))
    assert (file.groups[0].locator, file.groups[0].line, vector.line) == ("page 1", 8, 11)
    assert vector.key == bytes(range(16))
    assert vector.plaintext.hex() == "00112233445566778899aabbccddeeff"
    assert (vector.id, vector.kind, vector.iterations, vector.direction) == ("one", "message", 1, "both")
    assert (vector.aad, vector.tag, vector.expect, vector.monte_carlo) == (b"", b"", "ok", None)


def test_a_repeated_message_is_given_whole(tmp_path: Path) -> None:
    vector = load_one(tmp_path, {"id": "a", "key": "00", "plaintext": "01ff", "tag": "aa", "data_repeat": 3})
    assert (vector.plaintext.hex(), vector.aad) == ("01ff01ff01ff", b"")
    vector = load_one(tmp_path, {"id": "a", "key": "00", "plaintext": "", "tag": "aa", "aad": "02", "aad_repeat": 4})
    assert (vector.plaintext, vector.aad.hex()) == (b"", "02020202")


def test_a_wrong_tag_may_be_published(tmp_path: Path) -> None:
    fields = {"id": "a", "key": "00", "plaintext": "", "ciphertext": "0102", "tag": "aa", "expect": "bad_tag"}
    assert load_one(tmp_path, fields | {"direction": "decrypt"}).expect == "bad_tag"
    assert "needs an empty 'plaintext'" in refused(lambda: load_one(tmp_path, fields))


def test_a_monte_carlo_vector_names_its_ends(tmp_path: Path) -> None:
    vector = load_one(tmp_path, MONTE_CARLO)
    assert isinstance(vector.monte_carlo, MonteCarlo)
    assert (vector.key.hex(), vector.ciphertext.hex(), vector.plaintext.hex()) == ("0000", "00", "44")
    assert (vector.monte_carlo.num_outer, vector.monte_carlo.num_inner) == (3, 2)
    assert [item.index for item in vector.monte_carlo.rounds] == [0, 1, 2]


def test_a_maintenance_vector_has_both_ends(tmp_path: Path) -> None:
    vector = load_one(tmp_path, MAINTENANCE)
    ends = (vector.key[15], vector.plaintext[15], vector.ciphertext[15], vector.final_key[15])
    assert (vector.kind, vector.iterations, ends) == ("maintenance", 3, (1, 2, 3, 4))


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('"key": "0001', '"key": "00g1', 13, "'g' as character 3; allowed are 0-9 and a-f"),
        ('"key": "0001', '"key": "00A1', 13, "'A' as character 3; allowed are 0-9 and a-f"),
        ('8899aabbccddeeff"', '8899aabbccddeex"', 16, "'x' as character 15"),
        ('8899aabbccddeeff"', '8899aabbccddeef"', 16, "15 hex digits; allowed is an even number"),
        ('"8899aabbccddeeff"', '""', 16, "none empty"),
        ('"8899aabbccddeeff"', "7", 16, "a string of hex digits"),
        ('"ciphertext": "00', '"ciphertext": "', 17, "'ciphertext' has 15 bytes but the message has 16"),
        ('"iv"', '"vi"', 14, "unknown field 'vi' in a message vector; allowed are id, key, plaintext, kind, iv"),
        ('"iv"', '"key"', 14, "the key 'key' comes twice"),
        ('          "id": "one",\n', "", 11, "a message vector lacks the field 'id'"),
        ('"id": "one"', '"id": "One"', 12, "'id' is 'One'; allowed are a-z"),
        ('"iv": "0011223344556677"', '"iterations": 0', 14, "'iterations' is 0; allowed is a whole number from 1"),
        ('"iv": "0011223344556677"', '"iterations": true', 14, "'iterations' is True"),
        ('"iv": "0011223344556677"', '"kind": "messag"', 14, "allowed are message, monte_carlo, maintenance"),
        ('"iv": "0011223344556677"', '"direction": "up"', 14, "allowed are both, encrypt, decrypt"),
        ('"iv": "0011223344556677"', '"tag": ""', 14, "at least one byte is needed"),
        ('"iv": "0011223344556677"', '"data_repeat": 99999999', 14, "at most 16777216 are allowed"),
        ('"iv": ', '"iterations": 2, "iv": ', 14, "allowed only without 'iv', 'aad' and 'tag'"),
        ('"ciphertext"', '"aad"', 11, "needs 'ciphertext', 'tag' or both"),
        ('"num_vectors": 1', '"num_vectors": 2', 6, "'num_vectors' is 2 but the file has 1 vectors"),
        ('"version": 1', '"version": 2', 2, "'version' is 2; allowed is 1"),
        ('"source": "paper"', '"source": "other"', 3, "allowed is the folder's name 'paper'"),
        ('"cbc(toy)"', '"toy-cbc"', 4, "'algorithm' is 'toy-cbc'; allowed is a mode of a cipher such as ecb(sm4)"),
        ('["From a paper."]', '["From a paper.", ""]', 5, "must be a string that is not empty"),
        ('"notes": ["From a paper."]', '"notes": "From a paper."', 5, "'notes' of the file must be a list"),
        ('  "notes": ["From a paper."],\n', "", 1, "the file lacks the field 'notes'"),
        ('"page 1"', "null", 9, "the value 'null' is not allowed here"),
        ('"page 1"', "1.5", 9, "the value '1.5' is not allowed here"),
        ('"page 1"', '"page\t1"', 9, "no JSON string"),
        ('"page 1",', '"page 1"', 10, "'\"' stands where ',' or '}' must stand"),
        ("      ]\n    }\n  ]\n}\n", "", 19, "the end of the file stands where ',' or ']' must stand"),
        ("  ]\n}\n", "  ]\n}\n{}\n", 23, "text after the end"),
    ],
)
def test_a_departure_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    assert SOUND.count(old) == 1
    path = write(tmp_path, SOUND.replace(old, new))
    message = refused(lambda: load_vector_file(path))
    assert f"cbc.json:{line}: " in message
    assert words in message


@pytest.mark.parametrize(
    ("base", "old", "new", "line", "words"),
    [
        (MONTE_CARLO, '"input": "11"', '"input": "12"', 0, "input of round 1 is not the output of round 0"),
        (MONTE_CARLO, '"index": 2', '"index": 3', 0, "they must rise from 0 to num_outer - 1 = 2"),
        (MONTE_CARLO, '"index": 1', '"index": 2', 0, "'rounds' have the indices [0, 2, 2]"),
        (MONTE_CARLO, '"key": "0011"', '"key": "11"', 0, "several lengths"),
        (MONTE_CARLO, '"key": "0011"', '"key": "001122"', 2, "'key' has 3 bytes; allowed are 1 to 2"),
        (MONTE_CARLO, '"output": "22"', '"output": "2222"', 2, "'output' has 2 bytes but 'input' has 1"),
        (MONTE_CARLO, '"decrypt"', '"both"', 0, "allowed are encrypt, decrypt"),
        (MONTE_CARLO, '"num_inner": 2', '"num_inner": 1', 0, "a whole number from 2 on"),
        (MONTE_CARLO, '"num_inner": 2', '"key": "00"', 0, "unknown field 'key' in a monte_carlo vector"),
        (MAINTENANCE, '01"', '"', 0, "'key' has 15 bytes; allowed are 16"),
        (MAINTENANCE, '"iterations": 3, ', "", 0, "lacks the field 'iterations'"),
    ],
)
def test_special_kinds_are_checked_too(tmp_path: Path, base: str, old: str, new: str, line: int, words: str) -> None:
    assert base.count(old) == 1
    message = refused(lambda: load_one(tmp_path, base.replace(old, new)))
    assert f"cbc.json:{VECTOR_LINE + line}: " in message
    assert words in message


def test_an_id_comes_once_in_a_file(tmp_path: Path) -> None:
    vector = '{"id": "a", "key": "00", "plaintext": "00", "ciphertext": "00"}'
    text = with_vector(f"{vector},\n{vector}").replace('"num_vectors": 1', '"num_vectors": 2')
    message = refused(lambda: load_vector_file(write(tmp_path, text)))
    assert "cbc.json:12: the id 'a' was given at line 11 already" in message


def test_what_is_no_vector_file_has_no_place_among_them(tmp_path: Path) -> None:
    assert "no such folder of vectors" in refused(lambda: load_vectors(tmp_path / "none"))
    write(tmp_path, SOUND)
    assert len(load_vectors(tmp_path)) == 1
    (tmp_path / "paper" / "notes.txt").write_text("x")
    assert "notes.txt: only files <source>/<name>.json" in refused(lambda: load_vectors(tmp_path))


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    assert "cannot be read" in refused(lambda: load_vector_file(tmp_path))
    path = write(tmp_path, SOUND)
    path.write_bytes(b'{"notes": "\xff"}')
    assert "byte 11 is not UTF-8" in refused(lambda: load_vector_file(path))
    path.write_text("[" * 100)
    assert "nested deeper than the 32 levels" in refused(lambda: load_vector_file(path))


JSON = st.recursive(
    st.booleans() | st.integers(-(10**17), 10**17) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def plain(node: Node) -> object:
    if isinstance(node.value, dict):
        return {key: plain(item) for key, item in node.value.items()}
    if isinstance(node.value, list):
        return [plain(item) for item in node.value]
    return node.value


@given(value=JSON, indent=st.sampled_from([None, 0, 2]))
def test_the_reader_agrees_with_the_standard_library(
    tmp_path_factory: pytest.TempPathFactory, value: object, indent: int | None
) -> None:
    path = tmp_path_factory.getbasetemp() / "value.json"
    path.write_text(json.dumps(value, indent=indent), encoding="utf-8")
    assert plain(read_json(path)) == value


ROW = """[[file]]
path = "vectors/paper/cbc.json"
title = "Toy in CBC"
document = "A paper"
section = "page 1"
url = ""
carrier = ""
licence = "facts"
verified = "by hand"
sha256 = "@SHA256@"
"""
FACT = """
[[fact]]
name = "toy-sbox"
title = "S-box of Toy"
document = "A paper"
section = "page 2"
url = "https://example.org/paper"
carrier = ""
licence = "facts"
used_in = ["impls/toy.c"]
"""


@pytest.fixture
def register(tmp_path: Path) -> Path:
    """A sound corpora folder with one file, its row and one fact."""
    root = tmp_path / "corpora"
    (root / "vectors").mkdir(parents=True)
    path = write(root / "vectors", SOUND)
    (tmp_path / "impls").mkdir()
    (tmp_path / "impls" / "toy.c").write_text("")
    text = (ROW + FACT).replace("@SHA256@", hashlib.sha256(path.read_bytes()).hexdigest())
    (root / "SOURCES.toml").write_text(text)
    return root / "SOURCES.toml"


def test_a_sound_register_is_read(register: Path) -> None:
    sources = check_sources(register.parent)
    assert (sources.files[0].path, sources.files[0].origin.document) == ("vectors/paper/cbc.json", "A paper")
    assert (sources.facts[0].name, sources.facts[0].used_in) == ("toy-sbox", ("impls/toy.c",))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('title = "Toy in CBC"\n', "", "[[file]] number 1 (vectors/paper/cbc.json): the key 'title' is missing"),
        ('title = "Toy in CBC"', 'titel = "Toy in CBC"', "unknown key 'titel'"),
        ('title = "Toy in CBC"', 'title = ""', "title has ''"),
        ('title = "Toy in CBC"', "title = 7", "title has 7; it must be a string"),
        ('sha256 = "', 'sha256 = "0', "sha256 has '0"),
        ('"vectors/paper/cbc.json"', '"vectors/../cbc.json"', "path has 'vectors/../cbc.json'"),
        ('"vectors/paper/cbc.json"', '"/vectors/cbc.json"', "path has '/vectors/cbc.json'"),
        ('"vectors/paper/cbc.json"', '"vectors/paper/ctr.json"', "cbc.json: the file has no row"),
        ('["impls/toy.c"]', '["impls/other.c"]', "fact 'toy-sbox' is used in 'impls/other.c', which is no file"),
        ('["impls/toy.c"]', "[]", "used_in is []"),
        ("[[fact]]", "[[facts]]", "unknown table 'facts'; allowed are [[file]] and [[fact]]"),
        ("[[fact]]", "[fact]", "'fact' is no list of tables"),
        ("[[fact]]", "[[fact]", "malformed TOML"),
    ],
)
def test_a_bad_register_is_refused(register: Path, old: str, new: str, words: str) -> None:
    text = register.read_text()
    assert text.count(old) == 1
    register.write_text(text.replace(old, new))
    message = refused(lambda: check_sources(register.parent))
    assert words in message
    assert ".toml" in message


def test_file_and_row_must_be_of_one_mind(register: Path) -> None:
    path = register.parent / "vectors" / "paper" / "cbc.json"
    path.write_text(SOUND + "\n")
    assert "cbc.json: the SHA-256 is " in refused(lambda: check_sources(register.parent))
    path.unlink()
    assert "the row of 'vectors/paper/cbc.json' has no file" in refused(lambda: check_sources(register.parent))
    register.write_text(register.read_text() + FACT)
    assert "two rows [[fact]] are for 'toy-sbox'" in refused(lambda: load_sources(register))
    register.unlink()
    assert "SOURCES.toml: cannot be read" in refused(lambda: load_sources(register))
