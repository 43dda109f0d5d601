"""What people read of an evaluation: the plan before it, a few lines after it, and a report to keep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from tooling.findings import Finding, Severity
from tooling.gsm8k.comparison import Comparison
from tooling.gsm8k.config import Config
from tooling.gsm8k.judgement import Precision, measure_precision
from tooling.gsm8k.results import DataSet, Run, ServerFacts
from tooling.gsm8k.score import Counts, Verdict, measure_speed

EXAMPLES_SHOWN = 5
FLIPS_SHOWN = 20


def render_plan(config: Config, data: DataSet, server: ServerFacts, *, restarts: int) -> list[str]:
    """The lines before a start: what is asked, the budget, the command, the environment that is set."""
    sample = f"sample of seed {config.slice_seed}" if config.slice == "seeded" else "first"
    asked = f"{len(data.questions)} of {data.available} questions ({sample}), {config.num_fewshot} shots"
    bounds = f"threshold {config.accuracy_threshold:g}, tolerance {config.tolerance:g}"
    lines = [
        f"{config.name}: {asked}, {config.api}, {config.concurrency} at a time, data: {data.source}",
        f"  expected     accuracy {config.floor:.3f} or more ({bounds})",
    ]
    if server.kind == "url":
        return [*lines, f"  server       {server.url}, which runs already; no start is measured"]
    again = ", then once more over the warm cache" if restarts else ""
    lines += [
        f"  budget       {config.startup_max_wait_s:.0f} s to become ready{again}",
        f"  server       {server.command}" + (f"  (in {server.image})" if server.image else ""),
    ]
    width = max((len(name) for name in server.env), default=0)
    for position, (name, value) in enumerate(sorted(server.env.items())):
        lines.append(f"  {'environment' if position == 0 else '':<12} {name:<{width}} = {value}")
    return lines


def render_run(run: Run, config: Config) -> list[str]:
    """The lines on one run: how it started, and either why it stopped or what it scored."""
    lines = []
    if run.startup_s is not None and run.answers:
        lines.append(f"start         ready after {run.startup_s:.1f} s ({run.cache} cache)")
    if run.stop is not None:
        return [*lines, *_stopped(run)]
    counts = run.counts(config.answer)
    precision = measure_precision(counts, config)
    other: Literal["strict", "flexible"] = "strict" if config.answer == "flexible" else "flexible"
    lines += [
        f"accuracy      {_share(counts)} ({config.answer}: {_rule(config.answer)})",
        f"              {_share(run.counts(other))} ({other}: {_rule(other)})",
        f"replies       {_replies(counts)}",
    ]
    return [*lines, *_precise(precision), *_fast(run)]


def render_comparison(comparison: Comparison, against: str) -> str:
    return (
        f"{against:<13} {comparison.accuracy_before:.3f} -> {comparison.accuracy_after:.3f} "
        f"({100 * comparison.delta:+.1f} points on {comparison.paired} questions; {comparison.lost} lost, "
        f"{comparison.gained} gained; McNemar's exact p = {comparison.p_value:.2g})"
    )


def render_report(
    config: Config,
    *,
    status: str,
    data: DataSet,
    server: ServerFacts,
    runs: Sequence[Run],
    comparisons: Mapping[str, Comparison],
    findings: Iterable[Finding],
) -> str:
    """The whole report, in Markdown."""
    listed = sorted(findings, key=lambda finding: list(Severity).index(finding.severity))
    parts = [f"# GSM8K {config.name}: {status}", ""]
    parts += [f"- **{finding.severity}** {finding.detail}" for finding in listed]
    parts += ["", "## Asked", "", *_block(render_plan(config, data, server, restarts=max(len(runs) - 1, 0))), ""]
    for run in runs:
        parts += [f"## Run with {run.cache} cache", "", *_block(render_run(run, config)), ""]
        parts += _examples(run, config)
    for against, comparison in comparisons.items():
        parts += [f"## Against {against}", "", *_block([render_comparison(comparison, against)]), ""]
        parts += _flips(comparison, data)
    parts += ["## Server", "", *_server(server), ""]
    return "\n".join(parts)


def _stopped(run: Run) -> list[str]:
    assert run.stop is not None
    lines = [f"{run.stop.reason}: {run.cause}", run.stop.detail] if run.cause else [run.stop.reason, run.stop.detail]
    lines += [f"it had got as far as: {line}" for line in run.progress]
    if run.log_tail:
        lines += [f"the last {len(run.log_tail)} lines of its log:", *(f"  | {line}" for line in run.log_tail)]
    return lines


def _share(counts: Counts) -> str:
    if counts.accuracy is None:
        return "none: no question has a reply"
    return f"{counts.accuracy:.3f}  {counts.correct} of {counts.replied}"


def _rule(rule: str) -> str:
    return "the number after ####" if rule == "strict" else "the last number"


def _replies(counts: Counts) -> str:
    parts = [(counts.wrong, "wrong"), (counts.unparsable, "without a number"), (counts.empty, "empty")]
    parts += [(counts.failed, "failed"), (counts.timeout, "timed out"), (counts.not_asked, "never asked")]
    return ", ".join(f"{number} {what}" for number, what in [(counts.correct, "correct"), *parts])


def _precise(precision: Precision | None) -> list[str]:
    if precision is None:
        return []
    lines = [f"interval      {precision.interval.low:.3f} to {precision.interval.high:.3f} (Wilson, 95 %)"]
    if precision.sigmas_above_floor is not None:
        side = "above" if precision.sigmas_above_floor >= 0 else "below"
        lines.append(f"distance      {abs(precision.sigmas_above_floor):.1f} standard errors {side} what is expected")
    run, gate = precision.detectable_drop, precision.gate_detectable_drop
    seen = "none: too few questions" if run is None else f"{100 * run:.1f} points"
    caught = "none" if gate is None else "it fails already" if gate < 0 else f"{100 * gate:.1f} points"
    lines.append(f"smallest drop {seen} that this run can detect at 80 % power; its threshold catches: {caught}")
    return lines


def _fast(run: Run) -> list[str]:
    speed = measure_speed(run.answers, seconds=run.seconds)
    if speed.questions_per_second is None:
        return []
    tokens = "" if speed.output_tokens_per_second is None else f", {speed.output_tokens_per_second:.0f} output tokens/s"
    late = "" if speed.latency_p95_s is None else f", 95 % within {speed.latency_p95_s:.2f} s"
    median = f"median latency {speed.latency_median_s:.2f} s"
    return [
        f"speed         {speed.questions_per_second:.2f} questions/s{tokens}, {median}{late} ({speed.seconds:.1f} s)"
    ]


def _examples(run: Run, config: Config) -> list[str]:
    """A few questions that were not answered right, the strangest kinds first."""
    order = [Verdict.FAILED, Verdict.TIMEOUT, Verdict.EMPTY, Verdict.UNPARSABLE, Verdict.WRONG]
    odd = [answer for kind in order for answer in run.answers if answer.verdict(config.answer) is kind]
    lines = []
    for answer in odd[:EXAMPLES_SHOWN]:
        exchange = answer.exchange
        reply = exchange.reply.text if exchange and exchange.reply else exchange.error if exchange else ""
        said = " ".join(reply.split())[:300]
        lines.append(
            f"- {answer.verdict(config.answer)}, expected {answer.problem.value}: "
            f"{_inline(answer.problem.question)} -> {_inline(said)}"
        )
    return [f"{len(odd)} questions without the right answer, of which:", "", *lines, ""] if lines else []


def _flips(comparison: Comparison, data: DataSet) -> list[str]:
    texts = {problem.id: problem.question for problem in data.questions}
    shown = [
        f"- `{flip.id}` {flip.before} -> {flip.after}: {_inline(texts.get(flip.id, ''))}"
        for flip in comparison.flips[:FLIPS_SHOWN]
    ]
    if len(comparison.flips) > FLIPS_SHOWN:
        shown.append(f"- and {len(comparison.flips) - FLIPS_SHOWN} more, all in the record")
    return [*shown, ""] if shown else []


def _server(server: ServerFacts) -> list[str]:
    known = f"{server.flashinfer_version} ({server.flashinfer_known_by})" if server.flashinfer_version else "not known"
    facts = {"model": server.model, "address": server.url, "image": server.image, "image id": server.image_id}
    facts |= {"FlashInfer": known, "log": server.log}
    return [f"- {name}: {value}" for name, value in facts.items() if value]


def _block(lines: Sequence[str]) -> list[str]:
    return ["```text", *(line.replace("```", "'''") for line in lines), "```"]


def _inline(text: str) -> str:
    return " ".join(text.split()).replace("`", "'").replace("|", "/").replace("<", "&lt;")
