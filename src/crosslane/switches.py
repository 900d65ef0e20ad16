# SPDX-License-Identifier: Apache-2.0
"""Whether a library's switch works: what runs in the library for the same messages with it and without it.

A backend is one only where its switch changes the code that runs. Each algorithm runs one message in each direction
(``impls/providers/probe.c``). Natively the functions that are entered are compared, by traps at their beginnings: a
single step costs 10 us and more in a virtual machine. Where these are the same, and in emulated lanes at once, an
emulator with all that it has counts instructions and gives their addresses. The library runs a third time with a
variable that means nothing to it: what differs then is no effect of a switch. What was seen is kept beside the builds,
under the digest of the library's files, the probe, the switch and the processor.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from crosslane.build import build_instance, build_plugin
from crosslane.buildcache import cache_folder, cached, digest, entry_path, store_text
from crosslane.errors import CrosslaneError, HarnessFault, MissingTool
from crosslane.loading import library_environment, library_runner
from crosslane.manifest import Manifest
from crosslane.model import Backend, Cell, Instance, Lane, Registry
from crosslane.names import parse_algorithm
from crosslane.sandbox import launcher_argv
from crosslane.toolchain import library_file, library_toolchain, runner_command, versions

__all__ = ["Effect", "Prober", "effect_text", "messages_of", "seen_switches"]

_FORMAT = "crosslane switch 2"
_ENTRY = "switch.json"
_LIMIT_S = 900.0
_MEMORY_LIMIT = 4 << 30
_NUM_BLOCKS, _REST = 33, 5
"""Of a message: enough for the widest code of today's libraries, and a part of a block."""
_AAD_LEN = 20
_USUAL_NONCE_LEN = 12
_MEANINGLESS = Backend("", (), "", ("CROSSLANE_MEANINGLESS=1",))
_NOT_OF_THE_LIBRARY = ("ld-linux", "libc.", "libm.", "libstdc++", "libgcc_s", "libpthread", "libdl")
"""Files whose code no switch of a library chooses."""


Unit = Literal["functions", "instructions"]


@dataclass(frozen=True)
class Effect:
    """What a switch does to an algorithm: ``functions`` entered, or ``instructions`` executed, without and with it, and
    at how many addresses something ran in one of the two cases alone. ``absent``: the library says that it lacks the
    algorithm, so that nothing could run.
    """

    unit: Unit
    without: int
    with_it: int
    num_changed: int
    absent: bool = False

    @property
    def effective(self) -> bool:
        """Whether other code ran; where the library lacks the algorithm, its cell says so by itself.

        Nothing that was seen to run is no proof: a library without a table of its functions shows none.
        """
        return self.num_changed > 0 or self.absent


@dataclass(frozen=True)
class _Trace:
    """What ran for one algorithm: how much of it, and the addresses within the library's files, each once.

    ``absent``: the library lacks the algorithm in each of the messages.

    An address is made of the file's name and the place in it, so that it is the same wherever the file was loaded.
    """

    num: int
    addresses: NDArray[np.uint64]
    absent: bool


_Asked = Mapping[Instance, Mapping[str, Sequence[str]]]
"""For instances, by algorithm: the probe's messages."""


def effect_text(backend: Backend, effect: Effect) -> str:
    """One sentence."""
    switch = " ".join([*backend.environment, *([f"-cpu {backend.cpu}"] if backend.cpu else [])])
    if not effect.effective:
        return f"{switch} changes none of the {effect.without:,} instructions that its messages take"
    if effect.absent:
        return f"{switch} has nothing to change: the library lacks the algorithm"
    doing = "entered" if effect.unit == "functions" else "executed"
    return (
        f"with {switch} {effect.with_it:,} {effect.unit} are {doing} instead of {effect.without:,}, "
        f"at {effect.num_changed:,} addresses in one of the two cases alone"
    )


