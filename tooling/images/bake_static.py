"""Our own reading of a bake file, for machines where `bake --print` does not answer: blocks, inheritance, `${NAME}`.

What bake can do beyond that (functions, matrix) is not evaluated here; a value that needs it is refused, not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tooling.errors import InputError
from tooling.images.plan import BuildTarget, make_target

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PART = re.compile(r"\$\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}|\$\{")


def evaluate_bake(
    text: str, variables: Mapping[str, str], *, path: str, environ: Mapping[str, str]
) -> list[BuildTarget]:
    """The targets of the default group, or all of them without one, in the file's order.

    `variables` (the versions file) win over the bake file's own defaults; the environment wins over those only.

    Raises:
        InputError: not HCL, or an expression that only bake can evaluate.
    """
    import hcl2  # noqa: PLC0415  # costs 130 ms
    from lark.exceptions import LarkError  # noqa: PLC0415  # as above

    try:
        data: dict[str, Any] = hcl2.loads(text.removeprefix("\ufeff"))
    except (LarkError, ValueError, RecursionError) as cause:
        raise InputError(f"{path}: not HCL: {str(cause).strip().splitlines()[0]}", reason="BAD_BAKE_FILE") from cause
    scope = {
        name: environ.get(name, _text(body.get("default", '""'), {}, path)) for name, body in _blocks(data, "variable")
    }
    scope |= variables
    bodies = {name: {key: _value(item, scope, path) for key, item in body.items() if not key.startswith("__")}
              for name, body in _blocks(data, "target")}  # fmt: skip
    groups = {name: _value(body.get("targets", []), scope, path) for name, body in _blocks(data, "group")}
    names = groups.get("default") or list(bodies)
    return [make_target(name, _merged(name, bodies, path, ())) for name in names]


def _merged(name: str, bodies: Mapping[str, dict[str, Any]], path: str, seen: tuple[str, ...]) -> dict[str, Any]:
    """A target's keys with those that it inherits; `args` are merged key by key."""
    if name not in bodies or name in seen:
        raise InputError(f"{path}: target {name!r} is not defined, or inherits from itself", reason="BAD_BAKE_FILE")
    merged: dict[str, Any] = {}
    for parent in bodies[name].get("inherits", []):
        merged = _over(merged, _merged(parent, bodies, path, (*seen, name)))
    return _over(merged, bodies[name])


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    return {**below, **above, "args": {**below.get("args", {}), **above.get("args", {})}}


def _blocks(data: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for group in data.get(kind, []):
        for name, body in group.items():
            if isinstance(body, dict):
                yield name.strip('"'), body


def _value(item: object, scope: Mapping[str, str], path: str) -> Any:
    if isinstance(item, list):
        return [_value(part, scope, path) for part in item]
    if isinstance(item, dict):
        return {key.strip('"'): _value(part, scope, path) for key, part in item.items() if not key.startswith("__")}
    return _text(item, scope, path)


def _text(item: object, scope: Mapping[str, str], path: str) -> str:
    """A quoted text with its `${NAME}` replaced, a variable's bare name, or a plain number or boolean."""
    if not isinstance(item, str):
        return str(item).lower() if isinstance(item, bool) else str(item)
    if item.startswith('"'):
        return _PART.sub(lambda match: _variable(match[1] or "", scope, path, item), item[1:-1])
    return _variable(item, scope, path, item)


def _variable(name: str, scope: Mapping[str, str], path: str, expression: str) -> str:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{path}: {expression} can only be evaluated by bake itself",
            hint="start an engine, or write the value as a variable",
            reason="BAD_BAKE_FILE",
        )
    if name not in scope:
        raise InputError(f"{path}: there is no variable {name}", reason="BAD_BAKE_FILE")
    return scope[name]
