"""docker-bake files (HCL or JSON) as far as pins need them: which variables reach which target's build arguments.

The format is docker-bake's; expressions are not evaluated here, only searched for the variables that they name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tooling.errors import InputError
from tooling.pins.patterns import late

_NAME = late(r"[A-Za-z_][A-Za-z0-9_]*")
_INTERPOLATION = late(r"\$\{([^}]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One `target` block: the targets that it inherits from, and its own build arguments as expressions."""

    name: str
    inherits: tuple[str, ...]
    args: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BakeFile:
    """`targets` by name; `variables` are declared names with their default as an expression, None without one."""

    path: str
    targets: Mapping[str, Target]
    variables: Mapping[str, str | None]

    def args_of(self, name: str) -> dict[str, str]:
        """The target's build arguments, those of inherited targets included; its own win."""
        merged: dict[str, str] = {}
        for step in self._lineage(name, frozenset()):
            merged.update(step.args)
        return merged

    def variables_in_args(self, name: str) -> set[str]:
        """Every variable that reaches the target's build arguments, also through another variable's default."""
        return set(self._closure({found for value in self.args_of(name).values() for found in named_variables(value)}))

    def _lineage(self, name: str, seen: frozenset[str]) -> Iterator[Target]:
        target = self.targets.get(name)
        if target is None or name in seen:
            return
        for parent in target.inherits:
            yield from self._lineage(parent, seen | {name})
        yield target

    def _closure(self, names: set[str]) -> set[str]:
        reached: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting += named_variables(self.variables.get(name) or "")
        return reached


def parse_bake(text: str, *, path: str) -> BakeFile:
    """The targets and variables of a bake file; JSON by its name, HCL otherwise.

    Raises:
        InputError: not HCL, or not JSON.
    """
    data = _parse_json(text, path) if path.endswith(".json") else _parse_hcl(text, path)
    return BakeFile(
        path=path,
        targets={name: _target(name, body) for name, body in _blocks(data.get("target"))},
        variables={name: _expression(body.get("default")) for name, body in _blocks(data.get("variable"))},
    )


def named_variables(expression: str) -> set[str]:
    """Names in an expression: whole for `NAME` and `f(NAME)`, inside `${…}` for a quoted text."""
    if '"' in expression or "${" in expression:
        return {name for part in _INTERPOLATION.findall(expression) for name in _NAME.findall(part)}
    return set(_NAME.findall(expression))


def _parse_json(text: str, path: str) -> dict[str, Any]:
    try:
        data = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as cause:
        raise InputError(f"{path}: {cause}", reason="BAD_BAKE_FILE") from cause
    return data if isinstance(data, dict) else {}


def _parse_hcl(text: str, path: str) -> dict[str, Any]:
    import hcl2  # noqa: PLC0415  # costs 130 ms, and only `check` and `image` read bake files
    from lark.exceptions import LarkError  # noqa: PLC0415  # as above

    try:
        data: dict[str, Any] = hcl2.loads(text.removeprefix("\ufeff"))
    except (LarkError, ValueError, RecursionError) as cause:
        first_line = str(cause).strip().splitlines()[0]
        raise InputError(f"{path}: not HCL: {first_line}", reason="BAD_BAKE_FILE") from cause
    return data


def _blocks(value: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and body of each block: HCL gives a list of one-key objects with quoted names, JSON one object."""
    for group in value if isinstance(value, list) else [value]:
        for name, body in group.items() if isinstance(group, dict) else ():
            if isinstance(body, dict):
                yield name.strip('"'), body


def _target(name: str, body: Mapping[str, Any]) -> Target:
    inherits, args = body.get("inherits"), body.get("args")
    return Target(
        name=name,
        inherits=tuple(str(item).strip('"') for item in inherits) if isinstance(inherits, list) else (),
        args={key.strip('"'): _expression(value) or "" for key, value in args.items() if not key.startswith("__")}
        if isinstance(args, dict)
        else {},
    )


def _expression(value: object) -> str | None:
    return None if value is None else str(value)
