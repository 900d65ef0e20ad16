# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
from pathlib import Path

import pytest

from crosslane.data import data_root
from crosslane.lint import lint

GENERIC = "impls/ciphers/toy/generic"
WIDE = "impls/ciphers/toy/x86_64_avx2"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def messages(root: Path, *impls_dirs: Path) -> str:
    return "\n".join(map(str, lint(root, impls_dirs)))


def test_the_tree_itself_is_clean() -> None:
    assert messages(data_root()) == ""


def test_a_sound_folder_and_a_sound_third_party_are_clean(fake_root: Path, third_party: Path) -> None:
    assert messages(fake_root, third_party) == ""


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (f"{GENERIC}/impl.toml", '"more.c", ', "", "sources has only toy.c, toy.h, but more.c lies beside it"),
        (
            f"{GENERIC}/impl.toml",
            '"1way"',
            '"1way", "8way"',
            "paths has '8way', which no source marks; allowed are 1way",
        ),
        (f"{GENERIC}/toy.c", '"1way"', '"2way"', "paths misses '2way', which a source marks with SUBJECT_PATH"),
        (
            f"{GENERIC}/toy.c",
            'SUBJECT_PATH("1way");',
            '/* SUBJECT_PATH("1way"); */',
            "paths has '1way', which no source",
        ),
        (
            f"{GENERIC}/toy.c",
            "toy_generic",
            "toy_general",
            r"allowed is const struct subject_leaf \*toy_generic\(uint64_t",
        ),
        (f"{GENERIC}/toy.c", "SPDX-License-Identifier", "Licence", "toy.c: its first 2 lines do not hold 'SPDX-"),
        (f"{GENERIC}/impl.toml", "fused = []", 'fused = ["ecb"]', "fused has 'ecb', but no source fills .ecb"),
        (f"{GENERIC}/toy.c", ".setkey =", ".ctr = {0},\n    .setkey =", "a source fills .ctr of struct .*add 'ctr'"),
        (f"{GENERIC}/impl.toml", "priority = 100", "priority = 99", "generic is the judge of all others"),
        (f"{GENERIC}/impl.toml", '"toy-generic"', '"toy-c"', "allowed are isa 'any', driver 'toy-generic'"),
        (f"{WIDE}/impl.toml", '"toy-avx2-x86_64"', '"avx2"', "driver is 'avx2'; it must begin with 'toy-'"),
        ("impls/ciphers/toy/cipher.toml", "[8, 16]", "[16, 8]", r"key_lens is \[16, 8\]; list them in rising order"),
        ("impls/modes/ecb/ecb.c", "subject_mode_ecb", "subject_mode_cbc", "const struct subject_mode subject_mode_ecb"),
        ("impls/ciphers/toy/cipher.toml", "block_len = 8", "block_len = 9", "block_len has 9; allowed are 8, 16"),
    ],
)
def test_data_that_does_not_match_the_code(fake_root: Path, file: str, old: str, new: str, message: str) -> None:
    edit(fake_root / file, old, new)
    found = messages(fake_root)
    assert re.search(message, found), found
    assert str(fake_root / file).rpartition("/")[0] in found


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (f"{GENERIC}/stray.S", "but stray.S lies beside it; list or remove it"),
        (f"{GENERIC}/notes.txt", "notes.txt: does not belong to an implementation; allowed are impl.toml, *.c"),
        (f"{GENERIC}/helper.py", "helper.py: does not belong to an implementation"),
        ("impls/ciphers/toy/toy.txt", "toy.txt: does not belong to a cipher"),
        ("impls/ciphers/toy/toy.c", "toy.c: does not belong to a cipher"),
        (f"{GENERIC}/find_toy.c", "but find_toy.c lies beside it; list or remove it"),
        ("impls/modes/ecb/Makefile", "Makefile: does not belong to a mode"),
    ],
)
def test_files_that_nothing_names(fake_root: Path, place: str, message: str) -> None:
    (fake_root / place).write_text("/* SPDX-License-Identifier: Apache-2.0 */\n")
    assert message in messages(fake_root)


def test_scripts_that_derive_constants_may_lie_beside_our_own(fake_root: Path) -> None:
    (fake_root / GENERIC / "derive_tables.py").write_text("# SPDX-License-Identifier: Apache-2.0\n")
    (fake_root / GENERIC / "find_circuits.py").write_text("# SPDX-License-Identifier: Apache-2.0\n")
    (fake_root / "impls/ciphers/toy/find_circuits.c").write_text("/* SPDX-License-Identifier: Apache-2.0 */\n")
    assert messages(fake_root) == ""


