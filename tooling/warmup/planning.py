"""What one rank would do before it has met the others: the gating rule's answer in this world, as far as feasible."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tooling.capabilities.gating import DEEPEP_BACKENDS, Gating, Strategy, World, gate
from tooling.capabilities.table import Row
from tooling.warmup import runtime
from tooling.warmup.errors import RefusedError, SettingsError
from tooling.warmup.feasible import instead, make_feasible
from tooling.warmup.identity import Identity
from tooling.warmup.runner import Runner, RunnerFacts, describe_runner
from tooling.warmup.runtime import Installed
from tooling.warmup.settings import Settings
from tooling.warmup.skipping import Skipping, flashinfer_autotune_skip_ops

ROWLESS_RULE, DEEPEP_RULE = 3, 4
"""Numbers in the gating rule: without a row that can be trusted, and DeepEP's."""


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
    if strict and settings.problems:
        raise SettingsError("; ".join(settings.problems), hint="mend the environment variable")
    row, rowless = _row_of(installed, row)
    world = world or _world_of(installed, facts, settings, ranks)
    _refuse(installed, world, row, strict=strict)
    ruled = _ruled(installed, world, row, strict=strict)
    wished = _forced(ruled, forced)
    gating, doubt = make_feasible(wished, installed, facts, settings, ranks, strict=strict)
    words = (*settings.problems, rowless, installed.detail, gating.warning, _unknown_alone(world), doubt)
    return Plan(
        gating=gating,
        settings=settings,
        installed=installed,
        facts=facts,
        skipping=flashinfer_autotune_skip_ops(facts.modules, settings.skip_ops),
        operations=_operations(row),
        warnings=tuple(word for word in (*words, _untuned(gating)) if word),
    )


def careful(plan: Plan, doubts: tuple[str, ...]) -> Plan:
    """The plan where some rank is not sure of its backend: every rank tunes, as with DeepEP."""
    gating = plan.gating
    if gating.strategy is not Strategy.ALL_RANKS:
        why = "a rank does not know its all2all backend"
        gating = replace(instead(gating, Strategy.ALL_RANKS, why), rule=DEEPEP_RULE)
    return replace(plan, gating=gating, warnings=tuple(dict.fromkeys((*plan.warnings, *doubts))))


def _row_of(installed: Installed, row: Row | None) -> tuple[Row | None, str]:
    """The given row, or the shipped table's for the installed release, and why there is none."""
    if row is not None or not installed.release:
        return row, ""
    return runtime.load_row_or_problem(installed.release)


def _world_of(installed: Installed, facts: RunnerFacts, settings: Settings, ranks: int) -> World:
    return World(
        ranks=ranks,
        backend=facts.all2all_backend,
        gpu=installed.gpu,
        installed=installed.usable,
        cache_off=settings.cache_off,
    )


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


def _ruled(installed: Installed, world: World, row: Row | None, *, strict: bool) -> Gating:
    """The gating rule's answer. The row of a release whose packages differ is not trusted."""
    trusted = None if installed.problem else row
    gating = gate(
        trusted.facts if trusted else None,
        world,
        deepep_synchronized=bool(trusted and trusted.deepep_synchronized),
        strict=strict,
    )
    if row is not trusted and gating.rule == ROWLESS_RULE:
        return replace(gating, why="the packages differ, so the release's row is not trusted", warning="")
    return gating


def _forced(gating: Gating, forced: Strategy | None) -> Gating:
    """The gating with another strategy, where one is asked for and anything can be tuned at all."""
    if forced is None or gating.strategy is Strategy.NONE:
        return gating
    told = f"forced to {forced}, as a diagnosis"
    return replace(instead(gating, forced, told), warning=told)


def _unknown_alone(world: World) -> str:
    """The warning where the one rank's backend looks like DeepEP's and is not known; it decides nothing there."""
    name = (world.backend or "").strip().lower()
    if world.ranks > 1 or not name.startswith("deepep") or name in DEEPEP_BACKENDS:
        return ""
    return f"{world.backend} is not known; with one rank it makes no difference"


def _untuned(gating: Gating) -> str:
    return f"nothing is tuned: {gating.why}" if gating.strategy is Strategy.NONE else ""


def _operations(row: Row | None) -> frozenset[str] | None:
    fact = row.facts.get("operations") if row else None
    return frozenset(fact.value) if fact and isinstance(fact.value, tuple) else None
