# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crosslane import steer
from crosslane.generate import draw_batch, generate_batch, output_lens, select_cases
from crosslane.manifest import LIBRARY_STEERING, REFUSALS, Manifest, manifest_within
from crosslane.model import Domain
from crosslane.quorum import case_within
from crosslane.wire import Batch, Edge, Flag, Mark, OpKind, batch_len, decode_batch, displacement, encode_batch_into

MakeManifest = Callable[..., Manifest]

BLOCKS: dict[str, Any] = {"split": "block", "partial": "refused"}
# What mode.toml says of each mode, and a cipher for it.
MODES: dict[str, dict[str, Any]] = {
    "ecb": {**BLOCKS, "iv": "none", "iv_lens": (), "iv_out": "none"},
    "cbc": {**BLOCKS, "iv": "random"},
    "cbc_8": {**BLOCKS, "iv": "random", "block_len": 8, "iv_lens": (8,), "key_lens": tuple(range(5, 17)), "ways": 16},
    "cfb": {"iv": "random", "iv_out": "next_whole"},
    "ctr": {},
    "ctr_8": {"block_len": 8, "iv_lens": (8,), "key_lens": (24,), "policies": ("degenerate", "weak_subkey"), "ways": 1},
    "ctr_any_key": {"key_lens": tuple(range(33)), "ways": 16},
    "lrw": {**BLOCKS, "iv": "index", "key_lens": (16, 24, 32), "key_extra_len": 16},
    "xts": {
        "split": "none",
        "partial": "stealing",
        "min_len_blocks": 1,
        "iv": "tweak",
        "iv_out": "none",
        "num_keys": 2,
    },
    "cmac": {"iv": "none", "iv_lens": (), "iv_out": "none", "directions": ("encrypt",), "tag_lens": (16,)},
    "ccm": {"iv": "nonce", "iv_lens": tuple(range(7, 14)), "iv_out": "none", "aad": True, "tag_lens": (4, 6, 16)},
    "gcm": {"iv": "hashed", "iv_lens": (1, 12, 16, 64), "iv_out": "none", "aad": True, "tag_lens": (4, 8, 12, 16)},
    "cts_cbc": {"split": "none", "partial": "stealing", "min_len_blocks": 1, "iv": "random", "iv_out": "none"},
}
# sha256 of batches 0 and 3, as on the wire. They change with GENERATOR_VERSION, and with nothing else.
GOLDEN = {
    "cbc": ("0b9a23e8d26b178e", "821e140c063e7671"),
    "cbc_8": ("71704fe9001a88ee", "536217af31045a7d"),
    "ccm": ("ee690ea69b9570ee", "420e60b7e1d5db55"),
    "cfb": ("c28c6450fe05c46c", "85d02f15d304324f"),
    "cmac": ("a7f0641f7880f800", "05b5937e7537bf2e"),
    "ctr": ("aec89e407362955b", "73c4c5d756177738"),
    "ctr_8": ("b18b1848dbf146a2", "9c00c006c0339175"),
    "ctr_any_key": ("714bc671c72e5edf", "91b1e527c58b0e55"),
    "cts_cbc": ("fc02a2bbcc1c4543", "478d6711690018a8"),
    "ecb": ("5e65a978c7954a2f", "6f25e29144be3b03"),
    "gcm": ("09484b5769c5ffb6", "4d0cd9fc2e4e78d2"),
    "lrw": ("59ff320ec2d3d3c3", "0233ba83f36cbd0a"),
    "xts": ("3fdea9979f1aefe8", "b056fc4fd7006299"),
}
NAMES = sorted(MODES)


def encoded(batch: Batch) -> bytes:
    target = bytearray(batch_len(batch))
    encode_batch_into(batch, memoryview(target))
    return bytes(target)


@pytest.fixture
def of_mode(make_manifest: MakeManifest) -> Callable[..., Manifest]:
    def make(name: str, **changes: Any) -> Manifest:
        return make_manifest(**{"algorithm": f"{name}(toy)", **MODES[name], **changes})

    return make


def in_turn(manifest: Manifest, number: int) -> Batch:
    """A batch whose interleaved messages come one after the other again; outputs are as they were."""
    drawn = draw_batch(manifest, number)
    return replace(drawn.batch, ops=drawn.batch.ops[np.argsort(drawn.owner, kind="stable")])


@lru_cache(maxsize=2)
def first_five(manifest: Manifest) -> tuple[Batch, ...]:
    """The batches of a gate's run."""
    return tuple(in_turn(replace(manifest, sessions_per_batch=1024), number) for number in range(5))


def together(batches: tuple[Batch, ...]) -> Any:
    ops = np.concatenate([batch.ops for batch in batches])
    return ops[(ops["flags"] & Flag.OVERLAP) == 0]


