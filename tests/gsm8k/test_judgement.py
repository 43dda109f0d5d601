"""Scores, comparisons and whole evaluations, judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.gsm8k.samples import make_answers, make_config, make_problem
from tooling.errors import InputError
from tooling.findings import Finding, Severity
from tooling.gsm8k.comparison import (
    Baseline,
    check_comparison,
    check_conditions,
    check_speed,
    compare,
    parse_baseline,
)
from tooling.gsm8k.config import Config
from tooling.gsm8k.judgement import check_score
from tooling.gsm8k.report import render_plan, render_report, render_run
from tooling.gsm8k.results import DataSet, Run, ServerFacts, conditions, render_measurements, render_questions
from tooling.gsm8k.score import Verdict, count, measure_speed
from tooling.gsm8k.verdict import check_data, compare_runs, judge_stage
from tooling.gsm8k.watchdog import Stop

ROOT = Path(__file__).resolve().parents[2]
FACTS = ServerFacts(kind="process", url="http://127.0.0.1:1", model="tiny", command="serve", env={"A": "1"})


def make_run(**counts: int) -> Run:
    return Run(cache="cold", startup_s=3.0, answers=make_answers(**counts), seconds=10.0)


def make_data(questions: int = 4) -> DataSet:
    asked = tuple(make_problem(number) for number in range(1, questions + 1))
    return DataSet(
        source="shipped", test_sha256="0" * 64, train_sha256="1" * 64, available=questions, questions=asked,
        shots=(make_problem(99),),
    )  # fmt: skip


def reasons(findings: list[Finding], severity: Severity = Severity.ERROR) -> list[str]:
    return [finding.reason for finding in findings if finding.severity is severity]


def judged(config: Config, **counts: int) -> list[Finding]:
    return check_score(count(make_answers(**counts), "flexible"), config)


def test_what_was_lost_is_counted_apart_from_what_is_wrong() -> None:
    counts = count(make_answers(correct=6, wrong=2, unparsable=1, lost=1), "flexible")
    assert (counts.correct, counts.wrong, counts.unparsable, counts.failed) == (6, 2, 1, 1)
    assert counts.accuracy == 6 / 9
    assert counts.total == 10


def test_no_reply_at_all_is_no_accuracy_of_zero() -> None:
    counts = count(make_answers(correct=0, lost=3), "flexible")
    assert counts.accuracy is None
    assert reasons(judged(make_config(max_failed_rate=0.2), correct=0, lost=3)) == ["EVAL_ABORTED"]
    assert reasons(judged(make_config(), correct=0)) == ["NO_VALID_RESULT"]


SCORES: dict[str, tuple[dict[str, int], str | None]] = {
    "good": ({"correct": 90, "wrong": 10}, None),
    "below": ({"correct": 40, "wrong": 60}, "BELOW_THRESHOLD"),
    "many without a number": ({"correct": 90, "unparsable": 10}, "NO_VALID_RESULT"),
    "few without a number": ({"correct": 96, "unparsable": 4}, None),
    "lost": ({"correct": 97, "lost": 3}, "EVAL_ABORTED"),
    "one lost": ({"correct": 99, "lost": 1}, None),
    "lost hides a low score": ({"correct": 40, "wrong": 40, "lost": 20}, "EVAL_ABORTED"),
}


@pytest.mark.parametrize(("counts", "reason"), SCORES.values(), ids=SCORES.keys())
def test_a_score_is_judged_by_the_first_thing_that_is_wrong_with_it(counts: dict[str, int], reason: str | None) -> None:
    assert reasons(judged(make_config(), **counts)) == ([] if reason is None else [reason])


def test_a_low_score_says_how_far_away_it_is() -> None:
    [finding] = [finding for finding in judged(make_config(), correct=40, wrong=60) if finding.severity == "error"]
    assert "accuracy 0.400 is below 0.480" in finding.detail
    assert "1.6 standard errors away" in finding.detail


def test_a_gate_that_would_pass_a_five_point_drop_is_warned_about() -> None:
    loose = judged(make_config(accuracy_threshold=0.38), correct=770, wrong=549)
    assert reasons(loose, Severity.WARNING) == ["LOOSE_GATE"]
    assert "only a drop of 2" in loose[0].detail
    tight = judged(make_config(accuracy_threshold=0.58, tolerance=0.02), correct=770, wrong=549)
    assert reasons(tight, Severity.WARNING) == []


def test_a_score_that_only_the_tolerance_lets_pass_is_noted() -> None:
    findings = judged(make_config(accuracy_threshold=0.6, tolerance=0.04), correct=770, wrong=549)
    assert reasons(findings, Severity.NOTE) == ["WITHIN_TOLERANCE"]


RIGHT, WRONG, LOST = Verdict.CORRECT, Verdict.WRONG, Verdict.FAILED


def verdicts(text: str) -> dict[str, Verdict]:
    kinds = {"+": RIGHT, "-": WRONG, "x": LOST}
    return {str(number): kinds[letter] for number, letter in enumerate(text)}


def test_only_questions_with_two_replies_are_paired() -> None:
    comparison = compare(verdicts("++--x"), {**verdicts("+-+-+"), "other": RIGHT})
    assert comparison is not None
    assert (comparison.paired, comparison.unpaired) == (4, 2)
    assert [(flip.id, flip.before, flip.after) for flip in comparison.flips] == [
        ("1", RIGHT, WRONG),
        ("2", WRONG, RIGHT),
    ]
    assert comparison.delta == 0
    assert comparison.p_value == 1.0
    assert compare(verdicts("x"), verdicts("+")) is None


CHANGES = {
    "the same": ("+" * 50 + "-" * 50, "+" * 50 + "-" * 50, None, None),
    "one flip": ("+" * 20, "+" * 19 + "-", None, None),
    "a large drop": ("+" * 100, "+" * 95 + "-" * 5, "ACCURACY_DROP", "WARM_CACHE_CHANGES_ACCURACY"),
    "a large gain": ("+" * 95 + "-" * 5, "+" * 100, None, "WARM_CACHE_CHANGES_ACCURACY"),
    "a small significant drop": ("+" * 1000, "+" * 993 + "-" * 7, "ACCURACY_DROP", "WARM_CACHE_CHANGES_ACCURACY"),
    "a small insignificant drop": ("+" * 1000, "+" * 996 + "-" * 4, None, None),
    "nothing to compare": ("x", "+", "NOT_COMPARED", "NOT_COMPARED"),
}


@pytest.mark.parametrize(("before", "after", "drop", "warm"), CHANGES.values(), ids=CHANGES.keys())
def test_a_baseline_must_not_drop_and_a_warm_cache_must_change_nothing(
    before: str, after: str, drop: str | None, warm: str | None
) -> None:
    comparison = compare(verdicts(before), verdicts(after))
    assert reasons(check_comparison(comparison, make_config(), warm=False)) == ([drop] if drop else [])
    assert reasons(check_comparison(comparison, make_config(), warm=True)) == ([warm] if warm else [])


def make_baseline(speed: float | None, *, seconds: float | None = 60.0, concurrency: int | None = 32) -> Baseline:
    return Baseline(
        verdicts={}, questions_per_second=speed, startup_s=None, conditions={}, seconds=seconds, concurrency=concurrency
    )


def check_fallen(baseline: Baseline, speed: float, *, seconds: float = 60.0) -> list[Finding]:
    answers = make_answers(correct=int(speed * seconds))
    return check_speed(baseline, measure_speed(answers, seconds=seconds), make_config())


def test_a_slower_release_is_a_finding() -> None:
    assert check_fallen(make_baseline(10.0), 8.5) == []
    assert check_fallen(make_baseline(10.0), 20.0) == []
    assert reasons(check_fallen(make_baseline(10.0), 7.0)) == ["SLOWER"]


SPEEDS = {
    "none": (make_baseline(None), 60.0, "has no speed"),
    "a short baseline": (make_baseline(10.0, seconds=9.0), 60.0, "a run of 9.0 s is too short"),
    "a short run": (make_baseline(10.0), 4.0, "a run of 4.0 s is too short"),
    "another concurrency": (make_baseline(10.0, concurrency=8), 60.0, "asked 8 at a time, not 32"),
    "an unknown concurrency": (make_baseline(10.0, concurrency=None), 60.0, "asked an unknown number"),
}


@pytest.mark.parametrize(("baseline", "seconds", "why"), SPEEDS.values(), ids=SPEEDS.keys())
def test_speeds_that_say_nothing_are_not_compared(baseline: Baseline, seconds: float, why: str) -> None:
    [finding] = check_fallen(baseline, 1.0, seconds=seconds)
    assert (finding.severity, finding.reason) == (Severity.NOTE, "NOT_COMPARED")
    assert why in finding.detail


def test_a_warm_cache_that_ruins_answers_fails_although_the_threshold_holds() -> None:
    config = make_config(accuracy_threshold=0.55)
    cold, warm = make_run(correct=81, wrong=19), make_run(correct=60, wrong=40)
    comparisons = compare_runs(config, [cold, warm], None)
    found = judge_stage(config, [cold, warm], FACTS, comparisons, baseline=None, pinned=None)
    assert reasons(found) == ["WARM_CACHE_CHANGES_ACCURACY"]
    assert "0.810 to 0.600" in found[-1].detail


def test_a_crash_is_said_with_its_cause_first() -> None:
    stop = Stop(reason="SERVER_CRASHED", detail="the server exited with code 3")
    run = Run(cache="cold", startup_s=1.0, answers=(), seconds=0.0, stop=stop, cause="RuntimeError: no")
    [finding] = judge_stage(make_config(), [run], FACTS, {}, baseline=None, pinned=None)
    assert (finding.reason, finding.detail) == ("SERVER_CRASHED", "RuntimeError: no: the server exited with code 3")


def test_another_flashinfer_than_the_pinned_one_is_an_error() -> None:
    def skew(installed: str | None, pinned: str | None) -> list[str]:
        facts = ServerFacts(
            kind="image", url="", model="m", command=None, env={}, flashinfer_version=installed, flashinfer_known_by="x"
        )
        return reasons(judge_stage(make_config(), [], facts, {}, baseline=None, pinned=pinned))

    assert skew("0.6.12", "0.6.13") == ["IMAGE_SKEW"]
    assert skew("0.6.13+cu130", "0.6.13") == []
    assert skew(None, "0.6.13") == []
    assert skew("0.6.13", None) == []


def test_fewer_problems_than_asked_for_are_warned_about() -> None:
    assert check_data(make_config(num_questions=4), make_data(4)) == []
    [finding] = check_data(make_config(num_questions=1319), make_data(4))
    assert (finding.severity, finding.reason) == (Severity.WARNING, "FEWER_QUESTIONS")
    assert "--data" in finding.hint


def measurements(run: Run, config: Config) -> dict[str, Any]:
    return render_measurements(
        config, data=make_data(len(run.answers)), server=FACTS, runs=[run], baseline=None, warm=None,
        baseline_source=None, files={"questions": {"name": "q", "sha256": "0" * 64}, "report": {"name": "r", "sha256": "0" * 64}},
    )  # fmt: skip


def test_measurements_and_questions_follow_their_schemas() -> None:
    run = make_run(correct=2, wrong=1, unparsable=1, lost=1)
    schemas = ROOT / "tooling/data/schemas"
    value = json.loads(json.dumps(measurements(run, make_config(num_questions=5)), allow_nan=False))
    jsonschema.validate(value, json.loads((schemas / "gsm8k-measurements.schema.json").read_text()))
    lines = render_questions([run]).splitlines()
    assert len(lines) == 5
    for line in lines:
        jsonschema.validate(json.loads(line), json.loads((schemas / "gsm8k-question.schema.json").read_text()))


def test_a_run_that_stopped_has_no_accuracy() -> None:
    stop = Stop(reason="SERVER_DIED", detail="d")
    run = Run(cache="cold", startup_s=1.0, answers=make_answers(correct=3, lost=2), seconds=1.0, stop=stop)
    [value] = measurements(run, make_config())["runs"]
    assert value["accuracy"] is value["strict"]["accuracy"] is value["interval"] is None
    assert value["flexible"]["correct"] == 3


def test_a_record_is_a_baseline_for_the_next() -> None:
    config, run = make_config(), make_run(correct=3, wrong=1)
    baseline = parse_baseline(measurements(run, config), path="b.json")
    assert baseline.verdicts == run.verdicts("flexible")
    assert (baseline.questions_per_second, baseline.seconds, baseline.concurrency) == (0.4, 10.0, 32)
    check_conditions(baseline, conditions(config, make_data()), path="b.json")


def test_a_baseline_under_other_conditions_is_refused() -> None:
    baseline = parse_baseline(measurements(make_run(correct=3), make_config()), path="b.json")
    other = conditions(make_config(num_fewshot=8, api="chat"), make_data())
    with pytest.raises(InputError) as caught:
        check_conditions(baseline, other, path="b.json")
    assert caught.value.reason == "BASELINE_MISMATCH"
    assert "num_fewshot was 5 and is 8" in caught.value.message
    assert "api was 'completions' and is 'chat'" in caught.value.message


@pytest.mark.parametrize("value", [{}, {"verdicts": {}, "runs": []}, {"verdicts": {"a": "perhaps"}, "runs": [{}]}])
def test_what_is_no_finished_evaluation_is_no_baseline(value: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        parse_baseline(value, path="b.json")
    assert caught.value.reason == "BAD_BASELINE"


@pytest.mark.parametrize("stop", [None, Stop(reason="SERVER_DIED", detail="d")], ids=["no replies", "it died"])
def test_what_measured_nothing_is_no_baseline(stop: Stop | None) -> None:
    answers = make_answers(correct=3 if stop else 0, lost=2)
    run = Run(cache="cold", startup_s=1.0, answers=answers, seconds=1.0, stop=stop)
    with pytest.raises(InputError, match="measured no accuracy") as caught:
        parse_baseline(measurements(run, make_config()), path="b.json")
    assert caught.value.reason == "BAD_BASELINE"


def test_speed_needs_every_replys_tokens() -> None:
    speed = measure_speed(make_answers(correct=4, lost=1), seconds=2.0)
    assert (speed.questions_per_second, speed.output_tokens, speed.latency_median_s) == (2.0, 20, 0.5)
    assert measure_speed((), seconds=0.0).questions_per_second is None


def test_a_run_reads_like_this() -> None:
    assert render_run(make_run(correct=90, wrong=8, unparsable=2), make_config()) == [
        "start         ready after 3.0 s (cold cache)",
        "accuracy      0.900  90 of 100 (flexible: the last number)",
        "              0.900  90 of 100 (strict: the number after ####)",
        "replies       90 correct, 8 wrong, 2 without a number, 0 empty, 0 failed, 0 timed out, 0 never asked",
        "interval      0.826 to 0.945 (Wilson, 95 %)",
        "distance      14.0 standard errors above what is expected",
        "smallest drop 8.8 points that this run can detect at 80 % power; its threshold catches: 46.7 points",
        "speed         10.00 questions/s, 50 output tokens/s, median latency 0.50 s, 95 % within 0.50 s (10.0 s)",
    ]


def test_a_plan_reads_like_this() -> None:
    config = make_config(num_questions=4, slice="seeded", slice_seed=3)
    assert render_plan(config, make_data(), FACTS, restarts=1) == [
        "c: 4 of 4 questions (sample of seed 3), 5 shots, completions, 32 at a time, data: shipped",
        "  expected     accuracy 0.480 or more (threshold 0.5, tolerance 0.02)",
        "  budget       1200 s to become ready, then once more over the warm cache",
        "  server       serve",
        "  environment  A = 1",
    ]


def test_a_report_names_what_went_wrong_and_shows_examples() -> None:
    run = make_run(correct=1, wrong=1, lost=1)
    comparison = compare({answer.problem.id: WRONG for answer in run.answers}, run.verdicts("flexible"))
    assert comparison is not None
    finding = Finding(check="gsm8k-score", detail="too low", reason="BELOW_THRESHOLD")
    text = render_report(
        make_config(), status="fail", data=make_data(3), server=FACTS, runs=[run], comparisons={"baseline": comparison},
        findings=[finding],
    )  # fmt: skip
    assert text.startswith("# GSM8K c: fail\n\n- **error** too low\n")
    assert "- failed, expected 3: What is 3? -> broken" in text
    assert "- wrong, expected 2: What is 2? -> #### -1" in text
    assert "wrong -> correct: What is 1?" in text
    assert "FlashInfer: not known" in text


def test_a_baseline_value_can_be_made_by_hand() -> None:
    baseline = Baseline(verdicts={"a": RIGHT}, questions_per_second=None, startup_s=None, conditions={})
    assert compare_runs(make_config(), [], baseline) == {}
