"""Facts about the runners that are tuned: what their own part of the key carries."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tooling.capabilities.disk_key import EXTRAS_METHOD
from tooling.capabilities.facts import Evidence, Fact, unknown
from tooling.capabilities.source import Module, Source, evidence, identifiers, methods, parameters

GEMM_MODULES = re.compile(r"flashinfer/(gemm\.py|gemm/[^/]+\.py|trtllm_low_latency_gemm\.py)")
"""Where the runners stand that take a scale-factor layout."""
SF_LAYOUT = re.compile(r"sf_layout|scale_factor_layout|sfLayout")
MARK = re.compile(rb"sf_layout|scale_factor_layout|sfLayout|CublasFp8GemmRunner|CublasltBf16GemmRunner|bf16_gemm")
"""What a GEMM module must mention to be worth parsing: a layout, or an operation or runner with a known fault."""
RANK = re.compile(r"^_*((tp|ep|dp|pp|cp|moe|global|local|process|world)_?)*_?rank$|^_*local_expert_offset$")
"""Names that differ from process to process. `kv_lora_rank` and its like are shapes, not processes."""


def derive_sf_layout(source: Source) -> Fact:
    """Whether every runner that takes a scale-factor layout says so in its part of the key."""
    carried: list[Evidence] = []
    missing: list[Evidence] = []
    looked = gemm_modules(source)
    for module in looked:
        for cls in runner_classes(module):
            maker = methods(cls).get("__init__")
            if maker is None or not any(SF_LAYOUT.search(name) for name in parameters(maker)):
                continue
            extras = methods(cls).get(EXTRAS_METHOD)
            if extras and any(SF_LAYOUT.search(name) for name in identifiers(extras)):
                carried.append(evidence(module, _returned(extras), f"{cls.name}.{EXTRAS_METHOD}"))
            else:
                seen = _returned(extras) if extras else f"takes a layout, but has no {EXTRAS_METHOD}"
                missing.append(evidence(module, seen, cls.name))
    if not looked:
        return unknown("no GEMM module was found")
    if missing or carried:
        return Fact(value=not missing, evidence=tuple(missing or carried))
    return Fact(value=False, evidence=(evidence(looked[0], "no runner takes a scale-factor layout"),))


def gemm_modules(source: Source) -> list[Module]:
    """The GEMM modules that matter here, or the first of all if none does."""
    paths = sorted(filter(GEMM_MODULES.fullmatch, source.names))
    marked = [path for path in paths if MARK.search(source.text(path))]
    return [module for module in map(source.module, marked or paths[:1]) if module]


def derive_rank(modules: list[Module]) -> Fact:
    """Whether any runner's part of the key differs from process to process."""
    found = [
        evidence(module, ", ".join(sorted(names)), f"{cls.name}.{EXTRAS_METHOD}")
        for module in modules
        for cls in runner_classes(module)
        if (extras := methods(cls).get(EXTRAS_METHOD))
        and (names := {name for name in _reached(cls, extras) if RANK.match(name)})
    ]
    proof = tuple(found) or tuple(evidence(module, "no runner's extras name a rank") for module in modules[:1])
    return Fact(value=bool(found), evidence=proof)


def runner_classes(module: Module) -> Iterator[ast.ClassDef]:
    """Every class that derives from a runner, by the names of its bases, or that has extras of its own."""
    for cls in module.index.classes:
        if cls.name != "TunableRunner" and (
            EXTRAS_METHOD in methods(cls) or any("Runner" in ast.unparse(base) for base in cls.bases)
        ):
            yield cls


def _reached(cls: ast.ClassDef, extras: ast.FunctionDef) -> set[str]:
    """Names in the method and in the methods of the same class that it calls."""
    names, known, waiting = set[str](), methods(cls), [extras.name]
    done: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in done or name not in known:
            continue
        done.add(name)
        found = identifiers(known[name])
        names |= found
        waiting += sorted(found & set(known))
    return names


def _returned(function: ast.FunctionDef) -> str:
    results = [ast.unparse(node) for node in ast.walk(function) if isinstance(node, ast.Return)]
    return "; ".join(results) or "returns nothing"
