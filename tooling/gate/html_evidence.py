"""Parts of the page that tell of evidence: what is required, what is still to run, findings, records."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypeAlias

from tooling.evidence import Record
from tooling.findings import Finding, Severity
from tooling.gate import told
from tooling.gate.html_elements import Html, badge, code, details, element, join, path_code, scrolling, section
from tooling.gate.values import EvidenceFile, Outcome, Reason, Requirement, Verdict

Section: TypeAlias = tuple[str, str, "Html | None"]
"""Its id, its heading, and the part itself; none where there is nothing to show."""


def requirements_section(verdict: Verdict) -> Section:
    """What the channel asks for, what does not hold first; then reasons that belong to no requirement."""
    order = [Outcome.FAIL, Outcome.INCOMPLETE, Outcome.PASS]
    listed = sorted(verdict.requirements, key=lambda item: order.index(item.outcome))
    head = element("tr", [element("th", words, scope="col") for words in ("Requirement", "Outcome", "Record")])
    rows = [row for item in listed for row in _requirement(item, verdict)]
    held = {reason for item in verdict.requirements for reason in item.reasons}
    loose = tuple(reason for reason in told.causes(verdict) if reason not in held)
    part = section(
        "requirements",
        "Requirements",
        element("p", f"{_capital(told.outcomes(verdict.requirements))}."),
        scrolling("What the channel requires", head, rows) if rows else None,
        [element("h3", "Beyond single requirements"), _reasons(loose, verdict)] if loose else None,
    )
    return "requirements", "Requirements", part


def _requirement(item: Requirement, verdict: Verdict) -> list[Html]:
    """A row, and below it, over the whole width, why it is so."""
    record = path_code(told.record_words(item)) if item.file else told.record_words(item)
    age = told.render_age(item.file, verdict.as_of)
    cells = [badge(str(item.outcome), str(item.outcome).lower()), join(record, _hint(age and _old(age)))]
    row = element("tr", element("th", item.title, scope="row"), [element("td", cell) for cell in cells])
    if not item.reasons:
        return [row]
    return [row, element("tr", element("td", _reasons(item.reasons, verdict), colspan="3"), class_="why")]


def errands_section(verdict: Verdict) -> Section:
    errands = told.errands(verdict)
    items = [
        element(
            "li",
            element("pre", code(errand.command), tabindex="0", role="region", aria_label="Command"),
            element("p", f"on {errand.machine}" if errand.machine else "on any machine",
                    f", for {', '.join(errand.titles)}" if errand.titles else ""),
        )
        for errand in errands
    ]  # fmt: skip
    part = section("to-run", "Still to run", element("ol", items, class_="errands")) if items else None
    return "to-run", "Still to run", part


def findings_section(verdict: Verdict) -> Section:
    findings = told.ordered_findings(verdict)
    heading = "Findings"
    if not findings:
        return "findings", heading, section("findings", heading, element("p", "The records hold none."))
    loud = [pair for pair in findings if pair[1].severity is not Severity.NOTE]
    notes = [pair for pair in findings if pair[1].severity is Severity.NOTE]
    part = section(
        "findings",
        heading,
        element("p", f"{told.count(len(findings), 'finding')}, errors first."),
        _findings(loud) if loud else None,
        details(told.count(len(notes), "note"), _findings(notes)) if notes else None,
    )
    return "findings", heading, part


def records_section(verdict: Verdict) -> Section:
    used: dict[str, list[str]] = {}
    for item in verdict.requirements:
        if item.file is not None:
            used.setdefault(item.file.path, []).append(item.title)
    records = [_record(file, verdict.as_of, used.get(file.path, [])) for file in verdict.files]
    before = [_record(file, verdict.as_of, ["comparison only"]) for file in verdict.earlier]
    part = section(
        "records",
        "Records",
        element("p", f"{told.count(len(records), 'file')} read."),
        records,
        [element("h3", "Of the release before"), *before] if before else None,
    )
    return "records", "Records", part


def where_to_run(reason: Reason) -> Html | None:
    """The command that produces the right record, and where."""
    if not reason.command:
        return element("p", f"On {reason.machine}.") if reason.machine else None
    machine = f" on {reason.machine}" if reason.machine else ""
    return join(
        element("p", f"Run{machine}:", class_="run"),
        element("pre", code(reason.command), tabindex="0", role="region", aria_label="Command to run"),
    )


def details_of(reasons: Sequence[Reason]) -> Html | None:
    """What further reasons of one kind say."""
    return element("ul", [element("li", reason.detail) for reason in reasons], class_="likewise") if reasons else None


def _reasons(reasons: tuple[Reason, ...], verdict: Verdict) -> Html:
    return element("ul", [element("li", _kind(group, verdict)) for group in told.grouped(reasons)], class_="reasons")


def _kind(group: tuple[Reason, ...], verdict: Verdict) -> Html:
    """Their command is listed among what is still to run."""
    first = group[0]
    path = told.further_path(verdict, first)
    beside = join(" ", path_code(path)) if path and path not in first.detail else None
    return join(code(first.word, class_="word"), " ", first.detail, beside, details_of(group[1:]))


def _findings(findings: Sequence[tuple[EvidenceFile, Finding]]) -> Html:
    return element("ul", [element("li", _finding(file, finding)) for file, finding in findings], class_="findings")


def _finding(file: EvidenceFile, finding: Finding) -> Html:
    return join(
        badge(str(finding.severity), str(finding.severity)),
        join(" ", path_code(finding.where)) if finding.where else None,
        element("span", finding.detail, class_="detail"),
        _hint(finding.hint and f"hint: {finding.hint}"),
        element("span", code(finding.check), ", ", path_code(file.path), class_="hint"),
    )


def _hint(words: str) -> Html | None:
    return element("span", words, class_="hint") if words else None


def _old(age: str) -> str:
    return age if age.startswith("from") else f"{age} old"


def _record(file: EvidenceFile, as_of: datetime, used_for: list[str]) -> Html:
    record = file.record
    status = record.status if record else file.reason or "no record"
    kind = {"pass": "pass", "fail": "fail"}.get(status, "incomplete")
    name = " ".join(filter(None, (record.stage, record.subject))) if record else file.path
    age = told.render_age(file, as_of)
    summary = [
        element("span", name, class_="name"),
        badge(status, kind),
        element("span", _old(age)) if age else None,
        element("span", f"sha256 {told.short(file.sha256)}", class_="digest"),
        None if used_for else element("span", "not used"),
    ]
    rows = [("path", file.path), ("sha256", file.sha256), ("counts for", ", ".join(used_for) or "nothing")]
    rows += [("problem", file.problem)] * bool(file.problem)
    rows += _record_facts(record) if record else []
    told_of = element("dl", [join(element("dt", key), element("dd", code(value))) for key, value in rows])
    return details(summary, told_of, class_="record")


def _record_facts(record: Record) -> list[tuple[str, str]]:
    dirty = {True: ", tree has changes", False: "", None: ", tree not looked at"}[record.dirty]
    pairs = [
        ("reason", record.reason or ""),
        ("FlashInfer", record.flashinfer_version or "none"),
        ("commit", f"{record.commit}{dirty}" if record.commit else "none"),
        ("image", record.image_id or "none"),
        ("manifest", record.manifest_digest or ""),
        ("pins", record.pins_sha256 or "none"),
        (
            "GPU",
            "" if record.gpu is None else ", ".join(f"{key}: {value}" for key, value in sorted(record.gpu.items())),
        ),
        ("started", told.render_time(record.started)),
        ("ended", told.render_time(record.ended)),
        ("tool", record.tool_version),
    ]
    return [(key, value) for key, value in pairs if value]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
