"""Every string value of a JSON text is found, at its place, under its keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooling.pins.json_spans import JsonString, find_strings

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def strings_of(value: Any, keys: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield keys, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from strings_of(item, (*keys, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from strings_of(item, (*keys, key))


@given(values, st.sampled_from([None, 0, 3]), st.booleans())
def test_strings_are_those_that_json_knows(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    found = list(find_strings(text))
    assert [(item.keys, item.value) for item in found] == list(strings_of(value))
    for item in found:
        assert text[item.start - 1] == text[item.end] == '"'
        assert json.loads(f'"{text[item.start : item.end]}"') == item.value


@given(values, st.text())
def test_replacing_one_span_changes_one_value(value: Any, new: str) -> None:
    text = json.dumps(value)
    for number, item in enumerate(find_strings(text)):
        changed = text[: item.start] + json.dumps(new)[1:-1] + text[item.end :]
        expected = list(strings_of(value))
        expected[number] = (expected[number][0], new)
        assert list(strings_of(json.loads(changed))) == expected


@pytest.mark.parametrize(
    ("text", "keys", "span"),
    [
        ('{"a" : {"b":\t"x"}}', ("a", "b"), "x"),
        ('{"a": [1, {"b": "x"}]}', ("a", 1, "b"), "x"),
        ('\ufeff{"a":"x\\"\\\\"}', ("a",), 'x\\"\\\\'),
        ('"x"', (), "x"),
        ('{"a": "\\u00e9{[,:"}', ("a",), "\\u00e9{[,:"),
    ],
    ids=["spaces", "a list", "BOM and escapes", "nothing around it", "signs inside"],
)
def test_places_are_in_the_text_as_it_is_written(text: str, keys: tuple[str | int, ...], span: str) -> None:
    (item,) = find_strings(text)
    assert isinstance(item, JsonString)
    assert item.keys == keys
    assert text[item.start : item.end] == span


@pytest.mark.parametrize(
    "text", ["", "{", '{"a": "b"} x', '["a", "b"', "[" * 100_000], ids=["empty", "cut", "more", "open", "deep"]
)
def test_a_text_that_is_no_json_has_no_strings(text: str) -> None:
    assert list(find_strings(text)) == []


def test_positions_count_the_mark_in_front() -> None:
    (found,) = find_strings('\ufeff["a"]')
    assert (found.value, found.start) == ("a", 3)
