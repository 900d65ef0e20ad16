# SPDX-License-Identifier: Apache-2.0
"""The disk workload: iv generators, headers, images, and planted faults in the workload's own code."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from planting import NATIVE
from rich.console import Console
from shrinking import SECTORS, Sown, sow

from crosslane.checks import judge_all, load_checks
from crosslane.data import data_root
from crosslane.disk import tools
from crosslane.disk.conduct import DiskJob, conduct_disks, takes_key
from crosslane.disk.images import RECIPES, Image, Recipe, make_image
from crosslane.disk.ivs import U64, Bytes, EncryptBlocks, Generate, essiv_key, make_ivs, sector_numbers
from crosslane.disk.job import GivenImage, _Generic, _jobs, plans_for_disks, run_disk
from crosslane.disk.luks import merged
from crosslane.disk.reference import reference_iv
from crosslane.disk.spec import GENERATORS, parse_spec, specs_of
from crosslane.disk.workload import EDGES, draw_disks
from crosslane.errors import BadInput, MissingTool
from crosslane.job import Job
from crosslane.outputs import Outputs
from crosslane.plan import AlgorithmPlan, Counts, Selection
from crosslane.records import SECTORS as SECTORS_ID
from crosslane.registry import load_registry

QUIET = Console(quiet=True)
SMALL = {str(recipe.spec): recipe for recipe in RECIPES if recipe.mib == 1}


def job(cell: str) -> Job:
    selection = Selection((cell,), ("x86_64_native",))
    return Job(load_registry(data_root()), selection, "a disk", Counts.each(1), num_workers=1)


@pytest.fixture(scope="module")
def cbc_aes() -> AlgorithmPlan:
    (plan,) = plans_for_disks(job("cbc(aes)/aes-generic@x86_64_native"), QUIET).algorithms
    return plan


@pytest.fixture(scope="module")
def image(cbc_aes: AlgorithmPlan) -> Image:
    return make_image(SMALL["aes-cbc-plain64"], _Generic([cbc_aes]).decrypt)


def crosslane(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "crosslane", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def nothing(_: bytes, __: Bytes) -> Bytes:
    raise AssertionError("only essiv encrypts")


@pytest.mark.parametrize("generator", [name for name in GENERATORS if not name.startswith("essiv")])
@pytest.mark.parametrize("iv_len", [8, 16])
def test_generators_agree_with_the_reference_at_all_edges(generator: str, iv_len: int) -> None:
    for edge in EDGES:
        numbers = sector_numbers((edge - 3) % (1 << 64), 6, 512, large=False)
        made = make_ivs(generator, b"", numbers, iv_len, nothing)
        assert [row.tobytes() for row in made] == [reference_iv(generator, n, iv_len) for n in numbers.tolist()]


@pytest.mark.parametrize(
    ("generator", "number", "expected"),
    [
        ("plain", (1 << 32) + 5, "05000000000000000000000000000000"),
        ("plain64", (1 << 32) + 5, "05000000010000000000000000000000"),
        ("plain64be", (1 << 32) + 5, "00000000000000000000000100000005"),
        ("benbi", 3, "00000000000000000000000000000061"),
    ],
)
def test_ivs_of_a_sector_are_those_that_dm_crypt_documents(generator: str, number: int, expected: str) -> None:
    assert make_ivs(generator, b"", np.array([number], np.uint64), 16, nothing)[0].tobytes().hex() == expected


def test_larger_sectors_count_units_of_512_bytes_or_themselves() -> None:
    assert sector_numbers(16, 3, 4096, large=False).tolist() == [16, 24, 32]
    assert sector_numbers(16, 3, 4096, large=True).tolist() == [2, 3, 4]
    assert sector_numbers((1 << 64) - 1, 2, 512, large=False).tolist() == [(1 << 64) - 1, 0]


def test_a_seed_draws_the_same_disks_again_across_the_edges(cbc_aes: AlgorithmPlan) -> None:
    one, again = (draw_disks(cbc_aes.manifest, 0) for _ in range(2))
    assert [(disk.spec, disk.key, disk.first) for disk in one] == [(disk.spec, disk.key, disk.first) for disk in again]
    several = [disk for number in range(3) for disk in draw_disks(cbc_aes.manifest, number)]
    for edge in (1 << 32, 1 << 64):
        assert any(disk.first < edge <= disk.first + 32 * disk.sector_len // 512 for disk in several)
    assert {(disk.sector_len, disk.large) for disk in one} == {(512, False), (4096, False), (4096, True)}
    assert not np.array_equal(one[0].data, draw_disks(cbc_aes.manifest, 1)[0].data)


def test_essiv_needs_a_cipher_that_takes_a_digest_as_its_key() -> None:
    assert "cast5-cbc-essiv:sha256" not in map(str, specs_of("cast5", "cbc", tuple(range(5, 17))))
    assert "aes-xts-essiv:sha256" in map(str, specs_of("aes", "xts", (16, 24, 32)))


@pytest.mark.parametrize(
    "text", ["aes-cbc", "aes-gcm-plain64", "des-cbc-plain", "aes-cbc-essiv:md5", "aes_cbc_plain", ""]
)
def test_an_unknown_specification_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(BadInput, match=r"is none that can be judged: give CIPHER-MODE-GENERATOR of the ciphers aes, "):
        parse_spec(text)


def test_the_splitter_is_undone() -> None:
    key, first = bytes(range(40)), bytes(40)
    block = hashlib.sha256(bytes(4) + first[:32]).digest() + hashlib.sha256(b"\0\0\0\1" + first[32:]).digest()[:8]
    second = bytes(a ^ b for a, b in zip(block, key, strict=True))
    assert merged(first + second, 40, 2, "sha256") == key


def conducted(plan: AlgorithmPlan, generate: Generate, images: tuple[Image, ...] = (), batches: int = 1) -> list[str]:
    """Everything that is not green in a run: reasons of void cells, texts of findings."""
    result = conduct_disks(DiskJob(plan, images, batches, generate)).result
    assert all(cell.comparisons or cell.state == "void" for cell in result.cells)
    return [text for cell in result.cells for text in (cell.reason, *(item.text for item in cell.findings)) if text]


def next_sector(generator: str, key: bytes, numbers: U64, iv_len: int, encrypt: EncryptBlocks) -> Bytes:
    return make_ivs(generator, key, np.maximum(numbers, np.uint64(1)) - np.uint64(1), iv_len, encrypt)


def short_numbers(generator: str, key: bytes, numbers: U64, iv_len: int, encrypt: EncryptBlocks) -> Bytes:
    return make_ivs("plain" if generator == "plain64" else generator, key, numbers, iv_len, encrypt)


def wrong_key(generator: str, key: bytes, numbers: U64, iv_len: int, encrypt: EncryptBlocks) -> Bytes:
    return make_ivs(generator, key, numbers, iv_len, lambda _, blocks: encrypt(essiv_key(key[::-1]), blocks))


def test_without_a_fault_sectors_and_an_image_agree(cbc_aes: AlgorithmPlan, image: Image) -> None:
    assert conducted(cbc_aes, make_ivs, (image,)) == []


@pytest.mark.parametrize(
    ("fault", "generator"), [(next_sector, "plain"), (short_numbers, "plain64"), (wrong_key, "essiv:sha256")]
)
def test_a_fault_planted_in_the_ivs_is_caught(cbc_aes: AlgorithmPlan, fault: Generate, generator: str) -> None:
    """In each judge's words, a finding and no void cell: the sectors themselves agree under the ivs as they are."""
    (cell,) = conduct_disks(DiskJob(cbc_aes, (), 1, fault)).result.cells
    assert cell.state == "ran"
    assert cell.num_departed == len(cell.findings) > 0
    mine = [item for item in cell.findings if f"under {generator} is not that of " in item.text]
    assert {(item.verdict, item.symptom, item.repeats) for item in mine} == {("disagree", "iv", "alone")}
    judged = judge_all(load_checks(data_root()), cell)
    assert [item.passed for item in judged if item.check == "agreement"] == [False]