def messages_of(manifest: Manifest) -> list[str]:
    """The probe's arguments for what a manifest bounds: a message in each direction with the longest key and tag."""
    key_len = max(manifest.key_lens) * manifest.num_keys + manifest.key_extra_len
    iv_lens = manifest.iv_lens or (0,)
    iv_len = _USUAL_NONCE_LEN if _USUAL_NONCE_LEN in iv_lens else max(iv_lens)
    data_len = _NUM_BLOCKS * manifest.block_len + (0 if manifest.partial == "refused" else _REST)
    data_len = min(data_len, manifest.max_len or data_len)
    lens = (key_len, iv_len, _AAD_LEN if manifest.aad else 0, data_len, max(manifest.tag_lens or (0,)))
    algorithm = parse_algorithm(manifest.algorithm)
    names = f"{algorithm.mode},{algorithm.cipher}"
    return [",".join(map(str, (names, int(direction == "decrypt"), *lens))) for direction in manifest.directions]


class Prober:
    """Says what switches do, for any number of instances; each library is built and run when it is first asked for."""

    def __init__(self, registry: Registry, launcher: Path) -> None:
        """Nothing is run yet."""
        self._identities: dict[Instance, list[str]] = {}
        self._programs: dict[Instance, Path] = {}
        self._registry = registry
        self._launcher = launcher

    def effects(self, asked: _Asked) -> dict[tuple[Instance, str], Effect]:
        """What the switch of each instance, which has a backend, does to each algorithm.

        Raises BadInput and MissingTool where the library cannot be built or linked or nothing can count instructions
        here, and HarnessFault where the library does not survive its messages.
        """
        found: dict[tuple[Instance, str], Effect] = {}
        lacking: dict[Instance, dict[str, Sequence[str]]] = {}
        for instance, algorithms in asked.items():
            for algorithm, messages in algorithms.items():
                effect = _read(self._entry(instance, messages))
                if effect is None:
                    lacking.setdefault(instance, {})[algorithm] = messages
                else:
                    found[instance, algorithm] = effect
        for (instance, algorithm), effect in self._see(lacking).items():
            store_text(self._entry(instance, lacking[instance][algorithm]), json.dumps(vars(effect)))
            found[instance, algorithm] = effect
        return found

    def _see(self, lacking: _Asked) -> dict[tuple[Instance, str], Effect]:
        native = {instance: asked for instance, asked in lacking.items() if instance.lane.runner == "native"}
        found = {key: effect for key, effect in self._compare(native, "functions").items() if effect.effective}
        rest = {
            instance: {name: messages for name, messages in asked.items() if (instance, name) not in found}
            for instance, asked in lacking.items()
        }
        return found | self._compare({instance: asked for instance, asked in rest.items() if asked}, "instructions")

    def _compare(self, asked: _Asked, unit: Unit) -> dict[tuple[Instance, str], Effect]:
        """Run libraries with their switches, those without one once for all their backends, and compare."""
        switched = {(instance, name): several for instance, each in asked.items() for name, several in each.items()}
        usual = {(_without(instance), name): several for (instance, name), several in switched.items()}
        traces = self._look(switched | usual, unit)
        changed = {
            (instance, name): np.setxor1d(
                traces[_without(instance), name].addresses, traces[instance, name].addresses, assume_unique=True
            )
            for instance, name in switched
        }
        doubtful = {
            (_meaningless(instance), name): several
            for (instance, name), several in switched.items()
            if len(changed[instance, name])
        }
        traces |= self._look(doubtful, unit)
        return {
            (instance, name): Effect(
                unit=unit,
                without=traces[_without(instance), name].num,
                with_it=traces[instance, name].num,
                num_changed=len(np.setdiff1d(places, _noise(traces, instance, name))) if len(places) else 0,
                absent=traces[_without(instance), name].absent,
            )
            for (instance, name), places in changed.items()
        }

    def _look(
        self, jobs: Mapping[tuple[Instance, str], Sequence[str]], unit: Unit
    ) -> dict[tuple[Instance, str], _Trace]:
        """Run each algorithm in a process of its own, which is what adapters are made for."""
        look = self._entered if unit == "functions" else self._executed
        with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0)), thread_name_prefix="probe") as pool:
            found = pool.map(look, [instance for instance, _ in jobs], jobs.values())
            return dict(zip(jobs, found, strict=True))

    def _entry(self, instance: Instance, messages: Sequence[str]) -> Path:
        key = digest([*self._identity(instance), repr(library_environment(instance)), *messages])
        return entry_path(cache_folder(), key, _ENTRY)

    def _identity(self, instance: Instance) -> list[str]:
        """All but the switch that decides what runs: the library's files, the probe, and what executes them."""
        lane = instance.lane
        known = replace(instance, backend=None)
        if known not in self._identities:
            processor = _processor() if lane.runner == "native" else ""
            files = [_sha256(path) for path in _library_files(instance)]
            emulator = versions(_emulated(lane))["qemu"]
            probe = self._probe(instance)[0].parent.name
            self._identities[known] = [_FORMAT, probe, *files, lane.cpu, processor, emulator]
        return self._identities[known]

    def _entered(self, instance: Instance, messages: Sequence[str]) -> _Trace:
        """The functions that an algorithm's messages enter, natively and contained."""
        probe, runner, reads = self._probe(instance)
        command = launcher_argv(
            self._launcher, [*runner, str(probe), "entries", *messages], memory_limit=_MEMORY_LIMIT,
            cpu_limit_s=int(_LIMIT_S), read_paths=[probe, *reads], require=False,
        )  # fmt: skip
        modules, answers, absent = _parsed(instance, messages, _run(instance, command))
        places = np.array(sorted({int(word, 16) for words in answers for word in words}), dtype=np.uint64)
        within = _within(places, modules)
        return _Trace(len(within), within, absent)

    def _executed(self, instance: Instance, messages: Sequence[str]) -> _Trace:
        """The instructions of an algorithm's messages, under an emulator, which writes files and is not contained."""
        probe, runner, _ = self._probe(instance)
        emulator = () if instance.lane.runner == "qemu" else runner_command(_emulated(instance.lane))
        with tempfile.TemporaryDirectory(prefix="crosslane-") as folder:
            out, trace = Path(folder) / "counts", Path(folder) / "trace"
            plugin = f"{build_plugin(self._registry.root)},out={out},trace={trace}"
            program = [*emulator, *runner, str(probe), "marks", *messages]
            text = _run(instance, [program[0], "-plugin", plugin, *program[1:]])
            counts = [int(line) for line in out.read_text().split()] if out.exists() else []
            addresses = np.fromfile(trace, dtype=np.uint64) if trace.exists() else np.empty(0, dtype=np.uint64)
        modules, _, absent = _parsed(instance, messages, text)
        if len(counts) != len(messages) or sum(counts) != len(addresses):
            raise MissingTool(
                f"{Path(program[0]).name} does not load the plugin that counts instructions, so that switches of "
                f"{instance.provider.name} cannot be seen to work; install a dynamically linked qemu-user 7.2"
            )
        within = _within(np.unique(addresses), modules)
        return _Trace(len(addresses) if len(within) else 0, within, absent)

    def _probe(self, instance: Instance) -> tuple[Path, Sequence[str], Sequence[Path]]:
        """The probe, what stands before it on its command line, and what it reads."""
        known = replace(instance, backend=None)
        if known not in self._programs:
            self._programs[known] = build_instance(self._registry, known, probe=True)
        return self._programs[known], *library_runner(instance)


