"""JSON other than bake's variables: keys that hold the version, requirement strings, build arguments, commands."""

from __future__ import annotations

from collections.abc import Iterator

from tooling.pins.json_spans import JsonString, find_strings
from tooling.pins.library import Library
from tooling.pins.readers.phrases import Span
from tooling.pins.readers.string_values import find_bound, find_in_value
from tooling.pins.sites import PinSite, make_site
from tooling.pins.texts import SourceText

SHAPE = "json-value"


def matches(path: str) -> bool:
    return path.endswith(".json")


def read(source: SourceText, library: Library) -> Iterator[PinSite]:
    for item in find_strings(source.text):
        for span in _spans(source.text[item.start : item.end], item, library):
            moved = span.moved(item.start)
            yield make_site(source, moved.start, moved.end, shape=moved.shape, role=moved.role, package=moved.package)


def _spans(raw: str, item: JsonString, library: Library) -> Iterator[Span]:
    key = next((key for key in reversed(item.keys) if isinstance(key, str)), "")
    package = library.package_of(key) if key else None
    if package is not None or library.names_version(key.rpartition(".")[2]):
        yield from find_bound(raw, shape=SHAPE, package=package)
    if library.mark in raw.lower():
        yield from find_in_value(raw, library)
