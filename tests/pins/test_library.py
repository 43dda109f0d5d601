"""The table of libraries: the shipped one parses, and a wrong entry is named by its key."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest

from tooling.errors import InputError
from tooling.pins.library import parse_libraries

SHIPPED: dict[str, Any] = json.loads((files("tooling") / "data" / "libraries.json").read_text())
ENTRIES = {name: entry for name, entry in SHIPPED.items() if isinstance(entry, dict)}


def test_the_shipped_table_knows_flashinfer() -> None:
    library = parse_libraries(ENTRIES)["flashinfer"]
    assert library.variable == "FLASHINFER_VERSION"
    assert library.main_package in library.packages
    assert set(library.packages) == {"flashinfer-python", "flashinfer-cubin", "flashinfer-jit-cache"}
    assert library.variable_pattern.fullmatch("FLASHINFER_VERSION")
    assert all(library.names_version(alias) for alias in library.variable_aliases)
    assert not library.variable_pattern.fullmatch("TORCH_VERSION")


@pytest.mark.parametrize("key", sorted(ENTRIES["flashinfer"]))
@pytest.mark.parametrize("wrong", [None, 5, {"a": "b"}, [5]], ids=["missing", "number", "object", "list of numbers"])
def test_a_wrong_entry_is_named(key: str, wrong: object) -> None:
    if isinstance(wrong, dict) and isinstance(ENTRIES["flashinfer"][key], dict):
        wrong = {"a": 5}
    entry = {**ENTRIES["flashinfer"], key: wrong}
    if wrong is None:
        del entry[key]
    with pytest.raises(InputError, match=rf"libraries.json: mine\.{key}: found .*, expected "):
        parse_libraries({"mine": entry})
