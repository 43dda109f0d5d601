"""The readers: each finds the pin sites of one format, never a given version. A new shape is a new reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tooling.pins.library import Library
from tooling.pins.readers import bake_json, dockerfile_arg, requirement_lines
from tooling.pins.sites import PinSite
from tooling.pins.texts import SourceText


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One format: whether a path has it, and the sites in such a text."""

    shape: str
    matches: Callable[[str], bool]
    read: Callable[[SourceText, Library], Iterator[PinSite]]


READERS: tuple[Reader, ...] = (
    Reader(shape=bake_json.SHAPE, matches=bake_json.matches, read=bake_json.read),
    Reader(shape=requirement_lines.SHAPE, matches=requirement_lines.matches, read=requirement_lines.read),
    Reader(shape=dockerfile_arg.SHAPE, matches=dockerfile_arg.matches, read=dockerfile_arg.read),
)
"""In order of precedence: where two readers see one span, the earlier one names it."""


def is_read(path: str) -> bool:
    """True if some reader knows the format of that path."""
    return any(reader.matches(path) for reader in READERS)


def read_sites(source: SourceText, library: Library) -> list[PinSite]:
    """Every site in the text, in order, each span once."""
    taken: dict[tuple[int, int], PinSite] = {}
    for reader in READERS:
        if reader.matches(source.path):
            for site in reader.read(source, library):
                taken.setdefault((site.start, site.end), site)
    return [site for _, site in sorted(taken.items(), key=lambda item: item[0])]