@pytest.mark.parametrize("name", NAMES)
def test_batches_are_pinned(of_mode: MakeManifest, name: str) -> None:
    manifest = of_mode(name)
    found = tuple(hashlib.sha256(encoded(generate_batch(manifest, number))).hexdigest()[:16] for number in (0, 3))
    assert found == GOLDEN[name]


def test_a_batch_does_not_depend_on_what_was_generated_before(of_mode: MakeManifest) -> None:
    manifest, other = of_mode("ctr"), of_mode("cbc")
    forwards = [encoded(generate_batch(manifest, number)) for number in range(3)]
    backwards = []
    for number in (2, 1, 0):
        backwards.append(encoded(generate_batch(manifest, number)))
        generate_batch(other, number)
    assert forwards == backwards[::-1]
    assert len(set(forwards)) == 3


@pytest.mark.parametrize(
    "change", [{"seed": "another test"}, {"algorithm": "ctr(other)"}, {"ways": 4}, {"iv_out": "none"}]
)
def test_every_fact_of_the_manifest_reaches_the_batch(of_mode: MakeManifest, change: dict[str, Any]) -> None:
    assert encoded(generate_batch(of_mode("ctr"), 1)) != encoded(generate_batch(of_mode("ctr", **change), 1))


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_what_the_wire_allows(of_mode: MakeManifest, name: str) -> None:
    batch = generate_batch(of_mode(name), 1)
    read = decode_batch(encoded(batch))
    assert read.messages.tolist() == batch.messages.tolist() == [8] * 64


# --- the life of a session ---


@dataclass
class Session:
    """What a reader of the operations knows at one point."""

    keyed: set[int]
    slot: int = 0
    message: dict[str, int] | None = None  # its setiv
    aad_done: int = 0
    done: int = 0
    begun: bool = False
    ended: bool = False
    final: bool = False
    messages: int = 0


def check_op(session: Session, op: dict[str, int], manifest: Manifest) -> None:
    kind, slot = op["kind"], op["slot"]
    flags = Flag(op["flags"])
    message = session.message
    if kind == OpKind.CLONE:
        assert message
        assert session.begun
        assert op["from_slot"] == session.slot != slot
        assert op["from_slot"] in session.keyed
        session.keyed.add(slot)
        session.slot = slot
        return
    if kind == OpKind.SETKEY and slot != session.slot:  # of an interleaved message
        assert {slot, session.slot} <= {0, 1, 2, 3}
        assert slot in (0, 2)
        session.slot = slot
    assert slot == session.slot
    assert op["from_slot"] == 0
    assert kind == OpKind.UPDATE or not flags
    if kind in (OpKind.SETKEY, OpKind.REINIT):
        assert message is None
        session.keyed.add(slot)
    elif kind == OpKind.SETIV:
        assert message is None
        assert slot in session.keyed
        session.message, session.aad_done, session.done = op, 0, 0
        session.begun = session.ended = session.final = False
    elif kind == OpKind.TAG:
        assert session.final
        assert manifest.tag_lens
        session.message, session.messages = None, session.messages + 1
    else:
        assert message
        assert not session.final
        check_data_op(session, message, op, manifest)


def check_data_op(session: Session, message: dict[str, int], op: dict[str, int], manifest: Manifest) -> None:
    flags = Flag(op["flags"])
    if op["kind"] == OpKind.AAD:
        assert manifest.aad
        assert not session.begun
        session.aad_done += op["in_len"]
    elif op["kind"] == OpKind.UPDATE and Flag.OVERLAP in flags:
        assert not session.ended
        assert not manifest.is_mac
        assert 0 < abs(displacement(op["aux1"])) < op["in_len"]
    elif op["kind"] == OpKind.UPDATE:
        assert not session.ended
        session.begun = True
        session.done += op["in_len"]
        session.ended = Flag.LAST in flags
        observes = {"next": True, "next_whole": session.done % manifest.block_len == 0}.get(manifest.iv_out, False)
        assert (Flag.OBSERVE_IV in flags) is observes
    else:
        assert op["kind"] == OpKind.FINAL
        assert (session.aad_done, session.done) == (message["aux0"], message["aux1"])
        assert session.ended or message["aux1"] == 0
        session.final = True
        if not manifest.tag_lens:
            session.message, session.messages = None, session.messages + 1


def sessions(batch: Batch) -> Iterator[list[dict[str, int]]]:
    names = batch.ops.dtype.names or ()
    rows = [dict(zip(names, row, strict=True)) for row in batch.ops.tolist()]
    for first, count in batch.cases[["first_op", "num_ops"]].tolist():
        yield rows[first : first + count]


