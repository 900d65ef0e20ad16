# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crosslane.errors import BadInput
from crosslane.manifest import (
    GENERATOR_VERSION,
    LIBRARY_STEERING,
    STEERING,
    CaseId,
    Manifest,
    manifest_for,
    manifest_within,
    parse_case_id,
    parse_manifest,
)
from crosslane.model import Cipher, Domain, Implementation, Mode

MakeManifest = Callable[..., Manifest]

CIPHER = Cipher("toy", "Toy", "none", 8, (5, 16), ("degenerate",), Path())
MODE = Mode(
    name="lrw", title="LRW", standard="none", split="block", partial="refused", min_len_blocks=1, iv="index",
    serial=False, iv_lens=(0, 12), iv_out="next", directions=("encrypt", "decrypt"), aad=True, tag_lens=(0, 4),
    num_keys=2, key_extra_len=16, block_lens=(8, 16), folder=Path(),
)  # fmt: skip


def implementation(folder: str, ways: int) -> Implementation:
    return Implementation(
        cipher="toy", driver=f"toy-{folder}", symbol=f"toy_{folder}", isa="any", features=(), priority=100, ways=ways,
        sources=(), fused=(), paths=(), constant_time=True, description="Toy.", folder=Path(folder), origin="own",
    )  # fmt: skip


def test_a_manifest_holds_the_facts_of_cipher_mode_and_the_widest_implementation() -> None:
    manifest = manifest_for(CIPHER, MODE, [implementation("generic", 1), implementation("wide", 16)], "a seed")
    assert manifest == Manifest(
        generator=GENERATOR_VERSION, algorithm="lrw(toy)", seed="a seed", block_len=8, key_lens=(5, 16),
        policies=("degenerate",), split="block", partial="refused", min_len_blocks=1, iv="index", iv_lens=(8, 12),
        iv_out="next", directions=("encrypt", "decrypt"), aad=True, tag_lens=(8, 4), num_keys=2,
        key_extra_len=16, ways=16,
        sessions_per_batch=1024, messages_per_session=8, steering=STEERING,
    )  # fmt: skip
    assert manifest.messages_per_batch == 8192


# Different from CIPHER and MODE in every field that a manifest takes.
DOMAIN = Domain(
    mode="lrw", cipher="toy", directions=("decrypt",), key_lens=(16,), iv_lens=(12,), tag_lens=(4,), split="none",
    min_len=16, max_len=64, max_aad_len=32, empty=False, equal_keys=False, policies=(), always_policies=("degenerate",),
    refusals=("iv",), observes_iv=False, releases_plaintext=True, clone=False, reinit=False, in_place=False,
    optional=False,
)  # fmt: skip
BOUNDED = (
    "key_lens", "policies", "always_policies", "split", "iv_lens", "directions", "tag_lens", "min_len", "max_len",
    "max_aad_len", "empty", "in_place", "clone", "reinit", "equal_keys", "refusals",
)  # fmt: skip


def test_a_bounded_manifest_takes_from_the_domain_what_a_library_computes_and_shows() -> None:
    manifest = manifest_for(CIPHER, MODE, [implementation("generic", 1)], "a seed")
    bounded = manifest_within(manifest, DOMAIN)
    for name in BOUNDED:
        assert getattr(bounded, name) == getattr(DOMAIN, name) != getattr(manifest, name)
    rest = {field.name for field in fields(Manifest)} - {*BOUNDED, "iv_out", "steering"}
    assert bounded.steering == LIBRARY_STEERING != manifest.steering
    assert all(getattr(bounded, name) == getattr(manifest, name) for name in rest)
    assert bounded.digest != manifest.digest
    assert parse_manifest(bounded.to_json(), "here") == bounded
    assert manifest_within(bounded, DOMAIN) == bounded


@pytest.mark.parametrize(
    ("iv_out", "observes", "bounded"),
    [("next", True, "next"), ("next_whole", True, "next_whole"), ("none", True, "none"), ("next", False, "none")],
)
def test_the_running_iv_is_compared_where_mode_and_library_show_it(
    make_manifest: MakeManifest, iv_out: str, observes: bool, bounded: str
) -> None:
    assert manifest_within(make_manifest(iv_out=iv_out), replace(DOMAIN, observes_iv=observes)).iv_out == bounded


def test_the_digest_is_that_of_the_canonical_text(make_manifest: MakeManifest) -> None:
    manifest = make_manifest()
    text = manifest.to_json()
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    assert manifest.digest == hashlib.sha256(text.encode()).hexdigest()[:16]
    assert make_manifest(key_lens=(16, 24), seed="wrap").digest == "d5170eee426e5451"


@pytest.mark.parametrize("name", [field.name for field in fields(Manifest)])
def test_every_field_is_in_the_digest(make_manifest: MakeManifest, name: str) -> None:
    manifest = make_manifest()
    value = getattr(manifest, name)
    other = value + 1 if isinstance(value, int) else value + "x" if isinstance(value, str) else (*value, "x")
    changed: Any = {name: other}
    assert replace(manifest, **changed).digest != manifest.digest


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.text(max_size=30), block_len=st.integers(1, 64), ways=st.integers(1, 64), num_keys=st.integers(1, 3),
    key_lens=st.lists(st.integers(0, 64), min_size=1, max_size=8).map(tuple),
    steering=st.lists(st.sampled_from(sorted({*STEERING, *LIBRARY_STEERING})), min_size=1, max_size=20).map(tuple),
    split=st.sampled_from(["byte", "block", "none"]), policies=st.sampled_from([(), ("weak_subkey",)]),
)  # fmt: skip
def test_manifests_come_back(make_manifest: MakeManifest, **facts: Any) -> None:
    manifest = make_manifest(**facts)
    read = parse_manifest(manifest.to_json(), "here")
    assert read == manifest
    assert read.digest == manifest.digest


