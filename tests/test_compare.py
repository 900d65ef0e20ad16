# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crosslane.compare import Comparison, compare
from crosslane.generate import generate_batch, output_lens, select_cases
from crosslane.manifest import Manifest
from crosslane.wire import Batch, Buffer, Flag, OpKind, Results, Status, Symptom, Verdict

MakeManifest = Callable[..., Manifest]
MakeResults = Callable[[Batch], Results]


@pytest.fixture
def batch(make_manifest: MakeManifest) -> Batch:
    return generate_batch(make_manifest(steering=("lengths", "splits", "counters")), 1)


@pytest.fixture
def oracle(batch: Batch, make_results: MakeResults) -> Results:
    return make_results(batch)


@pytest.fixture
def subject(oracle: Results) -> Results:
    return oracle.copy()


def outputs(batch: Batch, case: int) -> list[tuple[int, int, int]]:
    """(operation within the case, where its output begins, its data's length) of the case's updates with data."""
    first, count = int(batch.cases["first_op"][case]), int(batch.cases["num_ops"][case])
    ops = batch.ops[first : first + count]
    return [
        (number, int(op["out_off"]), int(op["in_len"]))
        for number, op in enumerate(ops)
        if op["kind"] == OpKind.UPDATE and op["in_len"] > 0
    ]


def test_equal_results_agree_and_every_message_counts(batch: Batch, oracle: Results, subject: Results) -> None:
    assert compare(batch, oracle, subject) == Comparison(64 * 8, 0, (), 0)


@pytest.mark.parametrize("case", [0, 1, 31, 63])
@pytest.mark.parametrize("which", [0, -1])
@pytest.mark.parametrize("at", ["first", "last"])
def test_a_wrong_byte_of_output_is_found_where_it_is(
    batch: Batch, oracle: Results, subject: Results, case: int, which: int, at: str
) -> None:
    op, start, length = outputs(batch, case)[which]
    offset = 0 if at == "first" else length - 1
    subject.out[start + offset] ^= 0x40
    found = compare(batch, oracle, subject)
    assert found.comparisons == 64 * 8
    assert found.num_departed == 1
    (departure,) = found.departures
    assert (departure.case, departure.op, departure.offset) == (case, op, offset)
    assert (departure.verdict, departure.symptom, departure.buffer) == (Verdict.DISAGREE, Symptom.OUTPUT, Buffer.OUT)
    shown = min(16, length - offset)
    assert departure.expected == oracle.out[start + offset :][:shown].tobytes()
    assert departure.got == subject.out[start + offset :][:shown].tobytes()


@pytest.mark.parametrize("offset", [0, 15])
def test_a_wrong_iv_is_no_wrong_output(batch: Batch, oracle: Results, subject: Results, offset: int) -> None:
    op, start, length = outputs(batch, 5)[0]
    subject.out[start + length + offset] ^= 1
    (departure,) = compare(batch, oracle, subject).departures
    assert (departure.case, departure.op, departure.symptom, departure.buffer) == (5, op, Symptom.IV, Buffer.IV)
    assert departure.offset == offset
    assert departure.got == subject.out[start + length + offset : start + length + 16].tobytes()


def test_without_an_observed_iv_all_output_is_output(make_manifest: MakeManifest, make_results: MakeResults) -> None:
    batch = generate_batch(make_manifest(iv="none", iv_lens=(), iv_out="none", split="block", partial="refused"), 1)
    assert ((batch.ops["kind"] == OpKind.UPDATE) & (batch.ops["in_len"] == 0)).any()
    oracle = make_results(batch)
    for case in range(64):
        for op, start, length in outputs(batch, case):
            subject = oracle.copy()
            subject.out[start + length - 1] ^= 1
            (departure,) = compare(batch, oracle, subject).departures
            assert (departure.case, departure.op, departure.symptom) == (case, op, Symptom.OUTPUT)
            assert departure.offset == length - 1


@pytest.mark.parametrize("name", ["ecb", "ctr"])
def test_a_case_by_itself_departs_as_in_its_batch(
    make_manifest: MakeManifest, make_results: MakeResults, name: str
) -> None:
    ecb = {"iv": "none", "iv_lens": (), "iv_out": "none", "split": "block", "partial": "refused"}
    batch = generate_batch(make_manifest(**ecb if name == "ecb" else {}), 1)
    for case in range(64):
        alone = select_cases(batch, np.array([case]))
        oracle = make_results(alone)
        for op, start, length in outputs(alone, 0):
            subject = oracle.copy()
            subject.out[start] ^= 1
            (departure,) = compare(alone, oracle, subject).departures
            assert (departure.op, departure.offset) == (op, 0)
            assert length == batch.ops["in_len"][int(batch.cases["first_op"][case]) + op]


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        (Status.OK, Status.BAD_KEY_LEN, Verdict.REJECT),
        (Status.WEAK_KEY, Status.BAD_KEY_LEN, Verdict.REJECT),
        (Status.BAD_KEY_LEN, Status.OK, Verdict.DISAGREE),
        (Status.OK, 200, Verdict.REJECT),
    ],
)
def test_refusals_on_one_side_depart(
    batch: Batch, oracle: Results, subject: Results, ours: int, theirs: int, verdict: Verdict
) -> None:
    at = int(batch.cases["first_op"][7]) + 2
    oracle.statuses[at], subject.statuses[at] = ours, theirs
    found = compare(batch, oracle, subject)
    (departure,) = found.departures
    assert (departure.case, departure.op, departure.verdict) == (7, 2, verdict)
    assert (departure.symptom, departure.buffer) == (Symptom.OUTPUT, Buffer.NONE)
    assert (departure.expected, departure.got) == (bytes([ours]), bytes([theirs]))