def test_a_path_marked_in_a_header_of_the_cipher_counts(fake_root: Path) -> None:
    edit(fake_root / GENERIC / "toy.c", 'SUBJECT_PATH("1way");', "mark();")
    edit(fake_root / GENERIC / "toy.c", '#include "toy.h"', '#include "toy.h"\n#include "shared.h"')
    header = fake_root / "impls" / "ciphers" / "toy" / "shared.h"
    header.write_text('/* SPDX-License-Identifier: Apache-2.0 */\n#define mark() SUBJECT_PATH("1way")\n')
    assert messages(fake_root) == ""
    (header.parent / "inner.h").write_text(header.read_text())
    header.write_text('/* SPDX-License-Identifier: Apache-2.0 */\n#include "inner.h"\n')
    assert messages(fake_root) == ""


ASSEMBLY = "/* SPDX-License-Identifier: Apache-2.0 */\nFUNCTION(toy_rounds)\n    ENTER_1\n    LEAVE\nEND(toy_rounds)\n"
DECLARED = "void SUBJECT_ASM_ABI toy_rounds(void *);\n"
DIRECT = "static void past(void *x)\n{\n    toy_rounds(x);\n}\n"
CALLED = "static void through(void *x)\n{\n    SUBJECT_ASM_CALL(toy_rounds)(x);\n}\n"


@pytest.mark.parametrize(
    ("assembly", "code", "message"),
    [
        (ASSEMBLY, DECLARED + CALLED, ""),
        (ASSEMBLY.replace("FUNCTION(", "    .globl toy_rounds\n("), DECLARED + CALLED, "by a directive"),
        (ASSEMBLY + '#include "more.h"\n', DECLARED + CALLED, "toy_more is global by a directive"),
        (ASSEMBLY, DECLARED, "no C source calls toy_rounds by SUBJECT_ASM_CALL"),
        (ASSEMBLY, DECLARED.replace("SUBJECT_ASM_ABI ", "") + CALLED, "or declares it for one calling convention"),
        (ASSEMBLY, DECLARED + CALLED + DIRECT, "toy_rounds without a thunk"),
    ],
)
def test_assembly_is_entered_by_its_macros(fake_root: Path, assembly: str, code: str, message: str) -> None:
    folder = fake_root / WIDE
    (folder / "toy_rounds.S").write_text(assembly)
    more = "/* SPDX-License-Identifier: Apache-2.0 */\n    .global toy_more\ntoy_more:\n"
    (folder.parent / "more.h").write_text(more)
    edit(folder / "impl.toml", 'sources = ["toy.c"', 'sources = ["toy_rounds.S", "toy.c"')
    with (folder / "toy.c").open("a") as file:
        file.write(code)
    found = messages(fake_root)
    assert message in found if message else found == ""
    assert len(found.splitlines()) == (1 if message else 0)


def test_two_of_one_isa_may_not_share_a_priority(fake_root: Path) -> None:
    twin = fake_root / "impls" / "ciphers" / "toy" / "x86_64_avx"
    twin.mkdir()
    for path in (fake_root / WIDE).iterdir():
        (twin / path.name).write_text(path.read_text().replace("avx2", "avx"))
    assert "priority 300 is also that of" in messages(fake_root)
    edit(twin / "impl.toml", "priority = 300", "priority = 200")
    assert messages(fake_root) == ""


def test_a_folder_is_named_after_its_isa(fake_root: Path) -> None:
    folder = fake_root / "impls" / "ciphers" / "toy"
    (folder / "x86_64_avx2").rename(folder / "avx2")
    edit(folder / "avx2" / "toy.c", "toy_x86_64_avx2", "toy_avx2")
    assert "the folder's name must be its isa, 'x86_64', or begin with 'x86_64_'" in messages(fake_root)
    (folder / "avx2").rename(folder / "x86_64")
    edit(folder / "x86_64" / "toy.c", "toy_avx2", "toy_x86_64")
    assert messages(fake_root) == ""


def test_a_cipher_needs_a_generic_implementation(fake_root: Path) -> None:
    folder = fake_root / "impls" / "ciphers" / "toy"
    (folder / "generic").rename(folder / "portable")
    assert "has no sound generic implementation to judge others by" in messages(fake_root)


def test_third_parties_are_held_to_the_contract_but_not_to_our_style(fake_root: Path, third_party: Path) -> None:
    theirs = third_party / "toy" / "theirs"
    edit(theirs / "toy.c", "/* SPDX-License-Identifier: Apache-2.0 */\n", "")
    edit(theirs / "impl.toml", "toy-theirs", "rot13")
    assert messages(fake_root, third_party) == ""
    edit(theirs / "impl.toml", '"1way"', '"7way"')
    assert "paths has '7way', which no source marks" in messages(fake_root, third_party)


def test_all_problems_are_told_at_once(fake_root: Path) -> None:
    edit(fake_root / GENERIC / "impl.toml", '"1way"', '"3way"')
    edit(fake_root / WIDE / "impl.toml", "ways = 1", "ways = 0")
    (fake_root / "impls" / "modes" / "ctr").mkdir()
    found = messages(fake_root)
    for part in ("paths has '3way'", "ways has 0", "mode.toml: the file is missing"):
        assert part in found
