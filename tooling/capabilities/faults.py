"""Known faults that a release's source shows: what to look for, and what each means for who serves with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tooling.capabilities.disk_key import EXTRAS_METHOD
from tooling.capabilities.facts import Evidence, KnownFault
from tooling.capabilities.operations import TUNING_CALLS
from tooling.capabilities.runners import gemm_modules, runner_classes
from tooling.capabilities.source import Found, Module, Source, called, calls, evidence, functions, methods

REPOSITORY = "https://github.com/flashinfer-ai/flashinfer"
WORKSPACE = "workspace"
RAW_TOKENS = {
    "CublasFp8GemmRunner": ("flashinfer#3436", "fp8_gemm", "cuBLAS fp8", "bmm_fp8(backend='cublas')", "issues/3436"),
    "CublasltBf16GemmRunner": (
        "flashinfer#3868/cublaslt", "bf16_gemm", "cuBLASLt bf16", "mm_bf16(backend='cublaslt')", "pull/3868",
    ),
}  # fmt: skip
"""Runners that store by bucket and ask by token count: the fault, the operation, its entries, a call that tunes them,
and where it was reported."""


def derive_faults(source: Source) -> tuple[KnownFault, ...]:
    """The faults of that release, by id."""
    modules = gemm_modules(source)
    found = [*_raw_tokens(modules), *_workspace_in_key(source, modules)]
    return tuple(sorted(found, key=lambda fault: fault.id))


def _raw_tokens(modules: list[Module]) -> Iterator[KnownFault]:
    """Runners whose part of the key holds the token count itself, which is stored by bucket and asked for as it is."""
    for module in modules:
        for cls in (one for one in runner_classes(module) if one.name in RAW_TOKENS):
            extras = methods(cls).get(EXTRAS_METHOD)
            if extras is None or not (seen := _first_input_shape(extras)):
                continue
            name, operation, entries, call, report = RAW_TOKENS[cls.name]
            yield KnownFault(
                id=name,
                operations=(operation,),
                effect=f"tuned {entries} entries hit only when the token count equals a bucket; else tactic -1",
                how_to_see=f"tune {call}, then look up at a token count between two buckets",
                link=f"{REPOSITORY}/{report}",
                evidence=(evidence(module, seen, f"{cls.name}.{EXTRAS_METHOD}"),),
            )


def _first_input_shape(extras: ast.FunctionDef) -> str:
    """The returned tuple, if it holds the first input's shape or its row count; "" if not."""
    first = next(
        (
            node.targets[0].elts[0]
            for node in ast.walk(extras)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)
        ),
        None,
    )
    results = [
        node.value for node in ast.walk(extras) if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple)
    ]
    if not isinstance(first, ast.Name) or not results:
        return ""
    raw = {f"{first.id}.shape", f"{first.id}.shape[0]", f"{first.id}.shape[-2]"}
    return ast.unparse(results[0]) if any(ast.unparse(item) in raw for item in results[0].elts) else ""


def _workspace_in_key(source: Source, modules: list[Module]) -> Iterator[KnownFault]:
    """bf16_gemm, if its workspace's size is part of the key and one of its backends lets the workspace grow."""
    for module in modules:
        resized = _resizes_workspace(module, "bf16")
        if resized is None:
            continue
        for call, place in (pair for word in TUNING_CALLS for pair in module.index.calls.get(word, ())):
            if place.function is None or not _names_operation(call, place.function, "bf16_gemm"):
                continue
            position = _workspace_position(place.function)
            config = source.find(module, ast.unparse(call.args[2])) if len(call.args) > 2 else None
            if position is None or config is None or _constrained(config, position):
                continue
            seen = f"inputs[{position}] is the workspace, and no constraint takes its size out of the key"
            yield KnownFault(
                id="flashinfer#3868",
                operations=("bf16_gemm",),
                effect="the cuDNN workspace grows while tuning, its size is in the key: later look-ups miss, tactic -1",
                how_to_see="tune mm_bf16(backend='cudnn'), bf16 and fp16 output at one shape; the next pass misses one",
                link=f"{REPOSITORY}/pull/3868",
                evidence=(evidence(config.module, seen, ast.unparse(call.args[2])), resized),
            )


def _names_operation(call: ast.Call, function: ast.FunctionDef, name: str) -> bool:
    given = call.args[0] if call.args else None
    if isinstance(given, ast.Name):
        assigned = [node.value for node in ast.walk(function) if isinstance(node, ast.Assign)]
        return any(isinstance(value, ast.Constant) and value.value == name for value in assigned)
    return isinstance(given, ast.Constant) and given.value == name


def _resizes_workspace(module: Module, kind: str) -> Evidence | None:
    for function in (item for item in functions(module.tree) if kind in item.name):
        for call in calls(function, "resize_"):
            if WORKSPACE in ast.unparse(call.func):
                return evidence(module, call, function.name)
    return None


def _workspace_position(function: ast.FunctionDef) -> int | None:
    """Where the workspace stands among the inputs that the tuner gets."""
    for node in ast.walk(function):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.List)
            and ast.unparse(node.targets[0]) == "inputs"
        ):
            names = [ast.unparse(item) for item in node.value.elts]
            return next((index for index, name in enumerate(names) if WORKSPACE in name), None)
    return None


def _constrained(config: Found, position: int) -> bool:
    """Whether a ConstraintSpec of the configuration takes that input out of the key."""
    value = getattr(config.node, "value", None)
    specs = (
        [node for node in ast.walk(value) if isinstance(node, ast.Call) and called(node) == "ConstraintSpec"]
        if value
        else []
    )
    given = [spec.args[0] if spec.args else spec.keywords[0].value for spec in specs if spec.args or spec.keywords]
    return any(isinstance(item, ast.Constant) and item.value == position for item in given)
