"""The verdict as a job summary, read back through GitHub's own Markdown parser."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import given
from hypothesis import strategies as st

from tests.gate.rendering import samples
from tests.gate.rendering.hostile import TEXTS, poisoned
from tooling.findings import Finding, Severity
from tooling.gate.escaping import one_line
from tooling.gate.markdown import MAX_BYTES, escape, escape_prose, render_markdown
from tooling.gate.values import EvidenceFile, Outcome, Reason, Requirement, Verdict

OURS = {"h2", "h3", "p", "blockquote", "br", "strong", "code", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "pre",
        "details", "summary"}  # fmt: skip
"""Elements that the renderer itself writes. No text may make another."""


def to_html(text: str) -> str:
    return str(cmarkgfm.github_flavored_markdown_to_html(text, options=Options.CMARK_OPT_UNSAFE))


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def read(markdown: str) -> _Reader:
    reader = _Reader()
    reader.feed(to_html(markdown))
    reader.close()
    return reader


def thousands(number: int, text: str = "pin of 0.6.12") -> Verdict:
    findings = tuple(
        Finding(check="pins", detail=f"{text} {index}", path=f"{text}/{index}", line=index) for index in range(number)
    )
    reasons = tuple(Reason(outcome=Outcome.FAIL, word="DRIFT", detail=f"{text} {index}", command=f"{text} {index}")
                    for index in range(number))  # fmt: skip
    file = samples.evidence(samples.record("check", status="fail", findings=findings))
    files = tuple(
        EvidenceFile(path=f"{text}/{index}.json", sha256="a" * 64, reason="UNPARSABLE") for index in range(number)
    )
    requirements = tuple(Requirement(stage="check", subject=f"{text} {index}", outcome=Outcome.FAIL, file=file, reasons=(reason,))
                         for index, reason in enumerate(reasons))  # fmt: skip
    return replace(samples.failing(), requirements=requirements, reasons=reasons, files=(file, *files))


def test_nothing_at_all_is_a_short_summary() -> None:
    assert (
        render_markdown(samples.empty())
        == """\
## Release gate: INCOMPLETE

> [!WARNING]
> First cause: **<code>NO_EVIDENCE</code>** no folder holds a record<br>
> Run: <code>nox -s check</code>

FlashInfer not told, channel <code>pr</code>, as of 2026-05-08T02:04:00Z: evidence is missing or does not count.

### Requirements

nothing is required.

### Still to run

```console
nox -s check
```
"""
    )


def test_the_first_cause_stands_on_top_with_its_command_and_machine() -> None:
    assert render_markdown(samples.failing()).startswith("""\
## Release gate: FAIL

> [!CAUTION]
> First cause: **<code>WRONG_STRATEGY</code>** smoke sm90: deepep-low-latency: the warm-up chose leader_broadcast, persistent; \
expected all_ranks, not persistent<br>
> File: <code>h200/evidence/smoke-sm90.json</code><br>
> Run on a machine with two sm90 GPUs: <code>nox -s smoke -- --scenario deepep-low-latency</code>

FlashInfer <code>0.6.13</code>, channel <code>release</code>, commit <code>9f3b2c7d5e1a</code>, as of 2026-05-08T02:04:00Z: \
something that was tested is not good enough.

### Requirements

4 of 5 requirements are met.

| Outcome | Requirement | Why | Record | Age |
| --- | --- | --- | --- | --- |
| **FAIL** | smoke sm90 | deepep-low-latency: the warm-up chose leader_broadcast, persistent; expected all_ranks, not persistent \
| <code>h200/evidence/smoke-sm90.json</code> | 1 hour |
""")


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_every_table_is_read_as_one(name: str) -> None:
    text = render_markdown(samples.SAMPLES[name]())
    assert text.count("\n| --- ") == to_html(text).count("<table>")
    assert "|" not in read(text).text


def test_a_passing_summary_tells_bump_times_accuracy_and_records() -> None:
    text = render_markdown(samples.passing())
    headings = re.findall(r"^### (.*)$", text, re.MULTILINE)
    assert headings == ["Requirements", "Also to know", "What this bump changes", "Start-up time, sm90", "Start-up time, sm100",
                        "Accuracy"]  # fmt: skip
    assert "| <code>one-rank</code> | 61.2 s | 0.65 s | 68.5 s | 37.7 s |" in text
    assert "| qwen3-0.6b-vllm | cold cache | 0.684 (0.659 to 0.709) |" in text
    assert "<details><summary>7 records</summary>" in text


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_text_is_more_than_text(text: str) -> None:
    reader = read(render_markdown(poisoned(text)))
    assert set(reader.tags) <= OURS
    assert set(reader.attributes) <= {("lang", "console")}
    assert one_line(text)[:30] in reader.text.replace("\u200b", "")


@given(st.text(st.characters(exclude_categories=()), max_size=80))
def test_escaped_text_reads_back_as_itself(text: str) -> None:
    in_code = read(f"a <code>{escape(text)}</code> b")
    assert set(in_code.tags) == {"p", "code"}
    assert in_code.text == f"a {one_line(text)} b\n"
    in_cell = read(f"| a | b |\n| --- | --- |\n| {escape_prose(text)} | c |\n")
    assert set(in_cell.tags) <= OURS - {"ul", "li", "pre", "strong", "code"}
    assert " ".join(in_cell.text.replace("\u200b", "").split()) == f"a b {one_line(text)} c".replace("  ", " ")


def test_nobody_is_mentioned_and_no_issue_referred_to() -> None:
    written = html.unescape(escape_prose("ask @octocat of @org/team about #12, GH-13, octo/repo#14"))
    assert written == "ask @\u200boctocat of @\u200borg/team about #\u200b12, GH-\u200b13, octo/repo#\u200b14"


def test_what_is_copied_holds_no_hidden_mark() -> None:
    reader = read(f"<code>{escape('nox -s image -- me@evil.example #1')}</code>")
    assert reader.text == "nox -s image -- me@evil.example #1\n"
    assert set(reader.tags) == {"p", "code"}


@pytest.mark.parametrize("text", ["pin of 0.6.12", "|" * 200, "\U000e0001" * 200, "漢" * 200, "<@|>" * 50])
def test_a_summary_of_thousands_of_findings_stays_below_a_mebibyte(text: str) -> None:
    summary = render_markdown(thousands(2500, text))
    assert len(summary.encode()) <= MAX_BYTES < 1 << 20
    assert re.search(r"… and \d,\d{3} more\.", summary)
    assert "2,500 findings, errors first." in summary
    assert set(read(summary).tags) <= OURS


@pytest.mark.parametrize("text", ["pin of 0.6.12", "|" * 200, "\U000e0001" * 200])
def test_a_smaller_limit_holds_for_a_pull_requests_body(text: str) -> None:
    assert len(render_markdown(thousands(2000, text), limit_bytes=65_000).encode()) <= 65_000


def test_a_command_with_backticks_stays_inside_its_block() -> None:
    reason = Reason(outcome=Outcome.FAIL, word="X", detail="d", command="a ``` b ```` c")
    reader = read(render_markdown(samples.verdict(Outcome.FAIL, reasons=(reason,), bump=None, earlier=())))
    assert reader.tags.count("pre") == 1
    assert "a ``` b ```` c\n" in reader.text


def test_warnings_and_notes_stand_behind_errors() -> None:
    text = render_markdown(samples.failing())
    assert (
        text.index(f"| {Severity.ERROR} |") < text.index(f"| {Severity.WARNING} |") < text.index(f"| {Severity.NOTE} |")
    )
