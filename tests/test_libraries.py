# SPDX-License-Identifier: Apache-2.0
"""Libraries that cannot be run, or misbehave while they are: one sentence each, and the others go on."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from crosslane.checks import judge_all, load_checks
from crosslane.conduct import conduct
from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.instances import instances, read_providers, with_builds
from crosslane.libraries import library_lines, library_rows, printing_lines
from crosslane.manifest import MESSAGES_PER_BATCH
from crosslane.messages import Hello
from crosslane.model import LibraryBuild, Registry
from crosslane.plan import Counts, RunPlan, Selection, make_plans, selected_cells
from crosslane.provenance import Foreign, identify
from crosslane.records import AlgorithmResult, CellResult, LibraryRow
from crosslane.registry import load_registry

FAKE = Path(__file__).parent / "fake"
CELL = "ecb(aes)"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The content folders, with the fake library as the only provider."""
    root = tmp_path_factory.mktemp("tree")
    for name in ("impls", "ci", "conformance"):
        ignore = shutil.ignore_patterns("__pycache__", "libgcrypt", "openssl", "libtomcrypt", "nettle", "botan")
        shutil.copytree(data_root() / name, root / name, ignore=ignore)
    for folder in (root / "impls" / "providers").iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)
    folder = root / "impls" / "providers" / "fake"
    folder.mkdir()
    for name in ("adapter.c", "provider.toml"):
        shutil.copy(FAKE / name, folder)
    return root


Build = Callable[..., LibraryBuild]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Builds the fake library with some of its bad habits; ``arch`` is the prefix of a cross compiler."""

    def made(name: str, *flags: str, header: bool = True, prefix: str = "") -> LibraryBuild:
        folder = tmp_path / name
        folder.mkdir()
        root = data_root() / "impls"
        sources = [FAKE / "fake.c", root / "ciphers" / "aes" / "generic" / "aes.c"]
        include = [f"-I{FAKE}", f"-I{root / 'shim'}", f"-I{root / 'ciphers' / 'aes'}", '-DSUBJECT_NAME="aes_generic"']
        command = [f"{prefix}gcc", "-shared", "-fPIC", "-O2", *flags, *include, "-Wl,-soname,libfake.so.1"]
        subprocess.run([*command, "-o", folder / "libfake.so.1", *sources], check=True)
        (folder / "libfake.so").symlink_to("libfake.so.1")
        return LibraryBuild(name, "fake", folder, FAKE if header else None)

    return made


def run(
    tree: Path, *builds: LibraryBuild, count: int = 400
) -> tuple[dict[str, CellResult], Registry, RunPlan, list[AlgorithmResult]]:
    """What a run says of each build, by its name."""
    registry = with_builds(load_registry(tree), builds)
    selection = Selection(providers=tuple(item.name for item in builds))
    plans = make_plans(registry, selection, counts=Counts.each(count))
    results = [conduct(plan) for plan in plans.algorithms]
    cells = {cell.cell: cell for result in results for cell in result.cells}
    named = {item.name: next(cells[name] for name in cells if f"/{item.name}@" in name) for item in builds}
    return named, registry, plans, results


def test_a_build_is_judged_and_no_other_library_is_loaded(tree: Path, build: Build) -> None:
    cells, registry, plans, results = run(tree, build("new"), build("old"))
    for name, cell in cells.items():
        assert (cell.state, cell.num_departed, cell.comparisons) == ("ran", 0, 400)
        assert cell.library is not None
        assert (cell.library.version, cell.library.source, cell.library.package) == ("1.0", "build", "")
        assert Path(cell.library.file).parent.name == name
        assert len(cell.library.sha256) == 64
    rows = library_rows(registry, plans, results)
    assert {(row.name, row.verdict) for row in rows if row.algorithm == CELL} == {("new", "agreed"), ("old", "agreed")}
    assert {row.verdict for row in rows if row.algorithm != CELL} == {"outside domain"}
    assert any(line.strip() == "agreed, 1: ecb(aes)" for line in library_lines(rows))


def test_a_library_outside_its_folder_is_out_of_reach(tree: Path, build: Build) -> None:
    """The name that the library is loaded by leads to another folder, which the sandbox keeps closed."""
    new, other = build("new"), build("other")
    (new.folder / "libfake.so.1").rename(new.folder / "libfake.so.2")
    (new.folder / "libfake.so").unlink()
    (new.folder / "libfake.so").symlink_to("libfake.so.2")
    (new.folder / "libfake.so.1").symlink_to(other.folder / "libfake.so.1")
    cell = run(tree, new)[0]["new"]
    assert cell.state == "unusable"
    assert "ends the process with status 127 while it is loaded, and says: " in cell.reason
    assert "libfake.so.1: cannot open shared object file" in cell.reason


def test_another_library_in_its_place_is_seen(tree: Path, build: Build) -> None:
    """What the loader knows from elsewhere, such as the system's, is not what the folder was to bring."""
    new, other = build("new"), build("other")
    registry = with_builds(load_registry(tree), [new])
    (instance,) = [item for item in instances(registry) if item.name == "new" and item.lane.runner == "native"]
    where = str(other.folder / "libfake.so.1")
    seen = SimpleNamespace(loaded=(where,), libraries=("fake 1.0",))
    with pytest.raises(Foreign) as caught:
        identify(instance, cast("Hello", seen))
    assert str(caught.value).endswith(
        f"{new.folder} is to bring libfake.so, but the process loads {where}: let the folder hold the library under "
        "the name that it is loaded by"
    )


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("-DFAKE_ABORTS",), "ends the process by SIGABRT while it is loaded, and says: fake: no entropy; see why"),
        (("-DFAKE_LACKS",), "lacks fake_crypt, which its adapter calls; take a release that has it, or leave it out"),
    ],
)
def test_what_cannot_run_is_said_and_the_others_go_on(
    tree: Path, build: Build, flags: tuple[str, ...], sentence: str
) -> None:
    cells, registry, plans, results = run(tree, build("bad", *flags), build("good"))
    assert (cells["bad"].state, cells["good"].state) == ("unusable", "ran")
    assert f"fake in {cells['bad'].reason.split(' in ')[1].split(' ')[0]}" in cells["bad"].reason
    assert sentence in cells["bad"].reason
    assert "\n" not in cells["bad"].reason
    assert cells["good"].comparisons == 400
    rows = [row for row in library_rows(registry, plans, results) if row.algorithm == CELL]
    assert [(row.name, row.verdict) for row in rows] == [("bad", "unusable"), ("good", "agreed")]


