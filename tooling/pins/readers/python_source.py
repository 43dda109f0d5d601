"""Python: requirements in `setup.py`, image definitions, version assertions, constants that an install uses.

A constant or a comparison in a program that installs nothing says what the program was written for; it is a minimum.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tooling.pins.library import Library
from tooling.pins.patterns import late
from tooling.pins.python_strings import Literal, Named, Purpose, parse_strings
from tooling.pins.readers.phrases import VERSION, Span, find_marks
from tooling.pins.readers.string_values import find_bound, find_in_value
from tooling.pins.sites import PinSite, Role, make_site
from tooling.pins.texts import SourceText

SHAPE = "python"

_BUILDS = late(r"(?:setup|noxfile|tasks|fabfile|conanfile|build|install)(?:_.*)?\.py|.*_(?:build|install)\.py")
_BEHIND = late(
    r"[\w.\[\]-]*(?:(?:\s*:\s*[\w.]+)?\s*\(?[=<>!~]{1,3}\s*[frb]?[\"']?(?:v?\d+\.\d|[{$])"
    r"|[^\s\"']{0,200}[-/@:_]v?\d+\.\d|[\"'][\s,:)\]=!<>]{1,80}(?:\w+=)?[\"'][=]*v?\d+\.\d"
    r"|[\"'][^#\"']{0,80}[\"'\s,]+default=[\"']v?\d)"
)
_GIT = late(r"[^#]{0,200}?(?:checkout|switch|branch|-b)[\s=]+[\"']?(?:tags/)?(?:v?\d+\.\d|[{$])")
_BEFORE = late(r"(?:branch|-b)[\s=]+[\"']?(?:v?\d+\.\d|[{$])")
_PLAIN_PIECE = late(r"(\"|')((?:\\.|(?!\1)[^\\\n])*)\1")


def matches(path: str) -> bool:
    return path.endswith((".py", ".pyi"))


def read(source: SourceText, library: Library) -> Iterator[PinSite]:
    """A text in which no version follows the library's name is not parsed: most sources only import it."""
    regions = list(_regions(source.text, library))
    if not regions:
        return
    parsed = parse_strings(source.text, regions)
    if parsed is None:
        parsed = [Literal(match[2], match.start(2), Purpose.VALUE) for match in _PLAIN_PIECE.finditer(source.text)], []
    literals, named = parsed
    spans = [span for literal in literals for span in _in_literal(literal, library)]
    installs = any(span.role in {Role.PIN, Role.USE} for span in spans) or _BUILDS.fullmatch(
        source.path.rpartition("/")[2]
    )
    spans = [span for item in named for span in _in_named(item, library, installs=bool(installs))] + spans
    for span in spans:
        yield make_site(source, span.start, span.end, shape=span.shape, role=span.role, package=span.package)


def _regions(text: str, library: Library) -> Iterator[tuple[int, int]]:
    """Where the library's name and a version, or a variable in its place, stand as they do in a site."""
    has_git = "git " in text
    for name in (library.mark, *map(str.lower, library.foreign_aliases)):
        for position in find_marks(text, name):
            if behind := _BEHIND.match(text, position):
                yield behind.span()
            elif has_git and (git := _GIT.match(text, position)):
                yield git.span()
            elif has_git and (before := _BEFORE.search(text, max(0, position - 200), position)):
                yield before.start(), position


def _in_literal(literal: Literal, library: Library) -> Iterator[Span]:
    if library.mark not in literal.raw.lower():
        return
    roles = {Purpose.TOLD: Role.PROSE, Purpose.COMPARED: Role.MINIMUM}
    for span in find_in_value(literal.raw, library):
        role = roles.get(literal.purpose, span.role) if span.role in {Role.PIN, Role.USE} else span.role
        yield span.with_role(role).moved(literal.start)


def _in_named(item: Named, library: Library, *, installs: bool) -> Iterator[Span]:
    package = library.package_of(item.name) if re.fullmatch(r"[\w.-]+", item.name) else None
    is_variable = library.names_version(item.name.lstrip("-"))
    if (package is None and not is_variable) or re.fullmatch(rf"(?:==)?{VERSION}", item.literal.raw) is None:
        return
    if package is not None and item.by:
        is_pin, shape = "assert" in item.by and "least" not in item.by, "version-assert"
    elif item.by:
        is_pin, shape = True, "variable-default"
    else:
        is_pin, shape = installs, "python-constant"
    is_pin = is_pin and item.literal.purpose is Purpose.VALUE
    for span in find_bound(item.literal.raw, shape=shape, package=package):
        yield span.with_role(Role.PIN if is_pin else Role.MINIMUM).moved(item.literal.start)