def changed(manifest: Manifest, **changes: Any) -> str:
    return json.dumps({**json.loads(manifest.to_json()), **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"more": 1}, "exactly the fields generator, algorithm"),
        ({"generator": GENERATOR_VERSION + 1}, f"generator version {GENERATOR_VERSION + 1}, this engine has"),
        ({"generator": "1"}, "generator = '1' is no int"),
        ({"generator": True}, "generator = True is no int"),
        ({"block_len": 16.0}, r"block_len = 16\.0 is no int"),
        ({"block_len": 0}, "block_len = 0, allowed are 1 to"),
        ({"block_len": -16}, "block_len = -16, allowed are 1 to"),
        ({"ways": 2**40}, "ways = 1099511627776, allowed are"),
        ({"min_len_blocks": -1}, "min_len_blocks = -1, allowed are 0 to"),
        ({"sessions_per_batch": 0}, "sessions_per_batch = 0"),
        ({"messages_per_session": 0}, "messages_per_session = 0"),
        ({"key_lens": []}, "key_lens is empty"),
        ({"key_lens": 16}, "key_lens = 16 is no tuple"),
        ({"key_lens": ["16"]}, "key_lens = .* is no tuple"),
        ({"key_lens": [16, True]}, "key_lens = .* is no tuple"),
        ({"key_lens": [-1]}, "key_lens = .* allowed are 0 to"),
        ({"aad": 1}, "aad = 1 is no bool"),
        ({"aad": None}, "aad = None is no bool"),
        ({"tag_lens": [-4]}, "tag_lens = .* allowed are 0 to"),
        ({"seed": None}, "seed = None is no str"),
        ({"seed": ["a"]}, "seed = .* is no str"),
        ({"split": "bit"}, "split = 'bit', allowed are byte, block, none"),
        ({"partial": ""}, "partial = '', allowed are"),
        ({"iv": "x"}, "iv = 'x', allowed are"),
        ({"iv_out": "x"}, "iv_out = 'x', allowed are"),
        ({"directions": ["sideways"]}, "directions = .* allowed are encrypt, decrypt"),
        ({"directions": []}, "directions is empty"),
        ({"policies": ["none"]}, "policies = .* allowed are degenerate, weak_subkey"),
        ({"steering": ["luck"]}, "steering = .* allowed are counters"),
        ({"steering": []}, "steering is empty"),
        ({"max_len": -1}, "max_len = -1, allowed are 0 to"),
        ({"max_len": (1 << 40) + 1}, "max_len = 1099511627777, allowed are 0 to 1099511627776"),
        ({"empty": 0}, "empty = 0 is no bool"),
        ({"equal_keys": "no"}, "equal_keys = 'no' is no bool"),
        ({"always_policies": ["some"]}, "always_policies = .* allowed are degenerate, weak_subkey"),
        ({"refusals": ["aad"]}, "refusals = .* allowed are key, iv, tag, data, overlap, announced, missing"),
    ],
)
def test_a_manifest_that_no_check_wrote_is_refused(
    make_manifest: MakeManifest, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message) as raised:
        parse_manifest(changed(make_manifest(), **changes), "some/file")
    assert str(raised.value).startswith("some/file: ")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "1", '"text"', "{}", "[" * 100_000])
def test_what_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(BadInput) as raised:
        parse_manifest(text, "some/file")
    assert str(raised.value).startswith("some/file: ")


def test_a_bound_of_associated_data_is_in_the_text_where_there_is_one(make_manifest: MakeManifest) -> None:
    assert "max_aad_len" not in make_manifest().to_json()
    bound = make_manifest(max_aad_len=65279)
    assert '"max_aad_len":65279' in bound.to_json()
    assert parse_manifest(bound.to_json(), "some/file") == bound
    with pytest.raises(BadInput, match="max_aad_len = 0, allowed are 1 to"):
        parse_manifest(changed(make_manifest(), max_aad_len=0), "some/file")


@pytest.mark.parametrize(
    "name", [field.name for field in fields(Manifest) if field.name not in ("max_aad_len", "layouts")]
)
def test_a_manifest_without_one_field_is_refused(make_manifest: MakeManifest, name: str) -> None:
    facts = json.loads(make_manifest().to_json())
    del facts[name]
    with pytest.raises(BadInput, match="exactly the fields"):
        parse_manifest(json.dumps(facts), "some/file")


@given(
    digest=st.text("0123456789abcdef", min_size=16, max_size=16), batch=st.integers(0, 10**9 - 1),
    index=st.integers(0, 10**9 - 1),
)  # fmt: skip
def test_case_ids_come_back(digest: str, batch: int, index: int) -> None:
    case_id = CaseId(digest, batch, index)
    assert parse_case_id(str(case_id)) == case_id
    assert str(case_id) == f"{digest}-{batch}-{index}"


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "0123456789abcdef", "0123456789abcdef-1", "0123456789abcdef-1-2-3", "0123456789abcde-1-2",
        "0123456789ABCDEF-1-2", "0123456789abcdef--1-2", "0123456789abcdef-1-2 ", "0123456789abcdef-1-2\n",
        "0123456789abcdef-1-1234567890", "0123456789abcdef-\u0661-2", "g123456789abcdef-1-2",
    ],
)  # fmt: skip
def test_what_is_no_case_id_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadInput, match=r"is no case id.* such as 0123456789abcdef-3-17"):
        parse_case_id(text)
