"""Python source of one release as syntax trees: modules by path, definitions found through imports. Nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from tooling.capabilities.facts import Evidence

PACKAGE = "flashinfer"
SEEN_LIMIT = 160
"""Longest piece of source quoted as evidence; longer ones are cut in the middle."""
MAX_HOPS = 8
"""Re-exports followed before a name counts as not found."""

Definition: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef"


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One parsed member. `path` is relative to the archive's root, such as `flashinfer/autotuner/__init__.py`."""

    path: str
    tree: ast.Module

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
        for node in module.tree.body:
            if getattr(node, "name", None) == name or (isinstance(node, ast.Assign | ast.AnnAssign) and _binds(node, name)):
                return Found(module=module, node=node)
        if hops:
            for where, original in imports_of(module, name):
                target = self.named(where)
                if target is not None and target is not module:
                    return self.find(target, original, hops=hops - 1)
        return None

    def _parse(self, path: str) -> Module | None:
        try:
            return Module(path=path, tree=ast.parse(self.read(path)))
        except (SyntaxError, ValueError, RecursionError) as cause:
            self.problems[path] = f"{type(cause).__name__}: {cause}"
            return None


def evidence(module: Module, seen: ast.AST | str, where: str = "") -> Evidence:
    return Evidence(path=module.path, where=where, seen=quote(seen))


def quote(seen: ast.AST | str) -> str:
    """One line of source, cut in the middle if it is long."""
    text = " ".join((seen if isinstance(seen, str) else ast.unparse(seen)).split())
    half = (SEEN_LIMIT - 3) // 2
    return text if len(text) <= SEEN_LIMIT else f"{text[:half]} … {text[-half:]}"


def imports_of(module: Module, name: str) -> Iterator[tuple[str, str]]:
    """Every (dotted module, original name) from which the module imports that name, anywhere in it."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    yield absolute(module, node), alias.name


def absolute(module: Module, node: ast.ImportFrom) -> str:
    """The dotted module that `from .x import …` names in that module."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    base = parts[: len(parts) - node.level + (1 if module.is_package else 0)]
    return ".".join([*base, *([node.module] if node.module else [])])


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def classes(tree: ast.AST) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


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


def _binds(node: ast.Assign | ast.AnnAssign, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)
