"""Shell and its kin: scripts, Makefiles, env and property files, and shell inside other formats.

Variables (`FLASHINFER_VERSION=0.6.13`, `?=`, `:=`, `--build-arg NAME=X`, `--flashinfer-version X`), git refs, version
checks, and the phrases of every format. Comments are not read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tooling.pins.library import Library
from tooling.pins.patterns import late
from tooling.pins.readers.git_refs import find_git_refs
from tooling.pins.readers.phrases import COMMIT, HASH, VERSION, Span, find_images, find_phrases, library_names
from tooling.pins.shell_syntax import blank_comments
from tooling.pins.sites import PinSite, Role, make_site
from tooling.pins.texts import SourceText

SHAPE = "shell"

_SUFFIXES = (
    ".sh", ".bash", ".zsh", ".ksh", ".mk", ".mak", ".make", ".just", ".env", ".def", ".sbatch", ".slurm", ".cfg",
    ".conf", ".ini", ".properties", ".j2", ".jinja", ".jinja2", ".tpl", ".tmpl", ".template", ".ps1", ".groovy",
    ".cmake", ".nix", ".bzl", ".star", ".fish", ".csh", ".bat", ".cmd",
)  # fmt: skip
_NAMES = late(
    r"(?i)(?:gnu)?makefile(?:\..+)?|justfile|jenkinsfile(?:\..+)?|\.?env(?:\..+)?|\.envrc|earthfile|tiltfile"
    r"|singularity(?:\..+)?|cmakelists\.txt|build\.bazel|workspace(?:\.bazel)?|module\.bazel|procfile|vagrantfile"
)
_NO_SCRIPTS = late(
    r"(?i).*(?:docker|container)file.*|pipfile|readme|licen[cs]e|notice|authors|changelog|codeowners|pkg-info"
)
_ASSIGNED = late(rf"(?:\?|:{{1,3}}|\+)?=[ \t]*\\?[\"']?(?P<version>{VERSION})")
_ASSIGNED_NAME = late(r"(?<![\w${])[A-Za-z_][\w-]*[ \t]*$")
_FLAG = late(rf"(?<!\S)--(?P<name>[A-Za-z][\w-]*)[ \t]+[\"']?(?P<version>{VERSION})")
_CALL = late(rf"\bset\(\s*(?P<name>\w+)\s+[\"']?(?P<version>{VERSION})")
_DEFAULTED = late(
    rf"(?<![\w${{])(?P<name>[A-Za-z_][\w-]*)[ \t]*\??=[ \t]*[\"']?\$\{{\w+:?[-=][\"']?(?P<version>{VERSION})[\"']?\}}"
)
_PARAMETER = late(rf"\bname:\s*[\"'](?P<name>\w+)[\"']\s*,\s*defaultValue:\s*[\"'](?P<version>{VERSION})[\"']")
_ENTRY = late(rf"\[[\"']?(?P<name>[\w.-]+)[\"']?\]=[\"']?(?P<version>{VERSION})")
_COMMIT = late(rf"(?<![\w${{])(?P<name>[A-Za-z_][\w-]*)=[\"']?(?P<version>{COMMIT})(?![\w.])")
_CMAKE_TAG = late(rf"\bGIT_TAG\s+[\"']?(?P<ref>{VERSION}|{HASH})")


def matches(path: str) -> bool:
    """By suffix or name; also names without a suffix, which are scripts more often than not."""
    name = path.rpartition("/")[2]
    if "." not in name:
        return _NO_SCRIPTS.fullmatch(name) is None
    return name.lower().endswith(_SUFFIXES) or _NAMES.fullmatch(name) is not None


def read(source: SourceText, library: Library) -> Iterator[PinSite]:
    for span in find_shell(blank_comments(source.text), library):
        yield make_site(source, span.start, span.end, shape=span.shape, role=span.role, package=span.package)


def find_shell(text: str, library: Library, *, folder: str = "") -> Iterator[Span]:
    """Every version in a piece of shell without comments; `folder` is where it starts."""
    yield from find_variables(text, library)
    yield from find_git_refs(text, library, folder=folder)
    yield from find_version_checks(text, library)
    yield from find_phrases(text, library)
    yield from find_images(text, library)
    yield from _cmake_tags(text, library)


def find_variables(text: str, library: Library) -> Iterator[Span]:
    """Values of variables that hold the library's version."""
    for name, start, end in find_assignments(text):
        if library.names_version(name):
            yield Span(start=start, end=end, shape="variable")
    for pattern in (_DEFAULTED, _PARAMETER, _FLAG, _CALL):
        for match in pattern.finditer(text):
            if library.names_version(match["name"]):
                yield Span(start=match.start("version"), end=match.end("version"), shape="variable")
    for match in _ENTRY.finditer(text):
        package = library.package_of(match["name"])
        if package is not None or library.names_version(match["name"]):
            start, end = match.span("version")
            yield Span(start=start, end=end, shape="variable", package=package)
    for match in _COMMIT.finditer(text):
        if library.names_version(match["name"]):
            yield Span(start=match.start("version"), end=match.end("version"), shape="git-commit", role=Role.USE)


def find_assignments(text: str) -> Iterator[tuple[str, int, int]]:
    """Name and value's span of every `NAME=X`, `NAME ?= X`, `NAME := X` whose value is a version, whoever's it is.

    It looks for the value first: there are far fewer of those than of names.
    """
    for match in _ASSIGNED.finditer(text):
        name = _ASSIGNED_NAME.search(text, max(0, match.start() - 80), match.start())
        if name is not None:
            yield name.group().rstrip(), match.start("version"), match.end("version")


def find_version_checks(text: str, library: Library) -> Iterator[Span]:
    """`flashinfer.__version__ == "X"` and the like in an install script, which moves with the install."""
    pattern = re.compile(
        rf"(?:{library_names(library)})(?:\.__version__|\\?[\"']\))[^\n=!<>;]{{0,40}}?(?P<operator>[=!<>]=?=?)\s*"
        rf"\\?[\"'](?P<version>{VERSION})\\?[\"']"
    )
    for match in pattern.finditer(text):
        role = Role.PIN if match["operator"] in {"==", "!=", "="} else Role.MINIMUM
        yield Span(start=match.start("version"), end=match.end("version"), shape="version-check", role=role)


def _cmake_tags(text: str, library: Library) -> Iterator[Span]:
    """CMake's `GIT_REPOSITORY …/flashinfer GIT_TAG X`."""
    names = library_names(library)
    for match in re.finditer(rf"\bGIT_REPOSITORY\s+[\"']?\S*[/:](?:{names})(?:\.git)?[\"']?\s", text):
        tag = _CMAKE_TAG.search(text, match.end(), match.end() + 200)
        if tag is not None:
            is_version = re.fullmatch(VERSION, tag["ref"]) is not None
            shape, role = ("git-ref", Role.PIN) if is_version else ("git-commit", Role.USE)
            yield Span(start=tag.start("ref"), end=tag.end("ref"), shape=shape, role=role)