def test_a_folder_without_the_library_or_its_header_says_so(tree: Path, build: Build, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    empty, bare = LibraryBuild("empty", "fake", tmp_path / "empty", FAKE), build("bare", header=False)
    cells, *_ = run(tree, empty, bare, build("good"))
    assert "empty holds no libfake.so, which the provider fake needs; build it, or correct" in cells["empty"].reason
    assert "the header fake.h is not installed, which the provider fake needs; build it" in cells["bare"].reason
    assert cells["good"].comparisons == 400


def test_a_library_of_another_architecture_is_told_apart(tree: Path, build: Build) -> None:
    cells, *_ = run(tree, build("arm", prefix="aarch64-linux-gnu-"), build("good"))
    assert "libfake.so is a library for aarch64, but the lane x86_64_native runs x86_64" in cells["arm"].reason
    assert cells["good"].comparisons == 400


def test_a_missing_package_is_named_once_for_all_cells(tree: Path) -> None:
    registry = load_registry(tree)
    (plan,) = make_plans(registry, Selection(providers=("fake",)), counts=Counts.each(8)).algorithms
    cell = conduct(plan).cells[0]
    assert cell.state == "unusable"
    assert "apt-get install libfake-dev" in cell.reason


@pytest.mark.parametrize("habit", ["-DFAKE_PRINTS", "-DFAKE_PRINTS_LATE"])
def test_what_a_library_prints_does_not_break_the_protocol_and_is_said(tree: Path, build: Build, habit: str) -> None:
    """At once, while it is loaded and while it works, or by way of a buffer of the C library's."""
    cells, _, _, results = run(tree, build("loud", habit), build("good"))
    for cell in cells.values():
        assert (cell.state, cell.num_departed, cell.comparisons) == ("ran", 0, 400)
    assert {name: cell.prints for name, cell in cells.items()} == {"loud": True, "good": False}
    (sentence,) = printing_lines(results)
    assert sentence == (
        "loud@x86_64_native writes to standard output, which belongs to the program that calls it: what is written is "
        "kept from the suite's protocol, and every comparison counts; take the words out, or tell its authors"
    )


def test_a_library_that_cannot_be_initialised_is_said(tree: Path, build: Build) -> None:
    """Its adapter initialises it: the others, which need that too, agree."""
    cells, *_ = run(tree, build("raw", "-DFAKE_FAILS"), build("good"))
    assert (cells["raw"].state, cells["good"].state) == ("unusable", "ran")
    assert cells["raw"].reason.endswith(
        "raw cannot be initialised: see what it needs with a program that only initialises it, or leave it out"
    )


def test_a_library_that_lacks_an_algorithm_of_its_domain_is_red(make_cell: Callable[..., CellResult]) -> None:
    cell = make_cell(state="declined", provider=True)
    (judged,) = [item for item in judge_all(load_checks(data_root()), cell) if item.check == "declines"]
    assert judged.passed is False
    assert judged.reason == (
        "the installed library lacks what provider.toml promises: install that part, or take it out of the domain"
    )


def test_a_switch_that_works_for_no_algorithm_is_one_sentence() -> None:
    """In a run of all algorithms: what was not run could be effective."""
    row = LibraryRow("fake", "x86_64_native", "dead", "fake", None, CELL, "switch not effective")
    outside = replace(row, algorithm="lrw(aes)", verdict="outside domain")
    sentence = "dead: its switch changes nothing in any algorithm: this processor lacks what it takes away"
    assert sentence in "\n".join(library_lines([row, outside]))
    for verdict in ("agreed", "finding", "not promised"):
        assert sentence not in "\n".join(library_lines([row, replace(outside, verdict=verdict)]))
    assert sentence not in "\n".join(library_lines([outside]))


def test_a_lock_that_a_crash_leaves_taken_stops_nobody(tree: Path, build: Build) -> None:
    cells, *_ = run(tree, build("crashing", "-DFAKE_CRASHES"), build("good"))
    crashing = cells["crashing"]
    assert {finding.verdict for finding in crashing.findings} == {"crash"}
    assert crashing.comparisons + crashing.num_departed >= 400
    assert not crashing.skipped
    assert cells["good"].num_departed == 0


def test_a_library_that_leaks_is_found_and_its_process_exchanged(tree: Path, build: Build) -> None:
    cells, *_ = run(tree, build("leaking", f"-DFAKE_LEAKS={1 << 17}"), build("good"), count=2 * MESSAGES_PER_BATCH)
    (finding,) = cells["leaking"].findings
    assert (finding.case_id, finding.verdict) == ("memory", "leak")
    assert "MiB more after 16,384 messages than after its first batch" in finding.text
    assert cells["leaking"].comparisons == cells["good"].comparisons == 2 * MESSAGES_PER_BATCH
    assert not cells["good"].findings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("New", "--provider has 'New'; write a provider's name"),
        ("new=", "--provider has 'new='; write a provider's name"),
        ("new=libgcrypt", "write NAME=PROVIDER:FOLDER or NAME=PROVIDER:FOLDER:INCLUDE"),
        ("new=libgcrypt:/a:/b:/c", "write NAME=PROVIDER:FOLDER or NAME=PROVIDER:FOLDER:INCLUDE"),
        ("new=libgcrypt:/nosuchfolder", "/nosuchfolder is no folder: build the library, or correct the path"),
        ("new=libgcrypt:/,new=openssl:/", "names two builds 'new': rename one of them"),
    ],
)
def test_what_provider_cannot_mean_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message.replace("(", r"\(")):
        read_providers([text])


