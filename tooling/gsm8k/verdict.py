"""The findings of a whole evaluation: its runs, their comparisons, and which FlashInfer answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from packaging.version import InvalidVersion, Version

from tooling.findings import Finding, Severity
from tooling.gsm8k.comparison import Baseline, Comparison, check_comparison, check_speed, compare
from tooling.gsm8k.config import Config
from tooling.gsm8k.judgement import check_score
from tooling.gsm8k.results import DataSet, Run, ServerFacts
from tooling.gsm8k.score import measure_speed
from tooling.gsm8k.watchdog import Stop

WORLD_REASONS = {"STARTUP_TIMEOUT", "PORT_IN_USE", "SERVER_UNREACHABLE"}
"""Ends for which what is tested cannot be blamed: the evaluation did not take place."""


def blames_world(stop: Stop) -> bool:
    return stop.world or stop.reason in WORLD_REASONS


def compare_runs(config: Config, runs: Sequence[Run], baseline: Baseline | None) -> dict[str, Comparison]:
    """The comparisons that the finished runs allow, by what they are against: `baseline`, `warm cache`."""
    finished = [run.verdicts(config.answer) for run in runs if run.stop is None]
    found: dict[str, Comparison | None] = {}
    if baseline is not None and finished:
        found["baseline"] = compare(baseline.verdicts, finished[0])
    if len(finished) > 1:
        found["warm cache"] = compare(finished[0], finished[1])
    return {against: comparison for against, comparison in found.items() if comparison is not None}


def judge_stage(
    config: Config,
    runs: Sequence[Run],
    facts: ServerFacts,
    comparisons: Mapping[str, Comparison],
    *,
    baseline: Baseline | None,
    pinned: str | None,
) -> list[Finding]:
    """Every finding on what happened, the first cause on top. `pinned` is the tree's FlashInfer, None without one."""
    findings: list[Finding] = []
    for number, run in enumerate(runs):
        findings += _judge_run(run, config, number)
    if baseline is not None and runs and runs[0].stop is None:
        findings += check_comparison(comparisons.get("baseline"), config, warm=False)
        findings += check_speed(baseline, measure_speed(runs[0].answers, seconds=runs[0].seconds), config)
    if len(runs) > 1 and runs[1].stop is None:
        findings += check_comparison(comparisons.get("warm cache"), config, warm=True)
    return [*findings, *_check_skew(facts, pinned)]


def check_data(config: Config, data: DataSet) -> list[Finding]:
    """A warning if there are fewer problems than asked for: the threshold was measured on others."""
    if len(data.questions) == config.num_questions:
        return []
    detail = f"num_questions is {config.num_questions}, but the {data.source} data have only {data.available}"
    hint = "give GSM8K's files with --data" if data.source == "shipped" else ""
    return [Finding(check="gsm8k-data", detail=detail, severity=Severity.WARNING, hint=hint, reason="FEWER_QUESTIONS")]


def _judge_run(run: Run, config: Config, number: int) -> list[Finding]:
    if run.stop is None:
        found = check_score(run.counts(config.answer), config)
        # The second run is over the same questions: what its gate can see has been said.
        return found if number == 0 else [finding for finding in found if finding.severity is Severity.ERROR]
    if blames_world(run.stop):
        return []
    cause = f"{run.cause}: " if run.cause else ""
    again = " (second start)" if number else ""
    detail = f"{cause}{run.stop.detail}{again}"
    return [Finding(check="gsm8k-server", detail=detail, reason=run.stop.reason, hint="the report has its last lines")]


def _check_skew(facts: ServerFacts, pinned: str | None) -> list[Finding]:
    """An error if the server holds another FlashInfer than the tree pins: the result is not about this pin."""
    found = facts.flashinfer_version
    if found is None or pinned is None or _public(found) == _public(pinned):
        return []
    detail = f"the server has FlashInfer {found} installed, but versions.json pins {pinned}"
    hint = f"known by {facts.flashinfer_known_by}"
    return [Finding(check="gsm8k-server", detail=detail, reason="IMAGE_SKEW", hint=hint)]


def _public(version: str) -> str:
    try:
        return Version(version).public
    except InvalidVersion:
        return version
