"""The warm-up that an engine calls at start: decide, agree, run, count, report. Each part is a module of its own."""

from __future__ import annotations

import logging
import socket
from dataclasses import replace
from pathlib import Path

from tooling.capabilities.gating import Strategy, World
from tooling.capabilities.table import Row
from tooling.warmup import runtime
from tooling.warmup.agreement import Agreement, Claim, agree, check_writers
from tooling.warmup.cache_text import ABSENT_STATE, SET_FIELD, CacheFile, first_difference
from tooling.warmup.counts import Counts
from tooling.warmup.identity import cache_name, combine
from tooling.warmup.planning import Plan, careful, make_plan
from tooling.warmup.ranks import Alone, Listener, Ranks, open_ranks, unheard
from tooling.warmup.record import RankReport, WarmupRecord
from tooling.warmup.runner import Runner
from tooling.warmup.skipping import Skipping, fit
from tooling.warmup.strategies import Outcome, run_strategy
from tooling.warmup.tuner import open_tuner
from tooling.warmup.work import Work

log = logging.getLogger("tooling.warmup")
CHECK_PASSES = 2
"""Passes outside of tuning mode after the warm-up; a known fault shows on the second pass only."""


def flashinfer_autotune(
    runner: Runner,
    *,
    row: Row | None = None,
    strict: bool = False,
    world: World | None = None,
    forced: Strategy | None = None,
    check_passes: int = CHECK_PASSES,
    listener: Listener = unheard,
) -> WarmupRecord:
    """Tunes FlashInfer's kernels for that runner, or takes tuned ones from the cache, and says what it did.

    Every rank calls it. `row` None: the shipped table's row of the installed release. `world` None: looked up here.
    `strict`: what a starting engine is only warned about raises. `forced`: a diagnosis, this strategy whatever the rule
    says. `check_passes`: dummy passes outside of tuning mode afterwards, whose look-ups are counted. `listener` is told
    this rank's steps and the operation at hand.

    Raises:
        WarmupError: ranks differ, one of them hangs or failed, or (`strict`) this world is refused.
    """
    settings = runtime.load_settings()
    ranks = open_ranks(settings.deadlines, listener)
    try:
        plan = make_plan(runner, ranks.size, settings, row=row, strict=strict, world=world, forced=forced)
        record = _warm_up(runner, ranks, plan, check_passes)
        ranks.close()
        return record
    except BaseException as cause:
        ranks.fail(f"{type(cause).__name__}: {cause}")
        raise


def resolve_flashinfer_autotune_file(
    runner: Runner, *, row: Row | None = None, strict: bool = False, world: World | None = None
) -> Path | None:
    """Where this rank's tuned entries lie, or None where the strategy keeps none. Every rank calls it."""
    settings = runtime.load_settings()
    ranks = open_ranks(settings.deadlines)
    try:
        plan = _agree_on_kind(ranks, make_plan(runner, ranks.size, settings, row=row, strict=strict, world=world))
        file = _file(plan, ranks)
        ranks.close()
        return file
    except BaseException as cause:
        ranks.fail(f"{type(cause).__name__}: {cause}")
        raise


def count_lookups(runner: Runner, *, num_tokens: int) -> dict[str, Counts]:
    """What one dummy pass of that size looks up outside of tuning mode, by operation. Every rank calls it."""
    work = Work(runner=runner, ranks=Alone(), tuner=open_tuner(), max_tokens=num_tokens, metadata={}, file=None)
    return work.run_pass("count")


def _file(plan: Plan, ranks: Ranks) -> Path | None:
    """This rank's path, from the identity of all ranks. A meeting."""
    identity = combine(ranks.meet("identity", replace(plan.identity, ranks=ranks.size)))
    name = cache_name(plan.gating.strategy, rank=ranks.rank, ranks=ranks.size)
    root = plan.settings.cache_root
    return root / identity.folder / name if name and root else None


def _warm_up(runner: Runner, ranks: Ranks, plan: Plan, check_passes: int) -> WarmupRecord:
    plan = _agree_on_kind(ranks, plan)
    strategy = plan.gating.strategy
    file = _file(plan, ranks)
    if strategy is Strategy.NONE:
        return _logged(_record(plan, plan.skipping))
    work = Work(
        runner=runner,
        ranks=ranks,
        tuner=open_tuner(),
        max_tokens=plan.facts.max_tokens,
        metadata=plan.installed.metadata,
        file=file,
    )
    if strategy is not Strategy.MANAGED:
        work.look()
    agreement, owners = _agree(work, ranks, plan)
    skipping = _skipping(work, plan, agreement)
    log.info("FlashInfer %s: %s (%s); skips %s", plan.installed.release, strategy, plan.gating.why, skipping.text)
    outcome = run_strategy(strategy, work, agreement, owners)
    ranks.meet("barrier", None)
    for number in range(1, check_passes + 1):
        work.run_pass(f"check {number}")
    return _logged(_finish(work, plan, agreement, skipping, outcome))