def test_builds_of_no_provider_or_of_a_taken_name_are_refused() -> None:
    registry = load_registry(data_root())
    with pytest.raises(BadInput, match="there is no provider 'libgcript'; nearest are libgcrypt"):
        with_builds(registry, [LibraryBuild("new", "libgcript", Path("/"))])
    with pytest.raises(BadInput, match="the name 'openssl', which is taken: give the build another one"):
        with_builds(registry, [LibraryBuild("openssl", "libgcrypt", Path("/"))])


def test_names_and_builds_are_read_from_one_list() -> None:
    names, builds = read_providers(["openssl,new=libgcrypt:/usr:/tmp", "libgcrypt,openssl"])
    assert names == ("openssl", "new", "libgcrypt")
    assert builds == (LibraryBuild("new", "libgcrypt", Path("/usr"), Path("/tmp").resolve()),)  # noqa: S108
    registry = with_builds(load_registry(data_root()), builds)
    assert {item.provider.name for item in instances(registry) if item.name == "new"} == {"libgcrypt"}


def test_a_provider_that_is_none_or_has_no_cell_is_said() -> None:
    registry = load_registry(data_root())
    with pytest.raises(BadInput, match="there is no provider 'libgcript'; nearest are libgcrypt"):
        selected_cells(registry, Selection(providers=("libgcript",)))
    with pytest.raises(BadInput, match="the provider libtomcrypt has no cell in the lanes that are to run"):
        selected_cells(registry, Selection(lanes=("s390x_qemu",), providers=("libtomcrypt",)))
    chosen, _ = selected_cells(registry, Selection(providers=("libtomcrypt",)))
    assert {cell.driver for cell in chosen} == {"libtomcrypt"}
