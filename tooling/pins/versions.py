"""versions.json, the pins as a docker-bake variable file, `{"variable": {NAME: {"default": TEXT}}}`; its one spelling.

The format is docker-bake's JSON form of `variable` blocks. Only string defaults are pins; a comment key such as
`_comment` may stand beside `variable`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tooling.errors import InputError
from tooling.pins.patterns import late
from tooling.strict_json import parse_strict_json

_NAME = late(r"[A-Za-z_][A-Za-z0-9_]*")


def parse_versions(text: str, *, path: str = "versions.json") -> dict[str, str]:
    """Every variable's default, in the file's order.

    Raises:
        InputError: not JSON, a key twice, no `variable` object, or a default that is not text; all problems at once.
    """
    try:
        data = parse_strict_json(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as cause:
        problem = "nested too deeply" if isinstance(cause, RecursionError) else cause
        raise InputError(
            f"{path}: {problem}", hint='expected {"variable": {NAME: {"default": TEXT}}}', reason="BAD_VERSIONS"
        ) from cause
    problems = _problems(data)
    if problems:
        raise InputError(
            f"{path}: " + "; ".join(problems),
            hint='expected {"variable": {NAME: {"default": TEXT}}}',
            reason="BAD_VERSIONS",
        )
    return {name: entry["default"] for name, entry in data["variable"].items() if "default" in entry}


def dump_versions(variables: Mapping[str, str]) -> str:
    """The one spelling: the order kept, two spaces, one final newline."""
    table = {"variable": {name: {"default": default} for name, default in variables.items()}}
    return json.dumps(table, indent=2, ensure_ascii=False) + "\n"


def _problems(data: object) -> list[str]:
    if not isinstance(data, dict):
        return [f"found {_kind(data)}, expected an object"]
    if "variable" not in data:
        return ["no key `variable`"]
    variables = data["variable"]
    if not isinstance(variables, dict):
        return [f"variable: found {_kind(variables)}, expected an object"]
    return [problem for name, entry in variables.items() for problem in _entry_problems(name, entry)]


def _entry_problems(name: str, entry: object) -> list[str]:
    if not _NAME.fullmatch(name):
        return [f"variable.{name}: not a variable's name"]
    if not isinstance(entry, dict):
        return [f"variable.{name}: found {_kind(entry)}, expected an object with a default"]
    if "default" in entry and not isinstance(entry["default"], str):
        return [f"variable.{name}.default: found {_kind(entry['default'])}, expected text"]
    return []


def _kind(value: object) -> str:
    names: dict[type, str] = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "true or false",
        type(None): "null",
    }
    return names.get(type(value), "a number")
