"""Phrases that hold a version of the library and read the same in every format; a reader decides what they are for.

Requirements (`flashinfer-python[cu13]==0.6.13`), archives (`flashinfer_python-0.6.13-py3-none-any.whl`), addresses
(`…/releases/download/v0.6.13/…`, `git+https://…/flashinfer@v0.6.13`) and images (`flashinfer/flashinfer:v0.6.13`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from tooling.pins.library import Library
from tooling.pins.patterns import late
from tooling.pins.sites import Role

_PRE = r"(?:[abc]\d+|[-_.]?(?:[abc][-_.]?\d\d?(?!\d)|(?:rc|alpha|beta|preview|pre)[-_.]?\d*))?"
_POST = r"(?:[-_.]?(?:post[-_.]?\d*|rev[-_.]?\d+|r\d+)|-\d+(?!-))?"
_DEV = r"(?:[-_.]?dev[-_.]?\d*)?"
_LOCAL = r"(?:(?:\+|%2[Bb])[A-Za-z0-9]+(?:[._](?!tar\b|tgz\b|zip\b|whl\b)[A-Za-z0-9]+)*)?"
_END = r"(?![A-Za-z0-9_])(?!\.\d)(?!\.\*)"

VERSION = rf"(?i:v?(?:\d+!)?\d+(?:\.\d+)+{_PRE}{_POST}{_DEV}){_LOCAL}{_END}"
"""A version as files spell it: PEP 440, also what it normalises (`.POST3`, `-3`, `.rev3`, `1!`), with a `v` in front
and a local part, never the beginning of a longer one. `-1-` is a wheel's build number."""
_TAGGED = rf"(?i:v?\d+(?:\.\d+)+(?:[abc]\d+|[-_.]?rc[-_.]?\d+)?(?:[-_.]?post[-_.]?\d*)?{_DEV}){_LOCAL}{_END}"
"""A version in an image's tag, where `-3` and `-b200` are not PEP 440's."""
REFERENCE = r"(?:\$\{[^{}\s]*\}?|\$\w+|\{\{[^{}]*\}\}|\{\w[^{}\s]*\}|\$\([^()\s]*\))"
"""A variable in the place of a version, in the spellings of shells, Dockerfiles, Python and templates."""
HASH = r"[0-9a-f]{7,40}"
"""A commit's hash, whole or shortened, where only a ref can stand."""
COMMIT = rf"(?=[0-9]*[a-f]){HASH}"
"""One that is told from a number by a letter in it."""

