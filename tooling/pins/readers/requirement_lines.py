"""Requirements and constraints files in pip's format: `flashinfer-python[cu13] == 0.6.13 ; marker  # comment`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from tooling.pins.library import Library
from tooling.pins.requirements import RequirementLine, parse_requirements
from tooling.pins.sites import PinSite, Role, make_site
from tooling.pins.texts import SourceText

SHAPE = "requirement"

_NAME = re.compile(r"(?:requirements?|constraints?|reqs?)\b.*|.*[-_](?:requirements?|constraints?)")
_VERSION_AFTER = re.compile(r"(?:===?|>=|<=|~=|!=|<|>)\s*([^\s;,()]+)")


def matches(path: str) -> bool:
    """By name (`requirements-cuda.txt`, `constraints.in`) or by folder (`requirements/cuda.txt`)."""
    if not path.endswith((".txt", ".in")):
        return False
    pure = PurePosixPath(path)
    return any(_NAME.fullmatch(part.lower()) for part in (pure.stem, *pure.parts[:-1]))


def read(source: SourceText, library: Library) -> Iterator[PinSite]:
    """`==X` as pins; every other bound on the library's packages as minimum."""
    for line in parse_requirements(source.text):
        if line.name in library.packages:
            yield from _sites(source, line)


def _sites(source: SourceText, line: RequirementLine) -> Iterator[PinSite]:
    role = Role.PIN if line.exact_version is not None else Role.MINIMUM
    specifiers = line.text.partition(";")[0]
    for match in _VERSION_AFTER.finditer(specifiers):
        yield make_site(
            source, line.offset + match.start(1), line.offset + match.end(1), shape=SHAPE, role=role, package=line.name
        )
