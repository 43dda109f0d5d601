"""Lock files: what a resolver wrote down. They are listed, never edited; `pins.derived` says what renews them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tooling.pins.library import Library
from tooling.pins.patterns import late
from tooling.pins.readers.phrases import VERSION, find_archives, library_names
from tooling.pins.sites import PinSite, Role, make_site
from tooling.pins.texts import SourceText

SHAPE = "lock"

_NAME = late(r"(?:.+\.)?lock|pylock(?:\..+)?\.toml|(?:.*[.-])?lock\.(?:ya?ml|json)|package-lock\.json")


def matches(path: str) -> bool:
    """`uv.lock`, `poetry.lock`, `pylock.toml`, `conda-lock.yml`, `Pipfile.lock` and their like."""
    return _NAME.fullmatch(path.rpartition("/")[2].lower()) is not None


def read(source: SourceText, library: Library) -> Iterator[PinSite]:
    """A package's version where the format names it once; else every archive of it."""
    names = library_names(library)
    patterns = (
        rf"\bname\s*[=:]\s*[\"']?(?P<name>{names})[\"']?\s*\n\s*-?\s*version\s*[=:]\s*[\"']?(?P<version>{VERSION})",
        rf"\"(?P<name>{names})\"\s*:\s*\{{[^{{}}]{{0,4000}}?\"version\"\s*:\s*\"(?:==)?(?P<version>{VERSION})\"",
        rf"(?m)^\s*(?P<name>{names})(?:\[[^\]]*\])?==(?P<version>{VERSION})",
    )
    found = [match for pattern in patterns for match in re.finditer(pattern, source.text)]
    for match in found:
        yield make_site(
            source, match.start("version"), match.end("version"), shape=SHAPE, role=Role.LOCK,
            package=library.package_of(match["name"]),
        )  # fmt: skip
    for span in () if found else find_archives(source.text, library):
        yield make_site(source, span.start, span.end, shape=SHAPE, role=Role.LOCK, package=span.package)
