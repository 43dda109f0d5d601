"""The readers: each finds the pin sites of one format, never a given version. A new shape is a new reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tooling.pins.library import Library
from tooling.pins.patterns import late
from tooling.pins.readers import (
    bake_json,
    dockerfile_arg,
    dockerfile_run,
    hcl_default,
    json_values,
    lock_files,
    prose,
    python_source,
    requirement_lines,
    shell_text,
    toml_values,
    yaml_values,
)
from tooling.pins.sites import PinSite, Role
from tooling.pins.texts import SourceText


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One format: whether a path has it, and the sites in such a text. `shape` is the one that most sites have."""

    shape: str
    matches: Callable[[str], bool]
    read: Callable[[SourceText, Library], Iterator[PinSite]]


_NEVER = (
    ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".rs", ".go", ".js", ".ts", ".tsx", ".css", ".html", ".csv",
    ".svg", ".png", ".jpg", ".gif", ".so", ".whl", ".gz", ".patch", ".diff", ".ipynb", ".log", ".jsonl", ".bin", ".pt",
)  # fmt: skip
"""What carries no pin; said first, since most files of a tree are of these."""
_FORMATS: tuple[Reader, ...] = (
    Reader(shape=lock_files.SHAPE, matches=lock_files.matches, read=lock_files.read),
    Reader(shape=bake_json.SHAPE, matches=bake_json.matches, read=bake_json.read),
    Reader(shape=json_values.SHAPE, matches=json_values.matches, read=json_values.read),
    Reader(shape=requirement_lines.SHAPE, matches=requirement_lines.matches, read=requirement_lines.read),
    Reader(shape=dockerfile_arg.SHAPE, matches=dockerfile_arg.matches, read=dockerfile_arg.read),
    Reader(shape=dockerfile_run.SHAPE, matches=dockerfile_run.matches, read=dockerfile_run.read),
    Reader(shape=toml_values.SHAPE, matches=toml_values.matches, read=toml_values.read),
    Reader(shape=yaml_values.SHAPE, matches=yaml_values.matches, read=yaml_values.read),
    Reader(shape=hcl_default.SHAPE, matches=hcl_default.matches, read=hcl_default.read),
    Reader(shape=python_source.SHAPE, matches=python_source.matches, read=python_source.read),
    Reader(shape=shell_text.SHAPE, matches=shell_text.matches, read=shell_text.read),
)


def is_read(path: str) -> bool:
    """True if some reader knows the format of that path."""
    if path.endswith(_NEVER):
        return False
    return prose.matches(path) or any(reader.matches(path) for reader in _FORMATS)


def _has_prose(path: str) -> bool:
    """True for documents, and for the formats above in which a comment begins with `#` or `//`."""
    return not path.endswith((".json", ".lock")) and is_read(path)


READERS: tuple[Reader, ...] = (*_FORMATS, Reader(shape=prose.SHAPE, matches=_has_prose, read=prose.read))
"""In order of precedence: where the spans of two readers meet, the earlier one names the site."""

_REFERENCE = late(r"[${]+(\w+)")


def read_sites(source: SourceText, library: Library) -> list[PinSite]:
    """Every site in the text, in order; no two meet.

    A variable of any name that the text uses for nothing but the library's version is one of its variables here.
    """
    sites = _read(source, library)
    names = _own_variables(source.text, sites, library)
    return _read(source, library.with_aliases(names)) if names else sites


def _read(source: SourceText, library: Library) -> list[PinSite]:
    found = [
        (rank, site)
        for rank, reader in enumerate(READERS)
        if reader.matches(source.path)
        for site in reader.read(source, library)
    ]
    kept: list[PinSite] = []
    for _, site in _without_meeting(found):
        kept.append(site)
    return kept


def _without_meeting(found: list[tuple[int, PinSite]]) -> list[tuple[int, PinSite]]:
    """Sites in order. Of those that meet, the earliest reader's stays, and of one reader's the first one."""
    kept: list[tuple[int, PinSite]] = []
    for rank, site in sorted(found, key=lambda item: (item[1].start, item[0])):
        if not kept or kept[-1][1].end <= site.start:
            kept.append((rank, site))
        elif rank < kept[-1][0]:
            kept[-1] = (rank, site)
    return kept


def _own_variables(text: str, sites: list[PinSite], library: Library) -> list[str]:
    """Variables that are not known by name and that the text expands only where a version of the library is due."""
    uses: dict[str, int] = {}
    for site in sites:
        match = _REFERENCE.match(site.spelling.strip("\"'")) if site.role is Role.USE else None
        if match is not None and not library.names_version(match[1]):
            uses[match[1]] = uses.get(match[1], 0) + 1
    return [name for name, count in uses.items() if len(re.findall(rf"[${{]{re.escape(name)}\b", text)) == count]
