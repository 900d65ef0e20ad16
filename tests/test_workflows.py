# SPDX-License-Identifier: Apache-2.0
"""Workflows, the action, the GitLab template and the container file: made from data, safe, and runnable."""

from __future__ import annotations

import configparser
import copy
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import generate_workflows
import prepare
import pytest
import yaml

from crosslane.cli import cli
from crosslane.isa import host_arch
from crosslane.lanes import load_lanes
from crosslane.registry import load_registry

ROOT = Path(__file__).resolve().parents[1]
TEMPLATES = ROOT / "ci" / "templates"
WORKFLOWS = sorted(path for path in TEMPLATES.glob("*.yml") if path.name != "gitlab.yml")
SCHEMAS = {
    **dict.fromkeys(WORKFLOWS, "github-workflows"),
    ROOT / "action.yml": "github-actions",
    TEMPLATES / "gitlab.yml": "gitlab-ci",
}


def read(path: Path) -> dict[Any, Any]:
    table = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(table, dict)
    return table


# ---- made from data ----


def test_what_is_made_is_up_to_date() -> None:
    assert generate_workflows.main(["--check"]) == 0


def test_a_file_that_differs_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ci").mkdir()
    lanes = (ROOT / "ci" / "lanes.toml").read_text()
    (tmp_path / "ci" / "lanes.toml").write_text(lanes)
    assert generate_workflows.main([], tmp_path) == 0
    assert generate_workflows.main(["--check"], tmp_path) == 0
    (tmp_path / "ci" / "lanes.toml").write_text(lanes.replace("[x86_64_asan]", "[x86_64_planted]"))
    capsys.readouterr()
    assert generate_workflows.main(["--check"], tmp_path) == 1
    assert capsys.readouterr().err.startswith("ci/templates/github.yml: differs from what")
    assert generate_workflows.main(["--force"], tmp_path) == 2


def test_every_lane_of_the_gate_is_in_one_shard_on_a_host_that_has_it() -> None:
    lanes = {lane.name: lane for lane in load_lanes(ROOT / "ci" / "lanes.toml")}
    rows = read(TEMPLATES / "github.yml")["jobs"]["check"]["strategy"]["matrix"]["include"]
    placed = [(name, row["runner"]) for row in rows for name in row["lanes"].replace("--lane ", "").split()]
    assert sorted(name for name, _ in placed) == sorted(name for name, lane in lanes.items() if lane.gate)
    hosts = {runner: host for host, runner in generate_workflows.HOSTS.items()}
    for name, runner in placed:
        assert hosts[runner] in lanes[name].hosts, name
        assert lanes[name].runner != "native" or lanes[name].arch == hosts[runner], name
    assert {"x86_64-native", "aarch64-native", "x86_64-emulated-aarch64"} <= {row["name"] for row in rows}


# ---- safe ----


def problems(workflow: dict[Any, Any]) -> Iterator[str]:
    """What of a workflow lets code of a change do harm, or run for hours."""
    triggers = workflow.get("on") or workflow[True]  # YAML reads the word `on` as a truth
    if "pull_request_target" in triggers:
        yield "pull_request_target gives code of strangers a token that may write: use pull_request"
    if workflow.get("permissions") != {"contents": "read"}:
        yield "permissions are not contents: read"
    for name, job in workflow["jobs"].items():
        if "permissions" in job:
            yield f"{name}: has permissions of its own"
        if "timeout-minutes" not in job:
            yield f"{name}: has no timeout-minutes"
        for step in job["steps"]:
            yield from problems_of_step(name, step)


def problems_of_step(name: str, step: dict[str, Any]) -> Iterator[str]:
    uses = step.get("uses", "")
    if uses and not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", uses):
        yield f"{name}: {uses} is not pinned by commit"
    if uses.startswith("actions/checkout@") and step.get("with", {}).get("persist-credentials") is not False:
        yield f"{name}: the checkout leaves its token behind"
    if "${{" in step.get("run", ""):
        yield f"{name}: an expression stands in a command; hand it over in env"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_safe(path: Path) -> None:
    assert list(problems(read(path))) == []


def _first_step(workflow: dict[Any, Any]) -> dict[str, Any]:
    job = next(iter(workflow["jobs"].values()))
    step = job["steps"][0]
    assert isinstance(step, dict)
    return step


