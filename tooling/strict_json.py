"""JSON that all readers take alike: no NaN or Infinity, no key twice, of which two readers may take different ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn


def parse_strict_json(text: str | bytes, *, parse_float: Callable[[str], float] | None = None) -> Any:
    """The value in that text.

    Raises:
        ValueError: not JSON, a constant that JSON does not have, or a key twice. RecursionError: nested too deeply.
    """
    return json.loads(text, parse_float=parse_float, parse_constant=_no_constant, object_pairs_hook=_once)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    body: dict[str, object] = {}
    for key, value in pairs:
        if key in body:
            raise ValueError(f"the key {key!r} stands twice")
        body[key] = value
    return body