def test_a_status_comes_before_the_output_that_follows_from_it(batch: Batch, oracle: Results, subject: Results) -> None:
    op, start, _ = outputs(batch, 7)[0]
    subject.statuses[int(batch.cases["first_op"][7]) + op] = Status.BAD_ORDER
    subject.out[start] ^= 1
    found = compare(batch, oracle, subject)
    assert found.num_departed == 1
    assert found.departures[0].verdict == Verdict.REJECT


RECORD: dict[str, Any] = {
    "verdict": Verdict.CRASH, "symptom": Symptom.GUARD_READ, "buffer": Buffer.IN, "signal": 11, "op": 2, "offset": -5,
    "registers": 0x80, "pc": 0x401000,
}  # fmt: skip


def record(batch: Batch, results: Results, case: int, **fields: Any) -> None:
    for name, value in {**RECORD, **fields}.items():
        results.cases[name][case] = value + (int(batch.cases["first_op"][case]) if name == "op" else 0)


@pytest.mark.parametrize("verdict", [Verdict.DISAGREE, Verdict.REJECT, Verdict.CRASH, Verdict.HANG, Verdict.VOID])
def test_what_the_shim_recorded_is_the_departure(
    batch: Batch, oracle: Results, subject: Results, verdict: Verdict
) -> None:
    record(batch, subject, 9, verdict=verdict)
    found = compare(batch, oracle, subject)
    assert found.comparisons == 64 * 8
    assert found.num_departed == 1
    (departure,) = found.departures
    shown = {name: getattr(departure, name) for name in RECORD}
    assert shown == {**RECORD, "verdict": verdict}
    assert departure.case == 9


@pytest.mark.parametrize(("op", "shown"), [(-1, 0), (0, 0), (10_000, None)])
def test_an_operation_of_another_case_is_not_named(
    batch: Batch, oracle: Results, subject: Results, op: int, shown: int | None
) -> None:
    record(batch, subject, 9, op=op)
    (departure,) = compare(batch, oracle, subject).departures
    assert departure.op == (int(batch.cases["num_ops"][9]) - 1 if shown is None else shown)


@pytest.mark.parametrize("field", ["verdict", "symptom", "buffer"])
def test_a_record_written_over_is_a_write_to_the_results(
    batch: Batch, oracle: Results, subject: Results, field: str
) -> None:
    record(batch, subject, 9, **{field: 0xA5})
    (departure,) = compare(batch, oracle, subject).departures
    assert (departure.case, departure.symptom, departure.buffer) == (9, Symptom.GUARD_WRITE, Buffer.RESULTS)
    assert departure.got == subject.cases[9].tobytes()


def test_an_ended_case_is_judged_by_its_record_alone(batch: Batch, oracle: Results, subject: Results) -> None:
    record(batch, subject, 9)
    for _, start, _ in outputs(batch, 9):
        subject.out[start] ^= 1
    found = compare(batch, oracle, subject)
    assert (found.num_departed, len(found.departures)) == (1, 1)


def test_cases_that_did_not_run_are_no_comparisons(batch: Batch, oracle: Results, subject: Results) -> None:
    subject.cases["verdict"][60:] = Verdict.NOT_RUN
    subject.out[outputs(batch, 61)[0][1]] ^= 1
    assert compare(batch, oracle, subject) == Comparison(60 * 8, 0, (), 4)


@pytest.mark.parametrize("verdict", [Verdict.NOT_RUN, Verdict.CRASH, Verdict.HANG])
def test_cases_without_the_oracles_answer_are_no_comparisons(
    batch: Batch, oracle: Results, subject: Results, verdict: Verdict
) -> None:
    oracle.cases["verdict"][3:5] = verdict
    assert compare(batch, oracle, subject) == Comparison(62 * 8, 0, (), 2)
    subject.out[outputs(batch, 3)[0][1]] ^= 1
    assert compare(batch, oracle, subject) == Comparison(62 * 8, 0, (), 2)
    record(batch, subject, 4)
    found = compare(batch, oracle, subject)
    assert (found.comparisons, found.num_departed, found.not_run) == (63 * 8, 1, 1)