_OPERATOR = late(r"\s*(===?|~=|>=|<=|!=|<|>)\s*")
_QUOTED = late(rf"(?:\\?[\"'])({VERSION})(?=\\?[\"'])")
_TOKEN = late(rf"(?P<version>{VERSION})|(?P<reference>{REFERENCE})|(?P<wildcard>v?\d[\d.]*(?:\.\*)?)")
_ARCHIVE_END = late(r"[^\s\"'`;,]*?\.(?:whl|tar\.gz|tgz|tar\.xz|tar\.bz2|tar|zip|deb|rpm)(?![A-Za-z0-9])")
_DIRECTORY_END = late(r"(?:/[^\s\"'`;,]*|\*?)(?=[\s\"'`;,)&|]|$)")
_WHEEL_TAG = late(r"-(?:cp|py)\d")
_ADDRESS = late(r"(?:git\+)?(?:https?|ssh|git|file)://[^\s\"'`<>|;)\\]+|git@[\w.-]+:[^\s\"'`<>|;)\\]+")
_SEGMENT = late(rf"(?<=/)({VERSION})(?=(?:\.tar\.gz|\.tgz|\.zip)?(?:[/#?]|$))")
_LOOKED_AT = late(r"/(?:blob|tree|issues|pull|compare)/")
_HASH = late(HASH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A version in a text, by offsets in characters; a reader turns it into a site of its file."""

    start: int
    end: int
    shape: str
    role: Role = Role.PIN
    package: str | None = None

    def moved(self, offset: int) -> Span:
        return replace(self, start=self.start + offset, end=self.end + offset)

    def with_role(self, role: Role) -> Span:
        return replace(self, role=role)


def find_phrases(text: str, library: Library) -> Iterator[Span]:
    """Every phrase in the text, in no fixed order. An archive's address yields all versions in it."""
    yield from find_requirements(text, library)
    yield from find_braces(text, library)
    yield from find_archives(text, library)
    yield from find_addresses(text, library)
    yield from find_fallbacks(text, library)


def find_requirements(text: str, library: Library) -> Iterator[Span]:
    """`==X` alone is a pin; other bounds are minimum; a variable in its place is a use."""
    for match in _requirement(library).finditer(text):
        found = list(_specifiers(text, match.end()))
        package = library.package_of(match["name"])
        is_exact = len(found) == 1 and found[0][0] in {"==", "==="}
        for _, token in found:
            if token.lastgroup == "reference":
                yield replace(read_reference(token.group(), token.start(), shape="requirement"), package=package)
            else:
                role = Role.PIN if is_exact and token.lastgroup == "version" else Role.MINIMUM
                yield Span(start=token.start(), end=token.end(), shape="requirement", role=role, package=package)


def find_braces(text: str, library: Library) -> Iterator[Span]:
    """Several packages in a shell's braces, all at one version: `flashinfer-{cubin,jit-cache}==0.6.13`."""
    for match in _BRACES.finditer(text):
        names = [f"{match['stem']}{part.strip()}" for part in match["parts"].split(",")]
        if all(library.package_of(name) is not None for name in names):
            start, end = match.span("version")
            yield Span(start=start, end=end, shape="requirement")


def read_reference(text: str, start: int, *, shape: str) -> Span:
    """A variable where a version is due: a use, or if it brings a version along (`${X:-0.6.13}`), that one as a pin."""
    default = _FALLBACK.fullmatch(text)
    if default is None:
        return Span(start=start, end=start + len(text), shape=shape, role=Role.USE)
    return Span(start=start + default.start("version"), end=start + default.end("version"), shape="variable-default")


def find_archives(text: str, library: Library) -> Iterator[Span]:
    """Wheels, sdists and what they unpack to; any other file name with a version in it is prose."""
    for match in _archive(library).finditer(text):
        start, end = match.span("version")
        if _ARCHIVE_END.match(text, end) or _WHEEL_TAG.match(text, end):
            shape, role = "archive-name", Role.PIN
        elif _DIRECTORY_END.match(text, end):
            shape, role = "archive-folder", Role.PIN
        else:
            shape, role = "file-name", Role.PROSE
        yield Span(start=start, end=end, shape=shape, role=role, package=library.package_of(match["name"]))


def find_addresses(text: str, library: Library) -> Iterator[Span]:
    """Versions that are a whole part of an address behind the library's name, and what stands behind git's `@`."""
    for match in _ADDRESS.finditer(text):
        address = match.group()
        home = _home(library).search(address)
        if home is None:
            continue
        if (ref := _ref(library).search(address)) is not None:
            yield from _git_ref(ref, match.start())
        role = Role.PROSE if _LOOKED_AT.search(address) else Role.PIN
        for segment in _SEGMENT.finditer(address, home.end()):
            start, end = segment.span(1)
            yield Span(start=match.start() + start, end=match.start() + end, shape="release-address", role=role)


def find_fallbacks(text: str, library: Library) -> Iterator[Span]:
    """`${NAME:-X}`, `${NAME:=X}`, `NAME || 'X'` and `NAME | default('X')` of a variable that holds the version."""
    for pattern in (_FALLBACK, _ALTERNATIVE):
        for match in pattern.finditer(text):
            if library.names_version(match["name"]):
                start, end = match.span("version")
                yield Span(start=start, end=end, shape="variable-default")


def find_images(text: str, library: Library) -> Iterator[Span]:
    """Tags of images that are named after the library, or that name it inside the tag; with a digest they are locks."""
    for match in _image(library).finditer(text):
        role = Role.LOCK if match["digest"] else Role.PIN
        group = "version" if match["version"] else "inner"
        yield Span(start=match.start(group), end=match.end(group), shape="image-tag", role=role)


def has_bare_repository(text: str, library: Library) -> bool:
    """True if pip is given the library's repository without a ref: it takes whatever the default branch is then."""
    return _bare(library).search(text) is not None


def _specifiers(text: str, position: int) -> Iterator[tuple[str, re.Match[str]]]:
    """Operator and token of each specifier of the list that begins there (PEP 508; the brackets are optional)."""
    bracket = re.compile(r"\s*\(").match(text, position)
    position = bracket.end() if bracket else position
    while operator := _OPERATOR.match(text, position):
        token = _TOKEN.match(text, operator.end()) or _quoted_token(text, operator)
        if token is None:
            return
        yield operator[1], token
        comma = re.compile(r"\s*,").match(text, token.end())
        if comma is None:
            return
        position = comma.end()


def _quoted_token(text: str, operator: re.Match[str]) -> re.Match[str] | None:
    """The version of `name=="X"`, which a shell reads as `name==X`; with spaces around it would be a comparison."""
    quoted = _QUOTED.match(text, operator.end()) if operator.group() == operator[1] else None
    return None if quoted is None else _TOKEN.match(text, quoted.start(1))


def _git_ref(match: re.Match[str], offset: int) -> Iterator[Span]:
    start, end = offset + match.start("ref"), offset + match.end("ref")
    if re.fullmatch(VERSION, match["ref"]):
        yield Span(start=start, end=end, shape="git-address")
    elif _HASH.fullmatch(match["ref"]):
        yield Span(start=start, end=end, shape="git-commit", role=Role.USE)
    elif match["ref"].startswith("$"):
        yield Span(start=start, end=end, shape="git-address", role=Role.USE)


_BRACES = late(
    rf"(?<![\w./@-])(?P<stem>[A-Za-z][\w-]*[-_])\{{(?P<parts>[\w-]+(?:,[\w-]+)+)\}}"
    rf"\s*===?\s*\\?[\"']?(?P<version>{VERSION})"
)
_FALLBACK = late(rf"\$\{{(?P<name>\w+):?[-=][\"']?(?P<version>{VERSION})[\"']?\}}")
_ALTERNATIVE = late(
    rf"(?<![\w-])(?P<name>[A-Za-z_][\w-]*)\s*(?:\|\||\|\s*default\s*\()\s*[\"'](?P<version>{VERSION})[\"']"
)


def find_marks(text: str, mark: str) -> Iterator[int]:
    """Where a word in lower case stands in the text, whatever its case there."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = text  # a letter whose small form is longer would shift every offset behind it
    position = lower.find(mark)
    while position >= 0:
        yield position
        position = lower.find(mark, position + len(mark))


def library_names(library: Library) -> str:
    """A pattern for every name of the library's packages, in any spelling, the longest first."""
    names = sorted({*library.packages, *library.former_names}, key=len, reverse=True)
    return "|".join(re.escape(name).replace(r"\-", r"[-_.]+") for name in names)


def _cached(make: Callable[[str], re.Pattern[str]]) -> Callable[[Library], re.Pattern[str]]:
    """Compiles a pattern once per set of names."""
    compiled = cache(make)

    def pattern(library: Library) -> re.Pattern[str]:
        return compiled(library_names(library))

    return pattern


@_cached
def _requirement(names: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./@-])(?P<name>{names})(?![\w-])(?:\s*\[[^\]\n\"']*\])?(?=\s*\(?\s*[=<>~!])")


@_cached
def _archive(names: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9_-])(?P<name>{names})-(?P<version>{VERSION})")