def _noise(traces: Mapping[tuple[Instance, str], _Trace], instance: Instance, name: str) -> NDArray[np.uint64]:
    """What differs from one run to the next although no switch does."""
    usual, again = traces[_without(instance), name], traces[_meaningless(instance), name]
    return np.setxor1d(usual.addresses, again.addresses, assume_unique=True)


def _emulated(lane: Lane) -> Lane:
    """The lane under an emulator with all that it has."""
    return replace(lane, runner="qemu", cpu="max")


def _meaningless(instance: Instance) -> Instance:
    return replace(_without(instance), backend=_MEANINGLESS)


def _without(instance: Instance) -> Instance:
    """The same library by its own choice, with all that an emulator has."""
    lane = _emulated(instance.lane) if instance.lane.runner == "qemu" else instance.lane
    return replace(instance, lane=lane, backend=None)


def _run(instance: Instance, command: Sequence[str]) -> str:
    name = f"{instance.provider.name} in {instance.lane.name}"
    try:
        done = subprocess.run(
            command, env=dict(library_environment(instance)), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", timeout=_LIMIT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise HarnessFault(
            f"the switches of {name} take longer than {_LIMIT_S:.0f} s to look at; choose fewer cells with --cell"
        ) from None
    if done.returncode != 0:
        words = " ".join(done.stderr.split())[:300] or f"status {done.returncode}"
        raise MissingTool(
            f"whether a switch of {name} works cannot be seen ({words}); choose cells without backends with --cell, or "
            "see why with `crosslane build`"
        )
    return done.stdout


