# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.isa import PORTABLE_ARCHES
from crosslane.lanes import load_lanes
from crosslane.registry import cells, cipher_named, implementation_named, load_registry, mode_named, scan_registry

TOY = Path("impls") / "ciphers" / "toy"
IMPL = str(TOY / "generic" / "impl.toml")
CIPHER = str(TOY / "cipher.toml")
MODE = str(Path("impls") / "modes" / "ecb" / "mode.toml")


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_tree_itself_loads_and_every_cell_is_named_once() -> None:
    registry = load_registry(data_root())
    ids = [str(cell) for cell in cells(registry, "x86_64")]
    assert len(ids) == len(set(ids)) > 0


def test_all_that_lies_on_disk_is_found(fake_root: Path) -> None:
    registry = load_registry(fake_root)
    assert [cipher.name for cipher in registry.ciphers] == ["toy"]
    assert [mode.name for mode in registry.modes] == ["ecb", "wide"]
    assert [item.driver for item in registry.implementations] == ["toy-avx2-x86_64", "toy-ce", "toy-generic"]
    generic = implementation_named(registry, "toy-generic")
    assert generic.symbol == "toy_generic"
    assert generic.is_generic
    assert generic.sources[0] == fake_root / TOY / "generic" / "toy.c"
    assert cipher_named(registry, "toy").key_lens == (8, 16)
    assert mode_named(registry, "wide").block_lens == (16,)


def test_cells_are_where_block_and_architecture_allow(fake_root: Path) -> None:
    ids = {str(cell) for cell in cells(load_registry(fake_root), "x86_64")}
    lanes = load_lanes(data_root() / "ci" / "lanes.toml")
    names = {lane.name for lane in lanes if lane.abi == "system"} - {"aarch64_native"}  # no toy is in assembly
    arm = {name for name in names if name.startswith("aarch64_")}
    x86 = {name for name in names if name.startswith("x86_64_")}
    assert {"aarch64_qemu_max", "aarch64_clang_o3"} < arm
    assert {"x86_64_native", "x86_64_asan", "x86_64_clang_o3"} < x86
    portable = {f"{arch}_qemu" for arch in PORTABLE_ARCHES}
    expected = {f"ecb(toy)/toy-generic@{lane}" for lane in arm | x86 | portable}
    expected |= {f"ecb(toy)/toy-ce@{lane}" for lane in arm}
    expected |= {f"ecb(toy)/toy-avx2-x86_64@{lane}" for lane in x86}
    assert ids == expected


