"""The texts an expression can stand for, found by following assignments, parameters and helpers. Nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice, product

from tooling.capabilities.source import Found, Module, Place, Source, called, methods, parameters

UNKNOWN = "*"
"""Stands for a part that could not be told; the whole text is then a pattern for fnmatch."""
MAX_DEPTH = 7
MAX_TEXTS = 64
"""More texts than this for one expression are not listed one by one."""


@dataclass(slots=True)
class Names:
    """Follows texts through the modules at the paths that were found to matter; a module is parsed when asked."""

    source: Source
    paths: tuple[str, ...]
    _busy: set[tuple[str, str, str]] = field(default_factory=set)

    def texts(self, node: ast.expr, place: Place, depth: int = 0) -> set[str]:  # noqa: C901, PLR0912  # one case a form
        """Every text that the expression can be; parts that cannot be told are `*`."""
        if depth > MAX_DEPTH:
            return {UNKNOWN}
        match node:
            case ast.Constant(value=str(text)):
                return {text}
            case ast.Constant(value=int() | None):
                return {str(node.value)}
            case ast.IfExp(body=body, orelse=orelse):
                return self.texts(body, place, depth) | self.texts(orelse, place, depth)
            case ast.BoolOp(values=values):
                return set().union(*(self.texts(value, place, depth) for value in values))
            case ast.JoinedStr(values=values):
                return _joined(self.texts(value, place, depth + 1) for value in values)
            case ast.FormattedValue(value=value):
                return self.texts(value, place, depth + 1)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _joined([self.texts(left, place, depth + 1), self.texts(right, place, depth + 1)])
            case ast.Subscript(value=ast.Dict(values=values)):
                return set().union(*(self.texts(value, place, depth + 1) for value in values))
            case ast.Subscript(value=value):
                return self._of_table(value, place, depth)
            case ast.Name(id=name):
                return self._of_name(name, place, depth)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=attribute) if place.cls:
                return self._of_attribute(place, attribute, depth)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                return self._of_member(place.module, name, attribute, depth)
            case ast.Call():
                return self._of_call(node, place, depth)
        return {UNKNOWN}

    def _of_name(self, name: str, place: Place, depth: int) -> set[str]:
        mark = (place.module.path, place.function.name if place.function else "", name)
        if mark in self._busy:
            return set()
        self._busy.add(mark)
        try:
            found: set[str] = set()
            if place.function is not None:
                for value in _assigned(place.function, name):
                    found |= self.texts(value, place, depth + 1)
                if not found and name in parameters(place.function):
                    found = self._of_parameter(name, place, depth)
                found = found or self._of_outer(name, place, depth)
            return found or self._of_constant(place.module, name, depth) or {UNKNOWN}
        finally:
            self._busy.discard(mark)

    def _of_outer(self, name: str, place: Place, depth: int) -> set[str]:
        """The name as a function around this one knows it."""
        around = place.outer
        while around is not None:
            function = around.function
            elsewhere = function is not None and function is not place.function
            if function is not None and elsewhere and _knows(function, name):
                return self._of_name(name, around, depth + 1)
            around = around.outer
        return set()

    def _of_parameter(self, name: str, place: Place, depth: int) -> set[str]:
        """What the function's callers give for the parameter, and its default."""
        function = place.function
        assert function is not None
        found: set[str] = set()
        sought = place.cls.name if place.cls and function.name == "__init__" else function.name
        for call, caller in self._callers(place.module, sought):
            given = _argument(call, function, name)
            if given is not None:
                found |= self.texts(given, caller, depth + 1)
            elif (default := _default(function, name)) is not None:
                found |= self.texts(default, Place(place.module), depth + 1)
        return found or {UNKNOWN}

    def _callers(self, home: Module, name: str) -> Iterator[tuple[ast.Call, Place]]:
        for module in dict.fromkeys((home, *self.source.mentioning(f"{name}(", self.paths))):
            yield from module.index.calls.get(name, ())

    def _of_constant(self, module: Module, name: str, depth: int) -> set[str]:
        found = self.source.find(module, name)
        value = getattr(found.node, "value", None) if found else None
        return self.texts(value, Place(found.module), depth + 1) if found and isinstance(value, ast.expr) else set()

    def _of_member(self, module: Module, owner: str, attribute: str, depth: int) -> set[str]:
        """`Owner.NAME` of a class, or `module.NAME` of an imported module."""
        found = self.source.find(module, owner)
        if found and isinstance(found.node, ast.ClassDef):
            value = _class_value(found.node, attribute)
            return self.texts(value, Place(found.module, cls=found.node), depth + 1) if value else {UNKNOWN}
        return {UNKNOWN}

    def _of_attribute(self, place: Place, attribute: str, depth: int) -> set[str]:
        """`self.attribute`: the class's own value, those of its children, and what its methods assign."""
        assert place.cls is not None
        found: set[str] = set()
        for module, cls in self._family(place.module, place.cls):
            value = _class_value(cls, attribute)
            if value is not None:
                found |= self.texts(value, Place(module, cls=cls), depth + 1)
            for method in methods(cls).values():
                for assigned in _assigned(method, attribute, owner="self"):
                    found |= self.texts(assigned, Place(module, method, cls), depth + 1)
        return found or {UNKNOWN}

    def _family(self, home: Module, cls: ast.ClassDef) -> Iterator[tuple[Module, ast.ClassDef]]:
        """The class, and every class that names it (or a child of it) among its bases."""
        names = {cls.name}
        yield home, cls
        for module in dict.fromkeys((home, *self.source.mentioning(cls.name, self.paths))):
            for other in module.index.classes:
                if other.name not in names and any(ast.unparse(base).split(".")[-1] in names for base in other.bases):
                    names.add(other.name)
                    yield module, other

    def _of_table(self, value: ast.expr, place: Place, depth: int) -> set[str]:
        """`TABLE[key]`: every value of a table that is written out."""
        found = self.source.find(place.module, value.id) if isinstance(value, ast.Name) else None
        table = getattr(found.node, "value", None) if found else None
        local = list(_assigned(place.function, value.id)) if place.function and isinstance(value, ast.Name) else []
        for candidate in (table, *local):
            if isinstance(candidate, ast.Dict):
                return set().union(*(self.texts(item, place, depth + 1) for item in candidate.values)) or {UNKNOWN}
        return {UNKNOWN}

    def _of_call(self, node: ast.Call, place: Place, depth: int) -> set[str]:
        name = called(node)
        if name == "str" and node.args:
            return self.texts(node.args[0], place, depth + 1)
        own = methods(place.cls).get(name) if place.cls and isinstance(node.func, ast.Attribute) else None
        found = Found(module=place.module, node=own) if own else self.source.find(place.module, name)
        if found is None or not isinstance(found.node, ast.FunctionDef):
            return {UNKNOWN}
        home = Place(found.module, found.node, place.cls if own else None)
        results = [item.value for item in ast.walk(found.node) if isinstance(item, ast.Return) and item.value]
        return set().union(*(self.texts(result, home, depth + 1) for result in results)) or {UNKNOWN}


