"""Parts of the page that tell of evidence: what is required, what is still to run, findings, records."""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

from tooling.evidence import Record
from tooling.findings import Finding
from tooling.gate import told
from tooling.gate.html_elements import Html, badge, code, details, element, join, section, table
from tooling.gate.values import EvidenceFile, Outcome, Reason, Verdict

Section: TypeAlias = tuple[str, str, "Html | None"]
"""Its id, its heading, and the part itself; none where there is nothing to show."""


def requirements_section(verdict: Verdict) -> Section:
    """What the channel asks for, what does not hold first; then reasons that belong to no requirement."""
    order = [Outcome.FAIL, Outcome.INCOMPLETE, Outcome.PASS]
    listed = sorted(verdict.requirements, key=lambda item: order.index(item.outcome))
    explained = any(item.reasons for item in listed)
    heads = ("Requirement", "Outcome", *(("Why",) if explained else ()), "Record", "Age")
    rows = [
        (
            item.title,
            badge(str(item.outcome), str(item.outcome).lower()),
            *((_reasons(item.reasons) if item.reasons else "",) if explained else ()),
            code(told.record_words(item)) if item.file else told.record_words(item),
            element("span", told.render_age(item.file, verdict.as_of), class_="age"),
        )
        for item in listed
    ]
    held = {reason for item in verdict.requirements for reason in item.reasons}
    loose = tuple(reason for reason in told.causes(verdict) if reason not in held)
    part = section(
        "requirements",
        "Requirements",
        element("p", f"{_capital(told.outcomes(verdict.requirements))}."),
        table("What the channel requires", heads, rows) if rows else None,
        [element("h3", "Beyond single requirements"), _reasons(loose)] if loose else None,
    )
    return "requirements", "Requirements", part


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
    rows = [
        (
            badge(str(finding.severity), str(finding.severity)),
            code(finding.where) if finding.where else "",
            _finding(finding),
            code(finding.check),
            code(file.path),
        )
        for file, finding in findings
    ]
    listed = table("Findings of the records", ("Severity", "Place", "What was found", "Check", "Record"), rows)
    part = section("findings", heading, element("p", f"{told.count(len(findings), 'finding')}, errors first."), listed)
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


def _reasons(reasons: tuple[Reason, ...]) -> Html:
    return element("ul", [element("li", _reason(reason)) for reason in reasons], class_="reasons")


def _reason(reason: Reason) -> Html:
    """Its command is listed among what is still to run."""
    path = join(" ", code(reason.path)) if reason.path and reason.path not in reason.detail else None
    return join(code(reason.word, class_="word"), " ", reason.detail, path)


def _finding(finding: Finding) -> Html:
    hint = element("span", f"hint: {finding.hint}", class_="hint") if finding.hint else None
    return join(element("span", finding.detail, class_="detail"), hint)


def _record(file: EvidenceFile, as_of: datetime, used_for: list[str]) -> Html:
    record = file.record
    status = record.status if record else file.reason or "no record"
    kind = {"pass": "pass", "fail": "fail"}.get(status, "incomplete")
    name = " ".join(filter(None, (record.stage, record.subject))) if record else file.path
    age = told.render_age(file, as_of)
    summary = [
        element("span", name, class_="name"),
        badge(status, kind),
        element("span", age if age.startswith("from") else f"{age} old") if age else None,
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
