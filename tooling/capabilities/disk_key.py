"""Which parts of the in-memory key the tuner writes to disk, followed through helpers and a key class alike."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from tooling.capabilities.facts import Evidence, Fact, unknown
from tooling.capabilities.source import Found, Source, called, calls, evidence, functions, methods, parameters

EXTRAS_METHOD = "get_cache_key_extras"
"""What a runner overrides to put its own parameters into the key."""
MAX_DEPTH = 12
"""Helpers followed before the key counts as not understood."""


class _NotUnderstoodError(Exception):
    """The expression has a form that this module does not follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyShape:
    """The in-memory key: its parts in order, each an expression, and the names by which a key class calls them."""

    parts: tuple[str, ...]
    fields: Mapping[str, int]
    key_class: Found | None
    extras: frozenset[int]
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class _Scope:
    """Names inside one function: expressions with the scope they are meant in, and the names that hold the key."""

    keys: frozenset[str]
    names: Mapping[str, tuple[ast.expr, _Scope | None]] = field(default_factory=dict)
    parts: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Reader:
    source: Source
    tuner: Found
    shape: KeyShape
    seen: list[Evidence] = field(default_factory=list)

    def parts(self, node: ast.expr, scope: _Scope, depth: int = 0) -> frozenset[int]:
        """The parts of the key that the expression is made of."""
        if depth > MAX_DEPTH:
            raise _NotUnderstoodError("helpers nest too deeply")
        match node:
            case ast.Constant():
                return frozenset()
            case ast.Name(id=name):
                return self._of_name(name, scope, depth)
            case ast.Subscript(value=ast.Name(id=name), slice=index) if name in scope.keys:
                return self._of_index(index)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in scope.keys:
                return self._of_attribute(attribute, depth)
            case ast.Call():
                return self._of_call(node, scope, depth)
            case ast.Tuple() | ast.List() | ast.JoinedStr() | ast.BinOp() | ast.IfExp() | ast.FormattedValue():
                children = (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
                return frozenset(chain.from_iterable(self.parts(child, scope, depth + 1) for child in children))
            case ast.Starred(value=value):
                return self.parts(value, scope, depth + 1)
        raise _NotUnderstoodError(f"{ast.unparse(node)} is not followed")

    def _of_name(self, name: str, scope: _Scope, depth: int) -> frozenset[int]:
        if name in scope.keys:
            return frozenset(range(len(self.shape.parts)))
        if name in scope.parts:
            return frozenset({scope.parts[name]})
        if name in scope.names:
            expression, home = scope.names[name]
            return self.parts(expression, home or _without(scope, name), depth + 1)
        raise _NotUnderstoodError(f"nothing tells what {name} is")

    def _of_index(self, index: ast.expr) -> frozenset[int]:
        positions = range(len(self.shape.parts))
        try:
            if isinstance(index, ast.Slice):
                bounds = [None if part is None else ast.literal_eval(part) for part in (index.lower, index.upper)]
                return frozenset(positions[slice(*bounds)])
            return frozenset({positions[ast.literal_eval(index)]})
        except (ValueError, IndexError, TypeError) as cause:
            raise _NotUnderstoodError(f"the key's part [{ast.unparse(index)}] is not followed") from cause

    def _of_attribute(self, attribute: str, depth: int) -> frozenset[int]:
        if attribute in self.shape.fields:
            return frozenset({self.shape.fields[attribute]})
        found = self.shape.key_class
        member = methods(found.node).get(attribute) if found and isinstance(found.node, ast.ClassDef) else None
        if found is None or member is None:
            raise _NotUnderstoodError(f"the key has no {attribute}")
        return self._of_function(Found(module=found.module, node=member), {"self": None}, depth)

    def _of_call(self, node: ast.Call, scope: _Scope, depth: int) -> frozenset[int]:
        name = called(node)
        if isinstance(node.func, ast.Name) and name in {"str", "repr", "tuple", "list", "hash"} and len(node.args) == 1:
            return self.parts(node.args[0], scope, depth + 1)
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            owner = node.func.value.id
            if owner in scope.keys and not node.args:
                return self._of_attribute(name, depth)
        helper = self._helper(name)
        if helper is None or not isinstance(helper.node, ast.FunctionDef):
            raise _NotUnderstoodError(f"{name}(…) is not found")
        bound: dict[str, tuple[ast.expr, _Scope] | None] = {}
        for parameter, argument in zip(parameters(helper.node), node.args, strict=False):
            is_key = isinstance(argument, ast.Name) and argument.id in scope.keys
            bound[parameter] = None if is_key else (argument, scope)
        for keyword in node.keywords:
            if keyword.arg is not None:
                bound[keyword.arg] = (keyword.value, scope)
        return self._of_function(helper, bound, depth)

    def _helper(self, name: str) -> Found | None:
        own = methods(self.tuner.node).get(name) if isinstance(self.tuner.node, ast.ClassDef) else None
        return Found(module=self.tuner.module, node=own) if own else self.source.find(self.tuner.module, name)

    def _of_function(
        self, found: Found, bound: Mapping[str, tuple[ast.expr, _Scope] | None], depth: int
    ) -> frozenset[int]:
        """What the function returns; a parameter bound to None is the key itself."""
        assert isinstance(found.node, ast.FunctionDef)
        scope = _scope(found.node, keys={name for name, value in bound.items() if value is None})
        scope = replace(scope, names={**scope.names, **{name: value for name, value in bound.items() if value}})
        results = [node.value for node in ast.walk(found.node) if isinstance(node, ast.Return) and node.value]
        if not results:
            raise _NotUnderstoodError(f"{found.node.name} returns nothing")
        self.seen.extend(found.evidence(f"return {ast.unparse(result)}") for result in results)
        return frozenset(chain.from_iterable(self.parts(result, scope, depth + 1) for result in results))


def derive_disk_key(source: Source, tuner: Found) -> Fact:
    """Whether what a runner adds to the key also stands in the key on disk."""
    assert isinstance(tuner.node, ast.ClassDef)
    save = methods(tuner.node).get("save_configs")
    if save is None:
        return Fact(value=False, evidence=(tuner.evidence("no save_configs: nothing is written to disk"),))
    shape = key_shape(source, tuner)
    if isinstance(shape, str):
        return unknown(shape)
    loop = next(
        (node for node in ast.walk(save) if isinstance(node, ast.For) and "profiling_cache" in ast.unparse(node.iter)),
        None,
    )
    written = None if loop is None else _written_key(loop)
    if loop is None or written is None:
        return unknown(f"{tuner.module.path}:save_configs has no loop over profiling_cache that fills the file")
    key = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target
    reader = _Reader(source=source, tuner=tuner, shape=shape)
    try:
        parts = reader.parts(written, _scope(loop, keys={ast.unparse(key)}))
    except _NotUnderstoodError as cause:
        return unknown(f"{tuner.module.path}:save_configs: the key on disk is not understood: {cause}")
    stored = ", ".join(shape.parts[index] for index in sorted(parts))
    return Fact(
        value=bool(parts & shape.extras),
        evidence=(
            evidence(tuner.module, f"key on disk = {stored}", "save_configs"),
            *dict.fromkeys(reader.seen),
            shape.evidence,
        ),
    )


def key_shape(source: Source, tuner: Found) -> KeyShape | str:
    """The shape of the in-memory key, or the reason why it could not be told."""
    assert isinstance(tuner.node, ast.ClassDef)
    maker = methods(tuner.node).get("_get_cache_key")
    result = maker and next((node.value for node in ast.walk(maker) if isinstance(node, ast.Return)), None)
    if maker is None or result is None:
        return f"{tuner.module.path}: AutoTuner has no _get_cache_key"
    if isinstance(result, ast.Tuple):
        elements, fields, found = list(result.elts), {}, None
    elif isinstance(result, ast.Call) and (found := source.find(tuner.module, called(result))):
        names = _field_names(found.node)
        elements = [*result.args, *(keyword.value for keyword in result.keywords)]
        given = [*names[: len(result.args)], *(keyword.arg or "" for keyword in result.keywords)]
        fields = {name: index for index, name in enumerate(given)}
    else:
        return f"{tuner.module.path}:_get_cache_key returns {ast.unparse(result)}, neither a tuple nor a key class"
    fed = _parameters_fed_with_extras(tuner.node, maker)
    extras = {
        index
        for index, element in enumerate(elements)
        if any(True for _ in calls(element, EXTRAS_METHOD)) or (isinstance(element, ast.Name) and element.id in fed)
    }
    return KeyShape(
        parts=tuple(ast.unparse(element) for element in elements),
        fields=fields,
        key_class=found,
        extras=frozenset(extras),
        evidence=evidence(tuner.module, f"return {ast.unparse(result)}", "_get_cache_key"),
    )


def _field_names(node: ast.AST) -> list[str]:
    body = node.body if isinstance(node, ast.ClassDef) else []
    return [item.target.id for item in body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)]


