"""The table: one spelling, each release in exactly one row, and the same verdict from parser and schema."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from packaging.version import Version

from tests.capabilities.releases import source, whole_release
from tooling.capabilities.derive import derive
from tooling.capabilities.table import Published, Row, Table, calendar_facts, group, lookup, with_release
from tooling.capabilities.table_text import dump, parse
from tooling.edges.capability_table import TABLE, load_table
from tooling.edges.packaged_data import load_json
from tooling.errors import InputError

SCHEMA = load_json("schemas/capabilities.schema.json")


def row(version: str = "9.1.0") -> Row:
    members = whole_release(version)
    derived = derive(members.keys(), source(members).read)
    return Row(releases=(Version(version),), facts=derived.facts, known_faults=derived.known_faults)


PUBLISHED = Published(
    file="f-9.1.0-py3-none-any.whl",
    kind="wheel",
    size_bytes=1,
    sha256="0" * 64,
    uploaded="2026-01-02",
    yanked=False,
    cubin_on_index=True,
)
TEXT = dump(Table(rows=(row(),), as_of="2026-01-03", published={Version("9.1.0"): PUBLISHED}))


def test_the_shipped_table_has_one_spelling_and_fits_its_schema() -> None:
    text = TABLE.read_text()
    assert dump(parse(text)) == text
    jsonschema.validate(json.loads(text), SCHEMA)


def test_every_published_release_of_the_calendar_is_in_exactly_one_row() -> None:
    table = load_table()
    assert sorted(table.published) == list(table.releases)
    assert len(set(table.releases)) == len(table.releases) >= 74
    assert [row.releases[0] for row in table.rows] == sorted(row.releases[0] for row in table.rows)


def test_neighbouring_rows_differ() -> None:
    rows = load_table().rows
    assert group({release: row for row in rows for release in row.releases}) == rows


def change(path: str, value: object) -> Callable[[dict[str, Any]], None]:
    def apply(body: dict[str, Any]) -> None:
        *steps, last = path.split("/")
        target: Any = body
        for step in steps:
            target = target[int(step)] if step.isdigit() else target[step]
        if value is Ellipsis:
            del target[last]
        else:
            target[int(last) if last.isdigit() else last] = value

    return apply


BAD = {
    "another format": ("format", 2),
    "rows are an object": ("rows", {}),
    "no calendar": ("calendar", ...),
    "a release candidate": ("rows/0/releases/0", "9.1.0rc1"),
    "a local version": ("rows/0/releases/0", "9.1.0+cu130"),
    "no release": ("rows/0/releases", []),
    "a fact missing": ("rows/0/facts/autotuner", ...),
    "a fact not known": ("rows/0/facts/colour", {"value": "red", "evidence": []}),
    "a number for a value": ("rows/0/facts/autotuner/value", 7),
    "null without a reason": ("rows/0/facts/autotuner", {"value": None, "evidence": []}),
    "a value without evidence": ("rows/0/facts/autotuner/evidence", []),
    "evidence without a path": ("rows/0/facts/autotuner/evidence/0/path", ...),
    "a fault without a link": ("rows/0/known_faults", [{"id": "x"}]),
    "a day that is none": ("calendar/as_of", "yesterday"),
    "a size that is text": ("calendar/releases/9.1.0/size_bytes", "1"),
    "an egg": ("calendar/releases/9.1.0/kind", "egg"),
    "yanked is text": ("calendar/releases/9.1.0/yanked", "no"),
    "a further key": ("colour", "red"),
}


@pytest.mark.parametrize("name", BAD)
def test_parser_and_schema_refuse_the_same(name: str) -> None:
    body = copy.deepcopy(json.loads(TEXT))
    change(*BAD[name])(body)
    with pytest.raises(InputError) as caught:
        parse(json.dumps(body))
    assert caught.value.reason == "BAD_TABLE"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(body, SCHEMA)


def test_a_good_table_passes_both() -> None:
    jsonschema.validate(json.loads(TEXT), SCHEMA)
    assert dump(parse(TEXT)) == TEXT


def test_a_release_in_two_rows_is_refused() -> None:
    body = json.loads(TEXT)
    body["rows"].append(body["rows"][0])
    with pytest.raises(InputError, match=r"9\.1\.0 is listed twice"):
        parse(json.dumps(body))


def test_a_label_that_lies_is_refused() -> None:
    body = json.loads(TEXT)
    body["rows"][0]["label"] = "9.0 … 9.9"
    with pytest.raises(InputError, match=r"rows\[0\]\.label"):
        parse(json.dumps(body))


def test_all_problems_come_at_once() -> None:
    body = json.loads(TEXT)
    body["format"], body["calendar"]["as_of"] = 2, "x"
    with pytest.raises(InputError) as caught:
        parse(json.dumps(body))
    assert "format" in caught.value.message
    assert "calendar.as_of" in caught.value.message


@pytest.mark.parametrize("text", ["", "[", "[]", "null", '"x"'])
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse(text)


@pytest.mark.parametrize(
    ("version", "listed"),
    [("9.1.0", True), ("9.1", True), ("9.1.0+cu130", True), ("9.1.0.post1", False), ("9.1.0rc1", False),
     ("9.1.0.dev1", False)],
)  # fmt: skip
def test_a_lookup_cuts_the_local_label_and_nothing_else(version: str, listed: bool) -> None:
    assert (lookup(parse(TEXT), Version(version)) is not None) is listed


def test_a_release_with_equal_facts_joins_the_row_beside_it() -> None:
    table = parse(TEXT)
    (first,) = table.rows
    table = with_release(table, Version("9.1.0.post1"), first, None)
    assert [row.label for row in table.rows] == ["9.1.0 … 9.1.0.post1"]
    changed = Row(releases=first.releases, facts={**first.facts, "requires": first.facts["operations"]})
    table = with_release(table, Version("9.1.0"), changed, None)
    assert [row.label for row in table.rows] == ["9.1.0", "9.1.0.post1"]


def test_what_the_calendar_says_is_a_fact_with_its_day() -> None:
    fact = calendar_facts(parse(TEXT), Version("9.1.0+cu130"))["cubin_on_index"]
    assert fact.value is True
    assert "2026-01-03" in fact.evidence[0].seen
    assert calendar_facts(parse(TEXT), Version("9.2.0"))["cubin_on_index"].value is None
