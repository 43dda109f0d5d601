"""The verdict as a JUnit report: a test case for each requirement, each finding that fails, and each loose reason.

The shape is the one that CI servers share: testsuites, testsuite, properties, testcase with at most one `failure` (what
was tested is not good enough) or `error` (evidence is missing or does not count).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from xml.etree import ElementTree as ET

from tooling.findings import Severity
from tooling.gate import told
from tooling.gate.escaping import clean, cut, one_line
from tooling.gate.values import Outcome, Reason, Verdict

MAX_LINE = 500
MAX_BODY = 10_000
_TAGS = {Outcome.FAIL: "failure", Outcome.INCOMPLETE: "error"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    group: str
    name: str
    outcome: Outcome
    word: str = ""
    message: str = ""
    body: str = ""
    seconds: float = 0.0
    output: str = ""


def render_junit(verdict: Verdict) -> str:
    """The report with its XML declaration and a final newline; any text in it is valid XML."""
    cases = _cases(verdict)
    totals = _totals(cases)
    root = ET.Element("testsuites", {"name": "release gate", **totals})
    about = {
        "name": f"release gate: {one_line(verdict.channel, MAX_LINE)}",
        "timestamp": verdict.as_of.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        "hostname": "localhost",  # schemas demand it; the verdict is the same wherever it is made
    }
    suite = ET.SubElement(root, "testsuite", {**about, **totals})
    properties = ET.SubElement(suite, "properties")
    first = [("first cause", f"{cause.word} {told.sentence(cause)}") for cause in told.causes(verdict)[:1]]
    for name, value in (("verdict", str(verdict.outcome)), *first, *told.facts(verdict)):
        ET.SubElement(properties, "property", name=one_line(name, MAX_LINE), value=one_line(value, MAX_LINE))
    for case in cases:
        _add(suite, case)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _totals(cases: list[_Case]) -> dict[str, str]:
    return {
        "tests": str(len(cases)),
        "failures": str(sum(case.outcome is Outcome.FAIL for case in cases)),
        "errors": str(sum(case.outcome is Outcome.INCOMPLETE for case in cases)),
        "skipped": "0",
        "time": f"{sum(case.seconds for case in cases):.3f}",
    }


def _cases(verdict: Verdict) -> list[_Case]:
    cases = [*_requirements(verdict), *_findings(verdict), *_loose(verdict)]
    if verdict.outcome is not Outcome.PASS and all(case.outcome is Outcome.PASS for case in cases):
        headline = told.HEADLINES[verdict.outcome]
        cases.append(_Case(group="gate", name="verdict", outcome=verdict.outcome, word="VERDICT", message=headline))
    return cases


def _requirements(verdict: Verdict) -> list[_Case]:
    cases = []
    for item in verdict.requirements:
        first = next((reason for reason in item.reasons if reason.outcome is item.outcome), None)
        record = item.file.record if item.file else None
        cases.append(
            _Case(
                group=f"gate.{item.stage}",
                name=item.title,
                outcome=item.outcome,
                word=first.word if first else str(item.outcome),
                message=first.detail if first else told.HEADLINES[item.outcome],
                body="\n\n".join(_told(*group) for group in told.grouped(item.reasons)),
                seconds=max(0.0, (record.ended - record.started).total_seconds()) if record else 0.0,
                output=f"{item.file.path} sha256:{item.file.sha256}" if item.file else "",
            )
        )
    return cases


def _findings(verdict: Verdict) -> list[_Case]:
    return [
        _Case(
            group=f"gate.findings.{finding.check}",
            name=f"{file.path}: {finding.where + ': ' if finding.where else ''}{finding.detail}",
            outcome=Outcome.FAIL,
            word=finding.reason or finding.check,
            message=finding.detail,
            body="\n".join(filter(None, (finding.where, finding.detail, finding.hint and f"hint: {finding.hint}"))),
        )
        for file, finding in verdict.findings
        if finding.severity is Severity.ERROR
    ]


def _loose(verdict: Verdict) -> list[_Case]:
    """Reasons that stand at no requirement, such as records that contradict one another."""
    held = {reason for item in verdict.requirements for reason in item.reasons}
    return [
        _Case(
            group="gate.evidence",
            name=" ".join(filter(None, (told.title(reason), reason.word, reason.path))),
            outcome=reason.outcome,
            word=reason.word,
            message=reason.detail,
            body=_told(reason),
        )
        for reason in told.causes(verdict)
        if reason not in held
    ]


def _told(reason: Reason, *others: Reason) -> str:
    lines = [f"{reason.outcome} {reason.word}: {told.sentence(reason)}", *(f"and: {one.detail}" for one in others)]
    lines += [f"file: {reason.path}"] * bool(reason.path) + [f"run: {reason.command}"] * bool(reason.command)
    lines += [f"on: {reason.machine}"] * bool(reason.machine)
    return "\n".join(lines)


def _add(suite: ET.Element, case: _Case) -> None:
    element = ET.SubElement(
        suite,
        "testcase",
        classname=one_line(case.group, MAX_LINE),
        name=one_line(case.name, MAX_LINE),
        time=f"{case.seconds:.3f}",
    )
    if tag := _TAGS.get(case.outcome):
        message, kind = one_line(case.message, MAX_LINE), one_line(case.word, MAX_LINE)
        ET.SubElement(element, tag, message=message, type=kind).text = cut(clean(case.body), MAX_BODY)
    notes = "\n".join(filter(None, (case.output, case.body if case.outcome is Outcome.PASS else "")))
    if notes:
        ET.SubElement(element, "system-out").text = cut(clean(notes), MAX_BODY)
