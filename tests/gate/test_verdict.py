"""One verdict from many records: what passes, what turns it, which cause stands on top, and what never leads to PASS."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.resources import files

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gate.samples import (
    AS_OF,
    COMMIT,
    IMAGE,
    LAYERS,
    OTHER_COMMIT,
    OTHER_IMAGE,
    OTHER_PINS,
    PINS,
    as_file,
    evidence,
    failing,
    make_channel,
    make_record,
    measured,
    verdict_of,
    words,
)
from tooling.evidence import Record
from tooling.gate.candidate import Given
from tooling.gate.missing import render_missing
from tooling.gate.told import errands
from tooling.gate.values import EvidenceFile, Outcome

PASS, FAIL, INCOMPLETE = Outcome.PASS, Outcome.FAIL, Outcome.INCOMPLETE
TITLES = list(evidence())


def test_complete_evidence_passes_and_names_what_it_is_about() -> None:
    verdict = verdict_of(evidence())
    assert (verdict.outcome, words(verdict)) == (PASS, [])
    assert (verdict.flashinfer_version, verdict.pins_sha256, verdict.commit) == ("0.6.13", PINS, COMMIT)
    assert verdict.images == {"release": IMAGE}
    assert [(item.title, item.outcome) for item in verdict.requirements] == [(title, PASS) for title in TITLES]


def test_the_sample_measurements_follow_the_stages_own_schemas() -> None:
    for stage in ("gsm8k", "smoke"):
        schema = json.loads((files("tooling") / f"data/schemas/{stage}-measurements.schema.json").read_text())
        jsonschema.validate(json.loads(json.dumps(dict(make_record(stage, "x").measurements))), schema)


@pytest.mark.parametrize("title", TITLES)
def test_each_missing_record_is_incomplete_with_the_command_that_makes_it(title: str) -> None:
    records = evidence()
    del records[title]
    verdict = verdict_of(records)
    assert verdict.outcome is INCOMPLETE
    missing = next(reason for reason in verdict.reasons if reason.word == "MISSING")
    assert f"{missing.stage} {missing.subject or ''}".strip() == title
    assert missing.command.startswith(f"nox -s {missing.stage}")
    assert missing.machine


def test_nothing_recorded_is_incomplete_and_says_so_of_every_stage() -> None:
    verdict = verdict_of([])
    assert verdict.outcome is INCOMPLETE
    assert words(verdict) == [f"MISSING {title}" for title in TITLES]


def test_without_an_image_the_stages_after_it_say_what_they_wait_for() -> None:
    records = evidence()
    verdict = verdict_of({"check": records["check"], "image release": failing(records["image release"])})
    assert verdict.outcome is FAIL
    assert words(verdict) == ["BROKEN image release", "MISSING smoke sm90", "MISSING gsm8k qwen"]
    assert verdict.reasons[0].detail == "docker/Dockerfile:3: it broke"
    assert verdict.reasons[1].detail == "there is no record; image release comes first, and it is FAIL"
    assert verdict.reasons[1].command == "nox -s smoke -- --image TAG"


def test_the_first_stage_that_failed_stands_on_top() -> None:
    records = {title: failing(record, f"AT_{record.stage.upper()}") for title, record in evidence().items()}
    verdict = verdict_of(list(records.values())[::-1])
    assert words(verdict)[:4] == [
        "AT_CHECK check",
        "AT_IMAGE image release",
        "AT_SMOKE smoke sm90",
        "AT_GSM8K gsm8k qwen",
    ]


def test_stale_green_of_another_image_does_not_count() -> None:
    records = evidence()
    records["image release"] = replace(records["image release"], status="not-run", reason="NO_ENGINE", image_id=None)
    records["smoke sm90"] = replace(
        records["smoke sm90"], image_id=OTHER_IMAGE, started=AS_OF - timedelta(8), ended=AS_OF - timedelta(8)
    )
    verdict = verdict_of(records)
    assert verdict.outcome is INCOMPLETE
    assert words(verdict) == [
        "NOT_RUN image release", "STALE smoke sm90", "UNPROVEN_IMAGE smoke sm90", "UNPROVEN_IMAGE gsm8k qwen",
    ]  # fmt: skip


TWO_ARCHITECTURES = make_channel('["sm90"]', '["sm90", "sm100"]')


def on_sm100(record: Record) -> Record:
    return replace(
        record,
        subject="sm100",
        gpu={"arch": "sm100"},
        measurements=json.loads(json.dumps(record.measurements).replace("sm90", "sm100")),
    )


def test_an_architecture_that_nobody_ran_on_is_incomplete() -> None:
    verdict = verdict_of(evidence(), TWO_ARCHITECTURES)
    assert (verdict.outcome, words(verdict)) == (INCOMPLETE, ["MISSING smoke sm100"])
    assert verdict.reasons[0].machine == "a machine with an sm100 GPU and the image"
    assert verdict.reasons[0].command == f"nox -s smoke -- --image {IMAGE}"


def test_two_architectures_that_pass_are_enough() -> None:
    records = evidence()
    assert verdict_of([*records.values(), on_sm100(records["smoke sm90"])], TWO_ARCHITECTURES).outcome is PASS


def test_a_run_on_one_architecture_is_none_on_another_whatever_its_name_says() -> None:
    records = evidence()
    records["smoke sm90"] = replace(on_sm100(records["smoke sm90"]), subject="sm90")
    verdict = verdict_of(records)
    assert (verdict.outcome, words(verdict)) == (INCOMPLETE, ["CONTRADICTORY smoke sm90"])


def test_a_failure_on_one_architecture_fails() -> None:
    records = evidence()
    verdict = verdict_of([*records.values(), failing(on_sm100(records["smoke sm90"]))], TWO_ARCHITECTURES)
    assert (verdict.outcome, words(verdict)) == (FAIL, ["BROKEN smoke sm100"])


def test_a_failure_on_an_architecture_that_is_not_asked_for_fails_as_well() -> None:
    records = evidence()
    verdict = verdict_of([*records.values(), failing(on_sm100(records["smoke sm90"]))])
    assert (verdict.outcome, words(verdict)) == (FAIL, ["BROKEN smoke sm100"])


def test_a_pass_that_contradicts_itself_stands_against_the_release_though_nothing_asks_for_it() -> None:
    records = evidence()
    verdict = verdict_of([*records.values(), replace(on_sm100(records["smoke sm90"]), reason="BROKEN")])
    assert (verdict.outcome, words(verdict)) == (INCOMPLETE, ["CONTRADICTORY smoke sm100"])


def test_a_failing_record_that_only_informs_is_shown_and_does_not_count() -> None:
    records = [*evidence().values(), failing(make_record("image", "nightly")), failing(make_record("bump"))]
    verdict = verdict_of(records)
    assert verdict.outcome is PASS
    assert [reason.word for reason in verdict.reasons].count("INFORMS") == 2


def test_two_images_of_one_target_the_newest_is_the_release() -> None:
    records = evidence()
    rebuilt = replace(records["image release"], image_id=OTHER_IMAGE, started=AS_OF - timedelta(hours=1), ended=AS_OF)
    verdict = verdict_of([*records.values(), rebuilt])
    assert verdict.images == {"release": OTHER_IMAGE}
    assert words(verdict) == ["FOREIGN smoke sm90", "FOREIGN gsm8k qwen"]


def test_an_older_image_beside_complete_evidence_does_no_harm() -> None:
    records = evidence()
    older = replace(
        records["image release"],
        image_id=OTHER_IMAGE,
        started=AS_OF - timedelta(hours=9),
        ended=AS_OF - timedelta(hours=8),
    )
    verdict = verdict_of([*records.values(), older])
    assert verdict.outcome is PASS
    assert any("SUPERSEDED" in reason.detail for reason in verdict.reasons)


def test_a_stage_that_ran_in_an_image_built_from_ours_counts() -> None:
    records = evidence()
    theirs = replace(records["image release"], image_id=OTHER_IMAGE, ended=AS_OF)
    theirs = replace(
        theirs, measurements={**theirs.measurements, "layers": [*LAYERS, "sha256:" + "e" * 64], "verified": "engine:1"}
    )
    in_theirs = {
        **records,
        "gsm8k qwen": measured(
            replace(records["gsm8k qwen"], image_id=OTHER_IMAGE), "server", "image_id", to=OTHER_IMAGE
        ),
    }
    assert words(verdict_of(in_theirs)) == ["FOREIGN gsm8k qwen"]
    verdict = verdict_of([*in_theirs.values(), theirs])
    assert (verdict.outcome, verdict.images) == (PASS, {"release": IMAGE})
    assert "DERIVED_IMAGE" in [reason.word for reason in verdict.reasons]
    stranger = replace(theirs, measurements={**theirs.measurements, "layers": [LAYERS[0], "sha256:" + "e" * 64]})
    assert verdict_of([*in_theirs.values(), stranger]).outcome is INCOMPLETE


def test_an_image_built_from_ours_counts_only_where_it_passed_its_own_proof() -> None:
    records = evidence()
    more = {**records["image release"].measurements, "layers": [*LAYERS, "sha256:" + "e" * 64], "verified": "engine:1"}
    theirs = make_record("image", "nightly", image_id=OTHER_IMAGE, measurements=more)
    in_theirs = measured(replace(records["gsm8k qwen"], image_id=OTHER_IMAGE), "server", "image_id", to=OTHER_IMAGE)
    records["gsm8k qwen"] = in_theirs
    assert verdict_of([*records.values(), theirs]).outcome is PASS
    # The channel is only informed by `image nightly`, so nothing else says that this image is not good.
    verdict = verdict_of([*records.values(), failing(theirs)])
    assert words(verdict) == ["FOREIGN gsm8k qwen"]
    assert verdict.reasons[0].detail.endswith("or one built FROM it that `nox -s image -- --verify NAME` has proved")


def test_one_image_is_not_the_image_of_two_targets() -> None:
    records = evidence()
    channel = make_channel('targets = ["release"]', 'targets = ["release", "cuda12"]')
    more = {**records["image release"].measurements, "verified": "release:1"}
    again = make_record("image", "cuda12", measurements=more)
    assert words(verdict_of([*records.values(), again], channel)) == ["ONE_IMAGE image cuda12"]
    own = replace(again, image_id=OTHER_IMAGE)
    assert words(verdict_of([*records.values(), own], channel)) == []


def test_the_image_of_another_platform_says_how_to_build_for_one() -> None:
    records = evidence()
    built = {
        **records["image release"].measurements,
        "platform_images": {"linux/amd64": OTHER_IMAGE, "linux/arm64": IMAGE},
    }
    records["image release"] = replace(records["image release"], measurements=built)
    assert verdict_of(records).outcome is PASS
    records["smoke sm90"] = replace(records["smoke sm90"], image_id=OTHER_IMAGE)
    verdict = verdict_of(records)
    assert words(verdict) == ["FOREIGN smoke sm90"]
    assert verdict.reasons[0].detail.endswith(
        "it is the same build's for linux/amd64: build with `--platform linux/amd64` alone"
    )


def test_no_image_is_built_from_one_whose_layers_nobody_knows() -> None:
    records = evidence()
    records["image release"] = measured(records["image release"], "layers", to=[])
    theirs = make_record("image", "engine", image_id=OTHER_IMAGE)
    records["smoke sm90"] = replace(records["smoke sm90"], image_id=OTHER_IMAGE)
    assert "FOREIGN smoke sm90" in words(verdict_of([*records.values(), theirs]))


def test_a_rebuilt_image_with_one_more_layer_is_not_taken_for_one_built_from_ours() -> None:
    records = evidence()
    rebuilt = replace(records["image release"], image_id=OTHER_IMAGE, ended=AS_OF)
    rebuilt = replace(rebuilt, measurements={**rebuilt.measurements, "layers": [*LAYERS, "sha256:" + "e" * 64]})
    assert verdict_of([*records.values(), rebuilt]).outcome is INCOMPLETE


@pytest.mark.parametrize("title", TITLES)
def test_no_newer_pass_hides_a_failure(title: str) -> None:
    records = evidence()
    old = failing(records[title], started=AS_OF - timedelta(hours=30), ended=AS_OF - timedelta(hours=29))
    verdict = verdict_of([*records.values(), old])
    assert verdict.outcome is INCOMPLETE
    assert words(verdict) == [f"CONTRADICTORY {title}"]
    assert "it failed at 2026-05-31 07:00 UTC and passed at 2026-06-01" in verdict.reasons[0].detail


@pytest.mark.parametrize("title", TITLES)
def test_a_failure_after_a_pass_fails(title: str) -> None:
    records = evidence()
    new = failing(records[title], started=AS_OF, ended=AS_OF)
    verdict = verdict_of([*records.values(), new])
    assert (verdict.outcome, f"BROKEN {title}" in words(verdict)) == (FAIL, True)


@pytest.mark.parametrize("title", TITLES)
@pytest.mark.parametrize("hours", [-3, 3], ids=["older", "newer"])
def test_no_pass_hides_one_that_contradicts_itself(title: str, hours: int) -> None:
    records = evidence()
    moment = records[title].ended + timedelta(hours=hours)
    other = replace(records[title], reason="BROKEN", started=moment, ended=moment)
    verdict = verdict_of([*records.values(), other])
    assert (verdict.outcome, words(verdict)) == (INCOMPLETE, [f"CONTRADICTORY {title}"])


@pytest.mark.parametrize(
    "newer", [{"pins_sha256": OTHER_PINS}, {"status": "not-run", "reason": "NO_GPU"}], ids=["foreign", "not run"]
)
def test_where_no_record_counts_the_one_that_comes_nearest_is_told(newer: dict[str, object]) -> None:
    records = evidence()
    ours = replace(records["smoke sm90"], dirty=True)
    other = replace(records["smoke sm90"], started=AS_OF, ended=AS_OF, **newer)
    verdict = verdict_of({**records, "smoke sm90": ours, "other": other})
    assert (verdict.outcome, words(verdict)) == (INCOMPLETE, ["DIRTY smoke sm90"])


def test_a_failing_record_of_other_pins_is_incomplete_and_named() -> None:
    old = failing(
        make_record("smoke", "sm90"), pins_sha256=OTHER_PINS, ended=AS_OF - timedelta(90), started=AS_OF - timedelta(90)
    )
    verdict = verdict_of([*evidence().values(), old])
    assert (verdict.outcome, words(verdict)) == (INCOMPLETE, ["FOREIGN smoke sm90"])


def test_passing_records_that_do_not_count_do_no_harm_beside_those_that_do() -> None:
    records = evidence()
    others = [
        replace(record, **change)
        for record in records.values()
        for change in (
            {"pins_sha256": OTHER_PINS},
            {
                "commit": OTHER_COMMIT,
                "ended": record.ended - timedelta(hours=1),
                "started": record.started - timedelta(hours=1),
            },
            {"ended": AS_OF - timedelta(60), "started": AS_OF - timedelta(61)},
            {"dirty": True, "ended": record.ended - timedelta(hours=2), "started": record.started - timedelta(hours=2)},
        )
    ]
    verdict = verdict_of([*records.values(), *others], given=Given(pins_sha256=PINS, flashinfer_version="0.6.13"))
    assert (verdict.outcome, words(verdict)) == (PASS, [])
    assert [item.file.record for item in verdict.requirements if item.file] == list(records.values())


def test_a_file_that_is_no_record_never_passes_and_its_name_tells_the_command() -> None:
    spoiled = EvidenceFile(path="gpu/smoke-sm100.json", sha256="", reason="HAND_EDITED", problem="it was changed")
    verdict = verdict_of(evidence(), more=[spoiled])
    assert (verdict.outcome, words(verdict)) == (INCOMPLETE, ["HAND_EDITED smoke sm100"])
    assert verdict.reasons[0].command == f"nox -s smoke -- --image {IMAGE}"
    strange = EvidenceFile(path="gpu/notes.json", sha256="", reason="UNPARSABLE", problem="it is not JSON")
    assert words(verdict_of(evidence(), more=[strange])) == ["UNPARSABLE"]


def test_records_must_be_of_the_trees_own_pins_and_of_the_commit_that_was_given() -> None:
    tree = Given(pins_sha256=OTHER_PINS, flashinfer_version="0.6.13")
    assert words(verdict_of(evidence(), given=tree))[0] == "FOREIGN check"
    assert words(verdict_of(evidence(), given=Given(commit=OTHER_COMMIT))) == [f"FOREIGN {title}" for title in TITLES]
    assert verdict_of(evidence(), given=Given(commit=COMMIT[:8])).outcome is PASS


def test_unknown_stages_pass_by_and_their_failures_do_not() -> None:
    stranger = make_record("later-stage", "x")
    assert verdict_of([*evidence().values(), stranger]).outcome is PASS
    assert verdict_of([*evidence().values(), failing(stranger)]).outcome is FAIL


def test_the_order_of_files_and_folders_changes_nothing() -> None:
    records = [
        *evidence().values(),
        failing(make_record("smoke", "sm90", ended=AS_OF)),
        make_record("check", ended=AS_OF),
    ]
    files = [as_file(record, f"f{number}") for number, record in enumerate(records)]
    first = verdict_of([], more=files)
    assert all(verdict_of([], more=files[turn:] + files[:turn]) == first for turn in range(len(files)))


def test_a_thousand_records_are_judged() -> None:
    many = [
        make_record("check", ended=AS_OF - timedelta(minutes=number), started=AS_OF - timedelta(days=2))
        for number in range(1000)
    ]
    assert verdict_of([*evidence().values(), *many]).outcome is PASS
    verdict = verdict_of([*evidence().values(), *(replace(record, dirty=True) for record in many)])
    assert verdict.outcome is PASS
    assert "and 995 more" in next(reason.detail for reason in verdict.reasons if reason.word == "NOT_COUNTED")


def test_hostile_text_in_a_record_reaches_the_reasons_unchanged() -> None:
    hostile = "<script>alert(1)</script> \u202e \U0001f600 ]]> | `x`"
    finding = replace(failing(make_record("check")).findings[0], detail=hostile)
    verdict = verdict_of({**evidence(), "check": failing(make_record("check"), findings=(finding,))})
    assert hostile in verdict.reasons[0].detail


def test_missing_commands_are_listed_once_each_and_by_machine() -> None:
    records = evidence()
    verdict = verdict_of({"image release": records["image release"]}, TWO_ARCHITECTURES)
    assert render_missing(errands(verdict), verdict.outcome) == (
        "on any machine with the tree:\n"
        "  nox -s check    # check\n"
        "on a machine with an sm100 GPU and the image:\n"
        f"  nox -s smoke -- --image {IMAGE}    # smoke sm100\n"
        "on a machine with an sm90 GPU and the image:\n"
        f"  nox -s smoke -- --image {IMAGE}    # smoke sm90\n"
        "on a machine with a GPU, the model and the image:\n"
        f"  nox -s gsm8k -- configs/gsm8k/qwen.yaml --image {IMAGE} --baseline RECORD    # gsm8k qwen\n"
    )
    whole = verdict_of(evidence())
    assert render_missing(errands(whole), whole.outcome) == "nothing is missing; the verdict is PASS\n"


def test_a_command_to_copy_holds_nothing_of_a_record_that_a_shell_would_run() -> None:
    records = evidence()
    told = {**records["image release"].measurements, "tags": ["x; touch owned"]}
    records["image release"] = replace(records["image release"], measurements=told, dirty=True)
    del records["smoke sm90"]
    names = ("gsm8k-$(touch owned).json", "smoke-\x1b[2J\n::error::x.json", "bump.json")
    spoiled = [EvidenceFile(path=f"e/{name}", sha256="", reason="UNPARSABLE", problem="no") for name in names]
    version = "0.6.13; touch owned"
    verdict = verdict_of(records, more=spoiled, given=Given(pins_sha256=PINS, flashinfer_version=version))
    shown = render_missing(errands(verdict), verdict.outcome)
    commands = [line.partition("    #")[0].strip() for line in shown.splitlines() if line.startswith("  ")]
    assert len(commands) > 4
    for command in commands:
        words = shlex.split(command)
        assert words[:2] == ["nox", "-s"]
        assert not {"touch", "owned"} & set(words), command
    assert "\x1b" not in shown
    assert not any(line.startswith("::") for line in shown.splitlines())


def test_a_configuration_with_a_blank_in_its_path_is_one_word_of_the_command() -> None:
    channel = make_channel("configs/gsm8k/qwen.yaml", "my configs/qwen.yaml")
    records = evidence()
    del records["gsm8k qwen"]
    assert "'my configs/qwen.yaml'" in verdict_of(records, channel).reasons[0].command


def changed(record: Record, change: str) -> Record:
    """A record as it may lie in some folder: good, or spoiled in one of many ways; still passing."""
    hours = timedelta(hours=1)
    changes: dict[str, dict[str, object]] = {
        "good": {},
        "older": {"ended": record.ended - hours, "started": record.started - hours},
        "stale": {"ended": AS_OF - timedelta(40), "started": AS_OF - timedelta(41)},
        "future": {"ended": AS_OF + timedelta(2)},
        "dirty": {"dirty": True},
        "foreign pins": {"pins_sha256": OTHER_PINS},
        "backwards": {"ended": record.started - timedelta(seconds=1)},
    }
    return replace(record, **changes[change])


pool = st.builds(
    lambda title, change: changed(evidence()[title], change),
    st.sampled_from(TITLES),
    st.sampled_from(["good", "good", "good", "older", "stale", "future", "dirty", "foreign pins", "backwards"]),
)
TREE = Given(pins_sha256=PINS, flashinfer_version="0.6.13", commit=COMMIT)


@settings(max_examples=60)
@given(st.lists(pool, max_size=6), st.integers(0, 40), st.booleans())
def test_removing_a_passing_record_never_leads_to_pass(extra: list[Record], position: int, base: bool) -> None:
    records = [*(evidence().values() if base else ()), *extra]
    before = verdict_of(records, given=TREE).outcome
    if records:
        del records[position % len(records)]
    if before is not PASS:
        assert verdict_of(records, given=TREE).outcome is not PASS


failures = st.builds(
    lambda record, stage, subject, shift: failing(
        replace(record, stage=stage or record.stage, subject=subject if stage else record.subject),
        ended=record.ended + shift, started=record.started + shift,
    ),
    pool,
    st.sampled_from([None, None, None, "smoke", "image", "gsm8k", "elsewhere"]),
    st.sampled_from([None, "sm80", "other"]),
    st.sampled_from([timedelta(0), timedelta(hours=-100), timedelta(hours=3), timedelta(days=400)]),
)  # fmt: skip


@settings(max_examples=60)
@given(st.lists(pool, max_size=3), failures)
def test_with_a_failing_record_there_is_no_pass(extra: list[Record], failed: Record) -> None:
    assert verdict_of([*evidence().values(), *extra, failed], given=TREE).outcome is not PASS
    assert verdict_of([*evidence().values(), *extra, failed]).outcome is not PASS


def test_the_moment_of_judgement_is_part_of_the_verdict() -> None:
    later = datetime(2027, 6, 1, tzinfo=UTC)
    verdict = verdict_of(evidence(), as_of=later)
    assert verdict.as_of == later
    assert {reason.word for reason in verdict.reasons if reason.outcome is INCOMPLETE} == {"STALE"}


def test_two_commits_that_begin_alike_are_two() -> None:
    records, short, other = evidence(), "c" * 8, "c" * 8 + "d" * 32
    records["check"] = replace(records["check"], commit=other)
    assert words(verdict_of(records, given=Given(commit=short))) == ["FOREIGN check"]
    records["image release"] = replace(records["image release"], commit=short)
    assert words(verdict_of(records)) == ["FOREIGN smoke sm90", "FOREIGN gsm8k qwen"]


def test_a_failing_record_does_not_say_which_commit_the_others_must_be_of() -> None:
    records = evidence()
    records["image release"] = failing(records["image release"], commit=OTHER_COMMIT)
    verdict = verdict_of(records)
    assert (verdict.commit, "FOREIGN check" in words(verdict)) == (COMMIT, False)


def test_the_commit_is_shown_whole_where_a_record_knows_it() -> None:
    assert verdict_of(evidence(), given=Given(commit=COMMIT[:7])).commit == COMMIT


def test_what_gating_is_expected_is_known_without_a_release_before() -> None:
    verdict = verdict_of(evidence())
    assert verdict.bump is None
    assert verdict.row is not None
    assert "0.6.13" in map(str, verdict.row.releases)


def test_a_version_of_thousands_of_digits_is_malformed() -> None:
    records = evidence()
    records["check"] = replace(records["check"], flashinfer_version="9" * 5000)
    verdict = verdict_of(records)
    assert verdict.outcome is INCOMPLETE
    assert "MALFORMED check" in words(verdict)


def test_a_record_that_nothing_asks_for_does_not_say_what_is_judged() -> None:
    """An image of last week beside today's check; a nightly image of a later commit or of other pins."""
    newer = {"started": AS_OF - timedelta(minutes=9), "ended": AS_OF}
    later = make_record("image", "nightly", commit=OTHER_COMMIT, image_id=OTHER_IMAGE, **newer)
    bumped = replace(later, pins_sha256=OTHER_PINS, flashinfer_version="0.6.14")
    for other in (later, bumped):
        verdict = verdict_of([*evidence().values(), other])
        assert (verdict.outcome, verdict.commit, words(verdict)) == (PASS, COMMIT, [])
    pull_request = make_channel(text='[channels.release]\nstages = ["check"]\n')
    old = make_record("image", "release", commit=OTHER_COMMIT)
    assert words(verdict_of([evidence()["check"], old], pull_request)) == []
    assert words(verdict_of([old], pull_request)) == ["MISSING check"]


def test_an_image_built_from_ours_does_not_say_which_commit_ours_is_of() -> None:
    records = evidence()
    more = {**records["image release"].measurements, "layers": [*LAYERS, "sha256:" + "e" * 64], "verified": "engine:1"}
    theirs = replace(
        records["image release"], commit=OTHER_COMMIT, image_id=OTHER_IMAGE, measurements=more, ended=AS_OF
    )
    verdict = verdict_of([*records.values(), theirs])
    assert (verdict.outcome, verdict.commit) == (PASS, COMMIT)
