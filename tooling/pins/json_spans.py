"""Positions of the string values in a JSON text; the standard library gives values without them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from tooling.pins.patterns import late

_TOKEN = late(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


@dataclass(frozen=True, slots=True)
class JsonString:
    """A string value: the keys and indices that lead to it, and the span between its quotes, in characters."""

    keys: tuple[str | int, ...]
    value: str
    start: int
    end: int


@dataclass(slots=True)
class _Level:
    """An object or array that the walk is inside of, and the key or index that comes next."""

    is_object: bool
    key: str | int
    expects_key: bool


def find_strings(text: str) -> Iterator[JsonString]:
    """Every string value of a JSON text, in order; none of a text that is no JSON, or is nested too deep to be read."""
    with suppress(ValueError, RecursionError):
        json.loads(text.removeprefix("\ufeff"))
        yield from _walk(text)


def _walk(text: str) -> Iterator[JsonString]:
    """The strings of a text that `json.loads` accepts. Linear in the text."""
    levels: list[_Level] = []
    for token in _TOKEN.finditer(text):
        first = token.group()[0]
        if first == "{":
            levels.append(_Level(True, "", True))
        elif first == "[":
            levels.append(_Level(False, 0, False))
        elif first in "}]":
            levels.pop()
        elif first == ":":
            levels[-1].expects_key = False
        elif first == ",":
            _step(levels[-1])
        elif first == '"':
            value = json.loads(token.group(), strict=False)
            if levels and levels[-1].expects_key:
                levels[-1].key = value
            else:
                yield JsonString(tuple(level.key for level in levels), value, token.start() + 1, token.end() - 1)


def _step(level: _Level) -> None:
    if isinstance(level.key, int):
        level.key += 1
    else:
        level.expects_key = True