def _knows(function: ast.FunctionDef, name: str) -> bool:
    return name in parameters(function) or any(True for _ in _assigned(function, name))


def _joined(parts: Iterable[set[str]]) -> set[str]:
    """Every concatenation; one pattern if there are too many."""
    sets = [sorted(part) for part in parts]
    texts = {"".join(combination) for combination in islice(product(*sets), MAX_TEXTS + 1)}
    if len(texts) > MAX_TEXTS:
        texts = {"".join(part[0] if len(part) == 1 else UNKNOWN for part in sets)}
    return {_squeezed(text) for text in texts}


def _squeezed(text: str) -> str:
    while UNKNOWN * 2 in text:
        text = text.replace(UNKNOWN * 2, UNKNOWN)
    return text


def _assigned(function: ast.AST, name: str, *, owner: str = "") -> Iterator[ast.expr]:
    """Every expression that the function assigns to the name, to `owner.name`, or lets it run over."""
    wanted = f"{owner}.{name}" if owner else name
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == wanted for target in node.targets):
            yield node.value
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and ast.unparse(node.target) == wanted:
            yield from [node.value] if node.value else []
        elif isinstance(node, ast.For | ast.comprehension) and ast.unparse(node.target) == wanted:
            yield from node.iter.elts if isinstance(node.iter, ast.Tuple | ast.List) else ()
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            for target in node.targets:
                if isinstance(target, ast.Tuple) and len(target.elts) == len(node.value.elts):
                    pairs = zip(target.elts, node.value.elts, strict=True)
                    yield from (value for item, value in pairs if ast.unparse(item) == wanted)


def _argument(call: ast.Call, function: ast.FunctionDef, name: str) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    order = parameters(function)
    position = order.index(name)
    return call.args[position] if position < len(call.args) else None


def _default(function: ast.FunctionDef, name: str) -> ast.expr | None:
    args = function.args
    positional = [*args.posonlyargs, *args.args]
    pairs = [
        *zip(positional[len(positional) - len(args.defaults) :], args.defaults, strict=True),
        *zip(args.kwonlyargs, args.kw_defaults, strict=True),
    ]
    return next((default for argument, default in pairs if argument.arg == name), None)


def _class_value(cls: ast.ClassDef, name: str) -> ast.expr | None:
    for node in cls.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return getattr(node, "value", None)
        if isinstance(node, ast.FunctionDef) and node.name == name:
            results = [item.value for item in ast.walk(node) if isinstance(item, ast.Return)]
            return results[0] if len(results) == 1 else None
    return None