@pytest.mark.parametrize("name", NAMES)
def test_sessions_are_well_formed(of_mode: MakeManifest, name: str) -> None:
    manifest = of_mode(name, refusals=tuple(kind for kind in REFUSALS if kind != "announced"))
    batch = in_turn(manifest, 2)
    assert batch.cases["first_op"].tolist() == np.append([0], np.cumsum(batch.cases["num_ops"])[:-1]).tolist()
    assert batch.cases["num_ops"].sum() == len(batch.ops)
    for ops in sessions(batch):
        session = Session(keyed=set())
        assert ops[0]["kind"] == OpKind.SETKEY
        for op in ops:
            check_op(session, op, manifest)
        assert ops[-1]["kind"] == (OpKind.TAG if manifest.tag_lens else OpKind.FINAL)
        assert session.messages == manifest.messages_per_session


@pytest.mark.parametrize("name", NAMES)
def test_offsets_are_inside_and_outputs_lie_one_behind_the_other(of_mode: MakeManifest, name: str) -> None:
    manifest = of_mode(name)
    batch = generate_batch(manifest, 2)
    ops = batch.ops
    assert (ops["in_off"] + ops["in_len"] <= len(batch.blob)).all()
    updates, tags = ops["kind"] == OpKind.UPDATE, ops["kind"] == OpKind.TAG
    writes = updates | tags
    data = np.zeros(len(ops), np.int64)
    is_mac = manifest.tag_lens and not manifest.aad
    data[updates] = 0 if is_mac else ops["in_len"][updates]
    data[(ops["flags"] & Flag.OBSERVE_IV) != 0] += manifest.block_len
    data[tags] = np.repeat(batch.cases["tag_len"], 8 if manifest.tag_lens else 0)
    ends = np.cumsum(data[writes])
    assert ops["out_off"][writes].tolist() == [0, *ends[:-1].tolist()]
    assert batch.out_len == ends[-1]
    assert output_lens(batch, np.arange(len(ops))).tolist() == data.tolist()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("most", [0, 5000])
def test_libraries_get_long_messages_too(of_mode: MakeManifest, name: str, most: int) -> None:
    """Up to 64 KiB, and one of 1 MiB early in each fourth batch; never beyond what the library takes."""
    manifest = of_mode(name, sessions_per_batch=1024, steering=LIBRARY_STEERING, max_len=most, refusals=())
    lengths = [batch.ops["aux1"][batch.ops["kind"] == OpKind.SETIV] for batch in first_five(manifest)]
    if most:
        assert max(int(found.max()) for found in lengths) <= most
        return
    for number, found in enumerate(lengths):
        rest = found[found < steer.LARGEST]
        assert 1 << 15 < rest.max() <= (1 << 16) + 1024  # what is steered is a little longer
        assert 30 < np.count_nonzero(rest > 1 << 13) < 160
        assert (steer.LARGEST in found[:64]) == (number % 4 == 0)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_illegal_is_asked_unless_to_be_refused(of_mode: MakeManifest, name: str) -> None:
    manifest = of_mode(name, steering=("lengths", "sizes", "splits", "counters"))
    batch = generate_batch(manifest, 0)
    ops = batch.ops
    lengths = ops["aux1"][ops["kind"] == OpKind.SETIV]
    assert lengths.min() >= manifest.min_len_blocks * manifest.block_len
    assert lengths.max() == steer.LARGEST
    if manifest.partial == "refused":
        assert not (lengths % manifest.block_len).any()
    pieces = ops[ops["kind"] == OpKind.UPDATE]
    if manifest.split == "block":
        assert not (pieces["in_len"] % manifest.block_len).any()
    if manifest.split == "none":
        assert (pieces["flags"] & Flag.LAST).all()
    keys = ops["in_len"][ops["kind"] == OpKind.SETKEY]
    assert set(keys.tolist()) <= {n * manifest.num_keys + manifest.key_extra_len for n in manifest.key_lens}
    assert set(ops["in_len"][ops["kind"] == OpKind.SETIV].tolist()) <= set(manifest.iv_lens or (0,))
    assert set(batch.cases["tag_len"].tolist()) <= set(manifest.tag_lens or (0,))
    assert not (batch.cases["policy"] & ~np.uint32(3 if manifest.policies else 0)).any()


def test_a_mode_with_one_direction_is_never_turned_round(of_mode: MakeManifest) -> None:
    assert not generate_batch(of_mode("ctr", directions=("encrypt",)), 0).cases["decrypting"].any()


# --- within the domain of a library ---


def some_of(values: tuple[Any, ...]) -> st.SearchStrategy[tuple[Any, ...]]:
    """At least one of the values, where there are any, in their order."""
    if not values:
        return st.just(())
    chosen = st.sets(st.sampled_from(values), min_size=1)
    return chosen.map(lambda some: tuple(value for value in values if value in some))