def test_unknown_names_get_the_nearest(fake_root: Path) -> None:
    registry = load_registry(fake_root)
    with pytest.raises(BadInput, match="no driver 'toy-generik'; nearest are toy-generic"):
        implementation_named(registry, "toy-generik")
    with pytest.raises(BadInput, match="no cipher 'x'; allowed are toy"):
        cipher_named(registry, "x")


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (CIPHER, "key_lens = [8, 16]", "key_lens = [8, 16", "cipher.toml: malformed TOML: .*line"),
        (CIPHER, "block_len = 8", "block_len = 12", "block_len has 12; allowed are 8, 16"),
        (CIPHER, "block_len = 8", "block_len = 8.0", "block_len has 8.0; it must be a whole number"),
        (CIPHER, "block_len = 8", "block_len = true", "block_len has True; it must be a whole number"),
        (CIPHER, "[8, 16]", "[8, 8]", "names something twice"),
        (CIPHER, "[8, 16]", "[-1]", "key_lens has -1; the least allowed is 0"),
        (
            CIPHER,
            "policies = []",
            'policies = ["strict"]',
            "policies has 'strict'; allowed are degenerate, weak_subkey",
        ),
        (CIPHER, 'name = "toy"', 'name = "tea"', "name is 'tea'; allowed is its folder's name, 'toy'"),
        (MODE, 'split = "block"', 'split = "bit"', "split has 'bit'; allowed are byte, block, none"),
        (MODE, 'iv = "none"', 'iv = "random"', r"iv is 'random' but iv_lens is \[\]"),
        (MODE, "num_keys = 1", "num_keys = 0", "num_keys has 0; the least allowed is 1"),
        (MODE, "aad = false", "aead = false", "unknown key 'aead'"),
        (IMPL, 'driver = "toy-generic"', 'driver = "Toy"', "driver has 'Toy'; it must be of the form"),
        (IMPL, 'isa = "any"', 'isa = "mips"', "isa has 'mips'; allowed are any, x86_64, aarch64"),
        (IMPL, "features = []", 'features = ["avx"]', "features has 'avx'; allowed are none"),
        (IMPL, "ways = 1", "ways = 0", "ways has 0; the least allowed is 1"),
        (IMPL, "fused = []", 'fused = ["cbb"]', "fused has 'cbb'; allowed are the modes ecb, wide"),
        (IMPL, '"toy.c", ', '"toy.c", "../x.c", ', r"sources has '\.\./x\.c'"),
        (IMPL, '"toy.c", ', '"toy.c", "lost.c", ', r"lost\.c: the file is missing; .*impl\.toml lists it"),
        (IMPL, '"toy.c", "more.c", ', "", "sources has only headers"),
        (IMPL, 'paths = ["1way"]', "paths = []", "paths is .*it needs 1 or more"),
        (IMPL, "ways = 1\n", "", "the key 'ways' is missing; add it"),
        (IMPL, "ways = 1", 'ways = 1\nflags = ["-Ofast"]', "unknown key 'flags'"),
        (IMPL, "ways = 1", 'ways = 1\ncipher = "toy"', "unknown key 'cipher'"),
        (IMPL, '"toy-generic"', '"toy-ce"', "driver 'toy-ce' is taken by"),
    ],
)
def test_bad_metadata_is_one_sentence_that_names_the_file(
    fake_root: Path, file: str, old: str, new: str, message: str
) -> None:
    edit(fake_root / file, old, new)
    with pytest.raises(BadInput, match=message) as caught:
        load_registry(fake_root)
    assert "\n" not in str(caught.value)
    assert str(fake_root) in str(caught.value)


@pytest.mark.parametrize(
    ("feature", "folder"), [("avx512", "x86_64_avx2"), ("aes2", "aarch64_ce")], ids=["x86_64", "aarch64"]
)
def test_an_unknown_feature_is_told_the_allowed_ones(fake_root: Path, feature: str, folder: str) -> None:
    edit(fake_root / TOY / folder / "impl.toml", "features = [", f'features = ["{feature}", ')
    with pytest.raises(BadInput, match=f"features has '{feature}'; allowed for isa .* are .*aes"):
        load_registry(fake_root)


@pytest.mark.parametrize(
    ("place", "missing"),
    [
        ("impls/ciphers/tea", r"tea/cipher\.toml: the file is missing; add it or remove the folder tea"),
        (
            "impls/ciphers/toy/x86_64_sse",
            r"x86_64_sse/impl\.toml: the file is missing; add it, with sources, or remove",
        ),
        ("impls/modes/ctr", r"ctr/mode\.toml: the file is missing"),
    ],
)
def test_a_folder_without_metadata_is_an_error(fake_root: Path, place: str, missing: str) -> None:
    (fake_root / place).mkdir()
    with pytest.raises(BadInput, match=missing):
        load_registry(fake_root)


@pytest.mark.parametrize("name", ["ecb.c", "reference.py"])
def test_a_mode_needs_code_and_reference(fake_root: Path, name: str) -> None:
    (fake_root / "impls" / "modes" / "ecb" / name).unlink()
    with pytest.raises(BadInput, match=f"{name}: the file is missing; a mode needs"):
        load_registry(fake_root)


