"""Pin sites: the spans in texts that hold a version of the library, and how a version is spelled there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from packaging.version import InvalidVersion, Version

from tooling.pins.patterns import late
from tooling.pins.texts import SourceText

_SPELLING = late(r"(?P<v>[vV]?)(?P<public>[^+%]+)(?P<local>(?:\+|%2[Bb])[A-Za-z0-9._]+)?")
_QUOTES = ("'", '"', "`")


class Role(StrEnum):
    """What a site is for. Only a `pin` moves."""

    PIN = "pin"
    MINIMUM = "minimum"
    USE = "use"
    PROSE = "prose"
    LOCK = "lock"
    DERIVED = "derived"


@dataclass(frozen=True, slots=True, kw_only=True)
class PinSite:
    """A version in a file.

    `start` and `end` are offsets in characters around the version alone, with its `v` and local part and without
    quotes; `line` and `column` count from 1; `spelling` is the text of the span, with its quotes if it has some;
    `package` is a normalised name, None where the site speaks of the library as a whole (a variable, a git tag).
    """

    path: str
    line: int
    column: int
    start: int
    end: int
    shape: str
    role: Role
    package: str | None
    version: Version | None
    spelling: str

    def as_json(self) -> dict[str, object]:
        return {
            "path": self.path,
            "line": self.line,
            "column": self.column,
            "shape": self.shape,
            "role": str(self.role),
            "package": self.package,
            "version": None if self.version is None else str(self.version),
            "spelling": self.spelling,
        }


def make_site(
    source: SourceText, start: int, end: int, *, shape: str, role: Role = Role.PIN, package: str | None = None
) -> PinSite:
    """The site over that span of the text."""
    line, column = source.line_and_column(start)
    token, text = source.text[start:end], source.text
    quoted = start > 0 and end < len(text) and text[start - 1] == text[end] and text[end] in _QUOTES
    return PinSite(
        path=source.path,
        line=line,
        column=column,
        start=start,
        end=end,
        shape=shape,
        role=role,
        package=package,
        version=parse_spelling(token),
        spelling=text[start - 1 : end + 1] if quoted else token,
    )


def parse_spelling(token: str) -> Version | None:
    """The version that a file spells so, with its local part, or None if it is none (`v0.6.13`, `0.6.13%2Bcu130`)."""
    match = _SPELLING.fullmatch(token)
    if match is None:
        return None
    local = re.sub(r"^%2[Bb]", "+", match["local"] or "")
    try:
        return Version(match["public"] + local)
    except InvalidVersion:
        return None


def respell(token: str, to: Version) -> str:
    """`to` spelled as the token is: with its `v`, and with its local part and the way its `+` is written."""
    match = _SPELLING.fullmatch(token)
    if match is None:
        return str(to)
    return f"{match['v']}{to}{match['local'] or ''}"


def is_plain_spelling(token: str) -> bool:
    """True if the public part is spelled as PEP 440 normalises it (`0.6.16.post3`, not `0.6.16post3`)."""
    match, version = _SPELLING.fullmatch(token), parse_spelling(token)
    return match is not None and version is not None and match["public"] == version.public


def same_release(version: Version | None, other: Version) -> bool:
    """True if the public parts are equal; the local part (`+cu130`) says how it was built, not what it is."""
    return version is not None and version.public == other.public
