"""Look-ups that missed after the warm-up, and which known fault of the row, if any, explains them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tooling.capabilities.facts import KnownFault
from tooling.capabilities.gating import Strategy
from tooling.capabilities.table import Row
from tooling.findings import Finding, Severity
from tooling.smoke.case import OUTSIDE, Case, is_bucket, looked_up, passes, tuned, was_warm
from tooling.smoke.expectations import Expected
from tooling.smoke.judgement import FaultJudged, Symptom
from tooling.smoke.observations import RankSeen


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """How a fault shows. `explains`: the symptom is one that it leaves; `shows`: that rank would show it.

    Without a signature, a fault explains every miss of its operations, and whether it was looked at cannot be told.
    """

    operation: str
    explains: Callable[[Symptom, Expected, RankSeen], bool]
    shows: Callable[[Expected, RankSeen], bool]


def find_symptoms(case: Case) -> tuple[Symptom, ...]:
    """Every operation that missed or fell back outside of tuning mode; not those that are skipped, which must."""
    return tuple(
        Symptom(
            scenario=case.name,
            run=run_name,
            rank=rank.rank,
            where=where,
            bucket=is_bucket(_largest(rank) if where in OUTSIDE else where),
            operation=operation,
            lookups=counts["lookups"],
            misses=counts["misses"],
            fell_back=counts["fell_back"],
            tuned_here=not was_warm(run),
            healed=where == "verify" and "complete" in passes(rank),
        )
        for run_name, run in case.ended_runs
        for rank in run.ranks
        for where, operation, counts in looked_up(rank)
        if (counts["misses"] or counts["fell_back"]) and operation not in case.left_out
    )


def explaining(symptom: Symptom, case: Case, row: Row | None) -> KnownFault | None:
    """The row's known fault that leaves this symptom, or None."""
    for fault in row.known_faults if row else ():
        signature = SIGNATURES.get(fault.id)
        if symptom.operation in fault.operations and (signature is None or _fits(signature, case, symptom)):
            return fault
    return None


def check_symptoms(case: Case, row: Row | None) -> Iterator[Finding]:
    """An error for each operation and run whose misses no known fault of the row explains."""
    for (run, _, fault_id), symptoms in _grouped(case, row).items():
        if not fault_id:
            alike = [name for name, one in SIGNATURES.items() if all(_fits(one, case, symptom) for symptom in symptoms)]
            hint = "compare with the release before, report it, and add it to the table's known faults"
            if alike:
                hint = f"it looks like {alike[0]}, which is not among this release's known faults"
            detail = f"{_described(symptoms)}; no known fault explains it"
            yield case.finding("smoke-lookups", "MISSES", detail, run=run, hint=hint)


def known_traces(case: Case, row: Row | None) -> tuple[str, ...]:
    """What the row's known faults left in that scenario, a sentence for each of them and each run."""
    groups = _grouped(case, row).items()
    return tuple(
        f"{run} run: {_described(symptoms)}: {fault_id}" for (run, _, fault_id), symptoms in groups if fault_id
    )


def judge_faults(cases: Sequence[Case], row: Row | None) -> tuple[FaultJudged, ...]:
    """What became of each known fault of the row."""
    return tuple(_judge(fault, cases, row) for fault in (row.known_faults if row else ()))


def check_table(faults: Sequence[FaultJudged]) -> Iterator[Finding]:
    """Known faults that showed, that no longer show, and that nobody looked at."""
    for fault in faults:
        if fault.state == "seen":
            yield Finding(
                check="smoke-fault",
                reason="KNOWN_FAULT",
                severity=Severity.NOTE,
                detail=f"{fault.id} (known): {fault.detail}",
            )
        elif fault.state == "not-seen":
            yield Finding(
                check="smoke-fault",
                reason="TABLE_OUT_OF_DATE",
                severity=Severity.WARNING,
                detail=f"{fault.id} is among the row's known faults and does not show: {fault.detail}",
                hint="nox -s probe with --add derives the row anew; a fault that is mended must leave it",
            )
        elif fault.state == "not-looked-at":
            yield Finding(
                check="smoke-fault",
                reason="FAULT_NOT_LOOKED_AT",
                severity=Severity.NOTE,
                detail=f"{fault.id} was not looked at: {fault.detail}",
            )


