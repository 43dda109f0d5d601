"""A verdict becomes an in-toto Statement as the specifications of Statement, descriptor and test-result have it."""

from __future__ import annotations

import dataclasses
import json
from datetime import timedelta, timezone
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from tests.gate.attested import (
    AS_OF,
    CHECK,
    COMMIT,
    CONFIG,
    FILES,
    IMAGE,
    MANIFEST,
    PINS,
    POLICY,
    SMOKE,
    evidence,
    requirement,
    statement,
    verdict,
    warning,
)
from tooling.errors import ExitCode, InputError
from tooling.gate.attestation import render_statement
from tooling.gate.values import EvidenceFile, Outcome, Reason, Verdict

SCHEMA = json.loads((files("tooling") / "data" / "schemas" / "attestation.schema.json").read_text())
OVERRIDE = Reason(outcome=Outcome.PASS, word="OVERRIDE", detail="the operator set an override", stage="smoke")
STALE = Reason(outcome=Outcome.INCOMPLETE, word="STALE", detail="too old", stage="smoke", subject="sm90")


def test_the_statement_of_a_release_that_passed_reads_so() -> None:
    assert statement() == {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {
                "name": "release",
                "digest": {"sha256": MANIFEST[7:]},
                "annotations": {"digestOf": "manifest", "imageId": CONFIG},
            }
        ],
        "predicateType": "https://in-toto.io/attestation/test-result/v0.1",
        "predicate": {
            "result": "PASSED",
            "configuration": [
                {
                    "name": "policy",
                    "digest": {"sha256": POLICY[7:]},
                    "annotations": {
                        "channel": "release",
                        "verdict": "PASS",
                        "asOf": "2026-06-01T12:00:00.000Z",
                        "commit": COMMIT,
                    },
                },
                {"name": "pins", "digest": {"sha256": PINS[7:]}, "annotations": {"flashinferVersion": "0.6.13"}},
                {"name": "source", "digest": {"gitCommit": COMMIT}},
                listed("check.json", "1", "check", None),
                listed("image-release.json", "2", "image", "release"),
                listed("smoke-sm90.json", "3", "smoke", "sm90"),
            ],
            "passedTests": ["check", "image release", "smoke sm90"],
            "warnedTests": [],
            "failedTests": [],
        },
    }


def listed(name: str, digit: str, stage: str, subject: str | None) -> dict[str, object]:
    return {
        "name": name,
        "digest": {"sha256": digit * 64},
        "mediaType": "application/json",
        "annotations": {"use": "required", "stage": stage, "subject": subject, "status": "pass"},
    }


VERDICTS: dict[str, tuple[dict[str, Any], str, list[str], list[str]]] = {
    "pass": ({}, "PASSED", [], []),
    "a requirement with something to see": (
        {"requirements": (requirement(SMOKE, reasons=(OVERRIDE,)),), "reasons": (OVERRIDE,)},
        "WARNED", ["smoke sm90"], [],
    ),
    "a warning in a record": (
        {"requirements": (requirement(evidence("smoke", "sm90", digit="3", findings=(warning(),))),)},
        "WARNED", ["smoke sm90"], [],
    ),
    "something to see of the whole": ({"reasons": (OVERRIDE,)}, "WARNED", ["gate OVERRIDE"], []),
    "fail": (
        {"outcome": Outcome.FAIL, "requirements": (requirement(SMOKE, outcome=Outcome.FAIL),)},
        "FAILED", [], ["smoke sm90"],
    ),
    "incomplete is no pass": (
        {
            "outcome": Outcome.INCOMPLETE,
            "requirements": (requirement(SMOKE, outcome=Outcome.INCOMPLETE, reasons=(STALE,)),),
            "reasons": (STALE,),
        },
        "FAILED", [], ["smoke sm90"],
    ),
    "a cause that belongs to no requirement": (
        {"outcome": Outcome.INCOMPLETE, "reasons": (dataclasses.replace(STALE, word="CONTRADICTION"),)},
        "FAILED", [], ["gate CONTRADICTION"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICTS)
def test_result_and_tests_follow_the_verdict(name: str) -> None:
    more, result, warned, failed = VERDICTS[name]
    predicate = statement(**more)["predicate"]
    assert (predicate["result"], predicate["warnedTests"], predicate["failedTests"]) == (result, warned, failed)


@pytest.mark.parametrize("name", VERDICTS)
def test_every_statement_fits_the_schema(name: str) -> None:
    jsonschema.validate(statement(**VERDICTS[name][0]), SCHEMA, format_checker=jsonschema.FormatChecker())


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.update(_type="https://in-toto.io/Statement/v0.1"),
        lambda body: body.update(predicateType="https://slsa.dev/provenance/v1"),
        lambda body: body.update(subject=[]),
        lambda body: body["subject"][0].pop("digest"),
        lambda body: body["subject"][0]["digest"].update(sha256="AB" * 32),
        lambda body: body["predicate"].update(result="INCOMPLETE"),
        lambda body: body["predicate"].pop("configuration"),
        lambda body: body["predicate"]["configuration"].pop(0),
        lambda body: body["predicate"]["configuration"].append(body["predicate"]["configuration"][0]),
        lambda body: body["predicate"].update(passedTests=[1]),
    ],
    ids=["type", "predicate type", "no subject", "no digest", "capitals", "result", "no configuration", "no policy",
         "two policies", "tests"],
)  # fmt: skip
def test_the_schema_refuses_what_is_none(change: Any) -> None:
    body = statement()
    change(body)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(body, SCHEMA)


