"""Requirements and constraints files in pip's format: `flashinfer-python[cu13] == 0.6.13 ; marker  # comment`.

A file that pip-compile or uv wrote, and a line with hashes, are locks: the tool that wrote them must write them again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from tooling.pins.derived import is_compiled
from tooling.pins.library import Library
from tooling.pins.patterns import late
from tooling.pins.readers.phrases import Span, find_addresses, find_archives, find_requirements
from tooling.pins.readers.shell_text import find_variables
from tooling.pins.requirements import RequirementLine, parse_requirements
from tooling.pins.sites import PinSite, Role, make_site, parse_spelling
from tooling.pins.texts import SourceText

SHAPE = "requirement"

_NAME = late(r"(?:requirements?|constraints?|reqs?)\b.*|.*[-_](?:requirements?|constraints?)")
_OTHER = late(r"(?:cmakelists|license|notice|readme|changelog|sources|top_level|requires|entry_points)\.txt")


def matches(path: str) -> bool:
    """Every text file that can be one; only lines that are a requirement and nothing else count."""
    return path.endswith((".txt", ".in")) and not _OTHER.fullmatch(path.rpartition("/")[2].lower())


def has_requirements_name(path: str) -> bool:
    """By name (`requirements-cuda.txt`, `constraints.in`) or by folder (`requirements/cuda.txt`)."""
    if not path.endswith((".txt", ".in")):
        return False
    pure = PurePosixPath(path)
    return any(_NAME.fullmatch(part.lower()) for part in (pure.stem, *pure.parts[:-1]))


def read(source: SourceText, library: Library) -> Iterator[PinSite]:
    """`==X` as pins; every other bound on the library's packages as minimum; addresses of archives and git refs."""
    is_lock = is_compiled(source.text)
    for line in parse_requirements(source.text, keeps=library.is_named_in):
        for span in _spans(line, library):
            role = Role.LOCK if span.role is Role.PIN and (is_lock or line.is_hashed) else span.role
            moved = span.moved(line.offset)
            yield make_site(source, moved.start, moved.end, shape=moved.shape, role=role, package=moved.package)


def _spans(line: RequirementLine, library: Library) -> Iterator[Span]:
    if line.requirement is None and re.fullmatch(r"[\w-]+\s*=\s*\S+", line.text):
        yield from find_variables(line.text, library)
    if line.name is not None and library.package_of(line.name) is not None:
        yield from _requirement(line, library)
    if "/" in line.text or line.text.endswith(".whl"):
        yield from find_archives(line.text, library)
        yield from find_addresses(line.text, library)


def _requirement(line: RequirementLine, library: Library) -> Iterator[Span]:
    """The whole version of an exact requirement, however it is spelled; else every bound."""
    exact, package = line.exact_version, library.package_of(line.name or "")
    if exact is None or parse_spelling(exact) is None:
        yield from find_requirements(line.text.partition(";")[0], library)
        return
    start = line.text.index(exact, line.text.index("=="))
    yield Span(start=start, end=start + len(exact), shape=SHAPE, package=package)
