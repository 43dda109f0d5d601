"""The verdict as JSON values, for `--json`. Names are a promise: fields may be added, not renamed."""

from __future__ import annotations

from tooling.gate import told
from tooling.gate.values import BumpChange, EvidenceFile, Reason, Requirement, Verdict


def verdict_fields(verdict: Verdict) -> dict[str, object]:
    """The gate's own keys of the JSON object. The records' findings are the command's `findings`, not repeated here."""
    return {
        "verdict": str(verdict.outcome),
        "channel": verdict.channel,
        "as_of": told.render_time(verdict.as_of),
        "policy_sha256": verdict.policy_sha256,
        "flashinfer_version": verdict.flashinfer_version,
        "pins_sha256": verdict.pins_sha256,
        "commit": verdict.commit,
        "images": dict(sorted(verdict.images.items())),
        "reasons": [_reason(reason) for reason in verdict.reasons],
        "requirements": [_requirement(item) for item in verdict.requirements],
        "missing": [
            {"command": errand.command, "machine": errand.machine, "for": list(errand.titles)}
            for errand in told.errands(verdict)
        ],
        "evidence": [_file(file) for file in verdict.files],
        "earlier": [_file(file) for file in verdict.earlier],
        "bump": None if verdict.bump is None else _bump(verdict.bump),
    }


def _reason(reason: Reason) -> dict[str, object]:
    return {
        "outcome": str(reason.outcome),
        "reason": reason.word,
        "detail": reason.detail,
        "stage": reason.stage,
        "subject": reason.subject,
        "path": reason.path,
        "command": reason.command,
        "machine": reason.machine,
    }


def _requirement(item: Requirement) -> dict[str, object]:
    return {
        "stage": item.stage,
        "subject": item.subject,
        "outcome": str(item.outcome),
        "path": item.file and item.file.path,
        "sha256": item.file and item.file.sha256,
        "reasons": [_reason(reason) for reason in item.reasons],
    }


def _file(file: EvidenceFile) -> dict[str, object]:
    record = file.record
    return {
        "path": file.path,
        "sha256": file.sha256,
        "reason": file.reason,
        "problem": file.problem,
        "stage": record and record.stage,
        "subject": record and record.subject,
        "status": record and record.status,
        "flashinfer_version": record and record.flashinfer_version,
        "commit": record and record.commit,
        "dirty": record and record.dirty,
        "image_id": record and record.image_id,
        "manifest_digest": record and record.manifest_digest,
        "started": record and told.render_time(record.started),
        "ended": record and told.render_time(record.ended),
    }


def _bump(bump: BumpChange) -> dict[str, object]:
    return {
        "from": bump.before,
        "to": bump.after,
        "changes": [dict(change) for change in bump.changes],
        "known_faults": [fault.as_json() for fault in bump.row_after.known_faults] if bump.row_after else [],
        "companions": {
            name: {"from": before, "to": after} for name, (before, after) in sorted(bump.companions.items())
        },
    }