def test_one_mistake_does_not_hide_the_next(fake_root: Path) -> None:
    edit(fake_root / CIPHER, "block_len = 8", "block_len = 9")
    edit(fake_root / MODE, "num_keys = 1", "num_keys = 0")
    registry, problems = scan_registry(fake_root)
    assert len(problems) == 2
    assert [mode.name for mode in registry.modes] == ["wide"]
    with pytest.raises(BadInput, match=r"and 1 more: run `crosslane lint`"):
        load_registry(fake_root)


def test_caches_and_hidden_folders_are_no_content(fake_root: Path) -> None:
    (fake_root / TOY / "__pycache__").mkdir()
    (fake_root / "impls" / "modes" / ".idea").mkdir()
    load_registry(fake_root)


def test_two_folders_may_not_share_a_getter(fake_root: Path) -> None:
    shutil.copytree(fake_root / TOY, fake_root / "impls" / "ciphers" / "toy_x86_64")
    other = fake_root / "impls" / "ciphers" / "toy_x86_64"
    edit(other / "cipher.toml", '"toy"', '"toy_x86_64"')
    shutil.move(other / "x86_64_avx2", other / "avx2")
    for folder in ("generic", "avx2", "aarch64_ce"):
        edit(other / folder / "impl.toml", 'driver = "toy', 'driver = "other')
    with pytest.raises(BadInput, match="its getter 'toy_x86_64_avx2' is also that of"):
        load_registry(fake_root)


def test_a_third_party_is_found_in_both_layouts(fake_root: Path, third_party: Path) -> None:
    item = implementation_named(load_registry(fake_root, [third_party]), "toy-theirs")
    assert (item.origin, item.symbol, item.is_generic) == (str(third_party), "toy_theirs", False)
    direct = third_party / "toy" / "theirs"
    edit(direct / "impl.toml", "driver =", 'cipher = "toy"\ndriver =')
    item = implementation_named(load_registry(fake_root, [direct]), "toy-theirs")
    assert (item.origin, item.cipher, item.symbol) == (str(direct), "toy", "toy_theirs")


def test_a_third_party_named_generic_is_not_the_judge(fake_root: Path, third_party: Path) -> None:
    (third_party / "toy" / "theirs").rename(third_party / "toy" / "generic")
    assert not implementation_named(load_registry(fake_root, [third_party]), "toy-theirs").is_generic


def test_what_a_third_party_may_not_bring(fake_root: Path, third_party: Path) -> None:
    theirs = third_party / "toy" / "theirs"
    script = theirs / "derive.py"
    script.write_text("")
    with pytest.raises(BadInput, match=r"derive\.py: a folder given with --impls brings no Python"):
        load_registry(fake_root, [third_party])
    script.unlink()
    (theirs / "more.c").unlink()
    (theirs / "more.c").symlink_to(fake_root / TOY / "generic" / "more.c")
    with pytest.raises(BadInput, match=r"more\.c: is a link"):
        load_registry(fake_root, [third_party])


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("nowhere", r"nowhere: no such folder .*create it or name another"),
        ("empty", "empty: holds no implementation; lay it out as <cipher>/<folder>/impl.toml"),
        ("rot13", "'rot13' is no cipher; allowed are toy"),
        ("keyless", "the key 'cipher' is missing; add it .*allowed are toy"),
        ("taken", "driver 'toy-generic' is taken by"),
        ("dashed", r"the folder's name is part of the getter's; rename it to the form \[a-z0-9_\]\+"),
    ],
)
def test_a_bad_third_party_folder(fake_root: Path, third_party: Path, layout: str, message: str) -> None:
    theirs = third_party / "toy" / "theirs"
    folder = third_party
    match layout:
        case "nowhere":
            folder = third_party / "nowhere"
        case "empty":
            folder = third_party / "empty"
            folder.mkdir()
        case "rot13":
            (third_party / "toy").rename(third_party / "rot13")
        case "keyless":
            folder = theirs
        case "taken":
            edit(theirs / "impl.toml", "toy-theirs", "toy-generic")
        case _:
            theirs.rename(third_party / "toy" / "the-irs")
    with pytest.raises(BadInput, match=message):
        load_registry(fake_root, [folder])
