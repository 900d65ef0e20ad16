# SPDX-License-Identifier: Apache-2.0
"""Sysroots: fetched from a small mirror on this machine, signed by a key of its own; whole, or not there at all."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from crosslane import cli as command_line
from crosslane.data import data_root
from crosslane.errors import BadInput, HarnessFault, MissingTool
from crosslane.fetched import find_sysroots, held_sysroots, locked, remove, sysroots_folder
from crosslane.instances import instances, suite_lane
from crosslane.loading import library_environment, library_runner
from crosslane.model import Provider, Sysroot
from crosslane.registry import cells, load_registry
from crosslane.sysroots import apt
from crosslane.sysroots import fetch as fetching
from crosslane.sysroots.apt import Mirror, source_lines
from crosslane.sysroots.cli import providers_command
from crosslane.sysroots.fetch import fetch

SUITE, ARCH = "toys", "arm64"
TRIPLET = "aarch64-linux-gnu"
EARLIER, PUBLISHED = 1_700_000_000, itertools.count()
"""When the first lists are of, in seconds since 1970, and how many there have been: each is a day younger."""
REGISTRY = load_registry(data_root())


def provider(name: str, *packages: str) -> Provider:
    return Provider(name, name, packages, ("toy.h",), ("toy",), (), (), Path("/"))


TOY, LACKING = provider("toy", "libtoy-dev"), provider("lacking", "libnosuchthing-dev")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Says nothing."""


def package(folder: Path, name: str, version: str, files: dict[str, str], depends: str = "") -> None:
    """A Debian package of files; a content that begins with -> is a link."""
    tree = folder / "trees" / name
    control = [f"Package: {name}", f"Version: {version}", f"Architecture: {ARCH}", "Maintainer: nobody <a@b>"]
    control += [f"Depends: {depends}"] if depends else []
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text("\n".join([*control, "Description: toy", ""]))
    for path, content in files.items():
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith("->"):
            target.symlink_to(content[2:])
        else:
            target.write_text(content)
    made = folder / "pool" / f"{name}_{version}_{ARCH}.deb"
    made.parent.mkdir(exist_ok=True)
    subprocess.run(["dpkg-deb", "-b", "--root-owner-group", tree, made], check=True, stdout=subprocess.DEVNULL)


def publish(folder: Path, home: Path, suite: str = SUITE, more: str = "") -> None:
    """Write the lists of all packages for a release, whose own has some lines ``more``, and sign them."""
    entries = []
    for deb in sorted((folder / "pool").glob("*.deb")):
        control = subprocess.run(["dpkg-deb", "-f", deb], check=True, capture_output=True, text=True).stdout
        digest = hashlib.sha256(deb.read_bytes()).hexdigest()
        entries.append(f"{control.strip()}\nFilename: pool/{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {digest}\n")
    text = "\n".join(entries)
    lists = folder / "dists" / suite / "main" / f"binary-{ARCH}"
    lists.mkdir(parents=True, exist_ok=True)
    (lists / "Packages").write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    release = (
        f"Suite: {suite}\nCodename: {suite}\nComponents: main\nArchitectures: {ARCH}\n"
        f"Date: Thu, 01 Jan 2026 00:00:00 UTC\n{more}SHA256:\n {digest} {len(text)} main/binary-{ARCH}/Packages\n"
    )
    (folder / "dists" / suite / "Release").write_text(release)
    signed = folder / "dists" / suite / "InRelease"
    signed.unlink(missing_ok=True)
    gpg(home, "--clearsign", "-o", str(signed), str(folder / "dists" / suite / "Release"))
    day = EARLIER + 86400 * next(PUBLISHED)  # apt asks for what is newer, by the second
    for path in (lists / "Packages", folder / "dists" / suite / "Release", signed):
        os.utime(path, (day, day))


