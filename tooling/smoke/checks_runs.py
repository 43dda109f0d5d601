"""How the runs of a scenario went: they ended, by the strategy that the rule gives, tuned what they should, safely."""

from __future__ import annotations

from collections.abc import Iterator

from tooling.capabilities.gating import Strategy
from tooling.findings import Finding, Severity
from tooling.smoke.case import CHECKS, ENDS, Case, called, enters_tuning, is_bucket, passes, text, tuned, was_warm
from tooling.smoke.observations import RankSeen, RunSeen
from tooling.smoke.one_line import one_line

CONSEQUENCES = ("StuckError", "PeerFailedError")
"""Errors of the warm-up that a rank raises because another one failed or did not come."""

WAITS = ("waits at ", "join", "close")
"""Beginnings of the steps at which a rank waits for the others."""

FULL = ("No space left on device", "Disk quota exceeded")

LINES_SHOWN = 3


def check_runs(case: Case, *, fetched: bool) -> tuple[Finding, ...]:
    """Every finding on the course of both runs. `fetched`: no package of kernels is installed, so some are fetched."""
    findings = [*_check_there(case)]
    for name, run in case.runs:
        findings += _check_ends(case, name, run)
        findings += _check_damage(case, name, run, fetched=fetched)
    for name, run in case.ended_runs:
        findings += [*_check_strategy(case, name, run), *_check_skipping(case, name, run)]
        findings += [*_check_tuned(case, name, run), *_check_ranks(case, name, run)]
        findings += _check_looked(case, name, run)
    return tuple(findings)


def _check_there(case: Case) -> Iterator[Finding]:
    """A cold run that ended is followed by a warm one."""
    if case.seen.cold is None:
        yield case.finding("smoke-runs", "NO_RUN", "there is no cold run")
    elif case.seen.warm is None and case.seen.cold.ended:
        yield case.finding("smoke-runs", "NO_RUN", "there is no warm run")


def _check_ends(case: Case, name: str, run: RunSeen) -> Iterator[Finding]:
    """The rank that failed first, then those that failed because of it."""
    if len(run.ranks) != case.expected.scenario.ranks:
        detail = f"{len(run.ranks)} ranks ran, {case.expected.scenario.ranks} were asked for"
        yield case.finding("smoke-runs", "NO_RUN", detail, run=name)
    for rank in sorted(run.ranks, key=_cause_first):
        if rank.end == "ended":
            continue
        step = f" at step {rank.step!r}" if rank.step else " before its first step"
        why = f": {one_line(rank.why)}" if rank.why else ""
        status = f" (exit status {rank.exit_status})" if rank.exit_status else ""
        reason = {"error": "WARMUP_FAILED", "died": "DIED", "hung": "HUNG", "not-started": "NOT_STARTED"}[rank.end]
        detail = f"{ENDS[rank.end]}{step}{status}{why}"
        reason = "GAVE_UP" if _is_consequence(rank) else "NO_DISK" if _met_a_full_disk(rank) else reason
        yield case.finding("smoke-runs", reason, detail, run=name, rank=rank.rank, hint=_last_line(rank))


def _cause_first(rank: RankSeen) -> tuple[int, int]:
    """Of several that hung, one that works on something comes before those that wait for it."""
    order = {"died": 0, "error": 1, "hung": 2, "not-started": 5, "ended": 6}
    waits = rank.end == "hung" and rank.step.startswith(WAITS)
    return (4 if _is_consequence(rank) else 3 if waits else order[rank.end], rank.rank)


def _is_consequence(rank: RankSeen) -> bool:
    return rank.end == "error" and rank.why.startswith(CONSEQUENCES)


def _met_a_full_disk(rank: RankSeen) -> bool:
    """Whether it says so itself; ninja and compilers say it in the words of the system."""
    return any(words in f"{rank.why}\n{rank.log_tail}" for words in FULL)


def _last_line(rank: RankSeen) -> str:
    lines = [line.strip() for line in rank.log_tail.splitlines() if line.strip()]
    return f"its log ends: {one_line(lines[-1])}" if lines and lines[-1] not in rank.why else ""


