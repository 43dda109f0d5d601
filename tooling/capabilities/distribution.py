"""Facts about the packages around a release: what it needs, which companions it knows, how it meets a mismatch."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from email.message import Message
from email.parser import BytesHeaderParser

from tooling.capabilities.facts import Evidence, Fact, unknown
from tooling.capabilities.source import PACKAGE, Module, Source, called, calls, evidence, functions

ENVIRONMENT_MODULE = f"{PACKAGE}/jit/env.py"
"""Where FlashInfer looks for its companion packages, at import."""
CATCHES_ALL = {"RuntimeError", "Exception", "BaseException"}


def metadata_member(names: Iterable[str]) -> str | None:
    """The member with the core metadata: a wheel's METADATA, an sdist's PKG-INFO at its root."""
    wheel = [name for name in names if name.count("/") == 1 and name.endswith(".dist-info/METADATA")]
    return wheel[0] if wheel else ("PKG-INFO" if "PKG-INFO" in set(names) else None)


def metadata_version(source: Source) -> str | None:
    """The release that the archive says it is."""
    member = metadata_member(source.names)
    found = None if member is None else _headers(source.read(member)).get("Version")
    return None if found is None else str(found).strip()


def derive_requires(source: Source) -> Fact:
    """What a plain install needs: Requires-Dist without those of an extra."""
    member = metadata_member(source.names)
    if member is None:
        return unknown("the archive has neither METADATA nor PKG-INFO")
    wanted = _headers(source.read(member)).get_all("Requires-Dist") or []
    plain = tuple(sorted(" ".join(line.split()) for line in map(str, wanted) if "extra ==" not in line))
    if not plain:
        return unknown(f"{member} names no requirement; the build decides")
    seen = f"{len(plain)} Requires-Dist without an extra"
    return Fact(value=plain, evidence=(Evidence(path=member.rsplit("/", 1)[-1], seen=seen),))


def derive_packaging_layout(source: Source) -> Fact:
    """The companions that the release looks for: `python`, `+cubin`, `+jit-cache`, `+jit-cache-providers`."""
    module = source.module(ENVIRONMENT_MODULE)
    if module is None:
        return _no_environment(source)
    imported = {alias.name for node in ast.walk(module.tree) if isinstance(node, ast.Import) for alias in node.names}
    companions = sorted(name for name in imported if name.startswith(f"{PACKAGE}_"))
    strangers = set(companions) - {f"{PACKAGE}_cubin", f"{PACKAGE}_jit_cache"}
    if strangers:
        return unknown(f"{module.path} imports {', '.join(sorted(strangers))}, a companion not known here")
    layout, seen = ["python"], [f"imports {name}" for name in companions]
    if f"{PACKAGE}_cubin" in companions:
        layout.append("cubin")
    if f"{PACKAGE}_jit_cache" in companions:
        providers = next(calls(module.tree, "get_jit_cache_providers"), None)
        directory = next(calls(module.tree, "get_jit_cache_dir"), None)
        if providers is None and directory is None:
            return unknown(f"{module.path} imports {PACKAGE}_jit_cache, but asks it for nothing known here")
        layout.append("jit-cache" if providers is None else "jit-cache-providers")
        seen.append(ast.unparse(providers or directory or ast.Pass()))
    return Fact(value="+".join(layout), evidence=(evidence(module, "; ".join(seen) or "imports no companion package"),))


def derive_mismatch_policy(source: Source) -> Fact:
    """What importing FlashInfer does when a companion package has another version: `none`, `raise` or `warn`."""
    module = source.module(ENVIRONMENT_MODULE)
    if module is None:
        return _no_environment(source)
    checks = {function.name: raised for function in functions(module.tree) for raised in _version_raises(function)}
    if not checks:
        return Fact(value="none", evidence=(evidence(module, "compares no companion's version"),))
    reached = sorted(set(checks) & _reached_at_import(module))
    if reached:
        return Fact(value="raise", evidence=tuple(evidence(module, checks[name], name) for name in reached[:2]))
    caught = [handler for name in checks for handler in _catchers(module, name)]
    if not caught:
        return unknown(f"{module.path} has version checks that nothing calls at import")
    if not all(any(True for _ in calls(handler, "warning", "warn")) for handler in caught):
        return unknown(f"{module.path} catches a version mismatch without a warning")
    return Fact(value="warn", evidence=tuple(evidence(module, handler, "except") for handler in caught[:2]))


def _no_environment(source: Source) -> Fact:
    problem = source.problems.get(ENVIRONMENT_MODULE)
    return unknown(f"{ENVIRONMENT_MODULE} cannot be parsed: {problem}" if problem else f"no {ENVIRONMENT_MODULE}")


def _headers(text: bytes) -> Message:
    return BytesHeaderParser().parsebytes(text)


def _version_raises(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Raise]:
    """Every `raise` in the function whose message says that versions do not match."""
    for node in ast.walk(function):
        if isinstance(node, ast.Raise) and node.exc is not None and "does not match" in ast.unparse(node.exc):
            yield node


def _reached_at_import(module: Module) -> set[str]:
    """The functions that importing the module calls, directly or through others, without a `try` that stops errors."""
    bodies = {function.name: function for function in functions(module.tree)}
    waiting = [called(call) for call in _unguarded_calls(_top_level(module))]
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in bodies and name not in reached:
            reached.add(name)
            waiting += [called(call) for call in _unguarded_calls(bodies[name])]
    return reached


def _top_level(module: Module) -> ast.Module:
    body = [node for node in module.tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return ast.Module(body=body, type_ignores=[])


def _unguarded_calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Every call whose RuntimeError would leave the tree."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Try) and any(_catches(handler) for handler in child.handlers):
            rest = [*child.handlers, *child.orelse, *child.finalbody]
            for node in rest:
                yield from _unguarded_calls(node)
            continue
        if isinstance(child, ast.Call):
            yield child
        yield from _unguarded_calls(child)


def _catchers(module: Module, name: str) -> list[ast.ExceptHandler]:
    return [
        handler
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Try) and any(True for item in node.body for _ in calls(item, name))
        for handler in node.handlers
        if _catches(handler)
    ]


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(ast.unparse(kind) in CATCHES_ALL for kind in kinds)
