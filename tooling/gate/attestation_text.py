"""Text of an attestation to values: a bare in-toto Statement, a DSSE envelope around it, or a Sigstore bundle.

A signature is found here and never verified: that is cosign's and GitHub's. What is read is the signed payload.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn

from tooling.errors import InputError
from tooling.gate.attestation import POLICY, PREDICATE_TYPE, STATEMENT_TYPE
from tooling.strict_json import parse_strict_json

Envelope = Literal["none", "dsse", "sigstore-bundle"]
MAX_BYTES = 16_000_000
"""What GitHub takes at most as a predicate; ours has a few kilobytes."""

_PAYLOAD_TYPE = re.compile(r"application/vnd\.in-toto(?:\.[\w.+-]+)?\+json")
RESULTS = ("PASSED", "WARNED", "FAILED")
JUDGED = ("channel", "verdict", "asOf", "commit")
"""Annotations of the policy's descriptor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A ResourceDescriptor, as far as it is looked at. `sha256` null: named by another algorithm, or by none."""

    name: str | None
    sha256: str | None
    annotations: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """The predicate test-result v0.1. `policy` null: its configuration names none."""

    __test__ = False  # pytest takes it for a test otherwise

    result: str
    policy: Resource | None
    configuration: tuple[Resource, ...]
    passed: tuple[str, ...]
    warned: tuple[str, ...]
    failed: tuple[str, ...]

    @property
    def judged(self) -> dict[str, str | None]:
        """What it says of its verdict: channel, the gate's word, moment and commit; None where it says nothing."""
        told = {} if self.policy is None else self.policy.annotations
        return {key: value if isinstance(value := told.get(key), str) else None for key in JUDGED}

    @property
    def records(self) -> tuple[Resource, ...]:
        """The evidence files that the gate read, those for comparison left out."""
        return tuple(item for item in self.configuration if item.annotations.get("use") in {"required", "read"})

    @property
    def compared(self) -> tuple[Resource, ...]:
        """The evidence files of the release before."""
        return tuple(item for item in self.configuration if item.annotations.get("use") == "comparison")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attestation:
    """A Statement, and what was around it. `test_result` null: Statement or predicate are of another type."""

    envelope: Envelope
    statement_type: str
    predicate_type: str
    subjects: tuple[Resource, ...]
    predicate: Mapping[str, object]
    test_result: TestResult | None


def parse_attestation(raw: bytes, *, path: str) -> Attestation:
    """The attestation in a file. Fields that are not known are passed over, as in-toto asks of consumers.

    Raises:
        InputError: too large, no JSON, a key that stands twice, an envelope without signature or of another payload,
            a Statement without one of its required fields, or a predicate that is no test-result.
    """
    reader = _Reader(path)
    envelope, body = _unpack(reader, reader.parse(raw))
    statement_type, predicate_type = reader.text(body, "_type"), reader.text(body, "predicateType")
    subjects = reader.resources(body, "subject")
    if not subjects:
        reader.fail("subject is empty, expected at least one artifact")
    if any(not isinstance(item.get("digest"), dict) or not item["digest"] for item in reader.objects(body, "subject")):
        reader.fail("a subject has no digest, and a Statement's subjects are matched by digest alone")
    predicate = body.get("predicate", {})
    if not isinstance(predicate, dict):
        reader.fail("predicate is no object")
    known = (statement_type, predicate_type) == (STATEMENT_TYPE, PREDICATE_TYPE)
    return Attestation(
        envelope=envelope,
        statement_type=statement_type,
        predicate_type=predicate_type,
        subjects=subjects,
        predicate=predicate,
        test_result=_test_result(reader, predicate) if known else None,
    )


def _unpack(reader: _Reader, body: Mapping[str, object]) -> tuple[Envelope, Mapping[str, object]]:
    if "dsseEnvelope" in body:
        inner = body["dsseEnvelope"]
        if not isinstance(inner, dict):
            reader.fail("dsseEnvelope is no object")
        return "sigstore-bundle", _payload(reader, inner)
    if "payload" in body or "payloadType" in body:
        return "dsse", _payload(reader, body)
    return "none", body


