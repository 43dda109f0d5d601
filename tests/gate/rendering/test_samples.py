"""The samples have the shape that the stages write, so that what is shown of them is shown of real records."""

from __future__ import annotations

import json

import jsonschema
import pytest

from tests.gate.rendering import samples
from tooling.evidence import parse_record, render_record, seal
from tooling.smoke.observations import Seen

SCHEMAS = samples.ROOT / "tooling" / "data" / "schemas"


def test_gsm8k_samples_are_as_their_schema_says() -> None:
    schema = json.loads((SCHEMAS / "gsm8k-measurements.schema.json").read_text())
    jsonschema.validate(samples.evaluation(), schema)


def test_smoke_samples_read_back() -> None:
    body = samples.smoke("sm90", wrong=("one-rank",))
    assert Seen.from_json(body).as_json() == body


@pytest.mark.parametrize("name", samples.files())
def test_records_can_be_sealed_and_parsed(name: str) -> None:
    record = samples.files()[name].record
    assert record is not None
    jsonschema.validate(seal(record), json.loads((SCHEMAS / "evidence.schema.json").read_text()))
    assert parse_record(render_record(record)).measurements == json.loads(json.dumps(record.measurements))