@_cached
def _home(names: str) -> re.Pattern[str]:
    return re.compile(rf"[/:](?:{names})(?:\.git)?(?=[/@#?]|$)|[/:](?:{names})-(?=v?\d)", re.IGNORECASE)


@_cached
def _ref(names: str) -> re.Pattern[str]:
    return re.compile(rf"[/:](?:{names})(?:(?:\.git)?/?@|\.git#(?!\w+=))(?P<ref>[^\s#&?:]+)", re.IGNORECASE)


@_cached
def _bare(names: str) -> re.Pattern[str]:
    return re.compile(rf"git\+\S*[/:](?:{names})(?:\.git)?/?(?=[#?\s]|$)", re.IGNORECASE)


@_cached
def _image(names: str) -> re.Pattern[str]:
    short = names.rpartition("|")[2]
    return re.compile(
        rf"(?<![\w.:/-])(?:[\w.-]+(?::\d+)?/)*"
        rf"(?:(?:{names})(?:-(?!bench)[\w.-]+)?:(?P<version>{_TAGGED})[\w.-]*"
        rf"|[\w.-]+:(?:[\w.]+-)*{short}[-_]?(?P<inner>{_TAGGED})[\w.-]*)"
        rf"(?P<digest>@sha256:[0-9a-f]+)?"
    )