def _judge(fault: KnownFault, cases: Sequence[Case], row: Row | None) -> FaultJudged:
    traces = tuple(
        symptom for case in cases for symptom in find_symptoms(case) if explaining(symptom, case, row) is fault
    )
    if traces:
        places = ", ".join(dict.fromkeys(f"{one.scenario} ({one.run})" for one in traces))
        return FaultJudged(id=fault.id, state="seen", detail=f"{fault.effect}; seen in {places}", symptoms=traces)
    signature = SIGNATURES.get(fault.id)
    looked = [
        f"{case.name} ({name})"
        for case in cases
        for name, run in case.ended_runs
        if signature and not was_warm(run) and any(signature.shows(case.expected, rank) for rank in run.ranks)
    ]
    if looked:
        return FaultJudged(id=fault.id, state="not-seen", detail=f"looked for in {', '.join(looked)}")
    return FaultJudged(id=fault.id, state="not-looked-at", detail=f"to see it: {fault.how_to_see}")


def _grouped(case: Case, row: Row | None) -> dict[tuple[str, str, str], list[Symptom]]:
    """The scenario's symptoms by run, operation and the fault that explains them ("" for none)."""
    grouped: dict[tuple[str, str, str], list[Symptom]] = {}
    for symptom in find_symptoms(case):
        fault = explaining(symptom, case, row)
        grouped.setdefault((symptom.run, symptom.operation, fault.id if fault else ""), []).append(symptom)
    return grouped


def _fits(signature: Signature, case: Case, symptom: Symptom) -> bool:
    rank = _rank(case, symptom)
    return symptom.operation == signature.operation and signature.explains(symptom, case.expected, rank)


def _described(symptoms: Sequence[Symptom]) -> str:
    """All traces of one operation in one run in one sentence."""
    first = symptoms[0]
    places = ", ".join(
        dict.fromkeys(one.where if not one.where.isdigit() else f"{one.where} tokens" for one in symptoms)
    )
    ranks = sorted({one.rank for one in symptoms})
    misses, lookups = sum(one.misses for one in symptoms), sum(one.lookups for one in symptoms)
    healed = ", then tuned by the second round" if all(one.healed for one in symptoms) else ""
    on = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
    fell = sum(one.fell_back for one in symptoms)
    return f"{misses} of {lookups} look-ups of {first.operation} miss and {fell} fall back on {on} ({places}){healed}"


def _largest(rank: RankSeen) -> str:
    """The token count of the warm-up's passes: the largest that is counted at."""
    return max(rank.lookups, key=int, default="1")


def _rank(case: Case, symptom: Symptom) -> RankSeen:
    run = dict(case.runs)[symptom.run]
    return next(rank for rank in run.ranks if rank.rank == symptom.rank)


def _labels(rank: RankSeen, prefix: str) -> int:
    return sum(error.label.startswith(prefix) for error in rank.errors)


def _grown_workspace(symptom: Symptom, expected: Expected, rank: RankSeen) -> bool:
    """What was tuned before the workspace grew misses, what was tuned later hits; a leader's second round heals it."""
    del rank
    some = 0 < symptom.misses < symptom.lookups
    if expected.strategy is Strategy.LEADER_BROADCAST:
        return some and symptom.tuned_here and symptom.healed
    return some and (symptom.tuned_here or expected.persistent)


def _shows_grown_workspace(expected: Expected, rank: RankSeen) -> bool:
    """The workspace grows only if a second type of output follows the first."""
    where = ("verify",) if expected.strategy is Strategy.LEADER_BROADCAST else ("check 1", "check 2")
    counted = any(passes(rank).get(name, {}).get("bf16_gemm", {}).get("lookups", 0) for name in where)
    return not expected.diagnosis and counted and _labels(rank, "bf16_cudnn_") > 1 and tuned(rank)["bf16_gemm"] > 0


def _raw_tokens(operation: str, prefix: str) -> Signature:
    """Entries that are asked for by the token count itself: only counts that are buckets hit."""

    def explains(symptom: Symptom, expected: Expected, rank: RankSeen) -> bool:
        here = symptom.tuned_here or expected.persistent
        return not symptom.bucket and here and _labels(rank, prefix) > 0

    def shows(expected: Expected, rank: RankSeen) -> bool:
        between = any(
            counts.get(operation, {}).get("lookups", 0) for size, counts in rank.lookups.items() if not is_bucket(size)
        )
        return not expected.diagnosis and between and _labels(rank, prefix) > 0 and tuned(rank).get(operation, 0) > 0

    return Signature(operation=operation, explains=explains, shows=shows)


SIGNATURES = {
    "flashinfer#3868": Signature(operation="bf16_gemm", explains=_grown_workspace, shows=_shows_grown_workspace),
    "flashinfer#3868/cublaslt": _raw_tokens("bf16_gemm", "bf16_cublaslt_"),
    "flashinfer#3436": _raw_tokens("fp8_gemm", "fp8_cublas_"),
}
"""By fault; labels are those of the reference runner, which name the backend that each operation goes through."""
