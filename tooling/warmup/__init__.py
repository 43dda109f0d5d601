"""FlashInfer's kernel warm-up for engines: `flashinfer_autotune(runner)`. Needs only packaging, torch, flashinfer."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tooling.warmup.autotune import count_lookups, flashinfer_autotune, resolve_flashinfer_autotune_file
    from tooling.warmup.record import RankReport, WarmupRecord
    from tooling.warmup.skipping import flashinfer_autotune_skip_ops

HOMES = {
    "RankReport": "record",
    "WarmupRecord": "record",
    "count_lookups": "autotune",
    "flashinfer_autotune": "autotune",
    "flashinfer_autotune_skip_ops": "skipping",
    "resolve_flashinfer_autotune_file": "autotune",
}
"""Public names and their modules, imported when first used: an engine that imports this package pays nothing."""

__all__ = [
    "RankReport",
    "WarmupRecord",
    "count_lookups",
    "flashinfer_autotune",
    "flashinfer_autotune_skip_ops",
    "resolve_flashinfer_autotune_file",
]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
