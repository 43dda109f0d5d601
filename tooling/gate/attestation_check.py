"""Is an attestation about this image, under this policy, over these records, and does it say yes?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tooling.findings import Finding, Severity
from tooling.gate.attestation import PREDICATE_TYPE, STATEMENT_TYPE
from tooling.gate.attestation_text import Attestation, Resource, TestResult
from tooling.gate.escaping import console_line
from tooling.gate.values import EvidenceFile

CHECK = "attestation"
MAX_DETAIL = 2000
"""Characters; an attestation may list thousands of tests."""


def check_attestation(
    attestation: Attestation,
    *,
    subjects: Sequence[str],
    channel: str,
    policy_sha256: str,
    required: Sequence[str] = (),
    strict: bool = False,
) -> list[Finding]:
    """Findings on types, subject, policy and result. An attestation of another type is looked at no further.

    `subjects` (`sha256:…`) must all be subjects of it; `policy_sha256` is the digest of the policy of `channel` that
    the caller trusts, `required` what that policy asks for, by title; `strict` takes no warned result.
    """
    found = list(_check_types(attestation))
    if attestation.test_result is None:
        return found
    return [
        *found,
        *_check_subjects(attestation, subjects),
        *_check_policy(attestation.test_result, channel, policy_sha256),
        *_check_result(attestation.test_result, strict=strict),
        *_check_required(attestation.test_result, policy_sha256, required),
    ]


def check_records(attestation: Attestation, files: Sequence[EvidenceFile]) -> list[Finding]:
    """Findings where the evidence files at hand and those that the attestation lists are not the same.

    Those of the release before, which the gate was shown for comparison, may be among them and need not.
    """
    result = attestation.test_result
    listed = () if result is None else result.records
    compared = {item.sha256 for item in (() if result is None else result.compared)} - {item.sha256 for item in listed}
    judged = [file for file in files if file.sha256 not in compared]
    return [*_check_listed(listed, judged), *_check_unlisted(listed, judged)]


def _check_types(attestation: Attestation) -> Iterator[Finding]:
    if attestation.statement_type != STATEMENT_TYPE:
        yield _finding("STATEMENT_TYPE", f"_type is {attestation.statement_type!r}, expected {STATEMENT_TYPE}.")
    if attestation.predicate_type != PREDICATE_TYPE:
        yield _finding(
            "PREDICATE_TYPE",
            f"predicateType is {attestation.predicate_type!r}, expected {PREDICATE_TYPE}.",
            hint="this attests something else about the image; give the one that the gate wrote",
        )


def _check_subjects(attestation: Attestation, wanted: Sequence[str]) -> Iterator[Finding]:
    having = {f"sha256:{item.sha256}": item.name for item in attestation.subjects if item.sha256 is not None}
    told = ", ".join(f"{name} {digest}" for digest, name in having.items()) or "none with a sha256"
    for digest in wanted:
        if digest not in having:
            yield _finding(
                "SUBJECT",
                f"{digest} is no subject of it; its subjects are {told}.",
                hint="a registry's digest is the manifest's: attest after the push, or give the image id",
            )
    if not wanted:
        yield _finding(
            "SUBJECT_NOT_COMPARED", f"no --subject was given, so any image would do; its subjects are {told}.",
            hint="give --subject sha256:… of the image that you are about to run", severity=Severity.WARNING,
        )  # fmt: skip


def _check_policy(result: TestResult, channel: str, policy_sha256: str) -> Iterator[Finding]:
    policy = result.policy
    if policy is None or policy.sha256 is None:
        yield _finding("POLICY", "its configuration names no policy by sha256.", hint="write it with `gate --attest`")
        return
    attested = policy.annotations.get("channel")
    if attested != channel:
        yield _finding(
            "CHANNEL",
            f"it was judged for channel {attested!r}, and {channel!r} is asked for.",
            hint=f"judge again with `nox -s gate -- --channel {channel}`, or give the --channel that you trust",
        )
    elif policy.sha256 != policy_sha256:
        yield _finding(
            "POLICY",
            f"it was judged under policy sha256:{policy.sha256}, and channel {channel!r} here is "
            f"sha256:{policy_sha256}.",
            hint="the policy was changed since, or another file was given: judge again under this one",
        )


def _check_result(result: TestResult, *, strict: bool) -> Iterator[Finding]:
    verdict = None if result.policy is None else result.policy.annotations.get("verdict")
    if result.result == "FAILED":
        told = ", ".join(result.failed) or "nothing in particular"
        yield _finding("RESULT", f"it says FAILED (the gate's {verdict}): {told}.")
        return
    if result.failed or verdict != "PASS":
        yield _finding(
            "CONTRADICTION",
            f"it says {result.result}, with the gate's verdict {verdict!r} and {len(result.failed)} failed tests.",
        )
    if not (result.passed or result.warned) or not result.records:
        yield _finding(
            "NOTHING_RAN",
            f"it says {result.result} with {len(result.passed) + len(result.warned)} tests and "
            f"{len(result.records)} records: where nothing ran, nothing passed.",
        )
    for item in result.records:
        status = item.annotations.get("status")
        if item.annotations.get("use") == "required" and status != "pass":
            yield _finding("CONTRADICTION", f"it says {result.result} and took {item.name}, which says {status!r}.")
    if result.result == "WARNED":
        yield _finding("WARNED", f"it passed with something to see: {', '.join(result.warned) or 'not said what'}.",
                       severity=Severity.ERROR if strict else Severity.WARNING)  # fmt: skip


def _check_required(result: TestResult, policy_sha256: str, required: Sequence[str]) -> Iterator[Finding]:
    """The policy that it names asks for these: a verdict under it cannot have passed without one."""
    if result.result == "FAILED" or result.policy is None or result.policy.sha256 != policy_sha256:
        return
    told = {*result.passed, *result.warned, *result.failed}
    absent = [title for title in required if title not in told]
    if absent:
        detail = f"it says {result.result} and does not list {', '.join(absent)}, which its policy requires."
        yield _finding("CONTRADICTION", detail)


def _check_listed(listed: Sequence[Resource], files: Sequence[EvidenceFile]) -> Iterator[Finding]:
    altered = _altered(listed, files)
    for item in _absent(listed, files):
        there = altered.get(item.name or "")
        yield _finding(
            "RECORD_MISSING" if there is None else "RECORD_ALTERED",
            f"{item.name} with sha256:{item.sha256} is listed and "
            + ("not among the evidence." if there is None else f"the file of that name is sha256:{there.sha256}."),
            path=None if there is None else there.path,
            hint="give every evidence folder that the gate was given",
        )


def _check_unlisted(listed: Sequence[Resource], files: Sequence[EvidenceFile]) -> Iterator[Finding]:
    """A record that was kept from the gate might have failed."""
    digests, altered = {item.sha256 for item in listed}, _altered(listed, files).values()
    for file in files:
        if file.sha256 not in digests and file not in altered:
            yield _finding(
                "RECORD_UNLISTED", f"{_name(file.path)} is among the evidence and not listed: the gate did not see it.",
                path=file.path, hint="judge again with this file, or take it away if it is of another release",
            )  # fmt: skip


def _absent(listed: Sequence[Resource], files: Sequence[EvidenceFile]) -> list[Resource]:
    digests = {file.sha256 for file in files}
    return [item for item in listed if item.sha256 not in digests]


def _altered(listed: Sequence[Resource], files: Sequence[EvidenceFile]) -> dict[str, EvidenceFile]:
    """Files that have the name of a listed one which is absent, and other bytes."""
    digests, absent = {item.sha256 for item in listed}, {item.name for item in _absent(listed, files)}
    return {name: file for file in files if file.sha256 not in digests and (name := _name(file.path)) in absent}


def _name(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def _finding(
    reason: str, detail: str, *, hint: str = "", path: str | None = None, severity: Severity = Severity.ERROR
) -> Finding:
    """Names in an attestation are whoever wrote it's: none of them steers a terminal or a CI server."""
    return Finding(
        check=CHECK,
        detail=console_line(detail, MAX_DETAIL),
        hint=hint,
        path=path if path is None else console_line(path),
        severity=severity,
        reason=reason,
    )
