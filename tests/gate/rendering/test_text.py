"""The verdict on a terminal."""

from __future__ import annotations

import pytest

from tests.gate.rendering import samples
from tests.gate.rendering.hostile import TEXTS, poisoned
from tooling.findings import Finding, Severity
from tooling.gate.text import render_text
from tooling.gate.told import render_age
from tooling.gate.values import Outcome, Requirement, Verdict


def plain(text: str, /, *styles: str) -> str:
    return text


def marked(text: str, /, *styles: str) -> str:
    return f"<{'+'.join(styles)}>{text}</>"


@pytest.mark.parametrize(
    ("hours", "told"),
    [(0, "under a minute"), (-0.0002, "under a minute"), (-0.1, "from the future"), (1, "1 hour"), (50, "2 days")],
    ids=["now", "in the second of the verdict", "another clock", "an hour", "days"],
)
def test_a_record_s_age_is_told_in_its_largest_unit(hours: float, told: str) -> None:
    file = samples.evidence(samples.record("check", hours=hours))
    assert render_age(file, samples.AS_OF) == told


def test_an_incomplete_verdict_is_told_in_order_of_urgency() -> None:
    assert (
        render_text(samples.incomplete(), plain)
        == """\
INCOMPLETE: evidence is missing or does not count
channel release, FlashInfer 0.6.13, commit 9f3b2c7d5e1a, as of 2026-05-08T02:04:00Z

first cause: MISSING smoke sm100: no record; the channel requires one for sm100 that is younger than 7 days
    run: nox -s smoke
    on: a machine with an sm100 GPU

3 of 5 requirements are met
  PASS        check                  evidence/check.json                  2 hours
  PASS        image release          evidence/image-release.json          1 hour
  PASS        smoke sm90             h200/evidence/smoke-sm90.json        1 hour
  INCOMPLETE  smoke sm100            no record
  INCOMPLETE  gsm8k qwen3-0.6b-vllm  evidence/gsm8k-qwen3-0.6b-vllm.json  20 days

why else
  - STALE gsm8k qwen3-0.6b-vllm: the record is 20 days old; the channel takes 7 days
      run: nox -s gsm8k -- configs/gsm8k/qwen3-0.6b-vllm.yaml --image flashinfer-release:0.6.13-cu13.0.2
      on: a machine with a GPU
  - HAND_EDITED the record does not match its own digest; it was changed after it was written
      file: evidence/smoke-sm103.json

still to run
  $ nox -s smoke  # a machine with an sm100 GPU
  $ nox -s gsm8k -- configs/gsm8k/qwen3-0.6b-vllm.yaml --image flashinfer-release:0.6.13-cu13.0.2  # a machine with a GPU"""
    )


def test_a_passing_verdict_names_no_cause_and_shows_what_is_to_know() -> None:
    assert (
        render_text(samples.passing(), plain)
        == """\
PASS: everything that the channel requires is proved
channel release, FlashInfer 0.6.13, commit 9f3b2c7d5e1a, as of 2026-05-08T02:04:00Z

5 of 5 requirements are met
  PASS  check                  evidence/check.json                  2 hours
  PASS  image release          evidence/image-release.json          1 hour
  PASS  smoke sm90             h200/evidence/smoke-sm90.json        1 hour
  PASS  smoke sm100            b200/evidence/smoke-sm100.json       36 minutes
  PASS  gsm8k qwen3-0.6b-vllm  evidence/gsm8k-qwen3-0.6b-vllm.json  24 minutes

also to know
  - KNOWN_FAULT smoke sm90: flashinfer#3868 was seen; release.toml allows it until 2026-06-30: bf16 GEMM falls back"""
    )


def test_nothing_at_all_is_told_too() -> None:
    assert (
        render_text(samples.empty(), plain)
        == """\
INCOMPLETE: evidence is missing or does not count
channel pr, FlashInfer not told, as of 2026-05-08T02:04:00Z

first cause: NO_EVIDENCE no folder holds a record
    run: nox -s check

nothing is required

still to run
  $ nox -s check"""
    )


def test_findings_are_told_as_elsewhere_errors_first_with_their_record() -> None:
    text = render_text(samples.failing(), plain)
    assert "3 findings in the records\n  - tooling/warmup/planning.py:88: error: deepep-low-latency: " in text
    assert (
        "[smoke-gating, h200/evidence/smoke-sm90.json]\n      hint: a rank that tunes alone makes the others wait"
        in text
    )
    assert text.index(" error: ") < text.index(" warning: ") < text.index(" note: ")


@pytest.mark.parametrize(
    ("verdict", "colour"), [(samples.passing, "green"), (samples.incomplete, "yellow"), (samples.failing, "red")]
)
def test_the_verdict_is_painted(verdict: object, colour: str) -> None:
    made: Verdict = verdict()  # type: ignore[operator]
    assert render_text(made, marked).startswith(f"<{colour}+bold>{made.outcome}</>: ")


def test_painting_keeps_the_columns_in_line() -> None:
    unpainted = render_text(samples.incomplete(), lambda text, *_: text)
    wide = render_text(samples.incomplete(), lambda text, *_: f"\x1b[1m{text}\x1b[0m")
    assert wide.replace("\x1b[1m", "").replace("\x1b[0m", "") == unpainted


def test_a_thousand_findings_end_in_a_count() -> None:
    findings = tuple(Finding(check="pins", detail=f"no. {number}", severity=Severity.WARNING) for number in range(1000))
    file = samples.evidence(samples.record("check", findings=findings))
    text = render_text(samples.verdict(Outcome.PASS, requirements=(samples.met(file),), files=(file,)), plain)
    assert "1,000 findings in the records" in text
    assert "… and 960 more: --json and --html list all" in text
    assert len(text.splitlines()) < 60


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_text_steers_the_terminal_or_the_server_that_reads_it(text: str) -> None:
    shown = render_text(poisoned(text), plain)
    shown.encode("utf-8")
    assert all(letter == "\n" or (letter.isprintable() or letter == "\u200d") for letter in shown)
    assert not any(line.lstrip().startswith("::") for line in shown.splitlines())
    assert "##[" not in shown
    assert max(map(len, shown.splitlines())) < 3_000


def test_a_requirement_alone_is_one_line() -> None:
    verdict = samples.verdict(
        Outcome.FAIL, requirements=(Requirement(stage="check", subject=None, outcome=Outcome.FAIL),)
    )
    assert "0 of 1 requirement is met\n  FAIL  check  no record" in render_text(verdict, plain)