def _parsed(instance: Instance, messages: Sequence[str], text: str) -> tuple[list[list[str]], list[list[str]], bool]:
    """Begin, end and name of each loaded file, for each message the addresses that were printed for it, and whether the
    library lacks the algorithm.
    """
    lines = [line.split(" ") for line in text.splitlines()]
    modules = [[words[1], words[2], " ".join(words[3:])] for words in lines if words[0] == "module"]
    answers = [words for words in lines if words[0] in ("ran", "absent", "refused")]
    entered = [words[1:] for words in lines if words[0] == "entered"]
    refused = [message for message, words in zip(messages, answers, strict=False) if words[0] == "refused"]
    if len(answers) != len(messages) or refused:
        what = f"refuses {refused[0]}" if refused else f"ran {len(answers)} of {len(messages)} messages"
        raise HarnessFault(f"the probe of {instance.provider.name} {what}: correct the domain in its provider.toml")
    return modules, entered or [[] for _ in answers], all(words[0] == "absent" for words in answers)


def _within(addresses: NDArray[np.uint64], modules: Sequence[Sequence[str]]) -> NDArray[np.uint64]:
    """Those of the library's files, as places in them."""
    parts = [np.empty(0, dtype=np.uint64)]
    for first, last, path in modules:
        name = path.rpartition("/")[2]
        if name.startswith(_NOT_OF_THE_LIBRARY):
            continue
        begin, end = int(first, 16), int(last, 16)
        chosen = addresses[(addresses >= np.uint64(begin)) & (addresses < np.uint64(end))]
        label = int.from_bytes(hashlib.sha256(name.encode()).digest()[:3], "little") << 40
        parts.append(chosen - np.uint64(begin) + np.uint64(label))
    return np.concatenate(parts)


def _read(path: Path) -> Effect | None:
    """What was kept; None where nothing was, or what no run writes."""
    if not cached(path):
        return None
    try:
        values = json.loads(path.read_text())
        effect = Effect(**values)
    except (OSError, ValueError, TypeError):
        return None
    sound = all(type(value) is (bool if name == "absent" else int) for name, value in values.items() if name != "unit")
    return effect if sound and effect.unit in ("functions", "instructions") else None


def _library_files(instance: Instance) -> list[Path]:
    found = [library_file(library_toolchain(instance), name) for name in instance.provider.libraries]
    return [path.resolve() for path in found if path is not None]


@cache
def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise HarnessFault(f"{path}: the library cannot be read ({error.strerror}): make it readable") from None


@cache
def _processor() -> str:
    """What this machine's processor can do, as the system says it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return "; ".join(sorted({line for line in lines if line.lower().startswith(("flags", "features", "model name"))}))


def seen_switches(
    prober: Prober, cells: Sequence[tuple[Cell, Instance]], manifest: Callable[[Cell, Instance], Manifest]
) -> dict[Cell, Effect | str]:
    """What the switch of each cell with a backend does, or why that cannot be said; ``manifest`` bounds messages."""
    by_library: dict[Instance, dict[Instance, dict[str, Sequence[str]]]] = {}
    for cell, instance in cells:
        if instance.backend is not None:
            algorithms = by_library.setdefault(_without(instance), {}).setdefault(instance, {})
            algorithms[str(cell.algorithm)] = messages_of(manifest(cell, instance))
    effects: dict[tuple[Instance, str], Effect] = {}
    problems: dict[Instance, str] = {}
    for library, asked in by_library.items():
        try:
            effects |= prober.effects(asked)
        except CrosslaneError as error:
            problems[library] = str(error)
    return {
        cell: problems.get(_without(instance)) or effects[instance, str(cell.algorithm)]
        for cell, instance in cells
        if instance.backend is not None
    }
