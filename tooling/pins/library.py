"""The pinned library as a value: its packages, variables and homes. The next library is a new entry in the table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from tooling.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """One entry of `data/libraries.json`.

    `packages` are normalised names that must be equal, `former_names` what the main one was called earlier; `mark` is
    in every text that names the library, in lower case; `variable_aliases` name variables that hold its version,
    `variable_pattern` matches whole names that look like one; `bypass_variables` silence its version check;
    `declared_aliases` are the variables that a tree adds, spelled as it spells them.
    `own_index_from` is the first release of a package that is on `own_index` only; `cuda_packages` are built per CUDA
    and lie below `own_index`, in a folder such as `cu130/`.
    """

    name: str
    variable: str
    packages: tuple[str, ...]
    main_package: str
    former_names: tuple[str, ...]
    mark: str
    variable_pattern: re.Pattern[str]
    variable_aliases: tuple[str, ...]
    repository: str
    own_index: str
    own_index_from: Mapping[str, str]
    cuda_packages: tuple[str, ...]
    bypass_variables: tuple[str, ...]
    declared_aliases: tuple[str, ...] = ()

    def package_of(self, name: str) -> str | None:
        """The package that a name means, however it is spelled and also by a former name; None for another one."""
        normalised = canonicalize_name(name)
        if normalised in self.former_names:
            return self.main_package
        return normalised if normalised in self.packages else None

    def names_version(self, variable: str) -> bool:
        """True if a variable of that name holds this library's version; case, camelCase and `-` or `_` do not count."""
        return _constant_case(variable) in self.variable_aliases

    def may_name_version(self, variable: str) -> bool:
        """True if the name only looks like the library's: `check` reports it when it holds a version."""
        return (
            not self.names_version(variable) and self.variable_pattern.fullmatch(_constant_case(variable)) is not None
        )

    def is_named_in(self, text: str) -> bool:
        """True if the text may hold something of the library: its mark, or a variable that is called otherwise."""
        return self.mark in text.lower() or any(name in text for name in self.foreign_aliases)

    @property
    def foreign_aliases(self) -> list[str]:
        """Variables of the version that do not carry the mark, as they are declared."""
        return [name for name in self.declared_aliases if self.mark not in name.lower()]

    def with_aliases(self, names: Iterable[str]) -> Library:
        """The library with further variable names that hold its version."""
        names = tuple(names)
        aliases = dict.fromkeys([*self.variable_aliases, *map(_constant_case, names)])
        declared = dict.fromkeys([*self.declared_aliases, *names])
        return replace(self, variable_aliases=tuple(aliases), declared_aliases=tuple(declared))


@lru_cache(maxsize=4096)
def _constant_case(name: str) -> str:
    """`FLASHINFER_VERSION` of `flashinfer-version`, `flashinfer.version` and `flashinferVersion`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper().replace("-", "_").replace(".", "_")


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


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

    def versions(key: str) -> dict[str, str]:
        value = entry.get(key)
        if not isinstance(value, Mapping) or not all(
            isinstance(item, str) and _is_version(item) for item in value.values()
        ):
            raise InputError(f"libraries.json: {name}.{key}: found {value!r}, expected a table of versions")
        return dict(value)

    return Library(
        name=name,
        variable=text("variable"),
        packages=texts("packages"),
        main_package=text("main_package"),
        former_names=texts("former_names"),
        mark=text("mark"),
        variable_pattern=re.compile(text("variable_pattern")),
        variable_aliases=texts("variable_aliases"),
        repository=text("repository"),
        own_index=text("own_index"),
        own_index_from=versions("own_index_from"),
        cuda_packages=texts("cuda_packages"),
        bypass_variables=texts("bypass_variables"),
    )
