"""Texts that try to be more than text, and a verdict that holds one in every field."""

from __future__ import annotations

from typing import Any

from tests.gate.rendering import samples
from tooling.capabilities.facts import Evidence, Fact, KnownFault
from tooling.capabilities.table import Row
from tooling.findings import Finding, Severity
from tooling.gate.values import BumpChange, EvidenceFile, Outcome, Reason, Requirement, Verdict

TEXTS = {
    "script": "<script>alert(1)</script>",
    "closing tags": "</code></td></table></style></title></svg><img src=x onerror=alert(1)>",
    "attribute": "\" autofocus onfocus=\"alert(1)\" x='",
    "cdata": "]]><![CDATA[ <a/> ]]>",
    "entities": "&lt;b&gt; &amp;amp; &#60;",
    "comment": "--><!-- <b>",
    "nul": "a\x00b\x0b\x0c",
    "bidi": "safe\u202etxt.exe\u2066\u200f",
    "lone surrogate": "file-\udcff-\ud800.json",
    "emoji": "👩‍👩‍👧 🚀 é",
    "ansi": "\x1b[2J\x1b[31mred\x1b]0;title\x07\x9b31m",
    "newlines": "one\ntwo\r\nthree\rfour\u2028five\x85six",
    "table": "a|b \\| c\\\\| `d` ``e`` | --- |",
    "mentions": "@octocat @org/team #12 GH-13 octo/repo#14 me@evil.example",
    "addresses": "https://evil.example/?a=b www.evil.example http://evil.example [x](https://evil.example) ![y](//evil.example)",
    "markdown": "# head *a* _b_ **c** ~~d~~ $e$ > f - g 1. h :smile: <https://evil.example>",
    "workflow command": "::error file=a::b ##[error]c",
    "javascript": "javascript:alert(1)",
    "long line": "x" * 10_000,
    "long words": "word " * 2_000,
}  # fmt: skip


def poisoned(text: str) -> Verdict:
    """A verdict with the text in every field that holds text."""
    finding = Finding(check=text, detail=text, severity=Severity.ERROR, path=text, line=3, hint=text, reason=text)
    fact = Fact(value=(text,), evidence=(Evidence(path=text, where=text, seen=text),), reason=text)
    fault = KnownFault(id=text, operations=(text,), effect=text, how_to_see=text, link=text, evidence=fact.evidence)
    releases = samples.row("0.6.13").releases
    before = Row(releases=releases, facts={text: Fact(value=None, reason=text), f"{text}2": fact})
    after = Row(releases=releases, facts={text: fact}, known_faults=(fault,))
    smoke = _file("smoke", text, measurements=_smoke(text), findings=(finding,), gpu={text: text})
    gsm8k = _file("gsm8k", text, measurements=_gsm8k(text))
    bad = EvidenceFile(path=f"{text}-bad", sha256=text, reason=text, problem=text)
    reasons = tuple(_reason(outcome, text) for outcome in (Outcome.FAIL, Outcome.INCOMPLETE, Outcome.PASS))
    return Verdict(
        outcome=Outcome.FAIL,
        channel=text,
        as_of=samples.AS_OF,
        policy_sha256=text,
        flashinfer_version=text,
        pins_sha256=text,
        commit=text,
        images={text: text},
        requirements=(
            Requirement(stage=text, subject=text, outcome=Outcome.FAIL, file=smoke, reasons=reasons[:1]),
            Requirement(stage="gsm8k", subject=text, outcome=Outcome.PASS, file=gsm8k),
            Requirement(stage=text, subject=None, outcome=Outcome.INCOMPLETE),
        ),
        reasons=reasons,
        files=(smoke, gsm8k, bad),
        earlier=(_file("smoke", text, measurements=_smoke(text)), _file("gsm8k", text, measurements=_gsm8k(text))),
        row=after,
        bump=BumpChange(before=text, after=text, row_before=before, row_after=after, companions={text: (text, text)},
                        changes=({"fact": text, "effect": text, "text": text},)),
    )  # fmt: skip


def _reason(outcome: Outcome, text: str) -> Reason:
    return Reason(
        outcome=outcome, word=text, detail=text, stage=text, subject=text, path=text, command=text, machine=text
    )


def _file(stage: str, text: str, **changes: Any) -> EvidenceFile:
    record = samples.record(stage, text, status="fail", reason=text, flashinfer_version=text, commit=text, image_id=text,
                            manifest_digest=text, pins_sha256=text, tool_version=text, **changes)  # fmt: skip
    return EvidenceFile(path=f"{stage} {text}", sha256=text, record=record)


def _smoke(text: str) -> dict[str, Any]:
    body: Any = samples.smoke("sm90")
    body["machine"]["gpus"] = [text]
    first, second, third = body["scenarios"][:3]
    first["name"] = text
    first["cold"]["record"]["strategy"] = text
    second["not_run"] = text
    third["cold"]["ranks"][0]["end"] = text
    return body  # type: ignore[no-any-return]


def _gsm8k(text: str) -> dict[str, Any]:
    body: Any = samples.evaluation()
    body["runs"][0]["cache"] = text
    body["runs"][1].update(accuracy=None, interval=None, reason=text, detail=text)
    body["baseline"]["source"] = text
    body["baseline"]["flips"] = [{"id": text, "before": text, "after": text}]
    return body  # type: ignore[no-any-return]
