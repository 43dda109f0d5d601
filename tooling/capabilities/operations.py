"""Every operation that a release can tune, by the name that `skip_ops` takes. Texts are followed in `names`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from tooling.capabilities.facts import Evidence, Fact, unknown
from tooling.capabilities.names import UNKNOWN, Names
from tooling.capabilities.runners import derive_rank
from tooling.capabilities.source import PACKAGE, Module, Source, evidence

TUNING_CALLS = ("choose_one", "rank_tactics", "choose_with_protocol")
"""The tuner's methods that tune an operation; its name is the first argument, or `custom_op`, or `namespace`."""
NAME_KEYWORDS = {"custom_op", "namespace"}
MARK = re.compile(rb"\b(choose_one|rank_tactics|choose_with_protocol|get_cache_key_extras)\b")
"""What a module must mention to name an operation or a part of a key."""
NEARBY = re.compile(rb"autotun|AutoTuner|TunableRunner")
"""What a module must mention to be searched for callers of those that name an operation."""
TUNER_PART = re.compile(r"flashinfer/autotuner(\.py|/.*)")


def operation_members(names: Iterable[str]) -> list[str]:
    """The members that can name an operation: every module of the package, without the sources it carries along."""
    return sorted(
        name
        for name in names
        if name.startswith(f"{PACKAGE}/") and name.endswith(".py") and not name.startswith(f"{PACKAGE}/data/")
    )


def derive_operations(source: Source, *, has_tuner: bool) -> dict[str, Fact]:
    """The facts that need every module: `operations` and `extras_have_rank`."""
    if not has_tuner:
        start = source.module(f"{PACKAGE}/__init__.py")
        proof = (evidence(start, "no autotuner"),) if start else ()
        return {"operations": Fact(value=(), evidence=proof), "extras_have_rank": Fact(value=False, evidence=proof)}
    paths = []
    for name in operation_members(source.names):
        if NEARBY.search(source.text(name)):
            paths.append(name)
        else:
            source.forget(name)
    modules = [module for path in paths if MARK.search(source.text(path)) and (module := source.module(path))]
    return {"operations": _operations(source, modules, tuple(paths)), "extras_have_rank": derive_rank(modules)}


def _operations(source: Source, modules: list[Module], paths: tuple[str, ...]) -> Fact:
    names = Names(source, paths)
    found: dict[str, Evidence] = {}
    opaque: list[str] = []
    for module in modules:
        if TUNER_PART.fullmatch(module.path):
            continue
        for call, place in (pair for word in TUNING_CALLS for pair in module.index.calls.get(word, ())):
            given = _name_argument(call)
            where = place.function.name if place.function else ""
            texts = names.texts(given, place) if given is not None else {UNKNOWN}
            for text in sorted(texts - {UNKNOWN}):
                found.setdefault(text, evidence(module, ast.unparse(given) if given else "", where))
            if UNKNOWN in texts:
                opaque.append(f"{module.path}:{where}")
    if not found:
        return unknown("no call of the tuner names an operation")
    unparsed = sorted(path for path in source.problems if path.startswith(f"{PACKAGE}/"))
    notes = [f"names an operation that is not followed: {', '.join(sorted(set(opaque)))}"] if opaque else []
    notes += [f"not parsed: {', '.join(unparsed)}"] if unparsed else []
    return Fact(
        value=tuple(sorted(found)), evidence=tuple(found[name] for name in sorted(found)), reason="; ".join(notes)
    )


def _name_argument(call: ast.Call) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg in NAME_KEYWORDS:
            return keyword.value
    return call.args[0] if call.args and not isinstance(call.args[0], ast.Starred) else None
