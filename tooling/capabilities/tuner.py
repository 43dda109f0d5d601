"""Facts that the tuner's own modules tell: what `autotune` takes, what a cache file holds, which worlds it knows."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tooling.capabilities.disk_key import derive_disk_key
from tooling.capabilities.facts import Evidence, Fact, unknown
from tooling.capabilities.source import (
    PACKAGE,
    Found,
    Module,
    Source,
    calls,
    evidence,
    functions,
    identifiers,
    methods,
    parameters,
)

TUNER_MODULE = f"{PACKAGE}.autotuner"
MANAGED_MODULES = (TUNER_MODULE, f"{PACKAGE}.autotune_cache")
MANAGED_NAME = "autotune_v2"
"""The context manager of FlashInfer's own store of tuned entries."""
GROUP_SETTER = "set_autotune_process_group"
METADATA_COLLECTOR = "_collect_metadata"


def derive_tuner(source: Source) -> dict[str, Fact]:
    """The tuner's facts by name, without those of its runners."""
    module = source.named(TUNER_MODULE)
    if module is None:
        return _without_tuner(source)
    tuner, autotune = source.find(module, "AutoTuner"), source.find(module, "autotune")
    kind = Fact(value="package" if module.is_package else "module", evidence=(evidence(module, "the tuner's module"),))
    if tuner is None or not isinstance(tuner.node, ast.ClassDef) or not _tunes(tuner.node):
        return _not_understood(f"{module.path} holds no class AutoTuner with choose_one, which every known tuner has")
    if autotune is None or not isinstance(autotune.node, ast.FunctionDef):
        return _not_understood(f"{module.path} holds no function autotune, which every known tuner has")
    return {
        "autotuner": kind,
        "autotune_parameters": Fact(
            value=parameters(autotune.node),
            evidence=(autotune.evidence(f"def autotune({ast.unparse(autotune.node.args)})"),),
        ),
        "config_files": _config_files(tuner),
        "disk_key_has_runner_extras": derive_disk_key(source, tuner),
        "metadata_fields": _metadata_fields(source, tuner),
        "foreign_save": _foreign_save(tuner),
        "process_group_timing": _process_group_timing(source, module),
        "managed_store": _managed_store(source),
        "tuner_environment": _environment(source, tuner, autotune),
    }


def _without_tuner(source: Source) -> dict[str, Fact]:
    """The facts of a release that cannot tune, or "could not tell" if something looks like a tuner elsewhere."""
    strangers = sorted(name for name in source.names if name.startswith(f"{PACKAGE}/") and _looks_like_tuner(name))
    if strangers:
        return _not_understood(f"no {PACKAGE}/autotuner, but {strangers[0]} looks like one")
    start = source.named(PACKAGE)
    if start is None:
        return _not_understood(f"no {PACKAGE}/__init__.py")
    if any("tune" in alias.name.lower() for node in _imports(start) for alias in node.names):
        return _not_understood(f"{start.path} imports a tuner from elsewhere")
    proof = (evidence(start, "no autotuner: neither a module of that name nor an import of one"),)
    values: dict[str, bool | str | tuple[str, ...]] = {
        "autotuner": "none",
        "autotune_parameters": (),
        "config_files": False,
        "disk_key_has_runner_extras": False,
        "metadata_fields": (),
        "foreign_save": "none",
        "process_group_timing": False,
        "managed_store": False,
        "tuner_environment": (),
    }
    return {name: Fact(value=value, evidence=proof) for name, value in values.items()}


def _not_understood(reason: str) -> dict[str, Fact]:
    names = (
        "autotuner",
        "autotune_parameters",
        "config_files",
        "disk_key_has_runner_extras",
        "metadata_fields",
        "foreign_save",
        "process_group_timing",
        "managed_store",
        "tuner_environment",
    )
    return {name: unknown(reason) for name in names}


def _looks_like_tuner(name: str) -> bool:
    file = name.rsplit("/", 1)[-1]
    return name.endswith(".py") and ("autotun" in name or file in {"tuner.py", "tuning.py"}) and "/data/" not in name


def _imports(module: Module) -> Iterator[ast.ImportFrom]:
    return (node for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom))


def _tunes(cls: ast.ClassDef) -> bool:
    return {"choose_one", "search_cache"} <= set(methods(cls))


def _config_files(tuner: Found) -> Fact:
    assert isinstance(tuner.node, ast.ClassDef)
    present = {"save_configs", "load_configs"} & set(methods(tuner.node))
    seen = f"has {' and '.join(sorted(present))}" if present else "has neither save_configs nor load_configs"
    if len(present) == 1:
        return unknown(f"{tuner.module.path}: AutoTuner {seen}, but not the other")
    return Fact(value=bool(present), evidence=(tuner.evidence(seen),))