def _check_damage(case: Case, name: str, run: RunSeen, *, fetched: bool) -> Iterator[Finding]:
    """What CUDA and FlashInfer complained of, and what was fetched, on every rank however it ended."""
    for rank in run.ranks:
        if rank.sticky_error:
            detail = f"CUDA still reports an error afterwards: {rank.sticky_error}"
            yield case.finding("smoke-cuda", "STICKY_CUDA_ERROR", detail, run=name, rank=rank.rank)
        if rank.out_of_memory:
            detail = f"memory ran out, and tactics fell back or were left out: {_some(rank.out_of_memory)}"
            hint = "free the GPU's memory: what was tuned then is no measurement"
            yield case.finding("smoke-cuda", "OUT_OF_MEMORY", detail, run=name, rank=rank.rank, hint=hint)
        if rank.skipped_tactics:
            failed = f"{len(rank.skipped_tactics)} tactics failed and were"
            failed = "one tactic failed and was" if len(rank.skipped_tactics) == 1 else failed
            detail = f"{failed} left out: {_some(rank.skipped_tactics)}"
            yield case.finding(
                "smoke-cuda", "SKIPPED_TACTICS", detail, run=name, rank=rank.rank, severity=Severity.WARNING
            )
        if rank.downloads:
            downloads = "one download" if len(rank.downloads) == 1 else f"{len(rank.downloads)} downloads"
            detail = f"{downloads} at run time: {_some(rank.downloads)}"
            severity = Severity.WARNING if fetched else Severity.ERROR
            hint = "install flashinfer-cubin of the same version" if fetched else ""
            yield case.finding(
                "smoke-downloads", "DOWNLOADS", detail, run=name, rank=rank.rank, severity=severity, hint=hint
            )


def _check_strategy(case: Case, name: str, run: RunSeen) -> Iterator[Finding]:
    """What each rank names as its strategy, what the record says, and what the ranks did."""
    expected = case.expected
    why = f"the rule says {expected.strategy} (rule {expected.gating.rule}: {expected.gating.why})"
    if expected.diagnosis:
        why = f"{expected.strategy} was forced"
    for rank in run.ranks:
        if rank.strategy != expected.strategy:
            detail = f"the strategy is {rank.strategy or 'not told'}, {why}"
            yield case.finding("smoke-strategy", "WRONG_STRATEGY", detail, run=name, rank=rank.rank)
        elif (acted := _acted(rank, run, expected.strategy)) and not _all_skipped(case, run):
            detail = f"it says {rank.strategy}, and {acted}"
            yield case.finding("smoke-strategy", "WRONG_STRATEGY", detail, run=name, rank=rank.rank)
    for key, wanted in (("persistent", expected.persistent), ("rule", expected.gating.rule)):
        if (said := run.record.get(key)) != wanted:
            detail = f"the warm-up's record has {key} {said}, expected {wanted}"
            yield case.finding("smoke-strategy", "WRONG_STRATEGY", detail, run=name)


def _acted(rank: RankSeen, run: RunSeen, strategy: Strategy) -> str:
    """What that rank did that does not fit the strategy, or ""."""
    here = sum(counts["tuned"] for counts in passes(rank).get("tune", {}).values())
    if run.record.get("warm") is True or "tune" not in passes(rank):
        return ""
    if strategy is Strategy.LEADER_BROADCAST and rank.rank > 0:
        return f"this follower tuned {here} buckets in the leader's pass" if here else ""
    return "" if here else "tuned nothing in its own pass"


def _check_skipping(case: Case, name: str, run: RunSeen) -> Iterator[Finding]:
    """The set that FlashInfer was handed, which is what counts; and no operation of it is tuned."""
    wanted = case.expected.passed
    for rank in run.ranks:
        entered = enters_tuning(rank, case.expected.strategy)
        found = None if rank.passed is None else tuple(sorted(rank.passed))
        if found != wanted and (entered or found is not None):
            detail = f"autotune got {_argument(found)}, expected {_argument(wanted)}"
            yield case.finding("smoke-skipping", "SKIP_OPS", detail, run=name, rank=rank.rank)
        for detail in _skipped(case, rank, entered=entered and not was_warm(run)):
            yield case.finding("smoke-skipping", "SKIP_OPS", detail, run=name, rank=rank.rank)
    if sorted(run.record.get("skip_ops", ())) != sorted(case.left_out):
        detail = f"the warm-up's record skips {text(run.record.get('skip_ops'))}, expected {text(case.left_out)}"
        yield case.finding("smoke-skipping", "SKIP_OPS", detail, run=name)
    source = "operator" if case.expected.scenario.skip in {"given", "empty"} else "model"
    for key, said in (("skip_source", source), ("skip_passed", wanted is not None)):
        if run.record.get(key) != said:
            detail = f"the warm-up's record has {key} {run.record.get(key)}, expected {said}"
            yield case.finding("smoke-skipping", "SKIP_OPS", detail, run=name)


def _skipped(case: Case, rank: RankSeen, *, entered: bool) -> Iterator[str]:
    """What was skipped unasked, and what is to be skipped and was tuned, or called in tuning mode and not skipped."""
    skips = {operation for counts in passes(rank).values() for operation, one in counts.items() if one["skipped"]}
    skips |= {operation for counts in rank.lookups.values() for operation, one in counts.items() if one["skipped"]}
    for operation in sorted(skips - case.left_out):
        yield f"calls of {operation} were skipped, and nobody asked for that"
    for operation in sorted(case.left_out):
        if count := tuned(rank).get(operation, 0):
            yield f"{operation} is to be skipped, and {count} buckets of it were tuned"
        elif entered and operation in called(rank) - skips:
            yield f"{operation} is to be skipped, and no call of it was"


