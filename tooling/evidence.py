"""Evidence records: what a stage saw, sealed with a digest of itself. `edges.evidence_files` writes them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from tooling.errors import InputError
from tooling.findings import Finding
from tooling.strict_json import parse_strict_json

FORMAT = 1
Status = Literal["pass", "fail", "not-run"]
STATUSES: tuple[Status, ...] = ("pass", "fail", "not-run")
COMMIT = r"[0-9a-fA-F]{7,64}"
"""Whole, or cut short; a branch or an empty text is shared by trees that have nothing to do with each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One stage's evidence, `<stage>[-<subject>].json` on disk.

    `subject` tells records of one stage apart (`sm90`, `release`); `image_id` is a config digest, `manifest_digest`
    what a registry calls the same image; times are aware and in UTC; `measurements` is the stage's own JSON object.
    """

    stage: str
    subject: str | None = None
    status: Status
    reason: str | None = None
    pins_sha256: str | None
    flashinfer_version: str | None
    commit: str | None
    dirty: bool | None
    image_id: str | None = None
    manifest_digest: str | None = None
    gpu: Mapping[str, object] | None = None
    started: datetime
    ended: datetime
    tool_version: str
    findings: tuple[Finding, ...] = ()
    measurements: Mapping[str, object] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        return f"{self.stage}.json" if self.subject is None else f"{self.stage}-{self.subject}.json"


def title(stage: str, subject: str | None) -> str:
    """How a record is named to people: `check`, `smoke sm90`."""
    return stage if subject is None else f"{stage} {subject}"


def seal(record: Record) -> dict[str, object]:
    """The record as JSON values, with `digest` over all the rest."""
    body = _body(record)
    return {**body, "digest": digest(body)}


def render_record(record: Record) -> str:
    """The record as it lies on disk: sorted keys, two spaces, a final newline."""
    return json.dumps(seal(record), indent=2, sort_keys=True, allow_nan=False) + "\n"


def digest(body: Mapping[str, object]) -> str:
    """`sha256:…` over the canonical JSON of a record without its `digest`."""
    rest = {key: value for key, value in body.items() if key != "digest"}
    return "sha256:" + hashlib.sha256(canonical_json(rest).encode("utf-8", "backslashreplace")).hexdigest()


def canonical_json(value: object) -> str:
    """JSON in ASCII with sorted keys and no spaces, the same for the same values everywhere.

    ASCII because a finding may name a file whose name is no UTF-8.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def parse_record(text: str) -> Record:
    """The record in an evidence file.

    Raises:
        InputError: not JSON, a field missing or of another type, or a digest that does not fit (`HAND_EDITED`).
    """
    try:
        body = parse_strict_json(text, parse_float=_finite)
        if not isinstance(body, dict):
            raise InputError("the record is not a JSON object", reason="UNPARSABLE")
        sealed = digest(body)
    except (ValueError, RecursionError) as cause:  # what can just be read may be too deep to be written
        raise InputError(f"the record is not JSON: {cause}", reason="UNPARSABLE") from cause
    if type(body.get("format")) is not int or body["format"] != FORMAT:
        raise InputError(f"the record's format is {body.get('format')!r}, not {FORMAT}", reason="UNPARSABLE")
    if body.get("digest") != sealed:
        raise InputError(
            "the record does not match its own digest; it was changed after it was written",
            hint="run the stage again",
            reason="HAND_EDITED",
        )
    try:
        return _record(body)
    except (KeyError, TypeError, ValueError, AttributeError) as cause:
        raise InputError(f"a field of the record is missing or wrong: {cause}", reason="UNPARSABLE") from cause


def _finite(text: str) -> float:
    if math.isinf(number := float(text)):
        raise ValueError(f"{text[:40]} is beyond what a number can be")
    return number


def _body(record: Record) -> dict[str, object]:
    return {
        "format": FORMAT,
        "stage": record.stage,
        "subject": record.subject,
        "status": record.status,
        "reason": record.reason,
        "pins_sha256": record.pins_sha256,
        "flashinfer_version": record.flashinfer_version,
        "commit": record.commit,
        "dirty": record.dirty,
        "image_id": record.image_id,
        "manifest_digest": record.manifest_digest,
        "gpu": None if record.gpu is None else dict(record.gpu),
        "started": _render_time(record.started),
        "ended": _render_time(record.ended),
        "tool_version": record.tool_version,
        "findings": [finding.as_json() for finding in record.findings],
        "measurements": dict(record.measurements),
    }


def _record(body: Mapping[str, object]) -> Record:
    status, findings, measurements, gpu = body["status"], body["findings"], body["measurements"], body["gpu"]
    if status not in STATUSES:
        raise ValueError(f"status is {status!r}, not one of {', '.join(STATUSES)}")
    if not isinstance(findings, list) or not isinstance(measurements, dict):
        raise TypeError("findings must be a list and measurements an object")
    if not (gpu is None or isinstance(gpu, dict)):
        raise TypeError("gpu must be an object or null")
    dirty = body["dirty"]
    if not (dirty is None or isinstance(dirty, bool)):
        raise TypeError("dirty must be true, false or null")
    return Record(
        stage=_text(body, "stage"),
        subject=_optional_text(body, "subject"),
        status=status,
        reason=_optional_text(body, "reason"),
        pins_sha256=_optional_text(body, "pins_sha256"),
        flashinfer_version=_optional_text(body, "flashinfer_version"),
        commit=_optional_text(body, "commit"),
        dirty=dirty,
        image_id=_optional_text(body, "image_id"),
        manifest_digest=_optional_text(body, "manifest_digest"),
        gpu=gpu,
        started=_parse_time(_text(body, "started")),
        ended=_parse_time(_text(body, "ended")),
        tool_version=_text(body, "tool_version"),
        findings=tuple(Finding.from_json(finding) for finding in findings),
        measurements=measurements,
    )


def _text(body: Mapping[str, object], key: str) -> str:
    value = body[key]
    if not isinstance(value, str):
        raise TypeError(f"{key} must be text")
    return value


def _optional_text(body: Mapping[str, object], key: str) -> str | None:
    return None if body[key] is None else _text(body, key)


def _render_time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _parse_time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError as cause:
        raise ValueError(f"{text!r} is beyond what a time can be") from cause
