"""Reads the tables that ship inside the package, `tooling/data`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from tooling.pins.library import Library, parse_libraries

DATA = Path(__file__).resolve().parent.parent / "data"


def load_json(name: str) -> Any:
    """A table's JSON values."""
    return json.loads((DATA / name).read_bytes())


@cache
def load_library(name: str = "flashinfer") -> Library:
    """The library's entry in `libraries.json`."""
    return parse_libraries(load_json("libraries.json"))[name]