def gpg(home: Path, *words: str) -> None:
    assert shutil.which("gpg"), "the program gpg is not installed: install the package gnupg"
    subprocess.run(["gpg", "--homedir", home, "--batch", "--quiet", *words], check=True)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of gpg with one key, and the key in a file."""
    home = tmp_path_factory.mktemp("gnupg")
    home.chmod(0o700)
    gpg(home, "--passphrase", "", "--quick-generate-key", "toys <toys@example.org>", "ed25519", "sign", "never")
    gpg(home, "-o", str(home / "toys.gpg"), "--export")
    return home


@pytest.fixture
def mirror(tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Mirror, Path]]:
    """A mirror with the packages of a toy library, in the form of releases before folders were merged."""
    folder = tmp_path / "mirror"
    library = {
        f"lib/{TRIPLET}/libtoy.so.1": "code",
        f"lib/{TRIPLET}/libup.so": f"->../../usr/lib/{TRIPLET}/libother.so",
        f"usr/lib/{TRIPLET}/libother.so": "other",
        "usr/share/doc/libtoy1/readme": "words",
        "etc/toy.conf": "x",
    }
    develop = {"usr/include/toy.h": "int toy;", f"usr/lib/{TRIPLET}/libtoy.so": f"->/lib/{TRIPLET}/libtoy.so.1"}
    package(folder, "libtoy1", "1:1.0-1", library)
    package(folder, "libtoy-dev", "1.0-1", develop, "libtoy1")
    for name in fetching.BASE_PACKAGES:
        package(folder, name, "2.0", {f"usr/lib/{TRIPLET}/{name}.so.6": "base"})
    publish(folder, keys)
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setattr(apt, "KEYRING", keys / "toys.gpg")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Mirror(f"http://127.0.0.1:{server.server_port}"), folder
    server.shutdown()
    server.server_close()


def test_packages_come_with_all_that_they_depend_on(mirror: tuple[Mirror, Path]) -> None:
    sysroot, problems = fetch(SUITE, ARCH, [TOY], mirror[0])
    assert not problems
    assert [(item.name, item.version) for item in sysroot.packages] == [
        ("libc6-dev", "2.0"), ("libstdc++6", "2.0"), ("libtoy-dev", "1.0-1"), ("libtoy1", "1:1.0-1"),
    ]  # fmt: skip
    libtoy = sysroot.packages[3]
    assert libtoy.libraries == ("libother.so", "libtoy.so.1")
    (deb,) = (mirror[1] / "pool").glob("libtoy1_*")
    assert libtoy.sha256 == hashlib.sha256(deb.read_bytes()).hexdigest()
    assert (sysroot.lane, sysroot.providers) == ("aarch64_toys", ("toy",))
    assert find_sysroots() == (sysroot,)


def test_old_releases_are_unpacked_into_the_form_of_new_ones(mirror: tuple[Mirror, Path]) -> None:
    root = fetch(SUITE, ARCH, [TOY], mirror[0])[0].root
    libraries = root / "usr" / "lib" / TRIPLET
    assert str((root / "lib").readlink()) == "usr/lib"
    assert sorted(path.name for path in root.iterdir()) == ["lib", "lib64", "usr"]
    assert sorted(path.name for path in (root / "usr").iterdir()) == ["include", "lib", "lib64"]
    assert (libraries / "libtoy.so").resolve() == libraries.resolve() / "libtoy.so.1"
    assert (libraries / "libup.so").read_text() == "other"
    assert (libraries / "libtoy.so").read_text() == "code"


def test_a_second_fetch_changes_nothing_and_a_new_version_replaces_all(mirror: tuple[Mirror, Path], keys: Path) -> None:
    first = fetch(SUITE, ARCH, [TOY], mirror[0])[0]
    assert fetch(SUITE, ARCH, [TOY], mirror[0])[0] == first
    package(mirror[1], "libtoy2", "2.0", {f"usr/lib/{TRIPLET}/libtoy.so.2": "new"})
    (mirror[1] / "pool" / f"libtoy-dev_1.0-1_{ARCH}.deb").unlink()
    shutil.rmtree(mirror[1] / "trees" / "libtoy-dev")
    package(mirror[1], "libtoy-dev", "2.0-1", {"usr/include/toy.h": "long toy;"}, "libtoy2")
    publish(mirror[1], keys)
    second = fetch(SUITE, ARCH, [TOY], mirror[0])[0]
    assert "libtoy2" in [item.name for item in second.packages]
    assert second.digest != first.digest
    assert find_sysroots() == (second,)
    assert not first.root.exists()


def test_a_fetch_that_is_interrupted_leaves_what_was_there(
    mirror: tuple[Mirror, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_root: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fetching, "_trim", stop)
        with pytest.raises(KeyboardInterrupt):
            fetch(SUITE, ARCH, [TOY], mirror[0])
    assert find_sysroots() == ()
    sysroot, _ = fetch(SUITE, ARCH, [TOY], mirror[0])
    assert find_sysroots() == (sysroot,)
    assert len(list((sysroots_folder() / ".trees").iterdir())) == 1


def test_an_unknown_signature_is_refused(
    mirror: tuple[Mirror, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "other"
    home.mkdir(mode=0o700)
    gpg(home, "--passphrase", "", "--quick-generate-key", "b <b@example.org>", "ed25519", "sign", "never")
    gpg(home, "-o", str(home / "b.gpg"), "--export")
    monkeypatch.setattr(apt, "KEYRING", home / "b.gpg")
    with pytest.raises(BadInput, match=r"the release toys for arm64 cannot be had from http.*NO_PUBKEY"):
        fetch(SUITE, ARCH, [TOY], mirror[0])
    assert find_sysroots() == ()


def test_a_package_that_was_changed_behind_its_signature_is_refused(mirror: tuple[Mirror, Path]) -> None:
    (deb,) = (mirror[1] / "pool").glob("libtoy1_*")
    content = deb.read_bytes()
    deb.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(HarnessFault, match=r"packages of toys for arm64 cannot be fetched \(.*Hash Sum mismatch.*\)"):
        fetch(SUITE, ARCH, [TOY], mirror[0])


def test_what_a_release_lacks_is_said_and_the_others_come(mirror: tuple[Mirror, Path]) -> None:
    sysroot, problems = fetch(SUITE, ARCH, [LACKING, TOY], mirror[0])
    assert problems == [
        "the release toys has no package libnosuchthing-dev for arm64, which the provider lacking needs: it is left out"
    ]
    assert sysroot.providers == ("toy",)
    with pytest.raises(BadInput, match="it is left out; nothing is left to fetch"):
        fetch(SUITE, ARCH, [LACKING], mirror[0])


def test_a_release_that_a_mirror_lacks_is_said(mirror: tuple[Mirror, Path]) -> None:
    with pytest.raises(BadInput, match=r"the release nosuch for arm64 cannot be had from .*correct --suite or --arch"):
        fetch("nosuch", ARCH, [TOY], mirror[0])


def test_a_missing_keyring_names_its_package(mirror: tuple[Mirror, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "KEYRING", Path("/nosuch.gpg"))
    with pytest.raises(MissingTool, match="apt-get install debian-archive-keyring"):
        fetch(SUITE, ARCH, [TOY], mirror[0])


def test_two_fetches_at_once_are_told_apart(mirror: tuple[Mirror, Path]) -> None:
    with locked(), pytest.raises(HarnessFault, match="another `crosslane providers` works there"):
        fetch(SUITE, ARCH, [TOY], mirror[0])


def test_a_sysroot_is_removed_whole(mirror: tuple[Mirror, Path]) -> None:
    fetch(SUITE, ARCH, [TOY], mirror[0])
    with pytest.raises(BadInput, match="there is no sysroot of other for arm64: there are toys-arm64; correct"):
        remove("other", ARCH)
    remove(SUITE, ARCH)
    assert find_sysroots() == ()
    assert not list((sysroots_folder() / ".trees").iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 0}, "sysroot.json has not the fields"),
        ({"arch": "vax"}, "its architecture is none of ours"),
        ({"packages": [{"name": "x"}]}, "a package has not the fields"),
        ({"more": 1}, "sysroot.json has not the fields"),
    ],
)
def test_a_record_that_no_fetch_wrote_is_refused(
    mirror: tuple[Mirror, Path], change: dict[str, object], message: str
) -> None:
    file = fetch(SUITE, ARCH, [TOY], mirror[0])[0].root.parent / "sysroot.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(BadInput, match=rf"{message}.*run `crosslane providers fetch` again"):
        find_sysroots()


def test_what_is_fetched_has_a_lane_and_cells(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "usr" / "lib" / TRIPLET / "ossl-modules").mkdir(parents=True)
    sysroot = Sysroot("toys-new", "aarch64", root, ("openssl",), (), "0" * 64)
    registry = load_registry(data_root(), sysroots=(sysroot,), host="x86_64")
    found = [cell for cell in cells(registry, "x86_64") if cell.lane == "aarch64_toys_new"]
    assert {cell.driver for cell in found} == {"openssl"}
    (instance,) = (item for item in instances(registry, "x86_64") if item.sysroot and not item.backend)
    assert len([cell for cell in found if not cell.backend]) == len(instance.provider.domains)
    assert (instance.lane.runner, instance.lane.cpu, instance.lane.gate) == ("qemu", "max", False)
    assert suite_lane(sysroot, "aarch64").runner == "native"
    modules = str(root / "usr" / "lib" / TRIPLET / "ossl-modules")
    assert ("OPENSSL_MODULES", modules) in library_environment(instance)
    command, reads = library_runner(instance)
    assert command[-2:] == ("-L", str(root))
    assert reads[0] == root / "usr" / "lib" / TRIPLET
    native = suite_lane(sysroot, "aarch64")
    command, reads = library_runner(type(instance)(instance.provider, "openssl", native, sysroot))
    assert command[1:3] == ("--inhibit-cache", "--library-path")
    assert list(reads) == [root / "usr" / "lib" / TRIPLET]


# ---- what is given -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "suite", ["../../../x y", "../x", "", "sid\ndeb [trusted=yes] http://x", "sid [x]", "Sid", "a" * 65]
)
def test_a_suite_that_can_be_none_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suite: str
) -> None:
    """Where no sysroot is there yet."""
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    words = ["fetch", "--suite", suite, "--arch", "arm64", "--mirror", "http://127.0.0.1:9", "libgcrypt"]
    answer = CliRunner().invoke(providers_command, words)
    assert isinstance(answer.exception, BadInput)
    assert "write the name of a release, such as bookworm" in str(answer.exception)
    with pytest.raises(BadInput, match="write the name of a release"):
        fetch(suite, ARCH, [TOY], Mirror("http://127.0.0.1:9"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "uri",
    ["", "x", "ftp://x/debian", "http://", "http://x/ main\ndeb [trusted=yes] http://y", "http://x\n", "http://[::1]/",
     "http://user:secret@x/a b", "file:relative", "http://x/#"],
)  # fmt: skip
def test_a_mirror_that_can_be_none_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str
) -> None:
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    answer = CliRunner().invoke(
        providers_command, ["fetch", "--suite", SUITE, "--arch", ARCH, "--mirror", uri, "libgcrypt"]
    )
    assert isinstance(answer.exception, BadInput)
    assert "give with --mirror a URI that begins with http://" in str(answer.exception)
    assert "secret" not in str(answer.exception)
    for mirror in (Mirror(uri), Mirror("http://x", uri or " ")):
        with pytest.raises(BadInput, match="give with --mirror a URI"):
            fetch(SUITE, ARCH, [TOY], mirror)
    assert list(tmp_path.iterdir()) == []


def test_other_names_that_can_be_none_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(BadInput, match=r"--arch has '\.\./vax'; write one of amd64, arm64"):
        fetch(SUITE, "../vax", [TOY], Mirror("file:/nowhere"))
    with pytest.raises(BadInput, match="has the package '-o=x', whose name Debian does not allow"):
        fetch(SUITE, ARCH, [provider("toy", "-o=x")], Mirror("file:/nowhere"))
    with pytest.raises(BadInput, match="write the name of a release"):
        raise CliRunner().invoke(providers_command, ["remove", "--suite", "../x", "--arch", ARCH]).exception or OSError
    assert list(tmp_path.iterdir()) == []


def test_passwords_are_for_the_user_alone_and_in_no_message(
    mirror: tuple[Mirror, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "XDG_CACHE_HOME" / "crosslane" / "apt" / f"nosuch-{ARCH}"
    folder.mkdir(parents=True)
    (folder / "sources.list").write_text("")
    (folder / "sources.list").chmod(0o644)
    config = tmp_path / "system.conf"
    config.write_text('Acquire::http::Proxy::proxied.example "http://user:secret@127.0.0.1:9";\n')
    monkeypatch.setenv("APT_CONFIG", str(config))
    private = Mirror(mirror[0].uri.replace("//", "//user:secret@"))
    with pytest.raises(BadInput, match=r"cannot be had from http://\*\*\*@127\.0\.0\.1") as caught:
        fetch("nosuch", ARCH, [TOY], private)
    assert "secret" not in str(caught.value)
    for name in ("sources.list", "apt.conf"):
        assert "user:secret@" in (folder / name).read_text()
        assert (folder / name).stat().st_mode & 0o777 == 0o600


def test_a_pocket_brings_the_release_that_it_adds_to() -> None:
    def sources(suite: str, security: str = "http://s") -> list[str]:
        lines = source_lines(suite, ARCH, Mirror("http://m", security))
        assert all(line.startswith(f"deb [arch={ARCH} signed-by=/") for line in lines)
        return [line.partition("] ")[2].removesuffix(" main") for line in lines]

    usual = ["http://m bookworm", "http://s bookworm-security"]
    assert sources("bookworm") == usual
    assert sources("bookworm", "") == usual[:1]
    for pocket in ("backports", "backports-sloppy", "updates", "proposed-updates"):
        assert sources(f"bookworm-{pocket}") == [*usual, f"http://m bookworm-{pocket}"]
    assert sources("bookworm-security") == usual
    assert sources("sid") == ["http://m sid"]
    assert sources("experimental") == ["http://m unstable", "http://m experimental"]


def test_a_backport_is_taken_before_what_the_release_has(mirror: tuple[Mirror, Path], keys: Path) -> None:
    """apt by itself gives what is in backports less weight than the release."""
    shutil.rmtree(mirror[1] / "trees" / "libtoy-dev")
    package(mirror[1], "libtoy-dev", "3.0", {"usr/include/toy.h": "long toy;"})
    publish(mirror[1], keys, f"{SUITE}-backports", "NotAutomatic: yes\nButAutomaticUpgrades: yes\n")
    sysroot, _ = fetch(f"{SUITE}-backports", ARCH, [TOY], mirror[0])
    assert [item.version for item in sysroot.packages if item.name == "libtoy-dev"] == ["3.0"]
    assert sysroot.lane == "aarch64_toys_backports"


# ---- links ---------------------------------------------------------------------------------------------------------


def test_links_that_climb_out_end_at_the_root(mirror: tuple[Mirror, Path], keys: Path) -> None:
    libraries = f"usr/lib/{TRIPLET}"
    files = {
        f"{libraries}/up": f"->{'../' * 40}usr/include",
        f"{libraries}/out": f"->{'../' * 40}etc/passwd",
        "usr/include/round": "->round",
        f"{libraries}/file": "x",
    }
    package(mirror[1], "libclimbs", "1", files)
    publish(mirror[1], keys)
    root = fetch(SUITE, ARCH, [provider("toy", "libclimbs")], mirror[0])[0].root
    assert (root / libraries / "up").resolve() == (root / "usr" / "include").resolve()
    assert (root / libraries / "out").resolve() == root / "etc" / "passwd"
    assert not (root / libraries / "out").exists()


def test_a_link_that_leads_out_by_way_of_another_one_is_refused(mirror: tuple[Mirror, Path], keys: Path) -> None:
    deep = "usr/lib/a/b/c/d/e"
    package(mirror[1], "libwinds", "1", {f"{deep}/x": "x", "usr/lib/short": "->../lib", f"{deep}/near": "->/usr/lib",
                                         "usr/lib/over": f"->a/b/c/d/e/near/{'../' * 6}etc"})  # fmt: skip
    publish(mirror[1], keys)
    with pytest.raises(
        HarnessFault, match=r"a package has the link usr/lib/over to .*, which leads out of the sysroot"
    ):
        fetch(SUITE, ARCH, [provider("toy", "libwinds")], mirror[0])
    assert find_sysroots() == ()


def test_packages_of_merged_folders_are_taken_as_they_are(mirror: tuple[Mirror, Path], keys: Path) -> None:
    files = {"lib": "->usr/lib", "lib64": "->usr/lib64", f"usr/lib/{TRIPLET}/libnew.so": "new"}
    package(mirror[1], "libmerged", "1", files)
    package(mirror[1], "libold", "1", {f"lib/{TRIPLET}/libsame.so": f"->/usr/lib/{TRIPLET}/libsame.so",
                                       f"usr/lib/{TRIPLET}/libsame.so": "same"})  # fmt: skip
    publish(mirror[1], keys)
    root = fetch(SUITE, ARCH, [provider("toy", "libmerged")], mirror[0])[0].root
    assert (root / "lib" / TRIPLET / "libnew.so").read_text() == "new"
    remove(SUITE, ARCH)
    root = fetch(SUITE, ARCH, [provider("toy", "libold")], mirror[0])[0].root
    assert (root / "lib" / TRIPLET / "libsame.so").read_text() == "same"


def test_what_cannot_be_merged_is_one_sentence(mirror: tuple[Mirror, Path], keys: Path) -> None:
    package(mirror[1], "libodd", "1", {"lib": "->opt/lib"})
    package(mirror[1], "libtwice", "1", {"lib/name/file": "x", "usr/lib/name": "x"})
    publish(mirror[1], keys)
    with pytest.raises(HarnessFault, match="a package has lib as a link to opt/lib, not to usr/lib"):
        fetch(SUITE, ARCH, [provider("toy", "libodd")], mirror[0])
    with pytest.raises(HarnessFault, match=r"cannot be unpacked into one folder \(.*File exists"):
        fetch(SUITE, ARCH, [provider("toy", "libtwice")], mirror[0])


# ---- damage and readers --------------------------------------------------------------------------------------------


def test_force_mends_what_was_damaged(mirror: tuple[Mirror, Path]) -> None:
    first = fetch(SUITE, ARCH, [TOY], mirror[0])[0]
    (first.root / "usr" / "include" / "toy.h").unlink()
    assert fetch(SUITE, ARCH, [TOY], mirror[0])[0].root == first.root
    second = fetch(SUITE, ARCH, [TOY], mirror[0], force=True)[0]
    assert second.root != first.root
    assert (second.root / "usr" / "include" / "toy.h").is_file()
    assert not first.root.exists()


def test_a_sysroot_that_a_run_reads_stays_until_the_run_has_ended(mirror: tuple[Mirror, Path]) -> None:
    fetch(SUITE, ARCH, [TOY], mirror[0])
    said: list[str] = []
    with held_sysroots() as (first,):
        second = fetch(SUITE, ARCH, [TOY], mirror[0], force=True, say=said.append)[0]
        assert said[-1] == "a run still reads what was there: that stays until the next fetch or removal"
        assert (first.root / "usr" / "include" / "toy.h").is_file()
        assert find_sysroots() == (second,)
    with held_sysroots() as (held,):
        assert held == second
        answer = CliRunner().invoke(providers_command, ["remove", "--suite", SUITE, "--arch", ARCH])
        assert answer.output.splitlines()[-1] == "a run still reads it: its files stay until the next fetch or removal"
        assert not first.root.exists()
        assert (second.root / "usr" / "include" / "toy.h").is_file()
        assert find_sysroots() == ()
    third = fetch(SUITE, ARCH, [TOY], mirror[0])[0]
    assert not second.root.exists()
    assert find_sysroots() == (third,)


def test_commands_hold_what_they_read(mirror: tuple[Mirror, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    root = fetch(SUITE, ARCH, [TOY], mirror[0])[0].root
    seen = []

    def removed_meanwhile(*_: object) -> list[object]:
        seen.append(remove(SUITE, ARCH))
        return []

    monkeypatch.setattr(command_line, "_rows", removed_meanwhile)
    answer = CliRunner().invoke(command_line.cli, ["list", "lanes"])
    assert (answer.exit_code, seen) == (0, [True])
    assert root.is_dir()


def test_wrong_use_of_the_command_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    answer = CliRunner().invoke(providers_command, ["fetch", "--suite", "toys", "--arch", "arm64", "libgcript"])
    assert isinstance(answer.exception, BadInput)
    assert "there is no provider 'libgcript'; nearest are libgcrypt" in str(answer.exception)
    assert "nothing was fetched" in CliRunner().invoke(providers_command, ["list"]).output
