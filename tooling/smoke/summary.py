"""What people read of a smoke run: a row for each scenario, also while it works, and a few lines at the end."""

from __future__ import annotations

from collections.abc import Sequence

from tooling.findings import Severity
from tooling.smoke.judgement import Judgement, ScenarioJudged
from tooling.smoke.observations import MachineSeen, Seen

COLUMNS = ("scenario", "strategy", "cold s", "warm s", "ratio", "hits", "misses", "verdict")
WORDS = {"nothing_to_tune": "nothing to tune", "not-run": "not run"}


def render_summary(seen: Seen, judgement: Judgement) -> list[str]:
    """The table of scenarios, what became of the known faults, and the outcome with its first cause."""
    rows = [COLUMNS, *(scenario_cells(scenario) for scenario in judgement.scenarios)]
    lines = [f"smoke on {describe_machine(seen.machine)}", *render_table(rows)]
    lines += [f"{fault.id}: {fault.state.replace('-', ' ')}" for fault in judgement.faults]
    first = next((one for one in judgement.findings if one.severity is Severity.ERROR), None)
    reason = f" ({judgement.reason})" if judgement.reason else ""
    return [*lines, f"{judgement.status}{reason}{f': {first.detail}' if first else ''}"]


def scenario_cells(scenario: ScenarioJudged) -> tuple[str, ...]:
    """One scenario's cells, as many as COLUMNS."""
    return (
        scenario.name,
        str(scenario.expected.strategy) if scenario.expected else "",
        "" if scenario.cold_s is None else f"{scenario.cold_s:.2f}",
        "" if scenario.warm_s is None else f"{scenario.warm_s:.2f}",
        "" if scenario.ratio is None else f"{scenario.ratio:.1f}",
        str(scenario.hits),
        str(scenario.misses),
        verdict_words(scenario),
    )


def verdict_words(scenario: ScenarioJudged) -> str:
    """The scenario's status, with the known faults or the first reason behind it."""
    word = WORDS.get(scenario.status, scenario.status)
    if scenario.status == "known":
        return f"known: {', '.join(sorted({trace.rsplit(': ', 1)[-1] for trace in scenario.known}))}"
    errors = [finding.reason for finding in scenario.findings if finding.severity is Severity.ERROR]
    return f"{word}: {errors[0]}" if errors and scenario.status in {"fail", "not-run"} else word


def render_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows in columns: the first two and the last to the left, numbers to the right."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    last = len(widths) - 1
    return [
        "  ".join(
            cell.ljust(width) if place in {0, 1, last} else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def describe_machine(machine: MachineSeen) -> str:
    """GPU, driver, CUDA and FlashInfer in one line."""
    gpus = ", ".join(dict.fromkeys(machine.gpus)) or "no GPU"
    count = f"{len(machine.gpus)} x " if len(machine.gpus) > 1 else ""
    known = {"": machine.arch, "driver ": machine.driver, "CUDA ": machine.cuda, "nvcc ": machine.nvcc}
    details = ", ".join(f"{name}{value}" for name, value in known.items() if value)
    release = machine.packages.get("flashinfer-python") or "not installed"
    return f"{count}{gpus}{f' ({details})' if details else ''}, FlashInfer {release}"
