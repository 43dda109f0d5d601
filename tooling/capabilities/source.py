"""Python source of one release as syntax trees: modules by path, definitions found through imports. Nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from tooling.capabilities.facts import Evidence

PACKAGE = "flashinfer"
SEEN_LIMIT = 160
"""Longest piece of source quoted as evidence; longer ones are cut in the middle."""
MAX_HOPS = 8
"""Re-exports followed before a name counts as not found."""

Definition: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef"


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where an expression stands: its module, the function around it and the class around that."""

    module: Module
    function: ast.FunctionDef | None = None
    cls: ast.ClassDef | None = None
    outer: Place | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """One walk over a module: calls by their last word with their places, classes, imports, places of functions."""

    calls: dict[str, list[tuple[ast.Call, Place]]] = field(default_factory=dict)
    classes: list[ast.ClassDef] = field(default_factory=list)
    imports: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    top_level: dict[str, ast.AST] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Module:
    """One parsed member. `path` is relative to the archive's root, such as `flashinfer/autotuner/__init__.py`."""

    path: str
    tree: ast.Module

    @cached_property
    def index(self) -> Index:
        index = Index()
        _fill(index, self.tree, Place(self))
        for node in self.tree.body:
            for name in _bound_names(node):
                index.top_level.setdefault(name, node)
        return index

    @property
    def name(self) -> str:
        """The dotted name: `flashinfer.autotuner`."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def is_package(self) -> bool:
        return self.path.endswith("/__init__.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A definition and the module that holds it."""

    module: Module
    node: ast.AST

    def evidence(self, seen: ast.AST | str, where: str | None = None) -> Evidence:
        return evidence(self.module, seen, getattr(self.node, "name", "") if where is None else where)


@dataclass(slots=True)
class Source:
    """The Python members of one archive. `read` gives a member's bytes; every module is read and parsed once.

    `problems` gathers what could not be parsed, by path.
    """

    names: Collection[str]
    read: Callable[[str], bytes]
    problems: dict[str, str] = field(default_factory=dict)
    _modules: dict[str, Module | None] = field(default_factory=dict)
    _texts: dict[str, bytes] = field(default_factory=dict)

    def text(self, path: str) -> bytes:
        """The member's bytes, read once."""
        if path not in self._texts:
            self._texts[path] = self.read(path)
        return self._texts[path]

    def forget(self, path: str) -> None:
        """Lets go of the bytes of a member that will not be asked for again."""
        self._texts.pop(path, None)

    def module(self, path: str) -> Module | None:
        """The module at that path, or None if there is none or it is no Python that this interpreter can parse."""
        if path not in self._modules:
            self._modules[path] = self._parse(path) if path in self.names else None
        return self._modules[path]

    def named(self, dotted: str) -> Module | None:
        """The module `a.b` at `a/b.py` or `a/b/__init__.py`."""
        base = dotted.replace(".", "/")
        return self.module(f"{base}.py") or self.module(f"{base}/__init__.py")

    def find(self, module: Module, name: str, *, hops: int = MAX_HOPS) -> Found | None:
        """The function, class or assigned value of that name, followed through `from … import` over modules."""
        if name in module.index.top_level:
            return Found(module=module, node=module.index.top_level[name])
        if hops:
            for where, original in module.index.imports.get(name, ()):
                target = self.named(where)
                if target is not None and target is not module:
                    return self.find(target, original, hops=hops - 1)
        return None

    def mentioning(self, word: str, paths: Iterable[str]) -> Iterator[Module]:
        """The modules at those paths whose text has the word; the others are not parsed."""
        for path in paths:
            if word.encode() in self.text(path) and (module := self.module(path)) is not None:
                yield module

    def _parse(self, path: str) -> Module | None:
        try:
            return Module(path=path, tree=ast.parse(self.text(path)))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as cause:
            self.problems[path] = f"{type(cause).__name__}: {cause}"
            return None


def evidence(module: Module, seen: ast.AST | str, where: str = "") -> Evidence:
    return Evidence(path=module.path, where=where, seen=quote(seen))


def quote(seen: ast.AST | str) -> str:
    """One line of source, cut in the middle if it is long."""
    text = " ".join((seen if isinstance(seen, str) else ast.unparse(seen)).split())
    half = (SEEN_LIMIT - 3) // 2
    return text if len(text) <= SEEN_LIMIT else f"{text[:half]} … {text[-half:]}"


def absolute(module: Module, node: ast.ImportFrom) -> str:
    """The dotted module that `from .x import …` names in that module."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    base = parts[: len(parts) - node.level + (1 if module.is_package else 0)]
    return ".".join([*base, *([node.module] if node.module else [])])


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def methods(cls: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in cls.body if isinstance(node, ast.FunctionDef)}


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, ...]:
    """All parameter names, in order, without `self` and `cls`."""
    args = function.args
    names = [argument.arg for argument in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return tuple(name for name in names if name not in {"self", "cls"})


def calls(tree: ast.AST, *names: str) -> Iterator[ast.Call]:
    """Every call whose last word (`x` of `x(…)`, `a.x(…)`) is one of the names."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call) and called(node) in names)


def called(call: ast.Call) -> str:
    """The last word of what is called, or ""."""
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def identifiers(tree: ast.AST) -> set[str]:
    """Every name and attribute in the tree."""
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return found | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def _bound_names(node: ast.stmt) -> list[str]:
    """The names that a statement at the top of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _fill(index: Index, root: ast.AST, start: Place) -> None:
    """Adds everything below the node to the index, in the order of the source."""
    waiting = [(root, start)]
    while waiting:
        node, place = waiting.pop()
        here = place
        if isinstance(node, ast.FunctionDef):
            here = Place(place.module, node, place.cls, place)
        elif isinstance(node, ast.ClassDef):
            here = Place(place.module, place.function, node, place)
            index.classes.append(node)
        elif isinstance(node, ast.Call):
            index.calls.setdefault(called(node), []).append((node, place))
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                origin = (absolute(place.module, node), alias.name)
                index.imports.setdefault(alias.asname or alias.name, []).append(origin)
        below: list[tuple[ast.AST, Place]] = []
        for value in vars(node).values():  # several times as fast as ast.iter_child_nodes on modules of 10,000 lines
            if isinstance(value, ast.AST):
                below.append((value, here))
            elif isinstance(value, list):
                below.extend((item, here) for item in value if isinstance(item, ast.AST))
        waiting.extend(reversed(below))