def any_of(values: tuple[Any, ...]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.just(()) | some_of(values)


@st.composite
def domains(draw: st.DrawFn, manifest: Manifest) -> Domain:
    """What a library might have of a manifest's algorithm; at least one block of data is always legal."""
    bs, flag = manifest.block_len, st.booleans()
    splits = ("none", "block", "byte")
    min_len = draw(st.sampled_from([0, manifest.min_len_blocks * bs, bs, 5 * bs, 100 * bs]))
    return Domain(
        mode="", cipher="", directions=draw(some_of(manifest.directions)), key_lens=draw(some_of(manifest.key_lens)),
        iv_lens=draw(some_of(manifest.iv_lens)), tag_lens=draw(some_of(manifest.tag_lens)),
        split=draw(st.sampled_from(splits[: splits.index(manifest.split) + 1])), min_len=min_len,
        max_len=draw(st.just(0) | st.integers(max(min_len, bs), 200 * bs)), empty=draw(flag), equal_keys=draw(flag),
        policies=draw(any_of(manifest.policies)), always_policies=draw(any_of(manifest.policies)), refusals=(),
        observes_iv=draw(flag), releases_plaintext=False, clone=draw(flag), reinit=draw(flag), in_place=draw(flag),
        max_aad_len=draw(st.just(0) | st.integers(1, 70_000)), optional=False,
    )  # fmt: skip


def bounded(of_mode: MakeManifest, name: str, data: st.DataObject, **changes: Any) -> Manifest:
    manifest = of_mode(name, sessions_per_batch=32, **changes)
    return replace(manifest_within(manifest, data.draw(domains(manifest))), **changes)


any_domain = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)


@pytest.mark.parametrize("name", NAMES)
@any_domain
@given(data=st.data(), number=st.integers(0, 3))
def test_no_case_leaves_the_domain(of_mode: MakeManifest, name: str, data: st.DataObject, number: int) -> None:
    manifest = bounded(of_mode, name, data)
    batch = generate_batch(manifest, number)
    decode_batch(encoded(batch))
    for index in range(len(batch)):
        assert case_within(manifest, select_cases(batch, np.array([index]))), index
    observed = (batch.ops["flags"] & Flag.OBSERVE_IV) != 0
    assert observed.any() == (manifest.iv_out != "none" and bool((batch.ops["kind"] == OpKind.UPDATE).any()))


@pytest.mark.parametrize("refusal", ["key", "iv", "tag", "data"])
@pytest.mark.parametrize("name", ["cbc", "ctr", "xts", "cmac", "gcm"])
@any_domain
@given(data=st.data())
def test_only_lengths_that_a_library_refuses_itself_are_illegal(
    of_mode: MakeManifest, name: str, refusal: str, data: st.DataObject
) -> None:
    """Cured of that one kind of illegal length, every case lies in the domain."""
    manifest = replace(bounded(of_mode, name, data, steering=("refusals",)), refusals=(refusal,))
    batch = generate_batch(manifest, 0)
    cures: dict[str, dict[str, Any]] = {
        "key": {"key_lens": tuple(range(257)), "num_keys": 1, "key_extra_len": 0},
        "iv": {"iv_lens": tuple(range(256))},
        "tag": {"tag_lens": tuple(range(256)) if manifest.tag_lens else ()},
        "data": {"partial": "anywhere", "min_len": 0, "max_len": 0, "min_len_blocks": 0, "empty": True},
    }
    cured = replace(manifest, **cures[refusal])
    for index in range(len(batch)):
        assert case_within(cured, select_cases(batch, np.array([index]))), index