FAULTS: dict[str, Callable[[dict[Any, Any]], Any]] = {
    "pull_request_target": lambda flow: flow.__setitem__(True, {"pull_request_target": None}),
    "contents: read": lambda flow: flow["permissions"].__setitem__("contents", "write"),
    "of its own": lambda flow: next(iter(flow["jobs"].values())).__setitem__("permissions", "write-all"),
    "timeout": lambda flow: next(iter(flow["jobs"].values())).pop("timeout-minutes"),
    "pinned": lambda flow: _first_step(flow).__setitem__("uses", "actions/checkout@v5"),
    "token": lambda flow: _first_step(flow).pop("with"),
    "expression": lambda flow: _first_step(flow).__setitem__("run", "echo ${{ github.head_ref }}"),
}


@pytest.mark.parametrize("words", FAULTS)
def test_what_is_unsafe_is_found(words: str) -> None:
    workflow = copy.deepcopy(read(TEMPLATES / "github.yml"))
    FAULTS[words](workflow)
    assert [line for line in problems(workflow) if words in line]


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_files_fit_the_schemas_of_their_services(path: Path, tmp_path: Path) -> None:
    schema = ["-m", "check_jsonschema", "--builtin-schema", f"vendor.{SCHEMAS[path]}"]
    right, wrong = tmp_path / path.name, tmp_path / f"wrong-{path.name}"
    text = path.read_text().replace("\n.crosslane:", "\ncrosslane:")  # of hidden jobs GitLab's schema says nothing
    right.write_text(text)
    for old, new in (("\njobs:", "\njibs:"), ("\nruns:", "\nruins:"), ("  script:", "  script: 3\n  other:")):
        text = text.replace(old, new)
    wrong.write_text(text)
    done = [
        subprocess.run([sys.executable, *schema, str(file)], capture_output=True, check=False)
        for file in (right, wrong)
    ]
    assert [item.returncode for item in done] == [0, 1], done[0].stdout


# ---- runnable ----


def test_scripts_that_workflows_run_are_there() -> None:
    steps = [
        step for path in WORKFLOWS for job in read(path)["jobs"].values() for step in job["steps"] if "run" in step
    ]
    scripts = {word for step in steps for word in step["run"].split() if re.fullmatch(r"\.?ci/[\w.]+", word)}
    assert scripts >= {"ci/test", "ci/setup", "ci/selftest", "ci/nightly", "ci/publish.py"}
    for script in scripts:
        assert (ROOT / script).is_file()
        assert script.endswith(".py") or os.access(ROOT / script, os.X_OK)


def test_commands_of_crosslane_in_workflows_have_options_that_there_are() -> None:
    lines = [
        step["run"].replace("$LANES", "--lane x86_64_native")
        for path in WORKFLOWS for job in read(path)["jobs"].values() for step in job["steps"]
        if step.get("run", "").startswith(".venv/bin/crosslane ")
    ]  # fmt: skip
    assert len(lines) == 2
    for line in lines:
        words = [word for word in line.split()[1:] if not word.startswith(("-", '"', "shards/", "results/"))]
        command: click.Command = cli
        for word in words:
            if isinstance(command, click.Group):
                command = command.commands.get(word, command)
        known = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in line.split() if word.startswith("-")} <= known, line


def test_both_architectures_run_natively_and_scores_are_published() -> None:
    for path in WORKFLOWS:
        for name in ("tests", "selftest", "nightly"):
            job = read(path)["jobs"].get(name)
            if job is not None:
                runners = [row["runner"] for row in job["strategy"]["matrix"]["include"]]
                assert runners == ["ubuntu-24.04", "ubuntu-24.04-arm"]
    text = (TEMPLATES / "github-nightly.yml").read_text()
    assert 'python3 ci/publish.py results/selftest.json results/selftest-large.json >>"$GITHUB_STEP_SUMMARY"' in text


