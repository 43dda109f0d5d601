"""All checks put together: each scenario's outcome, the known faults', and the stage's status with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from tooling.capabilities.table import Row
from tooling.findings import Finding, Severity
from tooling.smoke.case import Case, looked_up, text
from tooling.smoke.checks_cache import check_cache, ratio
from tooling.smoke.checks_machine import installed_release, is_covered
from tooling.smoke.checks_numbers import check_numbers
from tooling.smoke.checks_runs import check_runs
from tooling.smoke.consistency import contradictions
from tooling.smoke.expectations import expect, fit_scenario
from tooling.smoke.faults import check_symptoms, check_table, judge_faults, known_traces
from tooling.smoke.judgement import Judgement, ScenarioJudged, ScenarioStatus, worst_first
from tooling.smoke.observations import INTERRUPTED, Seen
from tooling.smoke.scenarios import Scenario

SHOWS_NOTHING = frozenset({"INTERRUPTED", "NO_GPU", "NO_DISK"})
"""Reasons with which nothing else that was found is a fact about the release."""
NOT_RUN = (*sorted(SHOWS_NOTHING), "NO_SCENARIO", "NOT_RUN", "MISSING_SCENARIO", "NOTHING_TO_TUNE")
"""Reasons that say that nothing was shown, rather than that something is wrong."""

WEIGHTS = {
    reason: weight
    for weight, reason in enumerate((
        "INTERRUPTED", "NO_GPU", "NO_DISK", "CORRUPT", "NO_FLASHINFER", "NO_ROW", "WRONG_ROW", "PIN_SKEW", "UNPINNED",
        "FLASHINFER_BROKEN", "API_DIFFERS", "OTHER_MACHINE", "JIT_CACHE_FOREIGN", "DIED", "WARMUP_FAILED", "HUNG",
        "GAVE_UP", "NOT_STARTED", "STICKY_CUDA_ERROR", "OUT_OF_MEMORY", "WRONG_STRATEGY", "SKIP_OPS",
        "NOT_LAID_OUT", "NOT_RECOGNISED", "LAID_OUT_READ", "LAID_OUT_CHANGED", "NOT_KEPT", "NOT_REPLACED",
        "ROUND_TRIP_LOSS", "NOT_ANEW", "WARM_MISSED", "NOTHING_TUNED", "RANKS_DIFFER", "MISSES", "NOT_FINITE",
        "WRONG_NUMBERS",
    ))
}  # fmt: skip
"""Causes before what they bring about; reasons that are not here come after these, as they were found."""


def judge(seen: Seen, row: Row | None, requested: Sequence[Scenario], machine: Sequence[Finding]) -> Judgement:
    """The judgement from what was seen and the findings on the machine."""
    requested = [fit_scenario(scenario, row, ranks=_ranks_seen(seen, scenario)) for scenario in requested]
    cases = {
        scenario.name: Case(expected=expect(scenario, row), seen=there)
        for scenario in requested
        if (there := seen.scenario(scenario.name)) is not None and not contradictions(there)
    }
    judged = tuple(_judge_scenario(scenario, cases.get(scenario.name), seen, row) for scenario in requested)
    faults = judge_faults(tuple(cases.values()), row)
    nothing = () if requested else (_not_run("NO_SCENARIO", "no scenario was asked for"),)
    found = [*machine, *nothing, *(one for scenario in judged for one in scenario.findings), *check_table(faults)]
    findings = worst_first(found, WEIGHTS)
    status, reason = _outcome(findings)
    return Judgement(status=status, reason=reason, scenarios=judged, faults=faults, findings=findings)


def _ranks_seen(seen: Seen, scenario: Scenario) -> int:
    found = seen.scenario(scenario.name)
    return max((len(run.ranks) for run in (found.cold, found.warm) if run is not None), default=0) if found else 0


def _outcome(findings: Sequence[Finding]) -> tuple[Literal["pass", "fail", "not-run"], str | None]:
    """An interrupt, a machine without a GPU and a full disk show nothing, whatever else was found; else errors fail."""
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if not errors:
        return "pass", None
    reasons = [finding.reason for finding in errors]
    if always := next((reason for reason in reasons if reason in SHOWS_NOTHING), None):
        return "not-run", always
    wrong = next((reason for reason in reasons if reason not in NOT_RUN), None)
    return ("fail", wrong) if wrong else ("not-run", reasons[0])


def _judge_scenario(scenario: Scenario, case: Case | None, seen: Seen, row: Row | None) -> ScenarioJudged:
    findings = _check_scenario(scenario, case, seen, row)
    expected = case.expected if case is not None else expect(scenario, row)
    known = known_traces(case, row) if case is not None and not case.seen.not_run else ()
    status = _status(findings, known=bool(known))
    if case is None:
        return ScenarioJudged(name=scenario.name, status=status, expected=expected, findings=findings)
    counts = [
        counts
        for _, run in case.ended_runs
        for rank in run.ranks
        for _, operation, counts in looked_up(rank)
        if operation not in case.left_out
    ]
    return ScenarioJudged(
        name=scenario.name,
        status=status,
        expected=expected,
        cold_s=case.seen.cold.seconds if case.seen.cold else None,
        warm_s=case.seen.warm.seconds if case.seen.warm else None,
        ratio=ratio(case) if expected.warm_hits else None,
        lookups=sum(one["lookups"] for one in counts),
        hits=sum(one["hits"] for one in counts),
        misses=sum(one["misses"] for one in counts),
        known=known,
        findings=findings,
    )


def _check_scenario(scenario: Scenario, case: Case | None, seen: Seen, row: Row | None) -> tuple[Finding, ...]:
    if case is None and (there := seen.scenario(scenario.name)) is not None:
        return tuple(_corrupt(f"{scenario.name}, {problem}") for problem in contradictions(there))
    if case is None:
        return (_not_run("MISSING_SCENARIO", f"{scenario.name} was asked for and is not in the record"),)
    if case.seen.not_run == INTERRUPTED:
        return (_not_run("INTERRUPTED", f"{scenario.name}: broken off by the operator"), *_checks(case, seen, row))
    if case.seen.not_run or not case.runs:
        return (_not_run("NOT_RUN", f"{scenario.name} did not run: {case.seen.not_run or 'nobody says why'}"),)
    return (*check_runs(case, fetched=not is_covered(seen, "flashinfer-cubin")), *_checks(case, seen, row))


def _checks(case: Case, seen: Seen, row: Row | None) -> tuple[Finding, ...]:
    """What the runs that ended show, also of a scenario that was broken off later."""
    return (*_check_same(case, seen), *check_cache(case), *check_symptoms(case, row), *check_numbers(case))


def _check_same(case: Case, seen: Seen) -> Iterator[Finding]:
    """The ranks ran on the release, the architecture and the GPUs that this machine has."""
    wanted = {"release": installed_release(seen), "arch": seen.machine.arch}
    for name, run in case.ended_runs:
        for key, value in wanted.items():
            if (found := run.record.get(key)) != value:
                detail = f"the warm-up ran on {key} {text(found)}, and this machine has {text(value)}"
                yield case.finding("smoke-runs", "OTHER_MACHINE", detail, run=name)
        for rank in run.ranks if seen.machine.gpus else ():
            if rank.device.partition(" ")[2] not in seen.machine.gpus:
                detail = (
                    f"it ran on {rank.device or 'an unknown device'}, and this machine has {text(seen.machine.gpus)}"
                )
                yield case.finding("smoke-runs", "OTHER_MACHINE", detail, run=name, rank=rank.rank)


def _status(findings: Sequence[Finding], *, known: bool) -> ScenarioStatus:
    """The worst of a scenario's findings."""
    errors = {finding.reason for finding in findings if finding.severity is Severity.ERROR}
    if errors - set(NOT_RUN) and "NO_DISK" not in errors:
        return "fail"
    if errors:
        return "nothing_to_tune" if errors == {"NOTHING_TO_TUNE"} else "not-run"
    return "known" if known else "pass"


def _corrupt(detail: str) -> Finding:
    return Finding(check="smoke-record", reason="CORRUPT", detail=detail, hint="run the smoke stage again")


def _not_run(reason: str, detail: str) -> Finding:
    return Finding(check="smoke-scenarios", reason=reason, detail=detail, hint="run the smoke stage again, whole")
