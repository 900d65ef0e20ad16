# SPDX-License-Identifier: Apache-2.0
"""``crosslane providers``: fetch, list and remove libraries of other releases and architectures."""

from __future__ import annotations

import json
import sys

import click

from crosslane.data import data_root
from crosslane.errors import BadInput
from crosslane.fetched import ARCH_NAMES, find_sysroots, remove
from crosslane.model import Provider, Sysroot
from crosslane.names import unknown_name
from crosslane.registry import load_registry
from crosslane.sysroots.apt import Mirror, system_mirror
from crosslane.sysroots.fetch import fetch
from crosslane.sysroots.given import check_mirror, read_suite

__all__ = ["providers_command"]

_SUITE = click.option("--suite", required=True, help="Release of Debian, such as bookworm or trixie.")
_ARCH = click.option("--arch", required=True, type=click.Choice(sorted(ARCH_NAMES)), help="Architecture.")


@click.group("providers")
def providers_command() -> None:
    """Libraries of other releases of Debian and of other architectures, each release in a sysroot of its own."""


@providers_command.command("fetch")
@_SUITE
@_ARCH
@click.option("--mirror", help="URI of a mirror of Debian (default: the one that this system uses).")
@click.option(
    "--force", is_flag=True, help="Unpack the packages again where the sysroot has them: its files are damaged."
)
@click.argument("names", nargs=-1, required=True, metavar="PROVIDER...")
def fetch_command(suite: str, arch: str, mirror: str | None, force: bool, names: tuple[str, ...]) -> None:
    """Fetch the packages of providers with all that they depend on, signatures checked with Debian's keyring."""
    read_suite(suite)
    if mirror is not None:
        check_mirror(mirror)
    known = {provider.name: provider for provider in load_registry(data_root()).providers}
    there = [item for item in find_sysroots() if (item.suite, item.arch) == (suite, ARCH_NAMES[arch])]
    wanted = dict.fromkeys([*names, *(name for item in there for name in item.providers if name in known)])
    source = system_mirror() if mirror is None else Mirror(mirror)
    asked = [_known(known, name) for name in wanted]
    sysroot, problems = fetch(suite, arch, asked, source, force=force, say=click.echo)
    for line in _lines(sysroot):
        click.echo(line)
    for problem in problems:
        click.echo(f"crosslane: {problem}", err=True)
    if problems:
        sys.exit(BadInput.exit_status)


def _known(providers: dict[str, Provider], name: str) -> Provider:
    if name not in providers:
        raise unknown_name("provider", name, providers, hint="run `crosslane list providers` for all")
    return providers[name]


@providers_command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every package.")
def list_command(as_json: bool) -> None:
    """List what was fetched: lanes, providers, and the packages with their versions."""
    found = find_sysroots()
    if as_json:
        click.echo(json.dumps([_row(item) for item in found], indent=1))
        return
    for sysroot in found:
        for line in _lines(sysroot):
            click.echo(line)
    if not found:
        click.echo("nothing was fetched: `crosslane providers fetch --suite trixie --arch arm64 libgcrypt` fetches one")


def _row(sysroot: Sysroot) -> dict[str, object]:
    packages = [{"name": item.name, "version": item.version, "sha256": item.sha256} for item in sysroot.packages]
    return {
        "suite": sysroot.suite,
        "lane": sysroot.lane,
        "providers": list(sysroot.providers),
        "root": str(sysroot.root),
        "packages": packages,
    }


def _lines(sysroot: Sysroot) -> list[str]:
    """The lane with its providers, and below it the packages that they ask for."""
    versions = {item.name: item.version for item in sysroot.packages}
    lines = [f"{sysroot.lane}: {', '.join(sysroot.providers)} of {sysroot.suite}, {len(versions)} packages"]
    for provider in load_registry(data_root()).providers:
        if provider.name in sysroot.providers:
            names = dict.fromkeys(name for release in provider.releases for name in release.packages)
            lines += [f"    {name} {versions[name]}" for name in names if name in versions]
    return lines


@providers_command.command("remove")
@_SUITE
@_ARCH
def remove_command(suite: str, arch: str) -> None:
    """Remove what was fetched of a release for an architecture."""
    held = remove(read_suite(suite), arch)
    click.echo(f"removed the sysroot of {suite} for {arch}")
    if held:
        click.echo("a run still reads it: its files stay until the next fetch or removal")
