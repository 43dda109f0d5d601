"""Dockerfile ARG, ENV and LABEL: `ARG FLASHINFER_VERSION=0.6.13`, quoted, with a `v`, several names on a line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tooling.pins.dockerfile_syntax import Assignment, assignments, parse_dockerfile
from tooling.pins.library import Library
from tooling.pins.patterns import late
from tooling.pins.readers.phrases import COMMIT, VERSION, Span, find_phrases
from tooling.pins.readers.shell_text import find_shell
from tooling.pins.sites import PinSite, Role, make_site
from tooling.pins.texts import SourceText

SHAPE = "dockerfile-arg"

_SHAPES = {"ARG": SHAPE, "ENV": "dockerfile-env", "LABEL": "dockerfile-label"}
_NAME = late(r"(?i)(?:.*[._-])?(?:dockerfile|containerfile)(?:[._-].*)?")
_OTHER_FORMATS = (
    ".md", ".rst", ".py", ".sh", ".txt", ".dockerignore", ".yml", ".yaml", ".json", ".toml", ".hcl", ".diff", ".patch",
    ".html",
)  # fmt: skip
_OWN_FALLBACK = late(rf"\$\{{(\w+):?-({VERSION})\}}")
_COMMIT = late(COMMIT)


def matches(path: str) -> bool:
    """`Dockerfile`, `Dockerfile.nightly_torch`, `cuda.Dockerfile`, `Containerfile`; not their notes or scripts."""
    name = path.rpartition("/")[2]
    return _NAME.fullmatch(name) is not None and not name.lower().endswith(_OTHER_FORMATS)


def read(source: SourceText, library: Library) -> Iterator[PinSite]:
    """Values that are a version or hold one (a wheel's name); a value that is another variable is a use."""
    for instruction in parse_dockerfile(source.text):
        if instruction.keyword in _SHAPES:
            for item in assignments(instruction):
                for span in _spans(item, library, _SHAPES[instruction.keyword]):
                    yield make_site(
                        source, span.start, span.end, shape=span.shape, role=span.role, package=span.package
                    )


def _spans(item: Assignment, library: Library, shape: str) -> Iterator[Span]:
    value = item.value or ""
    if value and library.names_version(item.name):
        fallback = _OWN_FALLBACK.fullmatch(value)
        if fallback is not None:
            yield Span(start=item.start + fallback.start(2), end=item.start + fallback.end(2), shape=shape)
        elif re.fullmatch(VERSION, value):
            yield Span(start=item.start, end=item.end, shape=shape)
        elif value.startswith("$"):
            yield Span(start=item.start, end=item.end, shape=shape, role=Role.USE)
        elif _COMMIT.fullmatch(value):
            yield Span(start=item.start, end=item.end, shape="git-commit", role=Role.USE)
    if library.mark in value.lower():
        find = find_shell if " " in value else find_phrases
        yield from (span.moved(item.start) for span in find(value, library))
