"""A verdict that passed, with the files behind it, and what becomes of it as a Statement."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

from tooling.evidence import Record
from tooling.findings import Finding
from tooling.gate.attestation import render_statement
from tooling.gate.values import EvidenceFile, Outcome, Requirement, Verdict

CONFIG, MANIFEST, POLICY, PINS = ("sha256:" + letter * 64 for letter in "acef")
COMMIT = "b" * 40
AS_OF = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)


def evidence(stage: str, subject: str | None = None, *, digit: str, **more: Any) -> EvidenceFile:
    record = Record(
        **{
            "stage": stage, "subject": subject, "status": "pass", "pins_sha256": PINS[7:], "commit": COMMIT,
            "flashinfer_version": "0.6.13", "dirty": False, "image_id": None if stage == "check" else CONFIG,
            "started": AS_OF, "ended": AS_OF, "tool_version": "0.1.0", **more,
        }
    )  # fmt: skip
    return EvidenceFile(path=f"/runner/evidence/{record.file_name}", sha256=digit * 64, record=record)


def requirement(file: EvidenceFile, **more: Any) -> Requirement:
    assert file.record is not None
    return Requirement(
        **{"stage": file.record.stage, "subject": file.record.subject, "outcome": Outcome.PASS, "file": file, **more}
    )


CHECK = evidence("check", digit="1")
IMAGE = evidence("image", "release", digit="2", manifest_digest=MANIFEST)
SMOKE = evidence("smoke", "sm90", digit="3")
FILES = (CHECK, IMAGE, SMOKE)


def verdict(**more: Any) -> Verdict:
    return Verdict(
        **{
            "outcome": Outcome.PASS, "channel": "release", "as_of": AS_OF, "policy_sha256": POLICY[7:],
            "flashinfer_version": "0.6.13", "pins_sha256": PINS[7:], "commit": COMMIT, "images": {"release": CONFIG},
            "requirements": tuple(requirement(file) for file in FILES), "files": FILES, **more,
        }
    )  # fmt: skip


def warning(text: str = "an override was given") -> Finding:
    return Finding.from_json({"check": "c", "severity": "warning", "path": None, "line": None, "detail": text})


def statement(**more: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(render_statement(verdict(**more)))
    return body


def envelope(
    body: object, *, payload_type: str = "application/vnd.in-toto+json", urlsafe: bool = False
) -> dict[str, Any]:
    """A DSSE envelope around a Statement; nobody verifies its signature here."""
    raw = json.dumps(body).encode()
    encoded = base64.urlsafe_b64encode(raw) if urlsafe else base64.b64encode(raw)
    return {"payload": encoded.decode(), "payloadType": payload_type, "signatures": [{"keyid": "", "sig": "MEUCIQ=="}]}
