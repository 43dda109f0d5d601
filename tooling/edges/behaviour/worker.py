"""Observes the real AutoTuner of the installed FlashInfer on CPU tensors; started as a script, prints one JSON object.

Imports nothing of this project: it runs in an environment that holds torch, FlashInfer and little else. Only the timing
of one tactic is replaced, since no GPU is there: each runner has a tactic that is "fastest".
"""

from __future__ import annotations

import copy
import inspect
import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

OPERATION = "probe_operation"
SKIPPED = "probe_skipped"
EXTRAS = {"one": ("layout_8x4",), "other": ("layout_128x4",)}
FASTEST = {"one": 1, "other": 2}
"""Two runners of one class, at one shape, with the same hash-free identity but for their extras."""
FOREIGN = "a GPU of another machine"


def main(step: str, folder: Path) -> dict[str, Any]:
    """One process's observations: `tune` writes the files that `load` reads; `mismatch` imports beside a stranger."""
    return {"tune": tune, "load": load, "mismatch": mismatch}[step](folder)


def tune(folder: Path) -> dict[str, Any]:
    """Tunes both runners, saves, skips, and saves onto files of other environments."""
    tuning = Tuning()
    seen: dict[str, Any] = {
        "parameters": list(inspect.signature(tuning.module.autotune).parameters),
        "layout": "package" if hasattr(tuning.module, "__path__") else "module",
        "process_group": hasattr(tuning.module, "set_autotune_process_group"),
        "managed_store": _has_managed_store(),
        "tuned": {name: tuning.tune(name) for name in EXTRAS},
        "config_files": hasattr(tuning.tuner, "save_configs") and hasattr(tuning.tuner, "load_configs"),
    }
    seen["skip"] = tuning.skip()
    if not seen["config_files"]:
        return seen
    path = folder / "saved.json"
    tuning.tuner.save_configs(str(path))
    saved = json.loads(path.read_text())
    entries = {key: value for key, value in saved.items() if not key.startswith("_")}
    seen["entries"] = len(entries)
    seen["in_memory"] = len(tuning.tuner.profiling_cache)
    seen["metadata_fields"] = sorted(saved.get("_metadata", {}))
    for name, value in (("foreign", FOREIGN), ("unknown", "unknown-to-all")):
        seen[f"{name}_save"] = _save_onto(tuning, folder / f"{name}_save.json", saved, value)
    return seen


def load(folder: Path) -> dict[str, Any]:
    """Loads what another process saved and looks both runners up; then files whose metadata is not this machine's."""
    tuning = Tuning()
    saved = json.loads((folder / "saved.json").read_text())
    seen: dict[str, Any] = {"loaded": tuning.tuner.load_configs(str(folder / "saved.json"))}
    seen["found"] = {name: tuning.look_up(name) for name in EXTRAS}
    seen["metadata"] = {
        name: _load_variant(tuning, folder / f"variant_{name}.json", text) for name, text in _variants(saved).items()
    }
    return seen


def mismatch(folder: Path) -> dict[str, Any]:
    """Imports FlashInfer beside a flashinfer_cubin that says it is another release."""
    package = folder / "stranger" / "flashinfer_cubin"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "0.0.1"\n\n\ndef get_cubin_dir():\n    return "."\n')
    sys.path.insert(0, str(package.parent))
    try:
        import_module("flashinfer.jit.env")
    except RuntimeError as error:
        return {"mismatch": "raise", "message": str(error)[:300]}
    return {"mismatch": "no-raise"}


