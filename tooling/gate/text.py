"""The verdict for a terminal: the verdict, the first cause, what is required, why not, what to run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from tooling.findings import Severity
from tooling.gate import told
from tooling.gate.escaping import console_line
from tooling.gate.values import Outcome, Reason, Verdict

MAX_ROWS = 40
"""Longer lists end in a count: JSON and HTML have all of it."""
MAX_TEXT = 600

STYLES = {Outcome.PASS: "green", Outcome.INCOMPLETE: "yellow", Outcome.FAIL: "red"}
_SEVERITY_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


class Paint(Protocol):
    """`Terminal.paint`: the text in those styles, or unchanged."""

    def __call__(self, text: str, /, *styles: str) -> str: ...


def render_text(verdict: Verdict, paint: Paint) -> str:
    """Lines for people, without a newline at the end."""
    causes = told.grouped(told.causes(verdict))
    blocks = [
        list(_head(verdict, paint)),
        list(_cause(causes[0], causes[0][0].path, paint, label="first cause: ")) if causes else [],
        list(_requirements(verdict, paint)),
        list(_listed("why else", verdict, causes[1:], paint)),
        list(_listed("also to know", verdict, told.grouped(told.remarks(verdict)), paint)),
        list(_findings(verdict, paint)),
        list(_errands(verdict, paint)),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _head(verdict: Verdict, paint: Paint) -> Iterator[str]:
    outcome = paint(str(verdict.outcome), STYLES[verdict.outcome], "bold")
    yield f"{outcome}: {told.HEADLINES[verdict.outcome]}"
    version = console_line(verdict.flashinfer_version or "not told", MAX_TEXT)
    about = [f"channel {console_line(verdict.channel, MAX_TEXT)}", f"FlashInfer {version}"]
    if verdict.commit:
        about.append(f"commit {console_line(told.short(verdict.commit), MAX_TEXT)}")
    yield paint(", ".join([*about, f"as of {told.render_time(verdict.as_of)}"]), "dim")


def _cause(
    group: tuple[Reason, ...], path: str | None, paint: Paint, *, label: str = "", indent: str = ""
) -> Iterator[str]:
    reason = group[0]
    word = paint(console_line(reason.word, MAX_TEXT), STYLES[reason.outcome], "bold")
    yield f"{indent}{label}{word} {console_line(told.sentence(reason), MAX_TEXT)}"
    for other in group[1:MAX_ROWS]:
        yield f"{indent}    {paint('and:', 'blue')} {console_line(other.detail, MAX_TEXT)}"
    for line in _more(len(group)):
        yield f"{indent}  {line}"
    if path:
        yield f"{indent}    {paint('file:', 'blue')} {console_line(path, MAX_TEXT)}"
    if reason.command:
        yield f"{indent}    {paint('run:', 'blue')} {console_line(reason.command, MAX_TEXT)}"
    if reason.machine:
        yield f"{indent}    {paint('on:', 'blue')} {console_line(reason.machine, MAX_TEXT)}"


def _requirements(verdict: Verdict, paint: Paint) -> Iterator[str]:
    yield f"{told.outcomes(verdict.requirements)}"
    rows = [
        (item.outcome, console_line(item.title, 60), console_line(told.record_words(item), 120),
         told.render_age(item.file, verdict.as_of))
        for item in verdict.requirements[:MAX_ROWS]
    ]  # fmt: skip
    wide = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for outcome, title, record, age in rows:
        label = paint(str(outcome), STYLES[outcome]) + " " * (wide[0] - len(outcome))
        yield f"  {label}  {title:<{wide[1]}}  {record:<{wide[2]}}  {age}".rstrip()
    yield from _more(len(verdict.requirements))


def _listed(heading: str, verdict: Verdict, groups: tuple[tuple[Reason, ...], ...], paint: Paint) -> Iterator[str]:
    if groups:
        yield heading
    for group in groups[:MAX_ROWS]:
        yield from _cause(group, told.further_path(verdict, group[0]), paint, label="- ", indent="  ")
    yield from _more(len(groups))


def _findings(verdict: Verdict, paint: Paint) -> Iterator[str]:
    """As `Terminal.say_findings` says them, and which record holds them."""
    findings = told.ordered_findings(verdict)
    if findings:
        yield f"{told.count(len(findings), 'finding')} in the records"
    for file, finding in findings[:MAX_ROWS]:
        place = f"{console_line(finding.where, MAX_TEXT)}: " if finding.where else ""
        severity = paint(f"{finding.severity}:", _SEVERITY_STYLES[finding.severity], "bold")
        source = paint(f"[{console_line(finding.check, 80)}, {console_line(file.path, 120)}]", "dim")
        yield f"  - {place}{severity} {console_line(finding.detail, MAX_TEXT)} {source}"
        if finding.hint:
            yield f"      {paint('hint:', 'blue')} {console_line(finding.hint, MAX_TEXT)}"
    yield from _more(len(findings))


def _errands(verdict: Verdict, paint: Paint) -> Iterator[str]:
    errands = told.errands(verdict)
    if errands:
        yield "still to run"
    for errand in errands[:MAX_ROWS]:
        where = f"  {paint(f'# {console_line(errand.machine, 120)}', 'dim')}" if errand.machine else ""
        yield f"  $ {console_line(errand.command, MAX_TEXT)}{where}"
    yield from _more(len(errands))


def _more(number: int) -> Iterator[str]:
    if number > MAX_ROWS:
        yield f"  … and {number - MAX_ROWS:,} more: --json and --html list all"
