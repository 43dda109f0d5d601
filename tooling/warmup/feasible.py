"""What this machine and this model can carry out of the gating rule's answer, and what is done instead."""

from __future__ import annotations

import math
from dataclasses import replace

from tooling.capabilities.gating import Gating, Strategy
from tooling.warmup.errors import RefusedError
from tooling.warmup.runner import RunnerFacts
from tooling.warmup.runtime import Installed
from tooling.warmup.settings import Settings
from tooling.warmup.strategies import needed_api
from tooling.warmup.tuner import missing_api

STAGES = "pipeline stages hold different layers, whose timings cannot be averaged: the leader's file is handed round"
ELASTIC = "elastic expert parallelism: replicas that do not meet here must run the same passes; every rank tunes"


def make_feasible(
    gating: Gating, installed: Installed, facts: RunnerFacts, settings: Settings, ranks: int, *, strict: bool
) -> tuple[Gating, str]:
    """The gating, weakened where this machine or this model cannot carry it out, and why: the first reason counts."""
    if gating.strategy is Strategy.NONE:
        return gating, ""
    lacks = _lacking(gating, installed, strict=strict)
    if "autotune" in lacks:
        return instead(gating, Strategy.NONE, f"the installed tuner lacks {', '.join(lacks)}"), ""
    why = f"the installed tuner lacks {', '.join(lacks)}; every rank tunes" if lacks else ""
    if gating.persistent and not why:
        why = _why_not_kept(facts, settings, ranks)
    if why:
        return instead(gating, Strategy.ALL_RANKS, why), why
    if gating.strategy is Strategy.SYNCHRONIZED and facts.parallel.get("pipeline_parallel_size", 1) > 1:
        return instead(gating, Strategy.LEADER_BROADCAST, STAGES), STAGES
    return gating, ""


def instead(gating: Gating, strategy: Strategy, why: str) -> Gating:
    """Another strategy than the rule's, which the record then explains."""
    persistent = strategy not in {Strategy.NONE, Strategy.ALL_RANKS}
    return replace(gating, strategy=strategy, persistent=persistent, why=why)


def _lacking(gating: Gating, installed: Installed, *, strict: bool) -> list[str]:
    """What the installed tuner does not offer of what the strategy needs; under `strict` an error."""
    lacks = missing_api(needed_api(gating.strategy))
    if lacks and strict:
        detail = f"FlashInfer {installed.release} lacks {', '.join(lacks)}, which its row says it has"
        raise RefusedError(detail, hint="derive the row anew: nox -s probe", reason="WRONG_ROW")
    return lacks


def _why_not_kept(facts: RunnerFacts, settings: Settings, ranks: int) -> str:
    """Why no cache is kept although the strategy would, or ""."""
    if settings.cache_root is None:
        return "there is nowhere to keep a cache"
    return ELASTIC if _meets_too_few(facts, ranks) else ""


def _meets_too_few(facts: RunnerFacts, ranks: int) -> bool:
    """Whether ranks take part in the model's passes that do not take part in this warm-up's meetings.

    A cache that only some of them find would leave the others alone in a pass.
    """
    sizes = ("tensor_parallel_size", "pipeline_parallel_size", "prefill_context_parallel_size", "data_parallel_size")
    return facts.elastic and math.prod(facts.parallel.get(name, 1) for name in sizes) > ranks
