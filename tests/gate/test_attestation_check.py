"""An attestation is read strictly, and every way in which it does not hold is a finding of its own."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.gate.attested import CHECK, CONFIG, FILES, IMAGE, MANIFEST, POLICY, SMOKE, envelope, evidence, statement
from tooling.errors import ExitCode, InputError
from tooling.findings import Severity, has_errors
from tooling.gate.attestation_check import check_attestation, check_records
from tooling.gate.attestation_text import MAX_BYTES, Attestation, parse_attestation
from tooling.gate.values import EvidenceFile, Outcome

Change = Callable[[dict[str, Any]], object]


def parse(body: object) -> Attestation:
    return parse_attestation(json.dumps(body).encode(), path="gate.intoto.json")


def altered(change: Change, **more: Any) -> dict[str, Any]:
    body = copy.deepcopy(statement(**more))
    change(body)
    return body


def reasons(body: object, **more: Any) -> list[str]:
    asked: dict[str, Any] = {
        "subjects": [MANIFEST], "channel": "release", "policy_sha256": POLICY[7:], "strict": True, **more,
    }  # fmt: skip
    return [finding.reason for finding in check_attestation(parse(body), **asked)]


WRAPPED = {
    "bare": lambda body: body,
    "dsse": envelope,
    "dsse in the URL's alphabet": lambda body: envelope(body, urlsafe=True),
    "dsse without padding": lambda body: {**(it := envelope(body)), "payload": it["payload"].rstrip("=")},
    "dsse of the predicate's own media type": lambda body: envelope(
        body, payload_type="application/vnd.in-toto.test-result+json"
    ),
    "sigstore bundle": lambda body: {
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {},
        "dsseEnvelope": envelope(body),
    },
}


@pytest.mark.parametrize("wrap", WRAPPED)
def test_a_statement_that_holds_gives_no_finding_however_it_is_wrapped(wrap: str) -> None:
    assert reasons(WRAPPED[wrap](statement())) == []


@pytest.mark.parametrize(
    ("wrap", "found"), [("bare", "none"), ("dsse", "dsse"), ("sigstore bundle", "sigstore-bundle")]
)
def test_what_was_around_the_statement_is_told(wrap: str, found: str) -> None:
    assert parse(WRAPPED[wrap](statement())).envelope == found


def test_fields_that_are_not_known_are_passed_over() -> None:
    assert reasons(altered(lambda body: (body.update(more=1), body["predicate"].update(more={"a": []})))) == []


DIFFERENT: dict[str, tuple[Change, dict[str, Any], list[str]]] = {
    "an older Statement": (
        lambda body: body.update(_type="https://in-toto.io/Statement/v0.1"), {}, ["STATEMENT_TYPE"],
    ),
    "provenance": (
        lambda body: body.update(predicateType="https://slsa.dev/provenance/v1"), {}, ["PREDICATE_TYPE"],
    ),
    "another image": (lambda body: None, {"subjects": ["sha256:" + "0" * 64]}, ["SUBJECT"]),
    "the image id of a pushed image": (lambda body: None, {"subjects": [CONFIG]}, ["SUBJECT"]),
    "one of two images": (lambda body: None, {"subjects": [MANIFEST, CONFIG]}, ["SUBJECT"]),
    "a subject by another algorithm": (
        lambda body: body["subject"][0].update(digest={"sha512": MANIFEST[7:]}), {}, ["SUBJECT"],
    ),
    "no subject given": (lambda body: None, {"subjects": []}, ["SUBJECT_NOT_COMPARED"]),
    "another channel": (lambda body: None, {"channel": "nightly"}, ["CHANNEL"]),
    "another policy": (lambda body: None, {"policy_sha256": "0" * 64}, ["POLICY"]),
    "no policy": (
        lambda body: body["predicate"]["configuration"].pop(0), {}, ["POLICY", "CONTRADICTION"],
    ),
    "a policy without sha256": (
        lambda body: body["predicate"]["configuration"][0].update(digest={"sha512": "a"}), {}, ["POLICY"],
    ),
    "FAILED": (lambda body: body["predicate"].update(result="FAILED"), {}, ["RESULT"]),
    "WARNED": (
        lambda body: body["predicate"].update(result="WARNED", warnedTests=["smoke sm90"]), {}, ["WARNED"],
    ),
    "PASSED with failed tests": (
        lambda body: body["predicate"].update(failedTests=["smoke sm90"]), {}, ["CONTRADICTION"],
    ),
    "PASSED of a verdict that did not pass": (
        lambda body: body["predicate"]["configuration"][0]["annotations"].update(verdict="INCOMPLETE"), {},
        ["CONTRADICTION"],
    ),
    "PASSED over a record that failed": (
        lambda body: body["predicate"]["configuration"][-1]["annotations"].update(status="fail"), {}, ["CONTRADICTION"],
    ),
    "PASSED without a test that its policy requires": (
        lambda body: body["predicate"]["passedTests"].remove("smoke sm90"), {"required": ("check", "smoke sm90")},
        ["CONTRADICTION"],
    ),
    "PASSED without a test that another policy requires": (
        lambda body: None, {"required": ("smoke sm100",), "policy_sha256": "0" * 64}, ["POLICY"],
    ),
    "PASSED without tests": (lambda body: body["predicate"].update(passedTests=[]), {}, ["NOTHING_RAN"]),
    "PASSED without lists of tests": (lambda body: body["predicate"].pop("passedTests"), {}, ["NOTHING_RAN"]),
    "PASSED without records": (
        lambda body: body["predicate"].update(configuration=body["predicate"]["configuration"][:3]), {},
        ["NOTHING_RAN"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENT)
def test_every_mismatch_has_its_own_reason(name: str) -> None:
    change, asked, expected = DIFFERENT[name]
    assert reasons(altered(change), **asked) == expected


def test_an_incomplete_verdict_is_told_as_the_gate_told_it() -> None:
    body = statement(outcome=Outcome.INCOMPLETE, requirements=())
    (finding,) = check_attestation(
        parse(body), subjects=[f"sha256:{body['subject'][0]['digest']['sha256']}"], channel="release",
        policy_sha256=POLICY[7:],
    )  # fmt: skip
    assert finding.detail == "it says FAILED (the gate's INCOMPLETE): nothing in particular."


def test_a_warned_result_passes_unless_it_is_taken_strictly() -> None:
    body = parse(altered(lambda body: body["predicate"].update(result="WARNED", warnedTests=["smoke sm90"])))
    asked: dict[str, Any] = {"subjects": [MANIFEST], "channel": "release", "policy_sha256": POLICY[7:]}
    (lenient,) = check_attestation(body, **asked)
    (strict,) = check_attestation(body, **asked, strict=True)
    assert (lenient.severity, strict.severity) == (Severity.WARNING, Severity.ERROR)
    assert not has_errors([lenient])


BAD: dict[str, Change] = {
    "_type missing": lambda body: body.pop("_type"),
    "_type no text": lambda body: body.update(_type=1),
    "predicateType missing": lambda body: body.pop("predicateType"),
    "subject missing": lambda body: body.pop("subject"),
    "subject no list": lambda body: body.update(subject={}),
    "subject of texts": lambda body: body.update(subject=["a"]),
    "subject empty": lambda body: body.update(subject=[]),
    "subject without digest": lambda body: body["subject"][0].pop("digest"),
    "subject with an empty digest": lambda body: body["subject"][0].update(digest={}),
    "digest no text": lambda body: body["subject"][0].update(digest={"sha256": 5}),
    "digest in capitals": lambda body: body["subject"][0].update(digest={"sha256": "A" * 64}),
    "digest cut": lambda body: body["subject"][0].update(digest={"sha256": "a" * 63}),
    "digest with its algorithm": lambda body: body["subject"][0].update(digest={"sha256": MANIFEST}),
    "name no text": lambda body: body["subject"][0].update(name=[]),
    "annotations no object": lambda body: body["predicate"]["configuration"][0].update(annotations=[]),
    "predicate no object": lambda body: body.update(predicate=[]),
    "predicate missing": lambda body: body.pop("predicate"),
    "result missing": lambda body: body["predicate"].pop("result"),
    "result in small letters": lambda body: body["predicate"].update(result="passed"),
    "configuration missing": lambda body: body["predicate"].pop("configuration"),
    "two policies": lambda body: body["predicate"]["configuration"].append(body["predicate"]["configuration"][0]),
    "tests no list": lambda body: body["predicate"].update(passedTests="all"),
    "tests no texts": lambda body: body["predicate"].update(failedTests=[None]),
}


@pytest.mark.parametrize("name", BAD)
def test_a_statement_that_is_none_is_bad_input(name: str) -> None:
    assert_bad(json.dumps(altered(BAD[name])).encode())


ENVELOPES: dict[str, Change] = {
    "no signatures": lambda body: body.update(signatures=[]),
    "signatures missing": lambda body: body.pop("signatures"),
    "signatures no objects": lambda body: body.update(signatures=["MEUC"]),
    "payload missing": lambda body: body.pop("payload"),
    "payload no base64": lambda body: body.update(payload="{}!"),
    "payload no JSON": lambda body: body.update(payload="aGVsbG8="),
    "payloadType missing": lambda body: body.pop("payloadType"),
    "payloadType of something else": lambda body: body.update(payloadType="application/vnd.in-toto+yaml"),
    "payloadType with something before it": lambda body: body.update(payloadType="x/application/vnd.in-toto+json"),
}


@pytest.mark.parametrize("name", ENVELOPES)
def test_an_envelope_that_is_none_is_bad_input(name: str) -> None:
    body = envelope(statement())
    ENVELOPES[name](body)
    assert_bad(json.dumps(body).encode())
    assert_bad(json.dumps({"dsseEnvelope": body}).encode())


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"_type": NaN}',
        b'{"_type": "a", "_type": "b"}', b'{"dsseEnvelope": []}',
    ],
    ids=["empty", "cut", "list", "null", "text", "not UTF-8", "too deep", "NaN", "a key twice", "no envelope"],
)  # fmt: skip
def test_what_is_no_attestation_is_bad_input(raw: bytes) -> None:
    assert_bad(raw)


def test_of_a_file_with_several_it_says_that_one_is_wanted() -> None:
    one = json.dumps(envelope(statement()))
    assert parse(json.loads(one)).envelope == "dsse"
    with pytest.raises(InputError) as refused:
        parse_attestation(f"{one}\n{one}\n".encode(), path="sha256-abc.jsonl")
    assert refused.value.hint == "several attestations, one a line? give one of them"


def test_a_file_that_is_too_large_is_not_read_as_json() -> None:
    assert_bad(b" " * (MAX_BYTES + 1), reason="TOO_LARGE")


def assert_bad(raw: bytes, *, reason: str = "BAD_ATTESTATION") -> None:
    with pytest.raises(InputError) as refused:
        parse_attestation(raw, path="gate.intoto.json")
    assert (refused.value.reason, refused.value.exit_code) == (reason, ExitCode.INPUT)
    assert refused.value.message.startswith("gate.intoto.json: ")


FAILING = evidence("smoke", "sm100", digit="9", status="fail")
OTHER_SMOKE = EvidenceFile(path="/elsewhere/smoke-sm90.json", sha256="9" * 64, record=SMOKE.record)
RECORDS: dict[str, tuple[tuple[EvidenceFile, ...], list[tuple[str, str | None]]]] = {
    "the same": (FILES, []),
    "in another order": (FILES[::-1], []),
    "one missing": ((CHECK, IMAGE), [("RECORD_MISSING", None)]),
    "none at all": ((), [("RECORD_MISSING", None)] * 3),
    "one altered": ((CHECK, IMAGE, OTHER_SMOKE), [("RECORD_ALTERED", OTHER_SMOKE.path)]),
    "one kept from the gate": ((*FILES, FAILING), [("RECORD_UNLISTED", FAILING.path)]),
    "one kept from the gate, of a listed name": ((*FILES, OTHER_SMOKE), [("RECORD_UNLISTED", OTHER_SMOKE.path)]),
}


@pytest.mark.parametrize("name", RECORDS)
def test_the_records_at_hand_must_be_those_that_are_listed(name: str) -> None:
    files, expected = RECORDS[name]
    found = check_records(parse(statement()), files)
    assert [(finding.reason, finding.path) for finding in found] == expected
    assert has_errors(found) == bool(expected)


def test_a_record_that_the_gate_read_and_did_not_take_is_asked_for_too() -> None:
    read = evidence("image", "nightly", digit="7")
    body = parse(statement(files=(*FILES, read)))
    assert check_records(body, (*FILES, read)) == []
    assert [finding.reason for finding in check_records(body, FILES)] == ["RECORD_MISSING"]


def test_an_earlier_release_s_record_is_not_asked_for() -> None:
    earlier = evidence("smoke", "sm90", digit="8")
    assert check_records(parse(statement(earlier=(earlier,))), FILES) == []


def test_an_earlier_release_s_record_may_lie_beside_the_others() -> None:
    earlier = evidence("smoke", "sm90", digit="8")
    at_hand = replace(earlier, path="before/smoke-sm90.json")
    assert check_records(parse(statement(earlier=(earlier,))), (*FILES, at_hand)) == []
    found = check_records(parse(statement(earlier=(earlier,))), (CHECK, IMAGE, at_hand))
    assert [finding.reason for finding in found] == ["RECORD_MISSING"]
