"""YAML files: which these are, and how a text is read that is no YAML (a template): line by line.

What stands in a text that is YAML is found in `yaml_documents`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tooling.pins.library import Library
from tooling.pins.patterns import late
from tooling.pins.readers.phrases import VERSION, Span
from tooling.pins.readers.shell_text import find_shell
from tooling.pins.shell_syntax import blank_comments
from tooling.pins.sites import PinSite, make_site
from tooling.pins.texts import SourceText

SHAPE = "yaml-value"

_LINE = late(rf"(?m)^[ \t]*-?[ \t]*[\"']?(?P<name>[A-Za-z_][\w-]*)[\"']?:[ \t]+[\"']?(?P<version>{VERSION})")


def matches(path: str) -> bool:
    name = path.rpartition("/")[2].lower()
    return name.endswith((".yaml", ".yml", ".cff")) and not re.fullmatch(r"(?:.*[.-])?lock\.ya?ml", name)


def read(source: SourceText, library: Library) -> Iterator[PinSite]:
    from tooling.pins.readers.yaml_documents import read_documents  # noqa: PLC0415  # PyYAML is a tenth of a start-up

    offset = 1 if source.text.startswith("\ufeff") else 0
    text = source.text[offset:]
    try:
        spans = read_documents(text, library)
    except (ValueError, RecursionError):
        spans = list(_by_lines(text, library))
    for span in spans:
        start, end = span.start + offset, span.end + offset
        yield make_site(source, start, end, shape=span.shape, role=span.role, package=span.package)


def _by_lines(text: str, library: Library) -> Iterator[Span]:
    plain = blank_comments(text)
    for match in _LINE.finditer(plain):
        if library.names_version(match["name"]):
            yield Span(start=match.start("version"), end=match.end("version"), shape=SHAPE)
    yield from find_shell(plain, library)