class Tuning:
    """The real tuner with a timer that needs no GPU."""

    def __init__(self) -> None:
        self.module = module = import_module("flashinfer.autotuner")
        self.torch = torch = import_module("torch")
        self.tuner = module.AutoTuner.get()
        self.profiled = 0
        self.runners = {name: _runner_class(module)(EXTRAS[name], FASTEST[name]) for name in EXTRAS}
        signature = inspect.signature(module.AutoTuner._profile_single_kernel)  # noqa: SLF001

        def timed(*args: Any, **kwargs: Any) -> float:
            given = signature.bind(*args, **kwargs).arguments
            self.profiled += 1
            return 1.0 if given["tactic"] == given["runner"].fastest else 2.0

        module.AutoTuner._profile_single_kernel = timed  # noqa: SLF001
        if not torch.cuda.is_available():
            torch.cuda.is_current_stream_capturing = lambda: False

    def tune(self, name: str) -> int:
        with self.module.autotune(True):
            return self.look_up(name)

    def look_up(self, name: str, operation: str = OPERATION) -> int:
        """The tactic that the tuner gives the runner."""
        inputs = [self.torch.zeros(4, 4)]
        _, tactic = self.tuner.choose_one(operation, [self.runners[name]], self.module.TuningConfig(), inputs)
        return tactic if isinstance(tactic, int) else -2

    def skip(self) -> dict[str, Any]:
        before = self.profiled
        try:
            with self.module.autotune(True, skip_ops={SKIPPED}):
                tactic = self.look_up("one", SKIPPED)
        except TypeError as error:
            return {"accepted": False, "message": str(error)}
        return {"accepted": True, "tactic": tactic, "profiled": self.profiled - before}


def _runner_class(module: Any) -> Any:
    class ProbeRunner(module.TunableRunner):  # type: ignore[misc]  # the base is known only at run time
        def __init__(self, extras: tuple[str, ...], fastest: int) -> None:
            self.extras, self.fastest = extras, fastest

        def get_valid_tactics(self, _inputs: Any, _profile: Any) -> list[int]:
            return [0, 1, 2]

        def get_cache_key_extras(self, _inputs: Any) -> tuple[str, ...]:
            return self.extras

        def forward(self, inputs: Any, tactic: int = -1, do_preparation: bool = False, **_rest: Any) -> Any:  # noqa: ARG002
            return inputs[0]

    return ProbeRunner


def _has_managed_store() -> bool:
    try:
        return hasattr(import_module("flashinfer.autotune_cache"), "autotune_v2")
    except ImportError:
        return False


def _save_onto(tuning: Tuning, path: Path, saved: dict[str, Any], gpu: str) -> str:
    """What saving does to a file of another GPU: `kept`, `merged`, `replaced`."""
    fields = {**saved.get("_metadata", {}), "gpu": gpu}
    if gpu != FOREIGN:
        del fields["gpu"]
    strange = {"_metadata": fields, "('theirs', 'Runner', ())": ["Runner", 7]}
    path.write_text(json.dumps(strange))
    tuning.tuner.save_configs(str(path))
    after = json.loads(path.read_text())
    entries = {key for key in after if not key.startswith("_")}
    if after == strange:
        return "kept"
    return "merged" if "('theirs', 'Runner', ())" in entries else "replaced"


def _variants(saved: dict[str, Any]) -> dict[str, str]:
    def with_metadata(change: Callable[[dict[str, Any]], None]) -> str:
        body = copy.deepcopy(saved)
        change(body["_metadata"])
        return json.dumps(body)

    without = {key: value for key, value in saved.items() if key != "_metadata"}
    return {
        "foreign": with_metadata(lambda fields: fields.update(gpu=FOREIGN)),
        "missing_field": with_metadata(lambda fields: fields.pop("gpu")),
        "wildcard": with_metadata(lambda fields: fields.update(gpu="*")),
        "none": json.dumps(without),
        "truncated": json.dumps(saved)[:-20],
    }


def _load_variant(tuning: Tuning, path: Path, text: str) -> str:
    """`loaded`, `refused`, or the name of the error."""
    path.write_text(text)
    tuning.tuner.clear_cache()
    try:
        return "loaded" if tuning.tuner.load_configs(str(path)) else "refused"
    except Exception as error:  # noqa: BLE001  # which one it is, is what is observed
        return type(error).__name__


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))  # noqa: T201