def _argument(passed: tuple[str, ...] | None) -> str:
    return "no skip_ops" if passed is None else f"skip_ops={{{', '.join(passed)}}}"


def _check_tuned(case: Case, name: str, run: RunSeen) -> Iterator[Finding]:
    """A run that is not warm tunes each operation that it calls and may tune. If it may tune none, it shows nothing."""
    if nothing := nothing_to_tune(case, run):
        yield case.finding("smoke-tuned", "NOTHING_TO_TUNE", f"{nothing}; this shows nothing of a cache", run=name)
        return
    if run.record.get("warm") is True:
        return
    operations = sorted({operation for rank in run.ranks for operation in called(rank)} - case.left_out)
    for operation in operations or ["any operation"]:
        if not sum(tuned(rank).get(operation, 0) for rank in run.ranks):
            yield case.finding("smoke-tuned", "NOTHING_TUNED", f"no bucket of {operation} was tuned", run=name)


def nothing_to_tune(case: Case, run: RunSeen) -> str:
    """Why nothing could be tuned or loaded in that run, or ""."""
    if case.expected.strategy is Strategy.NONE:
        return f"nothing is tuned: {case.expected.gating.why}"
    return f"all was skipped ({text(case.left_out)})" if _all_skipped(case, run) else ""


def _all_skipped(case: Case, run: RunSeen) -> bool:
    operations = {operation for rank in run.ranks for operation in called(rank)}
    return bool(operations) and operations <= case.left_out


def _check_ranks(case: Case, name: str, run: RunSeen) -> Iterator[Finding]:
    """Equal tactics where the strategy promises them; elsewhere a difference is worth knowing."""
    if len(run.ranks) < 2 or nothing_to_tune(case, run):
        return
    digests = {rank.tactics_sha256 for rank in run.ranks}
    first = str(run.record.get("difference", ""))
    if case.expected.equal_tactics and "" in digests:
        detail = "a rank does not say which tactics it holds"
        yield case.finding("smoke-ranks", "RANKS_DIFFER", detail, run=name)
    elif len(digests) > 1 or first:
        severity = Severity.ERROR if case.expected.equal_tactics else Severity.NOTE
        detail = f"ranks hold different tactics{f', first at {first}' if first else ''}"
        if case.expected.equal_tactics:
            detail += f"; {case.expected.strategy} promises equal ones"
        yield case.finding("smoke-ranks", "RANKS_DIFFER", detail, run=name, severity=severity)


def _check_looked(case: Case, name: str, run: RunSeen) -> Iterator[Finding]:
    """Every operation was looked up in both check passes and between buckets, and on all ranks of both runs at the same
    token counts.

    No look-ups, no proof.
    """
    if nothing_to_tune(case, run):
        return
    elsewhere = {one for _, other in case.ended_runs for rank in other.ranks for one in _looked_up_at(rank)}
    for rank in run.ranks:
        places = {where: passes(rank).get(where, {}) for where in CHECKS}
        places["token counts between buckets"] = _between(rank)
        for where, counts in places.items():
            blind = [operation for operation in sorted(called(rank)) if not counts.get(operation, {}).get("lookups", 0)]
            if blind or not counts:
                detail = f"no look-ups of {text(blind) if blind else 'anything'} in {where}"
                yield case.finding("smoke-lookups", "ZERO_LOOKUPS", detail, run=name, rank=rank.rank)
        missing = elsewhere - _looked_up_at(rank)
        for operation in sorted({operation for operation, _ in missing}):
            sizes = ", ".join(sorted((size for one, size in missing if one == operation), key=int))
            detail = f"no look-ups of {operation} at {sizes} tokens, and elsewhere in the scenario there are"
            yield case.finding("smoke-lookups", "ZERO_LOOKUPS", detail, run=name, rank=rank.rank)


def _looked_up_at(rank: RankSeen) -> set[tuple[str, str]]:
    """Operations and the token counts at which they were looked up."""
    return {
        (operation, size)
        for size, counts in rank.lookups.items()
        for operation, one in counts.items()
        if one["lookups"]
    }


def _between(rank: RankSeen) -> dict[str, dict[str, int]]:
    """Look-ups by operation, at all token counts between buckets together."""
    totals: dict[str, dict[str, int]] = {}
    for size, by_operation in rank.lookups.items():
        for operation, counts in by_operation.items() if not is_bucket(size) else ():
            entry = totals.setdefault(operation, {"lookups": 0})
            entry["lookups"] += counts["lookups"]
    return totals


def _some(lines: tuple[str, ...]) -> str:
    rest = f" … and {len(lines) - LINES_SHOWN} more" if len(lines) > LINES_SHOWN else ""
    return "; ".join(map(one_line, lines[:LINES_SHOWN])) + rest
