# SPDX-License-Identifier: Apache-2.0
"""Writes what of ``ci`` follows from ``ci/lanes.toml`` and from the list of packages: workflows and the container file.

    python3 ci/generate_workflows.py [--check]

``--check`` writes nothing and ends with status 1 where a file differs from what would be written. Files in
``ci/templates`` that are not named here are written by hand.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import prepare

__all__ = ["HOSTS", "PINNED", "Shard", "container", "files", "main", "packages", "shards"]

HOSTS = {"x86_64": "ubuntu-24.04", "aarch64": "ubuntu-24.04-arm"}
"""Of each host architecture, the runner that has it natively."""
PINNED = {
    "actions/checkout": ("08c6903cd8c0fde910a37f88322edcfb5dd907a8", "v5.0.0"),
    "actions/upload-artifact": ("330a01c490aca151604b8cf639adc76d48f6c5d4", "v5.0.0"),
    "actions/download-artifact": ("018cc2cf5baa6db3ef3c5f8a56943fffe632ef53", "v6.0.0"),
}
"""Each action by commit and the release that it is."""
NOT_IN_CONTAINER = {"libwolfssl-dev": "wolfSSL is under the GPL, and its adapter is not distributed"}
FOR_TESTS = frozenset({"chromium", "gnupg", "libclang-rt-dev"})
"""What the project's own tests alone need: they look at pages, sign, and link libFuzzer."""
DEBIAN = "debian 12"
_HEAD = """# SPDX-License-Identifier: Apache-2.0
# Made by ci/generate_workflows.py from ci/lanes.toml: change that, and run it again.
"""


@dataclass(frozen=True)
class Shard:
    """Lanes of the gate that one job runs on one host."""

    name: str
    host: str
    lanes: tuple[str, ...]


def shards(lanes: Mapping[str, Mapping[str, Any]]) -> list[Shard]:
    """Share the gate's lanes out, so that each runs once: natively, or emulated on the host that has its full grids."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, lane in lanes.items():
        if not lane["gate"]:
            continue
        native = lane["runner"] == "native"
        host = lane["arch"] if native else next(iter(lane["full"]), "x86_64")
        kind = "native" if native else f"emulated {lane['arch']}" if lane["arch"] in HOSTS else "portable"
        groups.setdefault((host, kind), []).append(name)
    ordered = sorted(groups, key=lambda key: (list(HOSTS).index(key[0]), key[1]))
    return [Shard(f"{host} {kind}".replace(" ", "-"), host, tuple(groups[host, kind])) for host, kind in ordered]


def _uses(action: str) -> str:
    commit, release = PINNED[action]
    return f"{action}@{commit} # {release}"


def _checkout() -> str:
    return f"""      - uses: {_uses("actions/checkout")}
        with:
          persist-credentials: false
"""


def _keep(name: str) -> str:
    return f"""      - if: always()
        uses: {_uses("actions/upload-artifact")}
        with:
          name: {name}
          path: results
          if-no-files-found: ignore
"""


def _hosts() -> str:
    rows = "".join(f"          - {{name: {host}, runner: {runner}}}\n" for host, runner in HOSTS.items())
    return f"""    strategy:
      fail-fast: false
      matrix:
        include:
{rows}    runs-on: ${{{{ matrix.runner }}}}
"""


def _shard_rows(wanted: Sequence[Shard]) -> str:
    rows = []
    for shard in wanted:
        lanes = " ".join(f"--lane {name}" for name in shard.lanes)
        rows.append(
            f"          - name: {shard.name}\n            runner: {HOSTS[shard.host]}\n            lanes: {lanes}\n"
        )
    return "".join(rows)


def changes(wanted: Sequence[Shard]) -> str:
    """The workflow of a change: own tests, the gate's policy, every lane in shards, one report, planted faults."""
    return f"""{_HEAD}#
# A workflow for GitHub: copy it to .github/workflows/. Each lane of the gate runs once, native ones on hardware. Code
# of a change runs without secrets and without a token that may write.
name: crosslane
on:
  pull_request:
  push:
    branches: [main]
permissions:
  contents: read
concurrency:
  group: ${{{{ github.workflow }}}}-${{{{ github.ref }}}}
  cancel-in-progress: ${{{{ github.event_name == 'pull_request' }}}}
jobs:
  tests:
    name: tests ${{{{ matrix.name }}}}
{_hosts()}    timeout-minutes: 60
    steps:
{_checkout()}      - run: ci/test
  gate:
    if: github.event_name == 'pull_request'
    name: gate ${{{{ matrix.name }}}}
{_hosts()}    timeout-minutes: 30
    steps:
{_checkout()}      - run: mkdir results
      - run: ci/gate --summary --json results/gate.json --junit results/gate.xml --sarif results/gate.sarif
{_keep("gate-${{ matrix.name }}")}  check:
    name: check ${{{{ matrix.name }}}}
    strategy:
      fail-fast: false
      matrix:
        include:
{_shard_rows(wanted)}    runs-on: ${{{{ matrix.runner }}}}
    timeout-minutes: 60
    steps:
{_checkout()}      - run: ci/setup
      - run: mkdir results
      - run: .venv/bin/crosslane check --prove $LANES --json "results/$SHARD.json"
        env:
          LANES: ${{{{ matrix.lanes }}}}
          SHARD: ${{{{ matrix.name }}}}
{_keep("check-${{ matrix.name }}")}  report:
    needs: check
    if: always() && needs.check.result != 'cancelled'
    runs-on: {HOSTS["x86_64"]}
    timeout-minutes: 15
    steps:
{_checkout()}      - uses: {_uses("actions/download-artifact")}
        with:
          pattern: check-*
          path: shards
          merge-multiple: true
      - run: python3 -m venv .venv && .venv/bin/pip install --quiet .
      - run: mkdir results
      - run: >-
          .venv/bin/crosslane report merge shards/*.json --json results/results.json --junit results/junit.xml
          --summary
{_keep("report")}  selftest:
    name: selftest ${{{{ matrix.name }}}}
{_hosts()}    timeout-minutes: 60
    steps:
{_checkout()}      - run: mkdir results
      - run: ci/selftest --lane "${{HOST}}_native" --seed first --json results/selftest.json
        env:
          HOST: ${{{{ matrix.name }}}}
      - if: always()
        run: python3 ci/publish.py results/selftest.json >>"$GITHUB_STEP_SUMMARY"
{_keep("selftest-${{ matrix.name }}")}"""


