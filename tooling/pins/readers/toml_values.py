"""TOML: requirement strings (`pyproject.toml`), Poetry's and uv's tables, and keys that hold the version."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tooling.pins.library import Library
from tooling.pins.readers.phrases import Span
from tooling.pins.readers.string_values import find_bound, find_in_value, names_home
from tooling.pins.sites import PinSite, make_site
from tooling.pins.texts import SourceText
from tooling.pins.toml_syntax import TomlString, find_strings

SHAPE = "toml-value"

_GIT_KEYS = frozenset(("tag", "rev", "branch", "ref"))


def matches(path: str) -> bool:
    name = path.rpartition("/")[2].lower()
    return (name.endswith(".toml") and not name.startswith("pylock.")) or name == "pipfile"


def read(source: SourceText, library: Library) -> Iterator[PinSite]:
    strings = list(find_strings(source.text))
    homes = {_place(item) for item in strings if _last(item) == "git" and names_home(item.value, library)}
    for item in strings:
        is_git = _last(item) in _GIT_KEYS and _place(item) in homes
        for span in _spans(item, library, is_git=is_git):
            moved = span.moved(item.start)
            yield make_site(source, moved.start, moved.end, shape=moved.shape, role=moved.role, package=moved.package)


def _spans(item: TomlString, library: Library, *, is_git: bool) -> Iterator[Span]:
    package = _package(item, library)
    if is_git:
        yield from find_bound(item.value, shape="git-ref")
    elif package is not None or library.names_version(re.split(r"\.", _last(item))[-1]):
        yield from find_bound(item.value, shape=SHAPE, package=package)
    if library.mark in item.value.lower():
        yield from find_in_value(item.value, library)


def _package(item: TomlString, library: Library) -> str | None:
    """The package of `name = "X"`, `name = {version = "X"}` or `[….name]` with `version = "X"`."""
    keys = (*item.table.split("."), *item.keys)
    if keys[-1] == "version" and not re.fullmatch(r"(?i)project|tool|package", keys[-2]):
        keys = keys[:-1]
    return library.package_of(keys[-1].strip("\"' ")) if keys[-1] else None


def _place(item: TomlString) -> tuple[str, ...]:
    return (item.table, *item.keys[:-1])


def _last(item: TomlString) -> str:
    return item.keys[-1] if item.keys else ""