def test_an_image_whose_ivs_are_wrong_departs_even_where_no_reference_says_so(
    cbc_aes: AlgorithmPlan, image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "crosslane.disk.judge_ivs.IvJudge.ivs", lambda _, generate, *given: generate(*given, 16, nothing)
    )
    texts = conducted(cbc_aes, next_sector, (image,), batches=0)
    assert texts
    assert "differs" in texts[0] or "expected" in texts[0]


def test_an_image_of_essiv_departs_under_a_wrong_key(cbc_aes: AlgorithmPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe(parse_spec("aes-cbc-essiv:sha256"), 256, 1, "aes-256")
    made = make_image(recipe, _Generic([cbc_aes]).decrypt)
    monkeypatch.setattr("crosslane.disk.judge_ivs.IvJudge._judge_essiv", lambda *_: None)
    assert conducted(cbc_aes, wrong_key, (made,), batches=0)


@pytest.mark.parametrize("plant", SECTORS, ids=lambda plant: plant.name)
def test_a_fault_planted_in_an_implementation_is_a_finding_that_repeats(plant: Sown, tmp_path: Path) -> None:
    folder, kept, json_file = sow(tmp_path / "impls", [plant]), tmp_path / "findings", tmp_path / "results.json"
    places: list[str | Path] = ["--impls", folder, "--findings", kept]
    wanted: list[str | Path] = ["--cell", f"{plant.algorithm}/{plant.driver}", "--lane", NATIVE]
    done = crosslane("check", "--workload", "disk", "--count", "1", "--json", json_file, *wanted, *places)
    assert done.returncode == 1, done.stdout + done.stderr
    (found,) = re.findall(r"^finding (\S+): ", done.stdout, re.MULTILINE)
    assert plant.algorithm in done.stdout
    (cell,) = (cell for item in json.loads(json_file.read_text())["algorithms"] for cell in item["cells"])
    judged = {item["check"]: item["passed"] for item in cell["judgements"]}
    assert judged["agreement"] is False
    assert judged["known_answer"] is None
    again = crosslane("repro", found, *places)
    assert again.returncode == 1, again.stdout + again.stderr
    assert "update" in again.stdout
    sectors = cell["findings"][0]["case_id"]
    assert sectors.startswith(SECTORS_ID)
    refused = crosslane("repro", sectors, *places)
    assert refused.returncode == 2
    assert "names sectors of the disk workload: give the id of the finding" in refused.stderr


def test_a_file_that_is_no_image_a_wrong_passphrase_and_a_cut_one_are_refused(image: Image, tmp_path: Path) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_bytes(b"every implementation agrees")
    wrong.write_bytes(b"something else")
    cut = tmp_path / "cut"
    cut.write_bytes(image.file.read_bytes()[: image.payload + 100])
    shorter = tmp_path / "shorter"
    shorter.write_bytes(image.file.read_bytes()[: image.payload + (512 << 10)])
    given = job("cbc(aes)/aes-generic@x86_64_native")
    for file, key, sentence in (
        (image.raw_file, right, "is no LUKS image"),
        (image.file, wrong, "the passphrase opens no key slot"),
        (cut, right, "is cut short: 100 bytes of payload"),
        (shorter, right, "its file system has 1048576 bytes, and 524288 are there; copy it again"),
        (image.file, tmp_path / "none", "cannot be read"),
    ):
        with pytest.raises(BadInput, match=sentence):
            run_disk(given, QUIET, Outputs(), (), given=GivenImage(file, key))
    assert run_disk(given, QUIET, Outputs(), (), given=GivenImage(image.file, right)) == 0


def test_an_image_of_a_cipher_that_is_not_selected_is_refused(image: Image, tmp_path: Path) -> None:
    right = tmp_path / "right"
    right.write_bytes(b"every implementation agrees")
    other = job("xts(aes)/aes-generic@x86_64_native")
    with pytest.raises(BadInput, match=r"no cell of cbc\(aes\), which"):
        run_disk(other, QUIET, Outputs(), (), given=GivenImage(image.file, right))


def test_other_modes_are_refused() -> None:
    with pytest.raises(BadInput, match="none of the cells is of a mode that disks are encrypted with"):
        plans_for_disks(job("ctr(aes)/aes-generic@x86_64_native"), QUIET)


def test_a_library_runs_what_its_domain_has(image: Image) -> None:
    chosen = replace(job("cbc(*)"), selection=Selection(("cbc(aes)", "cbc(cast5)"), (NATIVE,), (), ("libgcrypt",)))
    plans = plans_for_disks(chosen, QUIET)
    assert all(plan.bounded for plan in plans.algorithms)
    jobs = _jobs(plans, {"cbc(aes)": [image], "cbc(cast5)": []}, 1, only=False)
    assert [len(item.images) for item in jobs] == [1, 0]
    cells = [cell for item in jobs for cell in conduct_disks(item).result.cells if cell.state == "ran"]
    assert {"cbc(aes)/libgcrypt@x86_64_native", "cbc(cast5)/libgcrypt@x86_64_native"} <= {cell.cell for cell in cells}
    assert all(cell.comparisons == cell.wanted > 0 and not cell.findings for cell in cells)


def test_a_key_that_a_library_does_not_take_opens_no_image_for_it(cbc_aes: AlgorithmPlan) -> None:
    manifest = replace(cbc_aes.manifest, key_lens=(16,))
    assert [takes_key(manifest, bytes(length)) for length in (15, 16, 32)] == [False, True, False]
    assert takes_key(replace(manifest, num_keys=2, key_extra_len=4), bytes(36))


@pytest.mark.parametrize(("name", "package"), tools.PACKAGES.items())
def test_a_missing_tool_is_named_with_its_package(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(MissingTool, match=f"{name} is not installed: install the package {package} "):
        tools.needed(name)


def test_a_full_disk_is_said_in_a_sentence() -> None:
    said = tools.Said(1, "", "qemu-img: o.luks: error while writing: No space left on device\n")
    assert "has no space left for an image: free some, or set XDG_CACHE_HOME" in str(
        tools.told("qemu-img", said, "an image")
    )