def test_like_keys_are_made_unlike_whatever_their_length(of_mode: MakeManifest) -> None:
    """Illegal keys of odd lengths have no halves."""
    manifest = of_mode("xts", equal_keys=False, steering=("refusals",))
    for number in range(8):
        batch = generate_batch(manifest, number)
        keys = batch.ops[batch.ops["kind"] == OpKind.SETKEY]
        for start, length in keys[["in_off", "in_len"]].tolist():
            key = batch.blob[start : start + length].tobytes()
            assert not length or key[: length // 2] != key[length // 2 :]


# --- what the first five batches, which every gate runs, must hold ---


@pytest.mark.parametrize("name", ["ctr", "cbc", "cbc_8", "xts", "cts_cbc", "ctr_any_key"])
def test_every_length_of_the_grids_is_there_in_both_directions(of_mode: MakeManifest, name: str) -> None:
    manifest = of_mode(name)
    sizes, large = steer.size_grid(manifest)
    wanted = {*steer.length_grid(manifest).tolist(), *sizes.tolist()}
    found: dict[int, set[int]] = {0: set(), 1: set()}
    everything: set[int] = set()
    for batch in first_five(manifest):
        ivs = batch.ops[batch.ops["kind"] == OpKind.SETIV]
        everything |= set(ivs["aux1"].tolist())
        direction = np.repeat(batch.cases["decrypting"], 8)
        for decrypting in (0, 1):
            found[decrypting] |= set(ivs["aux1"][direction == decrypting].tolist())
    assert wanted | set(large.tolist()) | {steer.LARGEST} <= everything
    for lengths in found.values():
        assert set(steer.length_grid(manifest).tolist()) <= lengths


def test_the_length_grid_is_walked_on_from_batch_to_batch(of_mode: MakeManifest) -> None:
    manifest = of_mode("ctr", steering=("lengths",))
    walked = np.concatenate(
        [
            batch.ops["aux1"][batch.ops["kind"] == OpKind.SETIV]
            for batch in (generate_batch(manifest, n) for n in (0, 1))
        ]
    )
    grid = steer.length_grid(manifest)
    assert walked.tolist() == grid[np.arange(1024) % len(grid)].tolist()


@pytest.mark.parametrize("name", ["ctr", "ctr_8", "ctr_any_key", "lrw"])
def test_every_row_of_the_counter_grid_meets_a_message_that_carries(of_mode: MakeManifest, name: str) -> None:
    manifest = of_mode(name)
    bs = manifest.block_len
    values, masks, distances = steer.counter_grid(manifest)
    counters, lengths, directions = [], [], []
    for batch in first_five(manifest):
        ivs = batch.ops[(batch.ops["kind"] == OpKind.SETIV)]
        usable = ivs["in_len"] == bs
        at = ivs["in_off"][usable].astype(np.int64)
        counters.append(batch.blob[at[:, None] + np.arange(bs)])
        lengths.append(ivs["aux1"][usable].astype(np.int64))
        directions.append(np.repeat(batch.cases["decrypting"], 8)[usable])
    counter, length, direction = map(np.concatenate, (counters, lengths, directions))
    for value, mask, distance in zip(values, masks, distances.tolist(), strict=True):
        wanted, where = (np.frombuffer(part.tobytes(), np.uint8) for part in (value, mask))
        carries = length > distance * bs
        for order in (counter, counter[:, ::-1]):
            hit = ((order & where) == wanted).all(axis=1) & carries
            assert set(direction[hit].tolist()) == {0, 1}


@pytest.mark.parametrize("name", ["ctr", "ctr_8", "lrw"])
def test_every_row_is_there_with_all_ones_and_zeros_above_in_both_byte_orders(of_mode: MakeManifest, name: str) -> None:
    manifest = of_mode(name)
    bs = manifest.block_len
    found: set[bytes] = set()
    for batch in first_five(manifest):
        ivs = batch.ops[batch.ops["kind"] == OpKind.SETIV]
        at = ivs["in_off"][ivs["in_len"] == bs].astype(np.int64)
        found |= {row.tobytes() for row in batch.blob[at[:, None] + np.arange(bs)]}
    values, masks, _ = steer.counter_grid(manifest)
    for value, mask in zip(values, masks, strict=True):
        zeros, ones = value.tobytes(), (value | ~mask).tobytes()
        assert {zeros, ones, zeros[::-1], ones[::-1]} <= found


def test_every_layout_is_there(of_mode: MakeManifest) -> None:
    batches = first_five(of_mode("ctr"))
    ops = together(batches)
    edges = {int(edge) for edge in Edge}
    of_kind = {kind: ops[ops["kind"] == kind] for kind in OpKind}
    for side, kinds in (
        ("in", (OpKind.SETKEY, OpKind.SETIV, OpKind.UPDATE)),
        ("out", (OpKind.SETIV, OpKind.UPDATE)),
    ):
        for kind in kinds:
            assert set(of_kind[kind][f"{side}_edge"].tolist()) == edges
            middle = of_kind[kind][of_kind[kind][f"{side}_edge"] == Edge.MIDDLE]
            assert set(middle[f"{side}_align"].tolist()) == set(range(64))
    assert {0, 1, 2} == set(np.concatenate([batch.cases["ctx_edge"] for batch in batches]).tolist())
    updates = of_kind[OpKind.UPDATE]
    in_place = (updates["flags"] & Flag.IN_PLACE) != 0
    assert 0.2 < in_place.mean() < 0.3
    for edge, length in itertools.product(sorted(edges), range(0, 289, 16)):
        some = (updates["in_edge"] == edge) & (updates["in_len"] == length)
        assert {False, True} == set(in_place[some].tolist())


def test_every_course_of_a_session_is_there(of_mode: MakeManifest) -> None:
    ops = together(first_five(of_mode("ctr")))
    kinds = ops["kind"]
    for kind in (OpKind.REINIT, OpKind.CLONE):
        assert (kinds == kind).sum() > 1000
    assert set(ops["slot"].tolist()) == set(ops["from_slot"].tolist()) == {0, 1, 2, 3}
    follows = set(zip(kinds[:-1].tolist(), kinds[1:].tolist(), strict=True))
    assert (OpKind.FINAL, OpKind.SETKEY) in follows  # a new key in a used context, or a new session
    assert (OpKind.SETKEY, OpKind.REINIT) in follows
    assert (OpKind.SETIV, OpKind.FINAL) in follows  # a message without any update
    assert (OpKind.CLONE, OpKind.UPDATE) in follows
    begins = np.flatnonzero(kinds == OpKind.SETIV)
    ends = np.flatnonzero(kinds == OpKind.FINAL)
    updates = np.append([0], np.cumsum(kinds == OpKind.UPDATE))
    assert set((updates[ends] - updates[begins]).tolist()) == {0, 1, 2, 3, 4, 5}
    empty = (kinds == OpKind.UPDATE) & (ops["in_len"] == 0) & (ops["aux1"] == 0)
    first = np.append([False], kinds[:-1] == OpKind.SETIV)
    last = (ops["flags"] & Flag.LAST) != 0
    for place in (first & ~last, ~first & ~last, ~first & last):
        assert (empty & place).any()


def test_macs_are_cut_in_two_at_every_byte_up_to_four_blocks_and_in_more_with_empty_pieces_everywhere(
    of_mode: MakeManifest,
) -> None:
    cuts: set[tuple[int, int]] = set()
    empty_at: set[tuple[int, int]] = set()
    filled = set()
    for number in range(6):
        drawn = draw_batch(of_mode("cmac", sessions_per_batch=1024), number)
        updates = np.flatnonzero(drawn.batch.ops["kind"] == OpKind.UPDATE)
        order = updates[np.argsort(drawn.owner[updates], kind="stable")]
        lens = drawn.batch.ops["in_len"][order].astype(int).tolist()
        counts = np.bincount(drawn.owner[order], minlength=8192).tolist()
        at = 0
        for count in counts:
            pieces, at = lens[at : at + count], at + count
            if count == 2 and sum(pieces) <= 64:
                cuts.add((sum(pieces), pieces[0]))
            if count >= 3:
                empty_at |= {(count, place) for place, length in enumerate(pieces) if not length}
                filled |= {length for length in pieces if length in (1, 3, 15, 16, 17)}
    assert cuts == {(length, cut) for length in range(65) for cut in range(length + 1)}
    assert empty_at == {(count, place) for count in (3, 4, 5) for place in range(count)}
    assert filled == {1, 3, 15, 16, 17}


def test_rekeying_within_a_session_is_there(of_mode: MakeManifest) -> None:
    for batch in first_five(of_mode("ctr"))[:1]:
        keys = np.append([0], np.cumsum(batch.ops["kind"] == OpKind.SETKEY))
        first = batch.cases["first_op"].astype(np.int64)
        per_case = keys[first + batch.cases["num_ops"]] - keys[first]
        assert per_case.min() == 1
        assert (per_case > 1).sum() > 200


@pytest.mark.parametrize("name", ["ctr", "cbc", "cbc_8", "ctr_any_key", "lrw", "xts"])
def test_refusals_are_asked_for(of_mode: MakeManifest, name: str) -> None:
    manifest = of_mode(name)
    ops = together(first_five(manifest))
    keys = set(ops["in_len"][ops["kind"] == OpKind.SETKEY].tolist())
    legal = {n * manifest.num_keys + manifest.key_extra_len for n in manifest.key_lens}
    assert keys == set(range(max(legal) + 4)) | {24, 32, 33, 40, 48, 56, 64, 96, 128, 255, 256}
    ivs = set(ops["in_len"][ops["kind"] == OpKind.SETIV].tolist())
    assert {0, 1, manifest.block_len - 1, manifest.block_len, manifest.block_len + 1} <= ivs
    lengths = ops["aux1"][ops["kind"] == OpKind.SETIV]
    if manifest.partial == "refused":
        assert set((lengths % manifest.block_len).tolist()) == set(range(manifest.block_len))
    if manifest.min_len_blocks:
        assert set(range(manifest.block_len)) <= set(lengths.tolist())


@pytest.mark.parametrize("name", ["cmac", "ccm", "gcm"])
def test_every_tag_and_iv_length_is_there_and_illegal_ones_are(of_mode: MakeManifest, name: str) -> None:
    manifest = of_mode(name)
    batches = first_five(manifest)
    tags = set(np.concatenate([batch.cases["tag_len"] for batch in batches]).tolist())
    assert tags == set(range(manifest.block_len + 2))
    legal = generate_batch(of_mode(name, sessions_per_batch=256, steering=("lengths",)), 0)
    assert set(legal.cases["tag_len"].tolist()) == set(manifest.tag_lens)
    ivs = legal.ops["in_len"][legal.ops["kind"] == OpKind.SETIV]
    assert set(ivs.tolist()) == set(manifest.iv_lens or (0,))


def test_associated_data_is_there_in_no_in_one_and_in_two_pieces(of_mode: MakeManifest) -> None:
    ops = together(first_five(of_mode("ccm", refusals=())))
    kinds = ops["kind"]
    begins = np.flatnonzero(kinds == OpKind.SETIV)
    assert {0, 1, 13, 14, 15, 30, 0xFEFF, 0xFF00, 0xFF01, 0x10000} <= set(ops["aux0"][begins].tolist())
    pieces = np.append([0], np.cumsum(kinds == OpKind.AAD))
    number = pieces[np.flatnonzero(kinds == OpKind.TAG)] - pieces[begins]
    assert set(zip(number.tolist(), (ops["aux0"][begins] > 0).tolist(), strict=True)) == {
        (0, False), (1, False), (1, True), (2, True),
    }  # fmt: skip


def test_announced_lengths_are_wrong_in_every_way_where_they_are_to_be_refused(of_mode: MakeManifest) -> None:
    manifest = of_mode("ccm", steering=("refusals",), sessions_per_batch=256, refusals=("announced",))
    drawn = draw_batch(manifest, 0)
    ops = drawn.batch.ops
    ivs = ops[ops["kind"] == OpKind.SETIV]
    came = {
        kind: np.bincount(drawn.owner, np.where(ops["kind"] == kind, ops["in_len"], 0.0)).astype(np.int64)
        for kind in (OpKind.AAD, OpKind.UPDATE)
    }
    aad, data = (
        ivs[name].astype(np.int64) - came[kind] for name, kind in (("aux0", OpKind.AAD), ("aux1", OpKind.UPDATE))
    )
    assert 0.2 < ((aad != 0) | (data != 0)).mean() < 0.3
    assert not ((aad != 0) & (data != 0)).any()
    for wrong in (aad, data):
        assert {-2, -1, 1, 2, 16} <= set(wrong.tolist())
        assert (wrong + came[OpKind.AAD if wrong is aad else OpKind.UPDATE] >= 0).all()
    room = 8 * (15 - ivs["in_len"].astype(np.int64))
    fits = [announced >> bits == 0 for announced, bits in zip(ivs["aux1"].tolist(), room.tolist(), strict=True)]
    beyond = {bits for fit, bits in zip(fits, room.tolist(), strict=True) if not fit}
    assert beyond == {8 * length for length in range(2, 8)}
    assert (ivs["aux1"][room == 64] >= 1 << 62).any()


@pytest.mark.parametrize("name", ["xts", "cts_cbc", "ctr"])
def test_data_are_missing_where_a_mode_needs_some(of_mode: MakeManifest, name: str) -> None:
    manifest = of_mode(name, steering=("refusals",), sessions_per_batch=256, refusals=("missing",))
    drawn = draw_batch(manifest, 0)
    num_updates = np.bincount(drawn.owner, drawn.batch.ops["kind"] == OpKind.UPDATE)
    lengths = drawn.batch.ops["aux1"][drawn.batch.ops["kind"] == OpKind.SETIV]
    if name == "ctr":
        assert (lengths[num_updates > 0] > 0).any()
    else:
        assert 0.08 < (num_updates == 0).mean() < 0.17
        assert not lengths[num_updates == 0].any()
        assert lengths[num_updates > 0].min() >= manifest.block_len


def test_neighbours_take_turns_in_half_of_the_sessions_for_splits(of_mode: MakeManifest) -> None:
    manifest = of_mode("ctr", steering=("splits",), sessions_per_batch=256)
    drawn = draw_batch(manifest, 0)
    ops, marks = drawn.batch.ops, drawn.batch.marks
    assert marks is not None
    mixed = (marks & Mark.INTERLEAVED) != 0
    assert 0.4 < mixed.mean() < 0.6
    assert (mixed.reshape(-1, 8).all(axis=1) | ~mixed.reshape(-1, 8).any(axis=1)).all()
    turns = np.flatnonzero(np.diff(drawn.owner))
    backwards = drawn.owner[turns + 1] < drawn.owner[turns]
    assert set((drawn.owner[turns[backwards] + 1] // 2).tolist()) == set((np.flatnonzero(mixed) // 2).tolist())
    for message in np.flatnonzero(mixed).tolist():
        mine = ops[drawn.owner == message]
        assert mine["kind"][0] == OpKind.SETKEY
        pair = drawn.owner[np.isin(drawn.owner, (message - message % 2, message - message % 2 + 1))]
        assert len(set(zip(mine["slot"].tolist(), [message] * len(mine), strict=True))) <= 2
        assert np.count_nonzero(np.diff(pair)) >= 5
    slots = [{int(slot) // 2 for slot in ops["slot"][drawn.owner == message]} for message in np.flatnonzero(mixed)]
    assert all(len(half) == 1 for half in slots)
    assert all(one != other for one, other in zip(slots[::2], slots[1::2], strict=True))


def test_without_steering_for_splits_nothing_is_interleaved(of_mode: MakeManifest) -> None:
    for changes in ({"steering": ("lengths", "refusals")}, {"fixed_len": 64}, {"messages_per_session": 3}):
        drawn = draw_batch(of_mode("ctr", **changes), 0)
        assert drawn.batch.marks is not None
        assert not (drawn.batch.marks & Mark.INTERLEAVED).any()
        assert (np.diff(drawn.owner) >= 0).all()


def test_a_long_message_has_the_nonce_that_leaves_it_room(of_mode: MakeManifest) -> None:
    ops = together(first_five(replace(of_mode("ccm"), steering=("sizes", "lengths"))))
    ivs = ops[ops["kind"] == OpKind.SETIV]
    long = ivs["aux1"] > 0xFFFF
    assert long.any()
    assert set(ivs["in_len"][long].tolist()) == {7}


def test_refusals_are_few(of_mode: MakeManifest) -> None:
    ops = together(first_five(of_mode("ctr")))
    keys, ivs = (ops["in_len"][ops["kind"] == kind] for kind in (OpKind.SETKEY, OpKind.SETIV))
    assert (keys != 16).sum() + (ivs != 16).sum() < 0.06 * len(ivs)


def test_policies_are_asked_for_alone_and_together(of_mode: MakeManifest) -> None:
    policies = np.concatenate([batch.cases["policy"] for batch in first_five(of_mode("ctr_8"))])
    assert set(policies.tolist()) == {0, 1, 2, 3}
    only = generate_batch(of_mode("ctr_8", policies=("weak_subkey",)), 0).cases["policy"]
    assert set(only.tolist()) == {0, 2}


def test_fixed_lengths_are_for_benchmarks(of_mode: MakeManifest) -> None:
    ops = generate_batch(of_mode("ctr", fixed_len=64), 0).ops
    assert set(ops["aux1"][ops["kind"] == OpKind.SETIV].tolist()) == {64}
    assert set(ops["in_len"][ops["kind"] == OpKind.UPDATE].tolist()) == {64}
    assert (ops["kind"] == OpKind.SETKEY).sum() == 64


# --- cases by themselves ---


def contents(batch: Batch, case: int) -> tuple[Any, ...]:
    """All that a case is, without the places where it lies in its batch."""
    record = batch.cases[case]
    first, count = int(record["first_op"]), int(record["num_ops"])
    ops = batch.ops[first : first + count]
    data = tuple(
        batch.blob[int(off) : int(off) + int(length)].tobytes()
        for off, length in zip(ops["in_off"], ops["in_len"], strict=True)
    )
    plain = ops.copy()
    plain["in_off"] = plain["out_off"] = 0
    outs = tuple(output_lens(batch, np.arange(first, first + count)).tolist())
    about = tuple(record[name].item() for name in ("policy", "decrypting", "ctx_edge", "tag_len"))
    return plain.tobytes(), data, outs, about, int(batch.messages[case])


@pytest.mark.parametrize("name", ["ecb", "ctr", "xts", "ctr_any_key", "cmac", "gcm"])
@pytest.mark.parametrize("indexes", [[0], [63], [5, 4, 60], list(range(64))])
def test_a_case_is_the_same_wherever_it_lies(of_mode: MakeManifest, name: str, indexes: list[int]) -> None:
    batch = generate_batch(of_mode(name), 1)
    some = select_cases(batch, np.array(indexes))
    assert [contents(some, place) for place in range(len(indexes))] == [contents(batch, index) for index in indexes]
    decode_batch(encoded(some))
    writes = np.isin(some.ops["kind"], [int(OpKind.UPDATE), int(OpKind.TAG)])
    assert (np.diff(some.ops["out_off"][writes].astype(np.int64)) >= 0).all()


def test_selecting_copies(of_mode: MakeManifest) -> None:
    batch = generate_batch(of_mode("ctr"), 1)
    before = encoded(batch)
    some = select_cases(batch, np.array([1, 2]))
    some.ops["kind"] = 0
    some.blob[:] = 0
    some.cases["policy"] = 7
    assert encoded(batch) == before
