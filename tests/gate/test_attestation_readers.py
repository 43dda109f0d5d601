"""What others make of our Statement: in-toto's own bindings read it, and a DSSE envelope that was really signed is taken.

`verify-attestation` looks at no signature; here it is shown that nothing in the way from the gate to a signer and back needs one
of our own formats.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from in_toto_attestation.predicates.test_result.v0.test_result_pb2 import TestResult as ResultMessage
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner

from tests.gate.attested import MANIFEST, POLICY, evidence, requirement, statement, warning
from tooling.findings import Finding
from tooling.gate.attestation_check import check_attestation
from tooling.gate.attestation_text import parse_attestation
from tooling.gate.values import Outcome

PAYLOAD_TYPE = "application/vnd.in-toto+json"
VERDICTS: dict[str, dict[str, Any]] = {
    "passed": {},
    "passed with warnings": {
        "requirements": (requirement(evidence("smoke", "sm90", digit="3", findings=(warning(),))),)
    },
    "failed": {"outcome": Outcome.FAIL},
}


def findings_of(body: bytes) -> tuple[Finding, ...]:
    attestation = parse_attestation(body, path="gate.intoto.json")
    return tuple(
        check_attestation(
            attestation, subjects=[MANIFEST], channel="release", policy_sha256=POLICY.partition(":")[2], strict=True
        )
    )


def test_no_field_is_unknown_to_in_totos_own_bindings() -> None:
    """Their parser refuses a field that the specification does not have, and each message checks what it must hold."""
    body = statement()
    Statement.copy_from_pb(ParseDict(body, StatementMessage())).validate()
    result = ParseDict(body["predicate"], ResultMessage())
    assert result.configuration
    for descriptor in result.configuration:
        ResourceDescriptor.copy_from_pb(descriptor).validate()


@pytest.mark.parametrize("given", VERDICTS.values(), ids=VERDICTS)
def test_nothing_is_lost_on_the_way_through_their_messages(given: dict[str, Any]) -> None:
    body = statement(**given)
    written = MessageToDict(ParseDict(body, StatementMessage()))
    assert written == body
    predicate = MessageToDict(ParseDict(body["predicate"], ResultMessage()))
    assert predicate == {name: value for name, value in body["predicate"].items() if value}


def test_a_statement_that_their_bindings_wrote_holds() -> None:
    assert findings_of(json.dumps(MessageToDict(ParseDict(statement(), StatementMessage()))).encode()) == ()


def test_an_envelope_that_was_really_signed_holds_and_so_does_its_signature() -> None:
    signer = CryptoSigner.generate_ed25519()
    envelope = Envelope(json.dumps(statement()).encode(), PAYLOAD_TYPE, {})
    envelope.sign(signer)
    written = json.dumps(envelope.to_dict()).encode()
    assert findings_of(written) == ()
    Envelope.from_dict(json.loads(written)).verify([signer.public_key], 1)


def test_only_the_signature_tells_of_an_edit_that_keeps_to_the_rules() -> None:
    """Why `verify-attestation` alone is not enough, as its page says: somebody must look at who signed."""
    signer = CryptoSigner.generate_ed25519()
    envelope = Envelope(json.dumps(statement()).encode(), PAYLOAD_TYPE, {})
    envelope.sign(signer)
    body = statement()
    body["predicate"]["url"] = "https://elsewhere.example"
    edited = Envelope(json.dumps(body).encode(), PAYLOAD_TYPE, envelope.signatures)
    assert findings_of(json.dumps(edited.to_dict()).encode()) == ()
    with pytest.raises(VerificationError):
        edited.verify([signer.public_key], 1)
