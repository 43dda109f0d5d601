"""Edits on requirements files as values: an extra index added once, a package's line taken out and put in again."""

from __future__ import annotations

from collections.abc import Iterable

from tooling.pins.release_settings import DroppedPin
from tooling.pins.requirements import RequirementLine, parse_requirements
from tooling.releases.addresses import same_address
from tooling.releases.index_options import read_index_options

_VERSION = "{version}"


def add_index(text: str, url: str) -> str:
    """The text with `--extra-index-url URL` before its first requirement; unchanged if it names that index already."""
    lines = parse_requirements(text)
    options = read_index_options(lines)
    known = [*options.extra_index_urls, *options.find_links, *([options.index_url] if options.index_url else [])]
    if any(same_address(url, other) for other in known):
        return text
    start = _line_start(text, lines[0].offset) if lines else len(text)
    lead = "\ufeff" if start == 0 and text.startswith("\ufeff") else ""
    start += len(lead)
    return f"{text[:start]}--extra-index-url {url}{_newline(text)}{text[start:]}"


def drop_line(text: str, package: str, *, path: str, at: str) -> tuple[str, DroppedPin | None]:
    """The text without that package's line, and what it takes to put it in again; None if there is no such line."""
    lines = parse_requirements(text)
    line = next((line for line in lines if line.name == package), None)
    if line is None:
        return text, None
    before = [other.name for other in lines if other.offset < line.offset and other.name is not None]
    start, end = _line_start(text, line.offset), _line_end(text, line.offset)
    raw = text[start:end].strip("\ufeff").rstrip("\r\n")
    kept = raw.replace(f"=={line.exact_version}", f"=={_VERSION}", 1) if line.exact_version else raw
    lead = "\ufeff" if text[start : start + 1] == "\ufeff" else ""
    dropped = DroppedPin(package=package, path=path, line=kept, after=before[-1] if before else "", at=at)
    return text[:start] + lead + text[end:], dropped


def restore_line(text: str, pin: DroppedPin, version: str) -> str:
    """The text with the line in it again, at that version, after the line that it followed; else at the end.

    Unchanged if the package has a line already.
    """
    lines = parse_requirements(text)
    if any(line.name == pin.package for line in lines):
        return text
    new = pin.line.replace(_VERSION, version)
    position = _place(text, lines, pin.after)
    newline = _newline(text)
    if position == len(text) and text and not text.endswith("\n"):
        return f"{text}{newline}{new}"
    return f"{text[:position]}{new}{newline}{text[position:]}"


def _place(text: str, lines: Iterable[RequirementLine], after: str) -> int:
    return next((_line_end(text, line.offset) for line in lines if after and line.name == after), len(text))


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def _line_end(text: str, offset: int) -> int:
    """Behind the line break that ends the logical line; a backslash continues it."""
    position = offset
    while True:
        found = text.find("\n", position)
        if found < 0:
            return len(text)
        if not text[:found].removesuffix("\r").endswith("\\"):
            return found + 1
        position = found + 1


def _newline(text: str) -> str:
    first = text.partition("\n")[0]
    return "\r\n" if first.endswith("\r") else "\n"