def nightly() -> str:
    """The workflow of a night: what is too long for a change, on hardware of both architectures."""
    return f"""{_HEAD}#
# A workflow for GitHub: copy it to .github/workflows/. What is too long for a change runs once a night. The score of
# the search for planted faults is on the page of each run, and its table among what can be fetched from there.
name: crosslane nightly
on:
  schedule:
    - cron: "17 1 * * *"
  workflow_dispatch:
permissions:
  contents: read
jobs:
  nightly:
    name: nightly ${{{{ matrix.name }}}}
{_hosts()}    timeout-minutes: 350
    steps:
{_checkout()}      - run: ci/nightly
      - if: always()
        run: python3 ci/publish.py results/selftest.json results/selftest-large.json >>"$GITHUB_STEP_SUMMARY"
{_keep("nightly-${{ matrix.name }}")}"""


def packages(host: str) -> list[str]:
    """The Debian packages of the container on a host: all that a check needs and that may be distributed."""
    wanted = [need.package for need in prepare.needs(host, DEBIAN)]
    return [name for name in wanted if name not in NOT_IN_CONTAINER and name not in FOR_TESTS]


def container() -> str:
    """The container file: everything installed, on either architecture."""
    common = [name for name in packages("x86_64") if name in packages("aarch64")]
    of_host = {host: [name for name in packages(host) if name not in common] for host in HOSTS}
    listed = "".join(f"        {name} \\\n" for name in common)
    others = "\n".join(
        f'    {dpkg}) others="{" ".join(of_host[host])}" ;; \\'
        for dpkg, host in (("amd64", "x86_64"), ("arm64", "aarch64"))
    )
    return f"""{_HEAD}#
# Everything that `crosslane check` needs, on AMD64 and ARM64. From the checkout's folder:
#   docker build --file ci/container/Containerfile --tag crosslane .
#   docker run --rm --volume "$PWD:/work" crosslane check --impls ciphers --cell DRIVER
# Without libwolfssl-dev and its adapter: {NOT_IN_CONTAINER["libwolfssl-dev"]}.
FROM debian:12-slim AS wheel
RUN apt-get update && apt-get install --yes --no-install-recommends git python3-venv && python3 -m venv /opt/build \\
    && /opt/build/bin/pip install --no-cache-dir build
COPY . /src
RUN /opt/build/bin/python -m build --wheel --outdir /dist /src

FROM debian:12-slim
RUN case "$(dpkg --print-architecture)" in \\
{others}
    *) echo "this architecture has no native lane: build on amd64 or arm64" >&2; exit 2 ;; \\
    esac \\
    && apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \\
{listed}        $others \\
    && rm -rf /var/lib/apt/lists/*
RUN --mount=type=bind,from=wheel,source=/dist,target=/dist \\
    python3 -m venv /opt/crosslane && wheel=$(ls /dist/*.whl) \\
    && /opt/crosslane/bin/pip install --no-cache-dir "$wheel[pytest,vectors]" \\
    && rm -r /opt/crosslane/lib/python3*/site-packages/crosslane/_suite/impls/providers/wolfssl \\
    && ln -s /opt/crosslane/bin/crosslane /usr/local/bin/crosslane \\
    && useradd --create-home crosslane
USER crosslane
WORKDIR /work
ENTRYPOINT ["crosslane"]
"""


def files(root: Path = prepare.ROOT) -> dict[str, str]:
    """Path below the checkout and content of each file that is made."""
    lanes = tomllib.loads((root / "ci" / "lanes.toml").read_text(encoding="utf-8"))
    return {
        "ci/templates/github.yml": changes(shards(lanes)),
        "ci/templates/github-nightly.yml": nightly(),
        "ci/container/Containerfile": container(),
    }


def main(arguments: Sequence[str], root: Path = prepare.ROOT) -> int:
    """Write the files, or compare them; returns the exit status."""
    if list(arguments) not in ([], ["--check"]):
        print(f"generate_workflows: unknown arguments {list(arguments)}; give --check or nothing", file=sys.stderr)
        return 2
    status = 0
    for name, text in files(root).items():
        path = root / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if arguments:
            print(f"{name}: differs from what ci/generate_workflows.py makes: run that", file=sys.stderr)
            status = 1
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"{name}: written")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
