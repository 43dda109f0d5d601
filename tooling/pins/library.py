"""The pinned library as a value: its packages, variables and homes. The next library is a new entry in the table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tooling.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """One entry of `data/libraries.json`.

    `packages` are normalised names that must be equal; `variable_pattern` matches a whole variable name that could
    hold a version of it, `variable_aliases` those that surely do; `bypass_variables` silence its version check.
    """

    name: str
    variable: str
    packages: tuple[str, ...]
    main_package: str
    variable_pattern: re.Pattern[str]
    variable_aliases: tuple[str, ...]
    repository: str
    own_index: str
    bypass_variables: tuple[str, ...]


def parse_libraries(table: Mapping[str, Mapping[str, object]]) -> dict[str, Library]:
    """Every library of the table, by name."""
    return {name: _parse_library(name, entry) for name, entry in table.items()}


def _parse_library(name: str, entry: Mapping[str, object]) -> Library:
    def text(key: str) -> str:
        value = entry.get(key)
        if not isinstance(value, str):
            raise InputError(f"libraries.json: {name}.{key}: found {value!r}, expected text")
        return value

    def texts(key: str) -> tuple[str, ...]:
        value = entry.get(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise InputError(f"libraries.json: {name}.{key}: found {value!r}, expected a list of texts")
        return tuple(value)

    return Library(
        name=name,
        variable=text("variable"),
        packages=texts("packages"),
        main_package=text("main_package"),
        variable_pattern=re.compile(text("variable_pattern")),
        variable_aliases=texts("variable_aliases"),
        repository=text("repository"),
        own_index=text("own_index"),
        bypass_variables=texts("bypass_variables"),
    )
