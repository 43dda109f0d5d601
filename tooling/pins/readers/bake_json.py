"""Bake variable files in JSON: `{"variable": {NAME: {"default": "0.6.13"}}}` (docker-bake's JSON form)."""

from __future__ import annotations

from collections.abc import Iterator

from tooling.pins.json_spans import JsonString, find_strings
from tooling.pins.library import Library
from tooling.pins.sites import PinSite, Role, make_site, parse_spelling
from tooling.pins.texts import SourceText

SHAPE = "bake-json"


def matches(path: str) -> bool:
    return path.endswith(".json")


def read(source: SourceText, library: Library) -> Iterator[PinSite]:
    """Defaults of variables that are named after the library and hold a version."""
    for item in find_strings(source.text):
        if _is_default(item, library) and parse_spelling(item.value) is not None:
            role = Role.PIN if source.text[item.start : item.end] == item.value else Role.DERIVED
            yield make_site(source, item.start, item.end, shape=SHAPE, role=role)


def _is_default(item: JsonString, library: Library) -> bool:
    match item.keys:
        case ("variable", str(name), "default"):
            return library.names_version(name)
        case _:
            return False