def _parameters_fed_with_extras(cls: ast.ClassDef, maker: ast.FunctionDef) -> set[str]:
    """The parameters of `_get_cache_key` that any caller fills from a runner's extras."""
    fed: set[str] = set()
    for function in functions(cls):
        assigned = {
            target.id
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and any(True for _ in calls(node.value, EXTRAS_METHOD))
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for call in calls(function, maker.name):
            pairs = [
                *zip(parameters(maker), call.args, strict=False),
                *((item.arg, item.value) for item in call.keywords),
            ]
            fed |= {
                name
                for name, value in pairs
                if name and (any(True for _ in calls(value, EXTRAS_METHOD)) or ast.unparse(value) in assigned)
            }
    return fed


def _written_key(loop: ast.For) -> ast.expr | None:
    """The K of the loop's first `something[K] = …`."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            return node.targets[0].slice
    return None


def _scope(tree: ast.AST, *, keys: set[str]) -> _Scope:
    """The names that the function or loop assigns; unpacking the key gives its parts."""
    names: dict[str, tuple[ast.expr, _Scope | None]] = {}
    parts: dict[str, int] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign):
            continue
        target = node.targets[0]
        if isinstance(target, ast.Name):
            if isinstance(node.value, ast.Name) and node.value.id in keys:
                keys = keys | {target.id}
            else:
                names[target.id] = (node.value, None)
        elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Name) and node.value.id in keys:
            parts |= {element.id: index for index, element in enumerate(target.elts) if isinstance(element, ast.Name)}
    return _Scope(keys=frozenset(keys), names=names, parts=parts)


def _without(scope: _Scope, name: str) -> _Scope:
    """The scope in which a name's own expression is meant: a name never explains itself."""
    return replace(scope, names={key: value for key, value in scope.names.items() if key != name})
