"""FlashInfer's kernel warm-up for engines: `flashinfer_autotune(runner)`. Needs only packaging, torch, flashinfer."""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, without importing it: this module costs an engine's start next to nothing
if TYPE_CHECKING:
    from tooling.warmup.autotune import count_lookups, flashinfer_autotune, resolve_flashinfer_autotune_file
    from tooling.warmup.carrying import export_cache, import_cache
    from tooling.warmup.record import RankReport, WarmupRecord
    from tooling.warmup.skipping import flashinfer_autotune_skip_ops

HOMES = {
    "RankReport": "record",
    "WarmupRecord": "record",
    "count_lookups": "autotune",
    "export_cache": "carrying",
    "flashinfer_autotune": "autotune",
    "flashinfer_autotune_skip_ops": "skipping",
    "import_cache": "carrying",
    "resolve_flashinfer_autotune_file": "autotune",
}
"""Public names and their modules, imported when first used: an engine that imports this package pays nothing."""

__all__ = [
    "RankReport",
    "WarmupRecord",
    "count_lookups",
    "export_cache",
    "flashinfer_autotune",
    "flashinfer_autotune_skip_ops",
    "import_cache",
    "resolve_flashinfer_autotune_file",
]


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415  # as above

    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
    return value
