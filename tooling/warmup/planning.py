"""What one rank would do before it has met the others: the gating rule's answer, and what this machine cannot do."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tooling.capabilities.gating import DEEPEP_BACKENDS, Gating, Strategy, World, gate
from tooling.capabilities.table import Row
from tooling.warmup import runtime
from tooling.warmup.errors import RefusedError, SettingsError
from tooling.warmup.identity import Identity
from tooling.warmup.runner import Runner, RunnerFacts, describe_runner
from tooling.warmup.runtime import Installed
from tooling.warmup.settings import Settings
from tooling.warmup.skipping import Skipping, flashinfer_autotune_skip_ops
from tooling.warmup.strategies import needed_api
from tooling.warmup.tuner import missing_api

DEEPEP_RULE = 4
"""The number of DeepEP's row in the gating rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What this rank would do before it has met the others."""

    gating: Gating
    settings: Settings
    installed: Installed
    facts: RunnerFacts
    skipping: Skipping
    operations: frozenset[str] | None
    warnings: tuple[str, ...]

    @property
    def doubt(self) -> str:
        """The backend that this rank does not know, in words, or ""."""
        unknown = self.gating.rule == DEEPEP_RULE and self.gating.strategy is Strategy.ALL_RANKS
        return self.gating.warning if unknown else ""

    @property
    def identity(self) -> Identity:
        return Identity(
            version=self.installed.release,
            arch=self.installed.arch,
            shapes=self.facts.shapes,
            dtype=self.facts.dtype,
            parallel=self.facts.parallel,
            quantization=self.facts.quantization,
            max_tokens=self.facts.max_tokens,
            buckets=self.facts.buckets,
            metadata=self.installed.metadata,
        )


def make_plan(
    runner: Runner,
    ranks: int,
    settings: Settings,
    *,
    row: Row | None,
    strict: bool,
    world: World | None,
    forced: Strategy | None = None,
) -> Plan:
    """What this rank would do. Raises under `strict` what is otherwise a warning."""
    installed, facts = runtime.load_installed(), describe_runner(runner)
    warnings = list(settings.problems)
    if warnings and strict:
        raise SettingsError("; ".join(warnings), hint="mend the environment variable")
    if row is None and installed.release:
        row, problem = runtime.load_row_or_problem(installed.release)
        warnings += [problem] if problem else []
    world = world or World(
        ranks=ranks,
        backend=facts.all2all_backend,
        gpu=installed.gpu,
        installed=installed.usable,
        cache_off=settings.cache_off,
    )
    _refuse(installed, world, row, strict=strict)
    trusted = row if row and not installed.problem else None
    gating = gate(
        trusted.facts if trusted else None,
        world,
        deepep_synchronized=bool(trusted and trusted.deepep_synchronized),
        strict=strict,
    )
    if row is not None and trusted is None and gating.rule == 3:
        gating = replace(gating, why="the packages differ, so the release's row is not trusted", warning="")
    if forced is not None and gating.strategy is not Strategy.NONE:
        persistent = forced not in {Strategy.NONE, Strategy.ALL_RANKS}
        gating = replace(gating, strategy=forced, persistent=persistent, warning=f"forced to {forced}, as a diagnosis")
    gating, doubt = _doubted(gating, installed, settings, strict=strict)
    if not doubt and gating.strategy is Strategy.SYNCHRONIZED and facts.parallel.get("pipeline_parallel_size", 1) > 1:
        gating = replace(gating, strategy=Strategy.LEADER_BROADCAST)
        doubt = (
            "pipeline stages hold different layers, whose timings cannot be averaged: the leader's file is handed round"
        )
    if not doubt and gating.persistent and _meets_too_few(facts, ranks):
        gating = replace(gating, strategy=Strategy.ALL_RANKS, persistent=False)
        doubt = "elastic expert parallelism: replicas that do not meet here must run the same passes; every rank tunes"
    untuned = f"nothing is tuned: {gating.why}" if gating.strategy is Strategy.NONE else ""
    warnings += [word for word in (installed.detail, gating.warning, _unknown_alone(world), doubt, untuned) if word]
    return Plan(
        gating=gating,
        settings=settings,
        installed=installed,
        facts=facts,
        skipping=flashinfer_autotune_skip_ops(facts.modules, settings.skip_ops),
        operations=_operations(row),
        warnings=tuple(warnings),
    )


