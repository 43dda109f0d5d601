"""Reads typed fields out of a mapping and gathers every problem with its key path; no key is known here by name."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MISSING = object()


@dataclass(slots=True)
class Fields:
    """A mapping that is read key by key; `problems` has one sentence for each wrong one, in reading order.

    A wrong value reads as its default, so that reading goes on and the caller raises once, at the end.
    """

    values: Mapping[str, object]
    prefix: str = ""
    problems: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)

    def take(self, key: str, default: object = None) -> object:
        self.known.add(key)
        value = self.values.get(key, default)
        return default if value is None else value

    def complain(self, key: str, found: object, expected: str) -> None:
        shown = "nothing" if found is MISSING else repr(found)
        self.problems.append(f"{self.prefix}{key}: found {shown}, expected {expected}")

    def text(self, key: str, default: str | None = None) -> str | None:
        value = self.take(key)
        if value is None:
            return default
        if isinstance(value, str) and value.strip():
            return value
        self.complain(key, value, "text")
        return default

    def required_text(self, key: str) -> str:
        if self.values.get(key) is None:
            self.known.add(key)
            self.complain(key, MISSING, "text")
            return ""
        return self.text(key) or ""

    def flag(self, key: str, *, default: bool) -> bool:
        value = self.take(key, default)
        if isinstance(value, bool):
            return value
        self.complain(key, value, "true or false")
        return default

    def choice(self, key: str, default: str, options: Sequence[str]) -> str:
        value = self.take(key, default)
        if value in options:
            return str(value)
        self.complain(key, value, " or ".join(options))
        return default

    def integer(self, key: str, default: int | None, *, low: int, high: int) -> int:
        """A whole number in those bounds; `default` None means that the key must be there."""
        value = self.take(key, MISSING if default is None else default)
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        self.complain(key, value, f"a whole number from {low} to {high}")
        return low if default is None else default

    def number(self, key: str, default: float | None, *, low: float, high: float) -> float:
        """A finite number in those bounds; `default` None means that the key must be there."""
        value = self.take(key, MISSING if default is None else default)
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        if plain and isinstance(value, int | float) and math.isfinite(value) and low <= value <= high:
            return float(value)
        self.complain(key, value, f"a number from {low:g} to {high:g}")
        return low if default is None else default

    def words(self, key: str) -> tuple[str, ...] | None:
        """A list of words, or a text that is split as a shell would; None if the key is absent."""
        value = self.take(key)
        if value is None:
            return None
        if isinstance(value, str):
            try:
                return tuple(shlex.split(value))
            except ValueError as cause:
                self.problems.append(f"{self.prefix}{key}: cannot be split into words: {cause}")
                return ()
        if isinstance(value, list) and all(_is_plain(word) for word in value):
            return tuple(str(word) for word in value)
        self.complain(key, value, "a list of words")
        return ()

    def texts(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        value = self.take(key, list(default))
        if isinstance(value, list) and all(isinstance(text, str) and text for text in value):
            return tuple(value)
        self.complain(key, value, "a list of texts")
        return default

    def variables(self, key: str) -> dict[str, str]:
        """Environment variables; numbers become text, true and false do not (how to spell them is the server's)."""
        value = self.take(key, {})
        if not isinstance(value, dict):
            self.complain(key, value, "names with values")
            return {}
        for name, content in value.items():
            if not isinstance(name, str) or not name or "=" in name or "\0" in name:
                self.complain(key, name, "a variable's name")
            elif not _is_plain(content) or "\0" in str(content):
                self.complain(f"{key}.{name}", content, 'text; write "1" or "true" in quotes')
        return {str(name): str(content) for name, content in value.items() if _is_plain(content)}

    def mapping(self, key: str) -> Mapping[str, object]:
        value = self.take(key, {})
        if isinstance(value, dict) and all(isinstance(name, str) for name in value):
            return value
        self.complain(key, value, "names with values")
        return {}

    @property
    def unknown(self) -> list[str]:
        """The keys that nobody asked for."""
        return [key for key in self.values if key not in self.known]


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
