"""release.toml, a tree's own settings, as values: which pin sites must exist, what a scan leaves out, what is blocked.

Tables of other rooms (`channels`, …) are theirs to parse; an unknown table or key is an error, since it is a typo.
"""

from __future__ import annotations

import posixpath
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from packaging.version import InvalidVersion, Version

from tooling.errors import InputError
from tooling.pins.release_settings import ReleaseSettings, parse_release_settings

FILE = "release.toml"
VERSIONS_FILES = ("versions.json", "docker/versions.json")
"""Where a tree without settings keeps its pins; the second is vLLM's."""
LEAVE_OUT = ("tests", "test", "docs", "recipes", "benchmarks", "*.md", "PKG-INFO", "*.egg-info", "SOURCES.txt")
ROOMS = ("releases", "flashinfer", "channels", "gate", "image", "smoke")
"""Tables that other rooms parse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredSite:
    """A file that must hold exactly so many pins, of that shape if one is named."""

    path: str
    count: int
    shape: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A release that must not be bumped to."""

    release: Version
    reason: str
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What release.toml says; without the file, the defaults.

    `also_used_by` names variables of the versions file that no bake target takes, with who uses them instead;
    `is_configured` is False where the tree has no release.toml.
    """

    versions_file: str | None = None
    required: tuple[RequiredSite, ...] = ()
    variable_aliases: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = LEAVE_OUT
    also_used_by: Mapping[str, str] = field(default_factory=dict)
    blocked: tuple[Blocked, ...] = ()
    releases: ReleaseSettings = field(default_factory=ReleaseSettings)
    is_configured: bool = False

    def blocks(self, release: Version) -> Blocked | None:
        return next((entry for entry in self.blocked if entry.release == release), None)


def parse_settings(text: str) -> Settings:
    """The settings in a release.toml.

    Raises:
        InputError: not TOML, or unknown and wrong keys, all of them named at once.
    """
    try:
        data = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as cause:
        raise InputError(f"{FILE}: {cause}", reason="BAD_SETTINGS") from cause
    problems: list[str] = []
    releases = parse_release_settings(data, problems.append)
    reader = _Reader(data)
    for problem in problems:
        reader.problem(problem)
    settings = Settings(
        versions_file=_versions_file(reader),
        required=tuple(_required(reader)),
        variable_aliases=reader.texts("pins", "variable_aliases", ()),
        leave_out=reader.texts("scan", "leave_out", LEAVE_OUT),
        also_used_by=reader.text_table("bake", "also_used_by"),
        blocked=tuple(_blocked(reader)),
        releases=releases,
        is_configured=True,
    )
    reader.finish()
    return settings


def _required(reader: _Reader) -> Iterable[RequiredSite]:
    for where, entry in reader.entries(("pins", "required")):
        path, count, shape = entry.pop("path", None), entry.pop("count", 1), entry.pop("shape", None)
        reader.leftovers(where, entry)
        if not isinstance(path, str) or not path or (path := _plain_path(path)) is None:
            reader.problem(f"{where}.path: expected a path inside the tree")
        elif isinstance(count, bool) or not isinstance(count, int) or count < 1:
            reader.problem(f"{where}.count: found {count!r}, expected a number from 1")
        elif shape is not None and not isinstance(shape, str):
            reader.problem(f"{where}.shape: found {shape!r}, expected a shape's name")
        else:
            yield RequiredSite(path=path, count=count, shape=shape)


def _versions_file(reader: _Reader) -> str | None:
    path = reader.optional_text("pins", "versions_file")
    if path is not None and _plain_path(path) is None:
        reader.problem(f"pins.versions_file: found {path!r}, expected a path inside the tree")
    return None if path is None else _plain_path(path)


def _plain_path(path: str) -> str | None:
    """The path as a scan spells it, or None if it leaves the tree."""
    plain = posixpath.normpath(path)
    return None if plain.startswith(("/", "../")) or plain in {".", ".."} else plain


def _blocked(reader: _Reader) -> Iterable[Blocked]:
    for where, entry in reader.entries(("blocked",)):
        release, reason, link = (entry.pop(key, "") for key in ("release", "reason", "link"))
        reader.leftovers(where, entry)
        if not isinstance(reason, str) or not reason or not isinstance(link, str):
            reader.problem(f"{where}: expected a reason, and a link as text")
            continue
        try:
            yield Blocked(release=Version(str(release)), reason=reason, link=link)
        except InvalidVersion:
            reader.problem(f"{where}.release: found {release!r}, expected a version")


class _Reader:
    """Takes values out of the parsed tables, gathers problems, and raises them all at the end."""

    def __init__(self, data: dict[str, object]) -> None:
        self._data = data
        self._problems: list[str] = []
        for room in ROOMS:
            data.pop(room, None)

    def problem(self, text: str) -> None:
        self._problems.append(text)

    def optional_text(self, table: str, key: str) -> str | None:
        value = self._table(table).pop(key, None)
        if value is not None and not isinstance(value, str):
            self.problem(f"{table}.{key}: found {value!r}, expected text")
            return None
        return value

    def texts(self, table: str, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        value = self._table(table).pop(key, None)
        if value is None:
            return default
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.problem(f"{table}.{key}: found {value!r}, expected a list of texts")
            return default
        return tuple(value)

    def text_table(self, table: str, key: str) -> dict[str, str]:
        value = self._table(table).pop(key, {})
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            self.problem(f"{table}.{key}: expected a table of texts")
            return {}
        return dict(value)

    def entries(self, keys: tuple[str, ...]) -> Iterable[tuple[str, dict[str, object]]]:
        """The tables of an array of tables, with the name of each for messages."""
        holder = self._data if len(keys) == 1 else self._table(keys[0])
        value = holder.pop(keys[-1], [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            self.problem(f"{'.'.join(keys)}: expected [[{'.'.join(keys)}]] tables")
            return
        for number, entry in enumerate(value):
            yield f"{'.'.join(keys)}[{number}]", dict(entry)

    def leftovers(self, where: str, entry: Mapping[str, object]) -> None:
        for key in entry:
            self.problem(f"{where}.{key}: unknown key")

    def finish(self) -> None:
        for name, table in self._data.items():
            if name not in {"pins", "scan", "bake"}:
                self.problem(f"{name}: unknown table")
            elif isinstance(table, dict):
                self.leftovers(name, table)
        if self._problems:
            raise InputError(f"{FILE}: " + "; ".join(self._problems), hint="see docs/bump.md", reason="BAD_SETTINGS")

    def _table(self, name: str) -> dict[str, object]:
        table = self._data.setdefault(name, {})
        if not isinstance(table, dict):
            self.problem(f"{name}: found {table!r}, expected a table")
            table = self._data[name] = {}
        return table