def test_messages_count_not_cases(batch: Batch, oracle: Results, subject: Results) -> None:
    counted = replace(batch, messages=np.arange(64))
    subject.cases["verdict"][:10] = Verdict.NOT_RUN
    assert compare(counted, oracle, subject).comparisons == sum(range(10, 64))


def plant(batch: Batch, subject: Results, case: int, way: int) -> None:
    first = int(batch.cases["first_op"][case])
    if way == 0:
        subject.statuses[first] = Status.UNSUPPORTED
    elif way == 1:
        subject.out[outputs(batch, case)[0][1]] ^= 0xFF
    elif way == 2:
        record(batch, subject, case)
    else:
        ops = np.arange(first, first + int(batch.cases["num_ops"][case]))
        last = ops[output_lens(batch, ops) > 0][-1]
        subject.out[int(batch.ops["out_off"][last]) + int(output_lens(batch, np.array([last]))[0]) - 1] ^= 1


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(planted=st.dictionaries(st.integers(0, 63), st.integers(0, 3), max_size=64))
def test_the_guilty_are_found_and_no_innocent(batch: Batch, oracle: Results, planted: dict[int, int]) -> None:
    subject = oracle.copy()
    for case, way in planted.items():
        plant(batch, subject, case, way)
    found = compare(batch, oracle, subject, limit=64)
    assert [departure.case for departure in found.departures] == sorted(planted)
    assert found.num_departed == len(planted)
    assert (found.comparisons, found.not_run) == (64 * 8, 0)


@pytest.mark.parametrize(("limit", "described"), [(1, 1), (16, 16), (40, 40), (64, 64)])
def test_at_most_a_limit_of_one_kind_is_described_and_all_are_counted(
    batch: Batch, oracle: Results, subject: Results, limit: int, described: int
) -> None:
    for case in range(64):
        subject.out[outputs(batch, case)[0][1]] ^= 1
    found = compare(batch, oracle, subject, limit=limit)
    assert found.num_departed == 64
    assert [departure.case for departure in found.departures] == list(range(described))


def test_each_kind_has_its_own_limit(batch: Batch, oracle: Results, subject: Results) -> None:
    for case in range(64):
        plant(batch, subject, case, case % 3)
    found = compare(batch, oracle, subject, limit=2)
    assert [departure.case for departure in found.departures] == [0, 1, 2, 3, 4, 5]
    assert found.num_departed == 64


def test_far_beyond_the_limit_nothing_is_looked_at_but_all_is_counted(
    make_manifest: MakeManifest, make_results: MakeResults
) -> None:
    batch = generate_batch(make_manifest(sessions_per_batch=512, steering=("lengths",)), 1)
    oracle = make_results(batch)
    subject = oracle.copy()
    subject.statuses[batch.cases["first_op"].astype(np.int64)] = Status.UNSUPPORTED
    record(batch, subject, 500)
    found = compare(batch, oracle, subject, limit=2)
    assert found.num_departed == 512
    assert [departure.case for departure in found.departures] == [0, 1]


def test_a_flag_alone_makes_bytes_an_iv(batch: Batch, oracle: Results, subject: Results) -> None:
    assert (batch.ops["flags"][batch.ops["kind"] == OpKind.UPDATE] & Flag.OBSERVE_IV).all()
    empty = np.flatnonzero((batch.ops["kind"] == OpKind.UPDATE) & (batch.ops["in_len"] == 0))[0]
    subject.out[int(batch.ops["out_off"][empty])] ^= 1
    (departure,) = compare(batch, oracle, subject).departures
    assert (departure.symptom, departure.offset) == (Symptom.IV, 0)
    first = batch.cases["first_op"].astype(np.int64)
    assert first[departure.case] + departure.op == empty


def test_a_wrong_tag_is_no_wrong_output(make_manifest: MakeManifest, make_results: MakeResults) -> None:
    mac: dict[str, Any] = {"iv": "none", "iv_lens": (), "iv_out": "none", "tag_lens": (16,), "steering": ("lengths",)}
    batch = generate_batch(make_manifest(**mac, directions=("encrypt",)), 1)
    oracle = make_results(batch)
    for case in (0, 63):
        subject = oracle.copy()
        first, count = int(batch.cases["first_op"][case]), int(batch.cases["num_ops"][case])
        subject.out[int(batch.ops["out_off"][first + count - 1]) + 15] ^= 1
        (departure,) = compare(batch, oracle, subject).departures
        assert (departure.case, departure.op, departure.offset) == (case, count - 1, 15)
        assert (departure.symptom, departure.buffer) == (Symptom.OUTPUT, Buffer.TAG)
        assert departure.expected == bytes([departure.got[0] ^ 1])