def test_an_image_that_was_not_pushed_is_named_by_its_config_digest() -> None:
    image = evidence("image", "release", digit="2")
    (subject,) = statement(requirements=(requirement(image),), files=(image,))["subject"]
    assert subject["digest"] == {"sha256": CONFIG[7:]}
    assert subject["annotations"]["digestOf"] == "config"


def test_the_manifest_of_another_image_is_not_taken() -> None:
    other = evidence("image", "release", digit="9", image_id="sha256:" + "9" * 64, manifest_digest=MANIFEST)
    (subject,) = statement(requirements=(requirement(SMOKE),), files=(SMOKE, other))["subject"]
    assert subject["digest"] == {"sha256": CONFIG[7:]}


def test_two_images_are_two_subjects_with_names_of_their_own() -> None:
    nightly = "sha256:" + "d" * 64
    body = statement(images={"release": CONFIG, "nightly": nightly})
    assert [(item["name"], item["digest"]["sha256"]) for item in body["subject"]] == [
        ("nightly", nightly[7:]),
        ("release", MANIFEST[7:]),
    ]


def test_every_file_that_the_gate_read_is_listed_once_with_what_it_was_for() -> None:
    unparsable = EvidenceFile(
        path="/runner/evidence/notes.json", sha256="7" * 64, reason="UNPARSABLE", problem="no JSON"
    )
    earlier = evidence("smoke", "sm90", digit="8")
    body = statement(files=(*FILES, unparsable), earlier=(earlier,))
    uses = [
        (item["name"], item["digest"]["sha256"][0], item["annotations"]["use"])
        for item in body["predicate"]["configuration"][3:]
    ]
    assert uses == [
        ("check.json", "1", "required"),
        ("image-release.json", "2", "required"),
        ("notes.json", "7", "read"),
        ("smoke-sm90.json", "3", "required"),
        ("smoke-sm90.json", "8", "comparison"),
    ]


def test_a_file_that_could_not_be_read_has_no_digest_and_is_not_listed() -> None:
    big = EvidenceFile(path="evidence/big.json", sha256="", reason="TOO_BIG", problem="too big")
    reason = Reason(outcome=Outcome.INCOMPLETE, word="TOO_BIG", detail="too big", path="evidence/big.json")
    body = statement(outcome=Outcome.INCOMPLETE, files=(*FILES, big), reasons=(reason,), earlier=(big,))
    assert "big.json" not in {item["name"] for item in body["predicate"]["configuration"]}
    assert body["predicate"]["failedTests"] == ["gate TOO_BIG"]


def test_no_folder_of_the_machine_stands_in_it() -> None:
    assert "/runner" not in render_statement(verdict())


def test_a_verdict_without_an_image_is_refused_with_what_to_do() -> None:
    with pytest.raises(InputError) as refused:
        render_statement(verdict(images={}))
    assert (refused.value.reason, refused.value.exit_code) == ("NO_IMAGE", ExitCode.INPUT)
    assert "nox -s image" in refused.value.hint


@pytest.mark.parametrize(
    "bad",
    [
        verdict(images={"release": "sha512:" + "a" * 64}, requirements=()),
        verdict(images={"release": "flashinfer-release:0.6.13"}, requirements=()),
        verdict(policy_sha256=""),
        verdict(pins_sha256="A" * 64),
    ],
    ids=["another algorithm", "a tag", "no policy", "capitals"],
)
def test_what_is_no_sha256_is_refused(bad: Verdict) -> None:
    with pytest.raises(InputError) as refused:
        render_statement(bad)
    assert refused.value.reason == "BAD_DIGEST"


@pytest.mark.parametrize("commit", [None, "v1.0", "b" * 39, "B" * 40])
def test_a_commit_that_is_no_hash_is_told_and_no_digest(commit: str | None) -> None:
    configuration = statement(commit=commit)["predicate"]["configuration"]
    assert "source" not in {item["name"] for item in configuration}
    assert configuration[0]["annotations"]["commit"] == commit


def test_hostile_text_stays_text_and_the_same_verdict_gives_the_same_bytes() -> None:
    hostile = evidence("smoke", 'sm90"\n</script>\u202e\udc80', digit="3")
    body = verdict(requirements=(requirement(hostile),), files=(CHECK, IMAGE, hostile))
    text = render_statement(body)
    assert text == render_statement(body)
    assert text.isascii()
    assert json.loads(text)["predicate"]["passedTests"] == ['smoke sm90"\n</script>\u202e\udc80']


def test_the_moment_is_told_in_utc() -> None:
    there = AS_OF.astimezone(timezone(timedelta(hours=9)))
    assert render_statement(verdict(as_of=there)) == render_statement(verdict())
