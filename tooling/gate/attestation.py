"""A verdict as an in-toto Statement about the images that it is about. Nothing is signed here.

Formats: in-toto Statement v1, ResourceDescriptor v1, DigestSet v1, and the predicate test-result v0.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC
from pathlib import PurePosixPath

from tooling.errors import InputError
from tooling.findings import Severity
from tooling.gate.values import EvidenceFile, Outcome, Requirement, Verdict

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
POLICY, PINS, SOURCE = "policy", "pins", "source"
"""Names of the descriptors in `configuration` that are no evidence files."""

_SHA256 = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def render_statement(verdict: Verdict) -> str:
    """The Statement as JSON in ASCII, two spaces, a final newline; the same for the same verdict.

    `subject` is every image, by its manifest digest where a record knows it (that is what a registry and a cluster
    name), else by its config digest. `configuration` holds the policy, the pins, the commit, and every evidence file
    by the sha256 of its bytes. INCOMPLETE is `FAILED`: the predicate has no word for it, and it is no pass.

    Raises:
        InputError: the verdict is about no image (`NO_IMAGE`), or one without a sha256 (`BAD_DIGEST`).
    """
    if not verdict.images:
        raise InputError(
            f"the verdict of channel {verdict.channel} is about no image, and an attestation needs one as its subject",
            hint="give the gate an evidence folder with the image stage's record: `nox -s image` writes it",
            reason="NO_IMAGE",
        )
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [_subject(verdict, target, image_id) for target, image_id in sorted(verdict.images.items())],
        "predicateType": PREDICATE_TYPE,
        "predicate": _predicate(verdict),
    }
    return json.dumps(statement, indent=2, allow_nan=False) + "\n"


def _subject(verdict: Verdict, target: str, image_id: str) -> dict[str, object]:
    manifest = verdict.manifest_digest(target)
    return {
        "name": target,
        "digest": {"sha256": _hexadecimal(manifest or image_id, f"the image {target}")},
        "annotations": {"digestOf": "config" if manifest is None else "manifest", "imageId": image_id},
    }


def _predicate(verdict: Verdict) -> dict[str, object]:
    passed = [item.title for item in verdict.requirements if item.outcome is Outcome.PASS and not _is_warned(item)]
    warned = [item.title for item in verdict.requirements if item.outcome is Outcome.PASS and _is_warned(item)]
    failed = [item.title for item in verdict.requirements if item.outcome is not Outcome.PASS]
    said = {reason for item in verdict.requirements for reason in item.reasons}
    for reason in verdict.reasons:
        if reason not in said:
            (warned if reason.outcome is Outcome.PASS else failed).append(f"gate {reason.word}")
    return {
        "result": _result(verdict, is_warned=bool(warned)),
        "configuration": list(_configuration(verdict)),
        "passedTests": passed,
        "warnedTests": list(dict.fromkeys(warned)),
        "failedTests": list(dict.fromkeys(failed)),
    }


def _result(verdict: Verdict, *, is_warned: bool) -> str:
    if verdict.outcome is not Outcome.PASS:
        return "FAILED"
    return "WARNED" if is_warned else "PASSED"


def _is_warned(item: Requirement) -> bool:
    """A pass of which something is shown all the same: an accepted fault, an override, a warning in its record."""
    record = None if item.file is None else item.file.record
    findings = () if record is None else record.findings
    return bool(item.reasons) or any(finding.severity is not Severity.NOTE for finding in findings)


def _configuration(verdict: Verdict) -> Iterator[dict[str, object]]:
    as_of = verdict.as_of.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    yield {
        "name": POLICY,
        "digest": {"sha256": _hexadecimal(verdict.policy_sha256, "the policy")},
        "annotations": {
            "channel": verdict.channel,
            "verdict": str(verdict.outcome),
            "asOf": as_of,
            "commit": verdict.commit,
        },
    }
    if verdict.pins_sha256 is not None:
        yield {
            "name": PINS,
            "digest": {"sha256": _hexadecimal(verdict.pins_sha256, "the pins")},
            "annotations": {"flashinferVersion": verdict.flashinfer_version},
        }
    if verdict.commit is not None and _COMMIT.fullmatch(verdict.commit):
        yield {"name": SOURCE, "digest": {"gitCommit": verdict.commit}}
    taken = {item.file.path for item in verdict.requirements if item.file is not None}
    for file in _files(verdict):
        yield _evidence(file, use="required" if file.path in taken else "read")
    for file in verdict.earlier:
        if file.sha256:
            yield _evidence(file, use="comparison")


def _evidence(file: EvidenceFile, *, use: str) -> dict[str, object]:
    """The file by its name alone: in which folder of which machine it lay says nothing about it."""
    record = file.record
    told = {} if record is None else {"stage": record.stage, "subject": record.subject, "status": record.status}
    return {
        "name": PurePosixPath(file.path.replace("\\", "/")).name,
        "digest": {"sha256": _hexadecimal(file.sha256, file.path)},
        "mediaType": "application/json",
        "annotations": {"use": use, **told},
    }


def _files(verdict: Verdict) -> list[EvidenceFile]:
    """Every file that the gate read, those taken for a requirement included, each once, in order of path.

    One that could not be read has no digest; the gate's reason for that is among the failed tests.
    """
    taken = [item.file for item in verdict.requirements if item.file is not None]
    files = {file.path: file for file in (*taken, *verdict.files) if file.sha256}
    return [file for _, file in sorted(files.items())]


def _hexadecimal(digest: str, where: str) -> str:
    match = _SHA256.fullmatch(digest)
    if match is None:
        raise InputError(
            f"{where}: found the digest {digest!r}, expected sha256 and 64 hexadecimal digits",
            hint="run the stage that wrote it again",
            reason="BAD_DIGEST",
        )
    return match[1]
