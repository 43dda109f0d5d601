"""The tables `[releases]` and `[flashinfer]` of release.toml as values: what people set, and what bumps keep there.

`bump` writes `[flashinfer.sha256]`, `[[flashinfer.dropped]]` and `[[flashinfer.moved]]`; people set the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

_SHA256 = re.compile(r"[0-9a-f]{64}")
PLATFORMS = ("linux/amd64", "linux/arm64")


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedPin:
    """A pin that was taken out of a requirements file: `line` has `{version}` where the version stood.

    `after` is the package whose line it followed, or empty; `at` is the release of the bump that took it out.
    """

    package: str
    path: str
    line: str
    after: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedCompanion:
    """A companion that a bump moved from the specifier `was` to `now`, both as written, for the release `at`."""

    package: str
    path: str
    was: str
    now: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSettings:
    """`index` takes the place of the library's own index (a mirror of it); `expected` names the index of a package.

    `platforms` are docker's names of the images' platforms; `sha256` is by file name.
    """

    cooldown_days: int = 0
    platforms: tuple[str, ...] = PLATFORMS[:1]
    index: str | None = None
    expected: Mapping[str, str] = field(default_factory=dict)
    sha256: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[DroppedPin, ...] = ()
    moved: tuple[MovedCompanion, ...] = ()

    def count_dropped(self, path: str) -> int:
        return sum(pin.path == path for pin in self.dropped)


def parse_release_settings(data: Mapping[str, object], problem: Callable[[str], None]) -> ReleaseSettings:
    """The two tables in release.toml's data; what is wrong is told to `problem`, one call each."""
    releases, kept = _table(data, "releases", problem), _table(data, "flashinfer", problem)
    _unknown(releases, "releases", {"cooldown_days", "platforms", "indexes"}, problem)
    _unknown(kept, "flashinfer", {"index", "sha256", "dropped", "moved"}, problem)
    return ReleaseSettings(
        cooldown_days=_days(releases.get("cooldown_days", 0), problem),
        platforms=_platforms(releases.get("platforms", list(PLATFORMS[:1])), problem),
        index=_address(kept.get("index"), problem),
        expected=_texts(releases.get("indexes", {}), "releases.indexes", problem),
        sha256=_digests(kept.get("sha256", {}), problem),
        dropped=tuple(DroppedPin(**entry) for entry in _entries(kept, "dropped", _DROPPED, problem)),
        moved=tuple(MovedCompanion(**entry) for entry in _entries(kept, "moved", _MOVED, problem)),
    )


_DROPPED = ("package", "path", "line", "after", "at")
_MOVED = ("package", "path", "was", "now", "at")


def _table(data: Mapping[str, object], name: str, problem: Callable[[str], None]) -> Mapping[str, object]:
    value = data.get(name, {})
    if isinstance(value, Mapping):
        return value
    problem(f"{name}: found {value!r}, expected a table")
    return {}


def _unknown(table: Mapping[str, object], name: str, known: set[str], problem: Callable[[str], None]) -> None:
    for key in table:
        if key not in known:
            problem(f"{name}.{key}: unknown key")


def _days(value: object, problem: Callable[[str], None]) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    problem(f"releases.cooldown_days: found {value!r}, expected a number of days from 0")
    return 0


def _platforms(value: object, problem: Callable[[str], None]) -> tuple[str, ...]:
    if isinstance(value, list) and value and all(item in PLATFORMS for item in value):
        return tuple(dict.fromkeys(value))
    problem(f"releases.platforms: found {value!r}, expected a list of {' and '.join(PLATFORMS)}")
    return PLATFORMS[:1]


def _address(value: object, problem: Callable[[str], None]) -> str | None:
    if value is None or (isinstance(value, str) and "://" in value):
        return value
    problem("flashinfer.index: expected a URL")
    return None


def _texts(value: object, name: str, problem: Callable[[str], None]) -> dict[str, str]:
    if isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values()):
        return dict(value)
    problem(f"{name}: expected a table of texts")
    return {}


def _digests(value: object, problem: Callable[[str], None]) -> dict[str, str]:
    table = _texts(value, "flashinfer.sha256", problem)
    for name, digest in table.items():
        if not _SHA256.fullmatch(digest):
            problem(f"flashinfer.sha256.{name}: found {digest!r}, expected 64 lower-case hex digits")
    return table


def _entries(
    table: Mapping[str, object], key: str, fields: tuple[str, ...], problem: Callable[[str], None]
) -> Iterator[dict[str, str]]:
    value = table.get(key, [])
    for number, entry in enumerate(value if isinstance(value, list) else [value]):
        texts = isinstance(entry, Mapping) and set(entry) == set(fields)
        if texts and all(isinstance(item, str) for item in entry.values()):
            yield dict(entry)
        else:
            problem(f"flashinfer.{key}[{number}]: expected the texts {', '.join(fields)}")
