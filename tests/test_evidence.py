"""A record survives the way to disk and back, and no field of it can be changed by hand."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta, timezone
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooling.errors import InputError
from tooling.evidence import STATUSES, Record, digest, parse_record, render_record, seal
from tooling.findings import Finding, Severity

texts = st.text(st.characters())
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
findings = st.builds(
    Finding,
    check=texts,
    detail=texts,
    severity=st.sampled_from(Severity),
    path=st.none() | texts,
    line=st.none() | st.integers(1, 10**6),
    hint=texts,
    reason=texts,
)
moments = st.integers(0, 10**13).map(lambda number: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(milliseconds=number))
records = st.builds(
    Record,
    stage=texts,
    subject=st.none() | texts,
    status=st.sampled_from(STATUSES),
    reason=st.none() | texts,
    pins_sha256=st.none() | texts,
    flashinfer_version=st.none() | texts,
    commit=st.none() | texts,
    dirty=st.none() | st.booleans(),
    image_id=st.none() | texts,
    manifest_digest=st.none() | texts,
    gpu=st.none() | st.dictionaries(st.text(), json_values, max_size=2),
    started=moments,
    ended=moments,
    tool_version=texts,
    findings=st.lists(findings, max_size=3).map(tuple),
    measurements=st.dictionaries(st.text(), json_values, max_size=3),
)
PLAIN = Record(
    stage="smoke",
    subject="sm90",
    status="fail",
    reason="TUNED_LOST",
    pins_sha256="ab" * 32,
    flashinfer_version="0.6.13",
    commit="c" * 40,
    dirty=False,
    image_id="sha256:" + "d" * 64,
    manifest_digest="sha256:" + "e" * 64,
    gpu={"name": "H200", "sm": "90"},
    started=datetime(2026, 6, 1, 12, 0, 0, 250_000, tzinfo=timezone(timedelta(hours=2))),
    ended=datetime(2026, 6, 1, 10, 0, 1, tzinfo=UTC),
    tool_version="0.1.0",
    findings=(Finding(check="hits", detail="caf\u00e9 missed", path="a\udc80", line=3, hint="h", reason="MISS"),),
    measurements={"hits": 3, "spread_s": 0.25},
)
SCHEMA = json.loads((files("tooling") / "data" / "schemas" / "evidence.schema.json").read_text())


@given(records)
def test_a_record_survives_the_way_to_disk_and_back(record: Record) -> None:
    text = render_record(record)
    assert parse_record(text) == record
    assert render_record(parse_record(text)) == text


def test_a_record_on_disk_is_ascii_sorted_and_fits_the_schema() -> None:
    text = render_record(PLAIN)
    body = json.loads(text)
    assert text.isascii()
    assert text.endswith("}\n")
    assert list(body) == sorted(body)
    assert body["started"] == "2026-06-01T10:00:00.250Z"
    jsonschema.validate(body, SCHEMA)


@pytest.mark.parametrize(("subject", "name"), [("sm90", "smoke-sm90.json"), (None, "smoke.json")])
def test_a_record_is_named_after_stage_and_subject(subject: str | None, name: str) -> None:
    record = parse_record(render_record(PLAIN))
    assert Record(**{**_fields(record), "subject": subject}).file_name == name


def _fields(record: Record) -> dict[str, Any]:
    return {name: getattr(record, name) for name in Record.__slots__}


@pytest.mark.parametrize("key", sorted(seal(PLAIN).keys() - {"format"}))
def test_a_field_altered_by_hand_is_seen(key: str) -> None:
    body = seal(PLAIN)
    for other in ("altered", None, True, [], {}):
        if body[key] != other:
            assert_refused({**body, key: other}, "HAND_EDITED")


@pytest.mark.parametrize("key", sorted(seal(PLAIN).keys() - {"format", "digest"}))
def test_a_missing_or_added_field_is_seen(key: str) -> None:
    body = seal(PLAIN)
    del body[key]
    assert_refused(body, "HAND_EDITED")
    assert_refused({**seal(PLAIN), f"{key}2": 1}, "HAND_EDITED")


WRONG = [
    ("stage", 5), ("subject", 5), ("status", "passed"), ("status", ["pass"]), ("reason", []), ("pins_sha256", 5),
    ("flashinfer_version", 0.6), ("commit", True), ("dirty", "no"), ("image_id", {}), ("manifest_digest", 5),
    ("gpu", []), ("gpu", "H200"), ("started", None), ("started", "yesterday"), ("started", "2026-06-01T10:00:00"),
    ("ended", 5), ("tool_version", None), ("findings", {}), ("findings", ["x"]), ("findings", [{"check": "c"}]),
    ("findings", [{**PLAIN.findings[0].as_json(), "severity": "fatal"}]),
    ("findings", [{**PLAIN.findings[0].as_json(), "line": "3"}]),
    ("findings", [{**PLAIN.findings[0].as_json(), "path": 3}]),
    ("measurements", []),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), WRONG, ids=[f"{key}={value!r}"[:40] for key, value in WRONG])
def test_a_field_of_another_type_is_refused_though_the_digest_fits(key: str, value: object) -> None:
    body = {**seal(PLAIN), key: value}
    assert_refused({**body, "digest": digest(body)}, "UNPARSABLE")


@pytest.mark.parametrize("key", sorted(seal(PLAIN).keys() - {"format", "digest"}))
def test_a_missing_field_is_refused_though_the_digest_fits(key: str) -> None:
    body = seal(PLAIN)
    del body[key]
    assert_refused({**body, "digest": digest(body)}, "UNPARSABLE")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "5", '"x"', "null", "{}", '{"format": 2}', "[" * 100_000, '{"format": 1, "measurements": NaN}'],
    ids=["empty", "cut", "list", "number", "text", "null", "no format", "another format", "too deep", "NaN"],
)
def test_what_is_no_record_is_refused(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_record(text)
    assert refused.value.reason == "UNPARSABLE"


def test_a_record_that_can_just_be_read_and_is_too_deep_to_be_sealed_is_none() -> None:
    for depth in range(sys.getrecursionlimit() - 300, sys.getrecursionlimit() + 10):
        with pytest.raises(InputError) as refused:
            parse_record(f'{{"format": 1, "measurements": {"[" * depth}{"]" * depth}}}')
        assert refused.value.reason in {"UNPARSABLE", "HAND_EDITED"}


def test_numbers_that_json_does_not_know_are_never_written() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        render_record(Record(**{**_fields(PLAIN), "measurements": {"ratio": float("nan")}}))


def assert_refused(body: dict[str, object], reason: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_record(json.dumps(body))
    assert refused.value.reason == reason
