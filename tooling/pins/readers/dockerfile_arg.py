"""Dockerfile ARG defaults: `ARG FLASHINFER_VERSION=0.6.13`, plain or quoted, with a `v`, several names on a line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tooling.pins.dockerfile_syntax import Assignment, assignments, parse_dockerfile
from tooling.pins.library import Library
from tooling.pins.sites import PinSite, Role, make_site, parse_spelling
from tooling.pins.texts import SourceText

SHAPE = "dockerfile-arg"

_NAME = re.compile(r"(?i)(?:.*[._-])?(?:dockerfile|containerfile)(?:[._-].*)?")
_OWN_FALLBACK = re.compile(r"\$\{(\w+):?-([^{}]*)\}")


def matches(path: str) -> bool:
    """`Dockerfile`, `Dockerfile.nightly_torch`, `cuda.Dockerfile`, `Containerfile`; not their notes or scripts."""
    name = path.rpartition("/")[2]
    return _NAME.fullmatch(name) is not None and not name.endswith((".md", ".py", ".sh", ".txt", ".dockerignore"))


def read(source: SourceText, library: Library) -> Iterator[PinSite]:
    """Defaults that are a version; a default that is another variable is a use."""
    for instruction in parse_dockerfile(source.text):
        if instruction.keyword == "ARG":
            for item in assignments(instruction):
                if library.names_version(item.name) and item.value:
                    yield from _site(source, item)


def _site(source: SourceText, item: Assignment) -> Iterator[PinSite]:
    value = item.value or ""
    fallback = _OWN_FALLBACK.fullmatch(value)
    if fallback is not None and parse_spelling(fallback[2]) is not None:
        yield make_site(source, item.start + fallback.start(2), item.start + fallback.end(2), shape=SHAPE)
    elif value.startswith("$"):
        yield make_site(source, item.start, item.end, shape=SHAPE, role=Role.USE)
    elif parse_spelling(value) is not None:
        yield make_site(source, item.start, item.end, shape=SHAPE)
