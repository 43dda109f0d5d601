"""What renderers take out of records."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.gate.rendering import samples
from tooling.evidence import parse_record
from tooling.gate.accuracy import scores
from tooling.gate.html_page import render_html
from tooling.gate.markdown import render_markdown
from tooling.gate.measured import earlier, gating_rows
from tooling.gate.start_up import Took, start_ups
from tooling.gate.values import EvidenceFile, Outcome, Requirement, Verdict
from tooling.smoke.scenarios import SCENARIOS


def smoke_file(body: object, *, folder: str = "evidence", **changes: Any) -> EvidenceFile:
    return samples.evidence(samples.record("smoke", "sm90", measurements=body, **changes), folder=folder)


def of(*taken: EvidenceFile, **changes: Any) -> Verdict:
    return samples.verdict(Outcome.PASS, requirements=tuple(map(samples.met, taken)), files=taken, **changes)


def test_two_starts_that_gate_differently_show_the_one_that_is_not_expected() -> None:
    body: Any = samples.smoke("sm90")
    body["scenarios"][0]["warm"]["record"].update(strategy="all_ranks", persistent=False)
    seen = gating_rows(of(smoke_file(body)))[0].seen["sm90"]
    assert (seen.strategy, seen.persistent, seen.agrees) == ("all_ranks", False, False)


def test_without_a_row_nothing_is_said_to_agree() -> None:
    rows = gating_rows(of(smoke_file(samples.smoke("sm90")), row=None))
    assert {row.expected for row in rows} == {None}
    assert {seen.agrees for row in rows for seen in row.seen.values()} == {None}


def test_each_scenario_is_expected_to_gate_as_in_its_own_world() -> None:
    rules = {
        row.scenario: row.expected and row.expected.rule for row in gating_rows(of(smoke_file(samples.smoke("sm90"))))
    }
    assert rules == {"one-rank": 7, "two-ranks": 7, "deepep-high-throughput": 4, "deepep-low-latency": 4, "deepep-v2": 4,
                     "skip-given": 7, "skip-empty": 7, "skip-automatic": 7, "cache-off": 2, "truncated": 7, "foreign": 7}  # fmt: skip


@pytest.mark.parametrize("release", ["0.6.12", "0.6.13", "0.7.0.post1"])
def test_every_scenario_of_a_real_run_is_seen_to_gate_as_expected(release: str) -> None:
    real = parse_record((samples.ROOT / f"tests/data/smoke/h200-{release}.json").read_text())
    rows = gating_rows(of(samples.evidence(real), bump=None, row=samples.row(release)))
    assert {row.scenario: row.seen["sm90"].agrees for row in rows if row.scenario in SCENARIOS} == dict.fromkeys(
        SCENARIOS, True
    )


def test_an_unknown_scenario_stands_last_without_an_expectation() -> None:
    body: Any = samples.smoke("sm90")
    body["scenarios"].insert(0, {**body["scenarios"][0], "name": "invented"})
    last = gating_rows(of(smoke_file(body)))[-1]
    assert (last.scenario, last.expected, last.about) == ("invented", None, "")


def test_the_newest_earlier_record_of_the_same_subject_is_compared_with() -> None:
    old = smoke_file(samples.smoke("sm90", factor=3), folder="a", hours=900, flashinfer_version="0.6.10")
    new = smoke_file(samples.smoke("sm90", factor=2), folder="b", hours=300, flashinfer_version="0.6.12")
    verdict = of(smoke_file(samples.smoke("sm90")), earlier=(old, new))
    assert earlier(verdict, "smoke", "sm90") is new
    assert earlier(verdict, "smoke", "sm100") is None
    (one,) = start_ups(verdict)
    assert (one.release_before, one.times[0].cold_before) == ("0.6.12", Took(seconds=122.4))


def real(release: str) -> Any:
    return parse_record((samples.ROOT / f"tests/data/smoke/h200-{release}.json").read_text()).measurements


def test_starts_that_take_clearly_longer_than_before_are_named_and_compiling_is_left_out() -> None:
    before = smoke_file(real("0.6.13"), folder="before", flashinfer_version="0.6.13", hours=900)
    verdict = of(smoke_file(real("0.7.0.post1")), earlier=(before,))
    (one,) = start_ups(verdict)
    assert one.compared == (
        "Longer than with 0.6.13, compiling left out: one-rank cold 16.6 s (was 3.4 s), two-ranks cold 18.5 s (was 3.6 s), "
        "skip-empty cold 5.0 s (was 1.2 s), truncated cold 1.3 s (was 0.6 s), foreign cold 1.3 s (was 0.6 s), "
        "foreign warm 1.2 s (was 0.5 s)."
    )
    assert "two-ranks cold 18.5 s (was 3.6 s)" in render_html(verdict)
    assert "two-ranks cold 18.5 s (was 3.6 s)" in render_markdown(verdict)


def test_compiling_is_told_beside_the_time_that_it_took_and_drawn_pale() -> None:
    verdict = of(smoke_file(real("0.7.0.post1")))
    (one,) = start_ups(verdict)
    assert one.times[0].cold == Took(seconds=54.44997951200003, compiling_s=37.802282323999975)
    assert "| <code>one-rank</code> | 54.4 s (37.8 s compiling) | 0.31 s |" in render_markdown(verdict)
    page = render_html(verdict)
    assert page.count('class="compiling"') == 1
    assert "pale: compiling kernels" in page


@pytest.mark.parametrize("other", ["h200-0.6.13-jit-cache", "h200-0.6.13"], ids=["another run", "the same run"])
def test_two_runs_of_one_release_are_no_difference(other: str) -> None:
    before = smoke_file(real(other.removeprefix("h200-")), folder="before", flashinfer_version="0.6.13", hours=900)
    (one,) = start_ups(of(smoke_file(real("0.6.13")), earlier=(before,)))
    assert one.compared == "No start takes clearly longer than with 0.6.13, compiling left out."


def test_times_of_another_gpu_are_not_compared() -> None:
    body: Any = json.loads(json.dumps(real("0.6.13")))
    body["machine"]["gpus"] = ["NVIDIA H100"]
    before = smoke_file(body, folder="before", flashinfer_version="0.6.13", hours=900)
    (one,) = start_ups(of(smoke_file(real("0.7.0.post1")), earlier=(before,)))
    assert one.compared == ""


def test_records_that_were_not_taken_are_not_shown() -> None:
    file = smoke_file(samples.smoke("sm90"))
    verdict = replace(of(file), requirements=(Requirement(stage="smoke", subject="sm90", outcome=Outcome.INCOMPLETE),))
    assert start_ups(verdict) == ()
    assert gating_rows(verdict) == ()


def test_a_record_that_stands_for_two_requirements_is_shown_once() -> None:
    file = smoke_file(samples.smoke("sm90"))
    assert len(start_ups(of(file, file))) == 1


def test_an_earlier_evaluation_stands_behind_the_present_ones() -> None:
    file = samples.evidence(samples.record("gsm8k", "qwen3-0.6b-vllm", measurements=samples.evaluation()))
    (score,) = scores(of(file))
    assert [(one.name, one.accuracy) for one in score.evaluations] == [
        ("cold cache", 0.684), ("warm cache", 0.684), ("0.6.12, before", 0.689)]  # fmt: skip
    assert (score.threshold, round(score.floor or 0, 3)) == (0.68, 0.65)
    assert [(pair.against, pair.lost, pair.gained, len(pair.flips)) for pair in score.pairs] == [
        ("the baseline", 21, 14, 35), ("the cold start", 1, 1, 2)]  # fmt: skip