def _agree_on_kind(ranks: Ranks, plan: Plan) -> Plan:
    """Strategy and release first: ranks that differ in these would not even look for the same file. A meeting.

    What one rank alone is not sure of, all treat with care.
    """
    claim = Claim(
        rank=ranks.rank,
        strategy=plan.gating.strategy,
        release=plan.installed.release,
        cache=ABSENT_STATE,
        doubt=plan.doubt,
    )
    claims = ranks.meet("kind", claim)
    doubts = tuple(sorted({one.doubt for one in claims if one.doubt}))
    if doubts and plan.gating.strategy is not Strategy.NONE:
        plan = careful(plan, doubts)
        claims = ranks.meet("care", replace(claim, strategy=plan.gating.strategy))
    agree(claims)
    return plan


def _skipping(work: Work, plan: Plan, agreement: Agreement) -> Skipping:
    """What is passed on, from the union of all ranks; the rank takes it over."""
    supported = "skip_ops" in work.tuner.parameters
    release = plan.installed.release
    fitted = fit(agreement.skip_ops, supported=supported, known=plan.operations, release=release)
    work.skip_ops = fitted.operations
    own = agreement.skip_ops == plan.skipping.operations
    return replace(fitted, source=plan.skipping.source if own else "other rank")


def _finish(work: Work, plan: Plan, agreement: Agreement, skipping: Skipping, outcome: Outcome) -> WarmupRecord:
    """The record, from what all ranks report. A meeting."""
    mine = _report(work, outcome)
    gathered = work.ranks.meet("end", (mine, dict(outcome.tactics), tuple(work.warnings)))
    told = [word for _, _, words in gathered for word in words]
    why_cold = "" if outcome.warm or not plan.gating.persistent else outcome.why_cold or agreement.why_cold
    return replace(
        _record(plan, skipping),
        ranks=tuple(report for report, _, _ in gathered),
        file=str(work.file) if work.file else None,
        warm=outcome.warm,
        why_cold=why_cold,
        skip_passed="skip_ops" in work.tuner.parameters,
        difference=first_difference([tactics for _, tactics, _ in gathered]),
        warnings=tuple(dict.fromkeys((*plan.warnings, *skipping.warnings, *told))),
    )


def _logged(record: WarmupRecord) -> WarmupRecord:
    for warning in record.warnings:
        log.warning("%s", warning)
    return record


def _agree(work: Work, ranks: Ranks, plan: Plan) -> tuple[Agreement, tuple[int, ...]]:
    """What holds for all ranks, and the first rank of every host."""
    claim = Claim(
        rank=ranks.rank,
        strategy=plan.gating.strategy,
        release=plan.installed.release,
        skip_ops=plan.skipping.operations,
        cache=work.state,
        file=_writes(work, plan, ranks),
        mark=str(work.content.metadata.get(SET_FIELD, "")) if work.content else "",
    )
    gathered = ranks.meet("agree", (claim, socket.gethostname()))
    claims = [claim for claim, _ in gathered]
    check_writers(claims)
    first: dict[str, int] = {}
    for one, host in gathered:
        first.setdefault(host, one.rank)
    return agree(claims), tuple(sorted(first.values()))


def _writes(work: Work, plan: Plan, ranks: Ranks) -> str:
    if work.file is None or (plan.gating.strategy is Strategy.LEADER_BROADCAST and ranks.rank > 0):
        return ""
    return str(work.file)


def _report(work: Work, outcome: Outcome) -> RankReport:
    return RankReport(
        rank=work.ranks.rank,
        cache=outcome.state or work.state,
        loaded=work.loaded,
        phases=dict(work.phases),
        seconds=dict(work.seconds),
        jit_s=dict(work.jit_s),
        builds=dict(work.builds),
        waits_s=dict(work.ranks.waits),
        round_trip=outcome.round_trip,
        written=outcome.written,
        digest=CacheFile(entries=outcome.tactics).digest if outcome.tactics else "",
    )


def _record(plan: Plan, skipping: Skipping) -> WarmupRecord:
    """The record of a warm-up that has done nothing yet."""
    return WarmupRecord(
        strategy=str(plan.gating.strategy),
        persistent=plan.gating.persistent,
        rule=plan.gating.rule,
        why=plan.gating.why,
        release=plan.installed.release,
        arch=plan.installed.arch,
        skip_ops=tuple(sorted(skipping.operations)),
        skip_source=skipping.source,
        warnings=plan.warnings,
    )
