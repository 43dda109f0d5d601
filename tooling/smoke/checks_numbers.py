"""Every operation's result against float32, cold and warm, within what its type of output lets one expect."""

from __future__ import annotations

from collections.abc import Iterator

from tooling.findings import Finding, Severity
from tooling.smoke.case import Case, called
from tooling.smoke.checks_runs import nothing_to_tune
from tooling.smoke.consistency import out_type
from tooling.smoke.observations import ErrorSeen, RankSeen

BOUNDS = {
    ("bf16_gemm", "bfloat16"): 2.0**-7,
    ("bf16_gemm", "float16"): 2.0**-9,
    ("fp8_gemm", "bfloat16"): 2.0**-7,
    ("fp8_gemm", "float16"): 2.0**-8,
    ("host_gemm", "bfloat16"): 2.0**-7,
    ("host_gemm", "float16"): 2.0**-9,
}
"""The largest difference over the largest exact value that still counts as right, by operation and output.

Rounding the result alone costs up to 2^-8 in bfloat16 (8 significant bits) and 2^-11 in float16 (11), relative to the
value; two to four times as much leaves room for the order of sums. Measured on an H200 with 0.6.12, 0.6.13 and
0.7.0.post1, equal for every strategy (`tests/data/warmup`): bf16_gemm 0.0027 and 0.0004, fp8_gemm 0.0029 and 0.0010,
whose sums are kept in fewer bits; the bounds are 1.9 to 4.8 times that. A wrong tactic errs by the order of 1.
"""


def check_numbers(case: Case) -> tuple[Finding, ...]:
    """Every finding on numerical results of the runs that ended."""
    findings: list[Finding] = []
    taken = {one for _, run in case.ended_runs for rank in run.ranks for one in _compared(rank)}
    for name, run in case.ended_runs:
        for rank in run.ranks:
            if not nothing_to_tune(case, run):
                findings += _check_taken(case, name, rank, taken)
            for error in rank.errors:
                findings += _check_one(case, name, rank, error)
    return (*findings, *_check_equal(case))


def bound(error: ErrorSeen) -> float | None:
    """The bound of that operation and type of output; None where no measurement justifies one."""
    return BOUNDS.get((error.operation, error.out or out_type(error)))


def _check_taken(case: Case, name: str, rank: RankSeen, taken: set[str]) -> Iterator[Finding]:
    """Each operation that was called was compared with float32, and all that was compared elsewhere in the scenario."""
    blind = sorted(called(rank) - {error.operation for error in rank.errors})
    blind += sorted(taken - _compared(rank))
    if blind or not rank.errors:
        detail = (
            f"{', '.join(blind) or 'nothing'} was not compared with float32"
            if rank.errors
            else "no result was compared"
        )
        yield case.finding("smoke-numbers", "NO_NUMBERS", detail, run=name, rank=rank.rank)


def _compared(rank: RankSeen) -> set[str]:
    """What was compared, each label with its operation."""
    return {f"{error.label} ({error.operation})" for error in rank.errors}


def _check_one(case: Case, name: str, rank: RankSeen, error: ErrorSeen) -> Iterator[Finding]:
    limit = bound(error)
    if not error.finite or error.largest is None:
        detail = f"{error.label} ({error.operation}) gives values that are not finite"
        yield case.finding("smoke-numbers", "NOT_FINITE", detail, run=name, rank=rank.rank)
    elif limit is None:
        detail = (
            f"{error.label} ({error.operation}) differs from float32 by {error.largest:.4f}; no bound is known for it"
        )
        yield case.finding("smoke-numbers", "NO_BOUND", detail, run=name, rank=rank.rank, severity=Severity.NOTE)
    elif error.largest > limit:
        detail = (
            f"{error.label} ({error.operation}) differs from float32 by {error.largest:.4f}, the bound is {limit:.4f}"
        )
        yield case.finding("smoke-numbers", "WRONG_NUMBERS", detail, run=name, rank=rank.rank)


def _check_equal(case: Case) -> Iterator[Finding]:
    """Where a warm start uses the cold one's tactics, its results are the same: the same error, the same bits."""
    runs = dict(case.ended_runs)
    if not case.expected.warm_hits or case.expected.diagnosis or len(runs) < 2:
        return
    for before, after in zip(runs["cold"].ranks, runs["warm"].ranks, strict=False):
        warm = {error.label: error for error in after.errors}
        for error in before.errors:
            other = warm.get(error.label)
            bits = other is not None and error.sha256 == other.sha256
            if other is None or error.largest != other.largest or not bits:
                found = (
                    "was not taken" if other is None else f"{other.largest}, other bits" if not bits else other.largest
                )
                detail = f"{error.label}: error {error.largest} cold, {found} warm; the same tactics give the same"
                yield case.finding("smoke-numbers", "WARM_DIFFERS", detail, run="warm", rank=after.rank)