def _metadata_fields(source: Source, tuner: Found) -> Fact:
    """The fields by which a cache file counts as another environment's."""
    assert isinstance(tuner.node, ast.ClassDef)
    if "save_configs" not in methods(tuner.node):
        return Fact(value=(), evidence=(tuner.evidence("no save_configs: no file, no metadata"),))
    found = source.find(tuner.module, METADATA_COLLECTOR)
    if found is None or not isinstance(found.node, ast.FunctionDef):
        return unknown(f"{tuner.module.path} has no {METADATA_COLLECTOR}")
    fields: list[str] = []
    for node in ast.walk(found.node):
        targets = node.targets if isinstance(node, ast.Assign) else []
        keys = [target.slice for target in targets if isinstance(target, ast.Subscript)]
        keys += [key for key in node.keys if key] if isinstance(node, ast.Dict) else []
        fields += [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    if not fields:
        return unknown(f"{found.module.path}:{METADATA_COLLECTOR} fills no field that can be read")
    return Fact(
        value=tuple(sorted(set(fields))), evidence=(found.evidence(f"fills {', '.join(dict.fromkeys(fields))}"),)
    )


def _foreign_save(tuner: Found) -> Fact:
    """What saving does onto a file whose metadata is another environment's."""
    assert isinstance(tuner.node, ast.ClassDef)
    save = methods(tuner.node).get("save_configs")
    if save is None:
        return Fact(value="none", evidence=(tuner.evidence("no save_configs"),))
    compared = [call for call in ast.walk(save) if isinstance(call, ast.Call) and "mismatch" in ast.unparse(call.func)]
    gives_up = next((node for node in ast.walk(save) if isinstance(node, ast.If) and _returns(node)), None)
    merges = next(calls(save, "update"), None)
    if compared and gives_up is not None:
        seen = (f"compares: {ast.unparse(compared[0])}", f"if {ast.unparse(gives_up.test)}: returns without writing")
        return Fact(
            value="skip_or_replace", evidence=tuple(evidence(tuner.module, item, "save_configs") for item in seen)
        )
    if not compared and gives_up is None and merges is not None:
        seen_merge = f"{ast.unparse(merges)} without a look at the file's metadata"
        return Fact(value="merge", evidence=(evidence(tuner.module, seen_merge, "save_configs"),))
    return unknown(f"{tuner.module.path}:save_configs treats a file of another environment in a way not known here")


def _returns(node: ast.If) -> bool:
    return any(isinstance(item, ast.Return) and item.value is None for item in node.body)


def _process_group_timing(source: Source, module: Module) -> Fact:
    found = source.find(module, GROUP_SETTER)
    if found is None:
        return Fact(value=False, evidence=(evidence(module, f"has no {GROUP_SETTER}"),))
    reduces = next((call for call in calls(found.module.tree, "all_reduce") if "SUM" in ast.unparse(call)), None)
    if reduces is None:
        return unknown(f"{found.module.path} has {GROUP_SETTER} but no all_reduce that sums timings")
    return Fact(
        value=True,
        evidence=(
            found.evidence(f"def {GROUP_SETTER}"),
            evidence(found.module, reduces, _enclosing(found.module, reduces)),
        ),
    )


def _managed_store(source: Source) -> Fact:
    for name in MANAGED_MODULES:
        module = source.named(name)
        found = module and source.find(module, MANAGED_NAME)
        if found and isinstance(found.node, ast.FunctionDef):
            signature = ast.unparse(found.node.args)
            return Fact(value=True, evidence=(found.evidence(f"def {MANAGED_NAME}({signature})"),))
    module = source.named(TUNER_MODULE)
    proof = (evidence(module, f"neither it nor {MANAGED_MODULES[1]} has {MANAGED_NAME}"),) if module else ()
    return Fact(value=False, evidence=proof)


def _environment(source: Source, *found: Found) -> Fact:
    """The environment variables that the tuner's modules read."""
    paths = sorted({item.module.path for item in found} | {path for path in source.names if _is_tuner_part(path)})
    seen: dict[str, Evidence] = {}
    for module in filter(None, (source.module(path) for path in paths)):
        for call in calls(module.tree, "get", "getenv"):
            if call.args and isinstance(call.args[0], ast.Constant) and {"environ", "getenv"} & identifiers(call.func):
                where = _enclosing(module, call)
                seen.setdefault(str(call.args[0].value), evidence(module, call, where))
    return Fact(
        value=tuple(sorted(seen)),
        evidence=tuple(seen[name] for name in sorted(seen)) or (found[0].evidence("reads no environment variable"),),
    )


def _is_tuner_part(path: str) -> bool:
    return path.endswith(".py") and path.startswith((f"{PACKAGE}/autotuner/", f"{PACKAGE}/autotune_cache"))


def _enclosing(module: Module, wanted: ast.AST) -> str:
    """The name of the innermost function around the node, or ""."""
    name = ""
    for function in functions(module.tree):
        if any(node is wanted for node in ast.walk(function)):
            name = function.name
    return name
