"""Records altered field by field, and sealed again: each alteration turns the verdict, with the word that says how."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.gate.samples import (
    AS_OF,
    COMMIT,
    CONFIG,
    IMAGE,
    OTHER_COMMIT,
    OTHER_CONFIG,
    OTHER_IMAGE,
    OTHER_PINS,
    PINS,
    POLICY,
    evidence,
    make_channel,
    measured,
    verdict_of,
    words,
)
from tests.smoke.samples import _Maker, judged_for, seen_for
from tooling.errors import InputError
from tooling.evidence import Record, parse_record, seal
from tooling.findings import Finding, Severity
from tooling.gate.candidate import Given
from tooling.gate.values import Outcome
from tooling.gsm8k.data_location import PUBLIC_TEST_SHA256, PUBLIC_TRAIN_SHA256
from tooling.smoke.judgement import measurements
from tooling.smoke.observations import ScenarioSeen
from tooling.smoke.scenarios import SCENARIOS

ERROR = Finding(check="c", detail="it broke", reason="BROKEN")
WARNING = Finding(check="c", detail="look", severity=Severity.WARNING, reason="LOOK")
TITLES = list(evidence())

FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "fails": ({"status": "fail", "reason": "BROKEN", "findings": (ERROR,)}, "BROKEN"),
    "fails without an error": ({"status": "fail", "reason": "BROKEN"}, "CONTRADICTORY"),
    "did not run": ({"status": "not-run", "reason": "NO_GPU"}, "NOT_RUN"),
    "passes with an error": ({"findings": (WARNING, ERROR)}, "CONTRADICTORY"),
    "passes with a reason": ({"reason": "BROKEN"}, "CONTRADICTORY"),
    "a reason that is no word": ({"reason": "it broke"}, "MALFORMED"),
    "other pins": ({"pins_sha256": OTHER_PINS}, "FOREIGN"),
    "no pins": ({"pins_sha256": None}, "NO_PINS"),
    "pins that are no digest": ({"pins_sha256": "x"}, "MALFORMED"),
    "another release": ({"flashinfer_version": "0.6.12"}, "FOREIGN"),
    "no release": ({"flashinfer_version": None}, "NO_PINS"),
    "a release that is no version": ({"flashinfer_version": "newest"}, "MALFORMED"),
    "no commit": ({"commit": None}, "NO_COMMIT"),
    "a branch for a commit": ({"commit": "release-candidate"}, "MALFORMED"),
    "an empty commit": ({"commit": ""}, "MALFORMED"),
    "a dirty tree": ({"dirty": True}, "DIRTY"),
    "nobody knows whether it is dirty": ({"dirty": None}, "DIRTY"),
    "ends before it starts": ({"ended": AS_OF - timedelta(hours=6)}, "BAD_TIME"),
    "starts in the future": ({"started": AS_OF + timedelta(hours=1)}, "FUTURE"),
    "ends in the future": ({"ended": AS_OF + timedelta(minutes=6)}, "FUTURE"),
    "is eight days old": ({"started": AS_OF - timedelta(9), "ended": AS_OF - timedelta(8)}, "STALE"),
    "a tool without a version": ({"tool_version": "main"}, "MALFORMED"),
    "an image that is no digest": ({"image_id": "latest"}, "MALFORMED"),
    "a manifest that is no digest": ({"manifest_digest": "latest"}, "MALFORMED"),
}


@pytest.mark.parametrize("title", TITLES)
@pytest.mark.parametrize(("changes", "word"), FIELDS.values(), ids=FIELDS)
def test_each_field_altered_turns_the_verdict(title: str, changes: dict[str, Any], word: str) -> None:
    records = evidence()
    records[title] = replace(records[title], **changes)
    verdict = verdict_of(records)
    assert verdict.outcome is (Outcome.FAIL if word == "BROKEN" else Outcome.INCOMPLETE)
    # Where the image itself is altered, it is the others that are foreign to it.
    wanted = "FOREIGN " if word == "FOREIGN" and title == "image release" else f"{word} {title}"
    assert any(found.startswith(wanted) for found in words(verdict)), words(verdict)


@pytest.mark.parametrize("key", sorted(seal(evidence()["smoke sm90"]).keys() - {"format"}))
def test_each_field_altered_without_sealing_is_no_record(key: str) -> None:
    body = {**seal(evidence()["smoke sm90"]), key: "altered"}
    with pytest.raises(InputError) as refused:
        parse_record(json.dumps(body))
    assert refused.value.reason == "HAND_EDITED"


@pytest.mark.parametrize("title", ["check", "smoke sm90", "gsm8k qwen"])
def test_another_commit_than_the_images_is_foreign(title: str) -> None:
    records = evidence()
    records[title] = replace(records[title], commit=OTHER_COMMIT)
    assert words(verdict_of(records)) == [f"FOREIGN {title}"]


@pytest.mark.parametrize("title", ["smoke sm90", "gsm8k qwen"])
def test_another_image_and_no_image_do_not_count(title: str) -> None:
    for image, word in ((OTHER_IMAGE, "FOREIGN"), (None, "NO_IMAGE")):
        records = evidence()
        records[title] = replace(records[title], image_id=image)
        if title.startswith("gsm8k"):
            records[title] = measured(records[title], "server", "image_id", to=image)
        assert words(verdict_of(records)) == [f"{word} {title}"]


def test_a_record_of_another_subject_leaves_the_one_asked_for_missing() -> None:
    records = evidence()
    records["image release"] = replace(records["image release"], subject="nightly")
    assert "MISSING image release" in words(verdict_of(records))


CLOCKS = {
    "at the limit": (timedelta(hours=168), None),
    "a second past it": (timedelta(hours=168, seconds=1), "STALE"),
    "a clock that is five minutes ahead": (-timedelta(minutes=5), None),
    "a clock that is six minutes ahead": (-timedelta(minutes=6), "FUTURE"),
    "next century": (-timedelta(days=40_000), "FUTURE"),
    "years ago": (timedelta(days=4000), "STALE"),
}


@pytest.mark.parametrize(("age", "word"), CLOCKS.values(), ids=CLOCKS)
def test_the_age_of_a_record(age: timedelta, word: str | None) -> None:
    records = evidence()
    records["check"] = replace(records["check"], started=AS_OF - age, ended=AS_OF - age)
    assert words(verdict_of(records)) == ([] if word is None else [f"{word} check"])


def test_the_channel_sets_the_age_for_each_stage() -> None:
    channel = make_channel(
        "[channels.release.image]", "max_age_hours = {check = 1, smoke = 0.5}\n[channels.release.image]"
    )
    assert words(verdict_of(evidence(), channel)) == ["STALE check", "STALE smoke sm90"]


def drop(key: str) -> Any:
    return lambda old: {name: value for name, value in old.items() if name != key}


def every(verdict: str, *, of: str | None = None, first: int | None = None) -> Any:
    """That verdict for all questions, for those that had another one, or for the first ones."""

    def change(old: dict[str, str]) -> dict[str, str]:
        chosen = [key for key, value in old.items() if of in {None, value}]
        return {**old, **dict.fromkeys(chosen[:first], verdict)}

    return change


MEASURED: dict[str, tuple[str, tuple[str | int, ...], Any, str]] = {
    "a check that saw another pin": ("check", ("sites", 0, "version"), "0.6.12", "CONTRADICTORY"),
    "a check that saw none": ("check", ("sites",), [], "CONTRADICTORY"),
    "an image with another release": ("image release", ("versions", "flashinfer-python"), "0.6.12", "CONTRADICTORY"),
    "an image with another cubin": ("image release", ("versions", "flashinfer-cubin"), "0.6.12", "CONTRADICTORY"),
    "an image without the library": ("image release", ("versions",), {}, "CONTRADICTORY"),
    "an image without layers": ("image release", ("layers",), [], "CONTRADICTORY"),
    "a build that was told another release": (
        "image release", ("overrides",), ["release.args.FLASHINFER_VERSION=0.6.14"], "OVERRIDE"),
    "layers that are no digests": ("image release", ("layers", 1), "x", "CONTRADICTORY"),
    "what the build was told, in another shape": (
        "image release", ("overrides",), {"release.args.FLASHINFER_VERSION": "0.6.14"}, "CONTRADICTORY"),
    "no word of what the build was told": ("image release", ("overrides",), None, "CONTRADICTORY"),
    "no GPU": ("smoke sm90", ("machine", "gpus"), [], "CONTRADICTORY"),
    "another GPU": ("smoke sm90", ("machine", "arch"), "sm100", "CONTRADICTORY"),
    "another release installed": ("smoke sm90", ("machine", "packages", "flashinfer-python"), "0.6.12", "CONTRADICTORY"),
    "no release installed": ("smoke sm90", ("machine", "packages", "flashinfer-python"), None, "CONTRADICTORY"),
    "another cubin installed": ("smoke sm90", ("machine", "packages", "flashinfer-cubin"), "0.6.12", "CONTRADICTORY"),
    "no scenario": ("smoke sm90", ("scenarios",), [], "NOT_COVERED"),
    "one rank only": ("smoke sm90", ("scenarios",), lambda old: old[:1], "NOT_COVERED"),
    "a scenario that did not run": ("smoke sm90", ("scenarios", 1, "not_run"), "one GPU", "CONTRADICTORY"),
    "a cold run that is not there": ("smoke sm90", ("scenarios", 0, "cold"), None, "CONTRADICTORY"),
    "a scenario twice": ("smoke sm90", ("scenarios",), lambda old: [*old, old[0]], "CONTRADICTORY"),
    "an unknown scenario": ("smoke sm90", ("scenarios", 0, "name"), "three-ranks", "CONTRADICTORY"),
    "a rank that hung": ("smoke sm90", ("scenarios", 0, "cold", "ranks", 0, "end"), "hung", "CONTRADICTORY"),
    "another strategy": ("smoke sm90", ("scenarios", 0, "cold", "ranks", 0, "strategy"), "all_ranks", "CONTRADICTORY"),
    "a bypass": ("smoke sm90", ("bypasses",), {"FLASHINFER_DISABLE_VERSION_CHECK": "1"}, "BYPASS"),
    "an operator's setting": ("smoke sm90", ("overrides",), {"FLASHINFER_NVCC_THREADS": "1"}, "OVERRIDE"),
    "something else not covered": ("smoke sm90", ("not_covered",), ["fp4_gemm on sm90"], "NOT_COVERED"),
    "a warm start that is slow": ("smoke sm90", ("scenarios", 0, "warm", "seconds"), 5.0, "WARM_TOO_SLOW"),
    "a field gone": ("smoke sm90", ("machine",), drop("arch"), "CONTRADICTORY"),
    "a judgement that fails": ("smoke sm90", ("judged", "status"), "fail", "CONTRADICTORY"),
    "few questions": ("gsm8k qwen", ("data", "asked"), 50, "FEW_QUESTIONS"),
    "more questions than verdicts": ("gsm8k qwen", ("data", "asked"), 1319, "CONTRADICTORY"),
    "no baseline": ("gsm8k qwen", ("baseline",), None, "NO_BASELINE"),
    "lost against the baseline": (
        "gsm8k qwen", ("baseline",), lambda old: {**old, "lost": 40, "p_value": 0.001}, "CONTRADICTORY"),
    "a baseline of which no question was asked": ("gsm8k qwen", ("baseline", "paired"), 0, "CONTRADICTORY"),
    "a baseline with more questions than were asked": ("gsm8k qwen", ("baseline", "paired"), 10**9, "CONTRADICTORY"),
    "a baseline with more flips than questions": (
        "gsm8k qwen", ("baseline",), lambda old: {**old, "lost": 100, "gained": 101}, "CONTRADICTORY"),
    "a baseline that was lost against with another p": (
        "gsm8k qwen", ("baseline",), lambda old: {**old, "lost": 40, "p_value": 1.0}, "CONTRADICTORY"),
    "counts of a comparison that are none": ("gsm8k qwen", ("baseline", "lost"), "3", "CONTRADICTORY"),
    "below the threshold": ("gsm8k qwen", ("runs", 0, "accuracy"), 0.5, "CONTRADICTORY"),
    "no accuracy": ("gsm8k qwen", ("runs", 0, "accuracy"), None, "CONTRADICTORY"),
    "a better accuracy than its verdicts": ("gsm8k qwen", ("runs", 0, "accuracy"), 0.9, "CONTRADICTORY"),
    "an accuracy without a reply": ("gsm8k qwen", ("verdicts",), every("timeout"), "CONTRADICTORY"),
    "more lost questions than the evaluation takes": ("gsm8k qwen", ("verdicts",), every("failed", first=4), "CONTRADICTORY"),
    "more empty replies than the evaluation takes": (
        "gsm8k qwen", ("verdicts",), every("empty", of="wrong"), "CONTRADICTORY"),
    "a run that crashed": ("gsm8k qwen", ("runs", 0, "reason"), "SERVER_CRASH", "CONTRADICTORY"),
    "no run": ("gsm8k qwen", ("runs",), [], "CONTRADICTORY"),
    "another release served": ("gsm8k qwen", ("server", "flashinfer_version"), "0.6.12", "CONTRADICTORY"),
    "another image served": ("gsm8k qwen", ("server", "image_id"), OTHER_IMAGE, "CONTRADICTORY"),
    "a version check that is silenced": (
        "gsm8k qwen", ("server", "env"), {"FLASHINFER_DISABLE_VERSION_CHECK": "1"}, "BYPASS"),
    "no server": ("gsm8k qwen", ("server",), None, "CONTRADICTORY"),
}  # fmt: skip


@pytest.mark.parametrize(("title", "path", "value", "word"), MEASURED.values(), ids=MEASURED)
def test_each_measurement_that_does_not_fit_a_pass_is_seen(
    title: str, path: tuple[str | int, ...], value: Any, word: str
) -> None:
    records = evidence()
    records[title] = measured(records[title], *path, to=value)
    verdict = verdict_of(records)
    assert verdict.outcome is not Outcome.PASS
    assert f"{word} {title}" in words(verdict)


def test_an_evaluation_that_gained_against_the_baseline_passes() -> None:
    better = measured(
        evidence()["gsm8k qwen"], "baseline", to=lambda old: {**old, "lost": 0, "gained": 40, "p_value": 1e-9}
    )
    assert words(verdict_of({**evidence(), "gsm8k qwen": better})) == []


@pytest.mark.parametrize("title", TITLES)
def test_a_pass_that_measured_nothing_contradicts_itself(title: str) -> None:
    records = evidence()
    records[title] = replace(records[title], measurements={})
    assert words(verdict_of(records))[0] == f"CONTRADICTORY {title}"


def test_of_a_stage_that_did_not_run_nothing_else_is_said() -> None:
    records = evidence()
    records["smoke sm90"] = replace(
        records["smoke sm90"],
        status="not-run",
        reason="NO_GPU",
        image_id=None,
        commit=None,
        dirty=None,
        measurements={},
    )
    assert words(verdict_of(records)) == ["NOT_RUN smoke sm90"]


@pytest.mark.parametrize("commit", ["", "main", "release-candidate", "c" * 65])
def test_records_that_agree_on_what_is_no_commit_do_not_count(commit: str) -> None:
    verdict = verdict_of({title: replace(record, commit=commit) for title, record in evidence().items()})
    assert verdict.outcome is Outcome.INCOMPLETE
    assert {f"MALFORMED {title}" for title in TITLES} <= set(words(verdict))


@pytest.mark.parametrize(("verified", "expected"), [(False, ["CONTRADICTORY image release"]), (True, [])])
def test_only_an_image_that_was_not_built_here_has_nothing_to_tell_of_its_build(
    expected: list[str], *, verified: bool
) -> None:
    records = evidence()
    told = {key: value for key, value in records["image release"].measurements.items() if key != "overrides"}
    told |= {"verified": "engine:1"} if verified else {}
    records["image release"] = replace(records["image release"], measurements=told)
    assert words(verdict_of(records)) == expected


def test_an_evaluation_by_another_file_of_the_same_name_is_foreign() -> None:
    records = evidence()
    assert verdict_of(records, given=Given(configs={"qwen": CONFIG})).outcome is Outcome.PASS
    verdict = verdict_of(records, given=Given(configs={"qwen": OTHER_CONFIG}))
    assert words(verdict) == ["FOREIGN gsm8k qwen"]
    assert verdict.reasons[0].detail == "the record is of another configuration: 999999999999, expected 888888888888"
    records["gsm8k qwen"] = replace(records["gsm8k qwen"], measurements={})
    assert "FOREIGN gsm8k qwen" in words(verdict_of(records, given=Given(configs={"qwen": CONFIG})))


def evaluated(*, correct: int = 150, failed: int = 0, empty: int = 0) -> Record:
    """An evaluation of 200 questions whose accuracy is what its verdicts give."""
    ends = ["correct"] * correct + ["failed"] * failed + ["empty"] * empty
    ends += ["wrong"] * (200 - len(ends))
    record = measured(evidence()["gsm8k qwen"], "verdicts", to={f"{at:04}": end for at, end in enumerate(ends)})
    return measured(record, "runs", 0, "accuracy", to=correct / (200 - failed))


@pytest.mark.parametrize(
    ("record", "holds"),
    [
        (evaluated(correct=134), True), (evaluated(correct=133), False),  # 0.70 less 0.03
        (evaluated(failed=2), True), (evaluated(failed=3), False),  # 1 %
        (evaluated(empty=10), True), (evaluated(empty=11), False),  # 5 %
    ],
    ids=["at the floor", "below it", "few lost", "too many", "few empty", "too many empty"],
)  # fmt: skip
def test_an_evaluation_is_judged_again_by_its_own_limits(record: Record, *, holds: bool) -> None:
    verdict = verdict_of({**evidence(), "gsm8k qwen": record})
    assert words(verdict) == ([] if holds else ["CONTRADICTORY gsm8k qwen"])


BASELINES: dict[str, tuple[dict[str, Any] | None, list[str]]] = {
    "an earlier release's": ({}, []),
    "one that says nothing": (None, ["NO_BASELINE gsm8k qwen"]),
    "one without pins and image": ({"pins_sha256": None, "image_id": None}, ["NO_BASELINE gsm8k qwen"]),
    "its own image's": ({"image_id": IMAGE}, ["NO_BASELINE gsm8k qwen"]),
    "its own commit's, of another build": ({"pins_sha256": PINS, "commit": COMMIT}, ["NO_BASELINE gsm8k qwen"]),
    "its own commit's, cut short": ({"pins_sha256": PINS, "commit": COMMIT[:9]}, ["NO_BASELINE gsm8k qwen"]),
    "its own pins', of nobody knows which commit": (
        {"pins_sha256": PINS, "commit": None}, ["NO_BASELINE gsm8k qwen"],
    ),
    "another commit's of the same pins": ({"pins_sha256": PINS}, []),
    "an earlier release's, of the same commit": ({"commit": COMMIT}, []),
    "another image's of a tree without pins": ({"pins_sha256": None}, []),
}  # fmt: skip


@pytest.mark.parametrize(("of", "expected"), BASELINES.values(), ids=BASELINES)
def test_a_release_is_compared_with_an_earlier_one_and_not_with_itself(
    of: dict[str, Any] | None, expected: list[str]
) -> None:
    def told(old: dict[str, Any]) -> dict[str, Any]:
        return {**old, **of} if of is not None else {}

    records = evidence()
    records["gsm8k qwen"] = measured(records["gsm8k qwen"], "baseline", "of", to=told)
    assert words(verdict_of(records)) == expected
    assert words(verdict_of(records, make_channel("baseline = true", "baseline = false"))) == []


def test_another_build_of_the_same_pins_is_named_where_it_is_the_baseline() -> None:
    records = evidence()
    records["gsm8k qwen"] = measured(records["gsm8k qwen"], "baseline", "of", "pins_sha256", to=PINS)
    assert "SAME_PINS gsm8k qwen" in words(verdict_of(records), Outcome.PASS)


@pytest.mark.parametrize(("lost", "gained", "holds"), [(0, 0, True), (0, 5, True), (0, 6, False), (6, 0, False)])
def test_a_warm_run_that_answers_otherwise_in_either_direction_is_judged_again(
    lost: int, gained: int, *, holds: bool
) -> None:
    records = evidence()
    body = dict(records["gsm8k qwen"].measurements)
    warm = {**body["baseline"], "source": None, "lost": lost, "gained": gained}  # type: ignore[dict-item]
    again = {**body, "runs": body["runs"] * 2, "warm_against_cold": warm}  # type: ignore[operator]
    records["gsm8k qwen"] = replace(records["gsm8k qwen"], measurements=again)
    assert words(verdict_of(records)) == ([] if holds else ["CONTRADICTORY gsm8k qwen"])
    records["gsm8k qwen"] = replace(records["gsm8k qwen"], measurements={**again, "warm_against_cold": None})
    assert words(verdict_of(records)) == ["CONTRADICTORY gsm8k qwen"]


def test_a_record_that_does_not_say_whose_its_baseline_is_is_no_comparison() -> None:
    records = evidence()
    records["gsm8k qwen"] = measured(
        records["gsm8k qwen"], "baseline", to=lambda old: {key: old[key] for key in old if key != "of"}
    )
    assert words(verdict_of(records)) == ["NO_BASELINE gsm8k qwen"]


def test_fewer_questions_than_the_configuration_asks_are_a_part_unless_the_channel_says_how_many() -> None:
    fewer = Finding(check="gsm8k-data", detail="only 200", severity=Severity.WARNING, reason="FEWER_QUESTIONS")
    records = evidence()
    records["gsm8k qwen"] = replace(records["gsm8k qwen"], findings=(fewer,))
    assert words(verdict_of(records)) == []
    verdict = verdict_of(records, make_channel("min_questions = 100\n", ""))
    assert words(verdict) == ["FEW_QUESTIONS gsm8k qwen"]


def test_too_few_of_the_shipped_questions_say_how_to_give_more() -> None:
    records = evidence()
    records["gsm8k qwen"] = measured(records["gsm8k qwen"], "data", "source", to="shipped")
    verdict = verdict_of(records, make_channel("min_questions = 100", "min_questions = 1000"))
    assert verdict.reasons[0].detail == (
        "200 questions were asked; release wants 1000; give GSM8K's own files (`--data DIR`)"
    )


@pytest.mark.parametrize("published", [False, True])
def test_questions_that_replace_the_configuration_s_are_an_override_unless_they_are_gsm8k_s(*, published: bool) -> None:
    records = evidence()
    digests = (PUBLIC_TEST_SHA256, PUBLIC_TRAIN_SHA256) if published else ("7" * 64, "6" * 64)
    for key, value in (("overridden", True), ("test_sha256", digests[0]), ("train_sha256", digests[1])):
        records["gsm8k qwen"] = measured(records["gsm8k qwen"], "data", key, to=value)
    assert words(verdict_of(records)) == ([] if published else ["OVERRIDE gsm8k qwen"])
    allowing = make_channel("[channels.release.image]", 'allow = ["overrides"]\n[channels.release.image]')
    assert words(verdict_of(records, allowing)) == []


def test_a_server_whose_flashinfer_nobody_knows_proves_nothing_of_a_release() -> None:
    allowing = make_channel("[channels.release.image]", 'allow = ["no-image"]\n[channels.release.image]')
    unknown = measured(evidence()["gsm8k qwen"], "server", "flashinfer_version", to=None)
    assert words(verdict_of({**evidence(), "gsm8k qwen": unknown})) == []  # the proof of its image knows
    unknown = replace(measured(unknown, "server", "image_id", to=None), image_id=None)
    assert words(verdict_of({**evidence(), "gsm8k qwen": unknown}, allowing)) == ["UNKNOWN_RELEASE gsm8k qwen"]


@pytest.mark.parametrize(("largest", "expected"), [(64, []), (63, ["NOT_COVERED smoke sm90"]), (128, [])])
def test_a_smoke_over_fewer_tokens_than_a_release_s_leaves_its_scenario_uncovered(
    largest: int, expected: list[str]
) -> None:
    def cut(run: dict[str, Any]) -> dict[str, Any]:
        for rank in run["ranks"]:
            last = max(rank["lookups"], key=int)
            rank["lookups"][str(largest)] = rank["lookups"].pop(last)
        return run

    record = evidence()["smoke sm90"]
    at = [one["name"] for one in record.measurements["scenarios"]].index("two-ranks")  # type: ignore[attr-defined]
    for run in ("cold", "warm"):
        record = measured(record, "scenarios", at, run, to=cut)
    assert words(verdict_of({**evidence(), "smoke sm90": record})) == expected


ALLOWED = {
    "dirty": ({"dirty": True}, None),
    "no-commit": ({"commit": None, "dirty": None}, None),
    "no-image": ({"image_id": None}, ("image_id",)),
}


@pytest.mark.parametrize("what", ALLOWED)
def test_what_the_channel_allows_counts(what: str) -> None:
    changes, _ = ALLOWED[what]
    records = {
        title: replace(record, **changes) if record.stage != "image" else record for title, record in evidence().items()
    }
    if what == "no-image":
        records["gsm8k qwen"] = measured(records["gsm8k qwen"], "server", "image_id", to=None)
    assert verdict_of(records).outcome is Outcome.INCOMPLETE
    allowing = make_channel("[channels.release.image]", f'allow = ["{what}"]\n[channels.release.image]')
    assert (verdict_of(records, allowing).outcome, words(verdict_of(records, allowing))) == (Outcome.PASS, [])


def test_a_bypass_and_an_override_that_the_channel_allows_are_still_shown() -> None:
    allowing = make_channel("[channels.release.image]", 'allow = ["bypasses", "overrides"]\n[channels.release.image]')
    records = evidence()
    records["smoke sm90"] = measured(records["smoke sm90"], "bypasses", to={"FLASHINFER_DISABLE_VERSION_CHECK": "1"})
    records["image release"] = measured(records["image release"], "overrides", to=["release.args.X=1"])
    verdict = verdict_of(records, allowing)
    assert verdict.outcome is Outcome.PASS
    assert {"BYPASS smoke sm90", "OVERRIDE image release"} <= set(words(verdict, Outcome.PASS))


def test_what_a_build_was_told_in_place_of_the_dockerfile_s_words_is_shown() -> None:
    records = evidence()
    told = {**records["image release"].measurements, "replaced": ["--base-image registry.example/cuda:13"]}
    records["image release"] = replace(records["image release"], measurements=told)
    verdict = verdict_of(records)
    assert words(verdict) == []
    [shown] = [reason.detail for reason in verdict.reasons if reason.word == "OVERRIDE"]
    assert shown == "the build was told `--base-image registry.example/cuda:13`, in place of what the Dockerfile names"


@pytest.mark.parametrize(
    ("key", "expected"),
    [("tags=a:b", []), ("labels.a=b", []), ("output=type=cacheonly", ["OVERRIDE image release"])],
)
def test_a_build_that_left_its_image_elsewhere_is_overridden(key: str, expected: list[str]) -> None:
    records = evidence()
    records["image release"] = measured(records["image release"], "overrides", to=[f"release.{key}"])
    assert words(verdict_of(records)) == expected


def test_an_image_that_was_proved_and_not_built_says_so_and_what_its_label_says() -> None:
    records = evidence()
    told = {**records["image release"].measurements, "verified": "a:b", "revision": OTHER_COMMIT}
    records["image release"] = replace(records["image release"], measurements=told)
    [shown] = [reason.detail for reason in verdict_of(records).reasons if reason.word == "VERIFIED"]
    assert shown == "the image was proved and not built here; its label says that it was built from commit dddddddddddd"


def test_a_known_fault_that_shows_must_be_allowed_and_in_time() -> None:
    at, end = POLICY.index("[[channels"), len(POLICY)
    unlisted = make_channel(text=POLICY[:at])
    assert words(verdict_of(evidence(), unlisted)) == ["KNOWN_FAULT smoke sm90"]
    assert verdict_of(evidence(), unlisted).outcome is Outcome.FAIL
    other = make_channel("flashinfer#3868", "flashinfer#1", text=POLICY[:end])
    assert words(verdict_of(evidence(), other)) == ["KNOWN_FAULT smoke sm90"]
    for day, outcome in (("2026-06-01", Outcome.PASS), ("2026-05-31", Outcome.FAIL)):
        channel = make_channel("2026-12-31", day)
        assert verdict_of(evidence(), channel).outcome is outcome
    assert words(verdict_of(evidence(), make_channel("2026-12-31", "2026-05-31"))) == ["ALLOWANCE_EXPIRED smoke sm90"]


def test_what_may_stay_uncovered_is_named_by_whole_words() -> None:
    channel = make_channel('"flashinfer-jit-cache"', '"flashinfer-jit"')
    assert words(verdict_of(evidence(), channel)) == ["NOT_COVERED smoke sm90"]


def test_an_allowance_ends_with_its_day_in_utc() -> None:
    records = evidence()
    channel = make_channel("2026-12-31", "2026-06-01")
    assert verdict_of(records, channel, as_of=datetime(2026, 6, 1, 23, 59, tzinfo=UTC)).outcome is Outcome.PASS
    assert verdict_of(records, channel, as_of=datetime(2026, 6, 2, 0, 0, tzinfo=UTC)).outcome is Outcome.FAIL


def test_scenarios_that_the_channel_leaves_out_may_be_missing() -> None:
    records = evidence()
    records["smoke sm90"] = measured(
        records["smoke sm90"], "scenarios", to=lambda old: [one for one in old if one["name"] == "one-rank"]
    )
    assert verdict_of(records).outcome is Outcome.INCOMPLETE
    small = make_channel("min_speedup = 2", 'scenarios = ["one-rank", "two-ranks"]\nmulti_rank = false\ndeepep = false')
    assert verdict_of(records, small).outcome is Outcome.PASS


@pytest.mark.parametrize("gpu", [None, {"arch": "sm100"}])
def test_another_gpu_than_the_measurements_name_contradicts_them(gpu: dict[str, object] | None) -> None:
    records = evidence()
    records["smoke sm90"] = replace(records["smoke sm90"], gpu=gpu)
    assert words(verdict_of(records)) == ["CONTRADICTORY smoke sm90"]


@pytest.mark.parametrize(("ranks", "outcome"), [(4, Outcome.PASS), (1, Outcome.INCOMPLETE)])
def test_more_ranks_on_a_machine_with_more_gpus_are_fine_and_fewer_are_not(ranks: int, outcome: Outcome) -> None:
    def with_ranks(scenario: ScenarioSeen) -> ScenarioSeen:
        if SCENARIOS[scenario.name].ranks == 1:
            return scenario
        maker = _Maker("0.6.13", replace(SCENARIOS[scenario.name], ranks=ranks))
        return replace(scenario, cold=maker.run(warm=False), warm=maker.run(warm=True))

    seen = seen_for("0.6.13")
    seen = replace(seen, scenarios=tuple(map(with_ranks, seen.scenarios)))
    record = evidence()["smoke sm90"]
    record = replace(record, measurements={**record.measurements, **seen.as_json()})
    assert verdict_of({**evidence(), "smoke sm90": record}).outcome is outcome


def test_overrides_that_do_not_change_what_is_built_are_no_overrides() -> None:
    records = evidence()
    records["image release"] = measured(records["image release"], "overrides", to=["*.labels.a.b=c", "release.tags=x"])
    assert (verdict_of(records).outcome, words(verdict_of(records))) == (Outcome.PASS, [])


def test_a_diagnosis_is_no_evidence() -> None:
    names = (*SCENARIOS, "force-persistent")
    records = evidence()
    forced = measurements(seen_for("0.6.13", names=names), judged_for("0.6.13", names=names))
    records["smoke sm90"] = replace(records["smoke sm90"], measurements=forced)
    assert "DIAGNOSIS smoke sm90" in words(verdict_of(records))


def test_a_release_without_a_row_is_no_pass() -> None:
    def moved(record: Record) -> Record:
        text = json.dumps(dict(record.measurements)).replace("0.6.13", "0.6.99")
        return replace(record, flashinfer_version="0.6.99", measurements=json.loads(text))

    verdict = verdict_of([moved(record) for record in evidence().values()])
    assert words(verdict) == ["CONTRADICTORY smoke sm90"]
    assert "NO_ROW" in verdict.reasons[0].detail
