"""Takes a policy's values out of parsed TOML by their key paths, and gathers what is wrong. Knows no key itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date, datetime

LARGEST = 1_000_000
"""Hours, questions, times as fast: no policy means more, and a time can be counted back by it."""


class Fields:
    """One table and its key path, "" for the whole file. A key that is taken is known; `close` names the others."""

    def __init__(self, where: str, value: object, problem: Callable[[str], None]) -> None:
        self._where = where
        self.problem = problem
        self._data: dict[str, object] = dict(value) if isinstance(value, Mapping) else {}
        if not isinstance(value, Mapping):
            problem(f"{where}: found {_shown(value)}, expected a table")

    def path(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key

    def has(self, key: str) -> bool:
        return key in self._data

    def is_empty(self, key: str) -> bool:
        """Whether the key is absent or its list empty; a value that is no list is another problem."""
        return self._data.get(key, []) == []

    def table(self, key: str) -> Fields:
        """The table of that key; an empty one where it is absent."""
        return Fields(self.path(key), self._data.pop(key, {}), self.problem)

    def tables(self, key: str) -> Iterator[Fields]:
        """The tables of an array of tables."""
        value = self._data.pop(key, [])
        if not isinstance(value, list):
            self.problem(f"{self.path(key)}: found {_shown(value)}, expected [[{self.path(key)}]] tables")
            return
        for number, entry in enumerate(value):
            yield Fields(f"{self.path(key)}[{number}]", entry, self.problem)

    def text(self, key: str, default: str | None = None) -> str:
        """The text; without a default it must be there and not be empty."""
        value = self._data.pop(key, default)
        if isinstance(value, str) and value.strip():
            return value
        self.problem(f"{self.path(key)}: found {_shown(value)}, expected a text")
        return default or ""

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._data.pop(key, default)
        if isinstance(value, bool):
            return value
        self.problem(f"{self.path(key)}: found {_shown(value)}, expected true or false")
        return default

    def number(self, key: str, default: float | None, *, least: float = 0.0) -> float | None:
        """A number from `least` to `LARGEST`; a whole one stays whole."""
        value = self._data.pop(key, default)
        if value is None or (
            isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= LARGEST
        ):
            return value
        self.problem(f"{self.path(key)}: found {_shown(value)}, expected a number from {least:g} to {LARGEST:,}")
        return default

    def names(
        self, key: str, default: tuple[str, ...] = (), *, known: Collection[str] = (), pattern: str = "", form: str = ""
    ) -> tuple[str, ...]:
        """A list of different texts, each among `known` and of that pattern (in words: `form`) where one is given."""
        value = self._data.pop(key, None)
        if value is None:
            return default
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            self.problem(f"{self.path(key)}: found {_shown(value)}, expected a list of texts")
            return default
        for item in value:
            if known and item not in known:
                self.problem(f"{self.path(key)}: found {item!r}, expected one of {', '.join(known)}")
            elif pattern and not re.fullmatch(pattern, item):
                self.problem(f"{self.path(key)}: found {item!r}, expected {form}")
        for item in sorted({item for item in value if value.count(item) > 1}):
            self.problem(f"{self.path(key)}: {item!r} stands there twice")
        return tuple(dict.fromkeys(value))

    def day(self, key: str) -> date:
        """A TOML date, such as 2026-12-31, without quotes; a time of day is refused."""
        value = self._data.pop(key, None)
        if isinstance(value, date) and not isinstance(value, datetime):
            return value
        self.problem(f"{self.path(key)}: found {_shown(value)}, expected a date such as 2026-12-31 without quotes")
        return date.min

    def rest(self) -> Iterator[tuple[str, object]]:
        """Every key that was not taken yet, with its value; they count as taken then."""
        while self._data:
            key = next(iter(self._data))
            yield key, self._data.pop(key)

    def close(self, *, known: Collection[str] = ()) -> None:
        hint = f", expected one of {', '.join(known)}" if known else ""
        for key in self._data:
            self.problem(f"{self.path(key)}: unknown key{hint}")


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