def careful(plan: Plan, doubts: tuple[str, ...]) -> Plan:
    """The plan where some rank is not sure of its backend: every rank tunes, as with DeepEP."""
    gating = plan.gating
    if gating.strategy is not Strategy.ALL_RANKS:
        why = "a rank does not know its all2all backend"
        gating = replace(gating, strategy=Strategy.ALL_RANKS, persistent=False, rule=DEEPEP_RULE, why=why)
    return replace(plan, gating=gating, warnings=tuple(dict.fromkeys((*plan.warnings, *doubts))))


def _unknown_alone(world: World) -> str:
    """The warning where the one rank's backend looks like DeepEP's and is not known; it decides nothing there."""
    name = (world.backend or "").strip().lower()
    if world.ranks > 1 or not name.startswith("deepep") or name in DEEPEP_BACKENDS:
        return ""
    return f"{world.backend} is not known; with one rank it makes no difference"


def _refuse(installed: Installed, world: World, row: Row | None, *, strict: bool) -> None:
    """Nothing, or the error that `strict` asked for."""
    if not strict:
        return
    if installed.problem or not world.installed:
        detail = installed.detail or "FlashInfer is not installed"
        raise RefusedError(
            detail, hint="install flashinfer-python and its companions at one version", reason=installed.problem
        )
    if not world.gpu:
        raise RefusedError("there is no GPU", hint="run it where torch.cuda.is_available()", reason=runtime.NO_GPU)
    if row is None:
        release = installed.release
        raise RefusedError(
            f"the capabilities table has no row for {release}",
            hint=f"nox -s probe -- {release} --add",
            reason=runtime.NO_ROW,
        )


def _doubted(gating: Gating, installed: Installed, settings: Settings, *, strict: bool) -> tuple[Gating, str]:
    """The gating, weakened where this machine cannot carry it out, and why."""
    if gating.strategy is Strategy.NONE:
        return gating, ""
    lacks = missing_api(needed_api(gating.strategy))
    if lacks and strict:
        detail = f"FlashInfer {installed.release} lacks {', '.join(lacks)}, which its row says it has"
        raise RefusedError(detail, hint="derive the row anew: nox -s probe", reason="WRONG_ROW")
    if "autotune" in lacks:
        return replace(
            gating, strategy=Strategy.NONE, persistent=False
        ), f"the installed tuner lacks {', '.join(lacks)}"
    if lacks:
        weaker = replace(gating, strategy=Strategy.ALL_RANKS, persistent=False)
        return weaker, f"the installed tuner lacks {', '.join(lacks)}; every rank tunes"
    if gating.persistent and settings.cache_root is None:
        return replace(gating, strategy=Strategy.ALL_RANKS, persistent=False), "there is nowhere to keep a cache"
    return gating, ""


def _meets_too_few(facts: RunnerFacts, ranks: int) -> bool:
    """Whether ranks take part in the model's passes that do not take part in this warm-up's meetings.

    A cache that only some of them find would leave the others alone in a pass.
    """
    sizes = ("tensor_parallel_size", "pipeline_parallel_size", "prefill_context_parallel_size", "data_parallel_size")
    return facts.elastic and math.prod(facts.parallel.get(name, 1) for name in sizes) > ranks


def _operations(row: Row | None) -> frozenset[str] | None:
    fact = row.facts.get("operations") if row else None
    return frozenset(fact.value) if fact and isinstance(fact.value, tuple) else None
