"""The verdict as JSON values."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.gate.rendering import samples
from tests.gate.rendering.hostile import TEXTS, poisoned
from tooling.gate.fields import verdict_fields
from tooling.gate.values import Outcome


def test_nothing_at_all_has_every_key() -> None:
    reason = {"outcome": "INCOMPLETE", "reason": "NO_EVIDENCE", "detail": "no folder holds a record", "stage": None,
              "subject": None, "path": None, "command": "nox -s check", "machine": ""}  # fmt: skip
    assert verdict_fields(samples.empty()) == {
        "verdict": "INCOMPLETE",
        "channel": "pr",
        "as_of": "2026-05-08T02:04:00Z",
        "policy_sha256": samples.POLICY,
        "flashinfer_version": None,
        "pins_sha256": None,
        "commit": None,
        "images": {},
        "reasons": [reason],
        "requirements": [],
        "missing": [{"command": "nox -s check", "machine": "", "for": []}],
        "evidence": [],
        "earlier": [],
        "bump": None,
    }


def test_what_is_still_to_run_is_listed_once_with_what_waits_for_it() -> None:
    verdict = samples.incomplete()
    missing = verdict.reasons[0]
    again = replace(missing, subject="sm103")
    fields = verdict_fields(
        replace(verdict, reasons=(missing, again, replace(missing, outcome=Outcome.PASS, command="no")))
    )
    assert fields["missing"] == [
        {"command": "nox -s smoke", "machine": "a machine with an sm100 GPU", "for": ["smoke sm100", "smoke sm103"]}
    ]


def test_a_requirement_names_its_record_by_digest() -> None:
    verdict = samples.failing()
    requirements = verdict_fields(verdict)["requirements"]
    assert isinstance(requirements, list)
    assert requirements[2]["outcome"] == "FAIL"
    assert requirements[2]["path"] == "h200/evidence/smoke-sm90.json"
    assert requirements[2]["sha256"] == "26843e5a22a6224cbe4bfe1cac3fa2de865694363bec85cc31a64295b4d9462c"
    assert [reason["reason"] for reason in requirements[2]["reasons"]] == ["WRONG_STRATEGY"]


def test_the_bump_tells_changes_faults_and_companions() -> None:
    bump = verdict_fields(samples.passing())["bump"]
    assert isinstance(bump, dict)
    assert (bump["from"], bump["to"]) == ("0.6.12", "0.6.13")
    assert {fault["id"] for fault in bump["known_faults"]} == {"flashinfer#3868", "flashinfer#3868/cublaslt"}
    assert bump["companions"]["tabulate"] == {"from": "0.9.0", "to": None}
    assert {"fact": "autotune_parameters", "effect": "gains", "text": "`skip_ops` appears"} in bump["changes"]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_any_text_stays_itself_in_json(text: str) -> None:
    fields = verdict_fields(poisoned(text))
    assert json.loads(json.dumps(fields, allow_nan=False)) == fields
    assert fields["channel"] == text