def action(folder: Path, tools: str, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run what action.yml runs, with a crosslane that says how it is called."""
    script = folder / "ci" / "action"
    script.parent.mkdir(exist_ok=True)
    script.write_text((ROOT / "ci" / "action").read_text())
    script.chmod(0o755)
    (folder / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
    (folder / ".venv" / "bin" / "crosslane").write_text(tools)
    (folder / ".venv" / "bin" / "crosslane").chmod(0o755)
    defaults = {name.upper(): value.get("default", "") for name, value in read(ROOT / "action.yml")["inputs"].items()}
    env = {"PATH": os.environ["PATH"], "RUNNER_TEMP": str(folder), **defaults, **inputs}
    return subprocess.run([str(script)], cwd=folder, env=env, capture_output=True, text=True, check=False)


ECHO = """#!/bin/sh
if [ "$1" = list ]; then
    [ $# -gt 3 ] && echo '[{"driver": "ours"}, {"driver": "mine"}, {"driver": "also"}]' || echo '[{"driver": "ours"}]'
    exit
fi
for word; do echo "<$word>"; done
exit 1
"""


def test_the_action_checks_the_projects_own_code_and_ends_as_check_does(tmp_path: Path) -> None:
    done = action(tmp_path, ECHO, IMPLS="one two")
    assert done.returncode == 1
    said = done.stdout.replace(">\n<", " ").strip("<>\n")
    assert said == (
        "check --impls one --impls two --cell also --cell mine --seed every implementation agrees with the generic one "
        f"--json {tmp_path}/crosslane-results.json"
    )


def test_nothing_of_an_input_of_the_action_is_run(tmp_path: Path) -> None:
    text = "$(touch harm) ;touch harm; `touch harm` *"
    done = action(tmp_path, ECHO, IMPLS="a", CELLS=text, LANES=text, SEED=text, COUNT=text)
    assert not (tmp_path / "harm").exists()
    assert "<*>\n" in done.stdout
    assert f"<{text}>\n" in done.stdout


def test_the_action_ends_with_the_status_of_a_folder_that_cannot_be_read(tmp_path: Path) -> None:
    done = action(tmp_path, "#!/bin/sh\necho 'crosslane: nosuch: ...' >&2\nexit 2\n", IMPLS="nosuch")
    assert (done.returncode, done.stderr) == (2, "crosslane: nosuch: ...\n")


def test_the_container_leaves_out_what_must_not_be_distributed() -> None:
    registry = load_registry(ROOT)
    kept_back = [provider for provider in registry.providers if not provider.ship]
    assert sorted(generate_workflows.NOT_IN_CONTAINER) == sorted(name for item in kept_back for name in item.packages)
    text = (ROOT / "ci" / "container" / "Containerfile").read_text()
    removed = re.findall(r"rm -r \S+/_suite/impls/providers/(\S+) ", text)
    assert removed == [provider.name for provider in kept_back]
    commands = "".join(line for line in text.splitlines() if not line.startswith("#"))
    left_out = {*generate_workflows.NOT_IN_CONTAINER, *generate_workflows.FOR_TESTS}
    assert not [name for name in left_out if name in commands]
    every = {
        need.package for host in generate_workflows.HOSTS for need in prepare.needs(host, generate_workflows.DEBIAN)
    }
    assert left_out <= every
    for host in generate_workflows.HOSTS:
        assert all(re.search(rf"[\s\"]{re.escape(name)}[\s\"]", text) for name in generate_workflows.packages(host))
    assert host_arch() in generate_workflows.HOSTS


# ---- tox and pre-commit ----


def environments() -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "tox.ini", encoding="utf-8")
    return {name.partition(":")[2]: dict(parser[name]) for name in parser.sections() if name.startswith("testenv:")}


def test_an_action_without_a_folder_is_wrong_use(tmp_path: Path) -> None:
    done = action(tmp_path, ECHO, IMPLS=" ")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("crosslane: the input impls names no folder: ")


def test_every_environment_says_what_it_is_for_and_has_a_label() -> None:
    found = environments()
    assert set(found) >= {"tests", "types", "lint", "conformance", "fuzz-smoke", "docs", "package"}
    assert all(table.get("description", "").strip() and table.get("labels", "").strip() for table in found.values())


def test_before_a_commit_the_same_commands_run_as_in_ci() -> None:
    [repo] = read(ROOT / ".pre-commit-config.yaml")["repos"]
    hooks = {hook["id"]: hook for hook in repo["hooks"]}
    static = {name for name, table in environments().items() if "static" in table["labels"].split(", ")}
    assert set(hooks) == static == {"lint", "types"}
    for name, hook in hooks.items():
        assert (hook["entry"], hook["pass_filenames"], hook["always_run"]) == (f"tox run -e {name}", False, True)