def _payload(reader: _Reader, envelope: Mapping[str, object]) -> Mapping[str, object]:
    """The Statement inside a DSSE envelope; DSSE takes both alphabets of base64."""
    kind, signatures = reader.text(envelope, "payloadType"), envelope.get("signatures")
    if not _PAYLOAD_TYPE.fullmatch(kind):
        reader.fail(f"the envelope's payloadType is {kind!r}, expected application/vnd.in-toto+json")
    if not isinstance(signatures, list) or not signatures or not all(isinstance(item, dict) for item in signatures):
        reader.fail("the envelope holds no signature", hint="give the bare Statement, or sign it: docs/attestation.md")
    encoded = reader.text(envelope, "payload").translate(str.maketrans("-_", "+/"))
    try:
        raw = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError) as cause:
        raise reader.problem(f"the envelope's payload is not base64: {cause}") from cause
    return reader.parse(raw)


def _test_result(reader: _Reader, predicate: Mapping[str, object]) -> TestResult:
    result = reader.text(predicate, "result")
    if result not in RESULTS:
        reader.fail(f"result is {result!r}, expected one of {', '.join(RESULTS)}")
    configuration = reader.resources(predicate, "configuration")
    policies = [item for item in configuration if item.name == POLICY]
    if len(policies) > 1:
        reader.fail("the configuration names more than one policy")
    return TestResult(
        result=result,
        policy=policies[0] if policies else None,
        configuration=configuration,
        passed=reader.texts(predicate, "passedTests"),
        warned=reader.texts(predicate, "warnedTests"),
        failed=reader.texts(predicate, "failedTests"),
    )


class _Reader:
    """Takes fields out of JSON objects; what is missing or of another type is an InputError that names the file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def problem(self, text: str, *, hint: str = "", reason: str = "BAD_ATTESTATION") -> InputError:
        return InputError(
            f"{self._path}: {text}", hint=hint or "`gate --attest FILE` writes a Statement", reason=reason
        )

    def fail(self, text: str, *, hint: str = "") -> NoReturn:
        raise self.problem(text, hint=hint)

    def parse(self, raw: bytes) -> dict[str, object]:
        if len(raw) > MAX_BYTES:
            raise self.problem(f"found more than {MAX_BYTES:,} bytes", reason="TOO_LARGE")
        try:
            body = parse_strict_json(raw.decode())
        except (ValueError, RecursionError) as cause:
            several = "several attestations, one a line? give one of them" if b"}\n{" in raw.strip() else ""
            raise self.problem(f"not the JSON of an attestation: {cause}", hint=several) from cause
        if not isinstance(body, dict):
            self.fail("found JSON that is no object")
        return body

    def text(self, body: Mapping[str, object], key: str) -> str:
        value = body.get(key)
        if not isinstance(value, str):
            self.fail(f"{key} is {'missing' if key not in body else 'no text'}")
        return value

    def texts(self, body: Mapping[str, object], key: str) -> tuple[str, ...]:
        value = body.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(f"{key} is no list of texts")
        return tuple(value)

    def objects(self, body: Mapping[str, object], key: str) -> Sequence[Mapping[str, object]]:
        value = body.get(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.fail(f"{key} is {'missing' if key not in body else 'no list of objects'}")
        return value

    def resources(self, body: Mapping[str, object], key: str) -> tuple[Resource, ...]:
        return tuple(self._resource(item, key) for item in self.objects(body, key))

    def _resource(self, item: Mapping[str, object], key: str) -> Resource:
        name, digests, annotations = item.get("name"), item.get("digest", {}), item.get("annotations", {})
        if not (name is None or isinstance(name, str)) or not isinstance(annotations, dict):
            self.fail(f"{key}: a name is no text, or annotations are no object")
        if not isinstance(digests, dict) or not all(isinstance(value, str) for value in digests.values()):
            self.fail(f"{key}: a digest is no object of texts")
        sha256 = digests.get("sha256")
        if sha256 is not None and not re.fullmatch("[0-9a-f]{64}", sha256):
            self.fail(f"{key}: sha256 is {sha256!r}, expected 64 hexadecimal digits in lower case")
        return Resource(name=name, sha256=sha256, annotations=annotations)
