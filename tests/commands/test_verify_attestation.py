"""`verify-attestation` on files: what it says, what it ends with, and what it trusts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gate import samples
from tests.gate.attested import AS_OF, CHECK, CONFIG, IMAGE, MANIFEST, SMOKE, envelope, requirement, verdict
from tests.trees import RELEASE_TOML, make_tree, write
from tooling import cli
from tooling.edges.evidence_files import load_evidence, write_record
from tooling.evidence import Record
from tooling.gate.attestation import render_statement
from tooling.gate.policy_text import parse_policy

POLICY = """
[gate]
channel = "release"

[channels.release]
stages = ["check"]

[channels.pr]
stages = ["check"]
allow = ["dirty"]
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with two channels, its evidence, and the attestation of the release channel over that evidence."""
    root = make_tree(tmp_path / "tree", release_toml=RELEASE_TOML + POLICY)
    for file in (CHECK, IMAGE, SMOKE):
        assert isinstance(file.record, Record)
        write_record(root / "evidence", file.record)
    attest(root)
    return root


def attest(root: Path, **more: Any) -> None:
    files = load_evidence([root / "evidence"])
    channel = parse_policy(POLICY, path="release.toml").channel(None, path="release.toml")
    told = verdict(
        **{"policy_sha256": channel.sha256, "files": files, "requirements": tuple(map(requirement, files)), **more}
    )
    write(root, "gate.intoto.json", render_statement(told))


def call(root: Path, *words: str, file: str = "gate.intoto.json") -> int:
    return cli.main(["--root", str(root), "verify-attestation", str(root / file), *words])


def test_an_attestation_of_this_image_policy_and_evidence_is_verified(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(tree, "--subject", MANIFEST, "--evidence", str(tree / "evidence")) == 0
    assert capsys.readouterr().out == (
        f"subject  release {MANIFEST}\n"
        "result   PASSED, 3 passed, 0 failed, 3 records\n"
        f"judged   channel release, verdict PASS, asOf 2026-06-01T12:00:00.000Z, commit {'b' * 40}\n"
        "no signature: this is a bare Statement, which anybody can write\n"
        "verified: what it says holds\n"
    )


def test_without_a_subject_it_says_that_any_image_would_do(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(tree) == 0
    assert "warning: no --subject was given, so any image would do" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--subject", CONFIG], "SUBJECT"),
        (["--subject", MANIFEST, "--subject", CONFIG], "SUBJECT"),
        (["--subject", MANIFEST, "--channel", "pr"], "CHANNEL"),
    ],
    ids=["another image", "one of two", "another channel"],
)
def test_a_mismatch_is_refused(tree: Path, capsys: pytest.CaptureFixture[str], words: list[str], reason: str) -> None:
    assert call(tree, "--json", *words) == 4
    answer = json.loads(capsys.readouterr().out)
    assert (answer["status"], answer["exit"], answer["error"]) == ("refused", 4, None)
    assert [finding["reason"] for finding in answer["findings"]] == [reason]


def test_a_policy_that_asks_for_less_than_the_trusted_one_is_refused(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        tree, "release.toml", RELEASE_TOML + POLICY.replace('["check"]', '["check"]\nmax_age_hours = { check = 1 }', 1)
    )
    assert call(tree, "--subject", MANIFEST) == 4
    assert "it was judged under policy sha256:" in capsys.readouterr().out
    trusted = write(tree.parent, "trusted.toml", POLICY)
    assert call(tree, "--subject", MANIFEST, "--policy", str(trusted)) == 0


def test_comments_and_layout_of_the_policy_do_not_count(tree: Path) -> None:
    write(tree, "release.toml", "# said\n" + RELEASE_TOML + POLICY.replace(" = ", "  =  "))
    assert call(tree, "--subject", MANIFEST, "--strict") == 0


def test_an_altered_and_a_hidden_record_are_refused(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tree / "evidence/smoke-sm90.json"
    path.write_text(path.read_text().replace("0.6.13", "0.6.12"))
    write(tree, "more/smoke-sm100.json", "{}")
    folders = ["--evidence", str(tree / "evidence"), str(tree / "more")]
    assert call(tree, "--json", "--subject", MANIFEST, *folders) == 4
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [(item["reason"], Path(item["path"]).name) for item in found] == [
        ("RECORD_ALTERED", "smoke-sm90.json"),
        ("RECORD_UNLISTED", "smoke-sm100.json"),
    ]


@pytest.mark.parametrize("bundle", [False, True], ids=["dsse", "sigstore bundle"])
def test_of_a_signature_it_says_who_verifies_it(
    tree: Path, capsys: pytest.CaptureFixture[str], *, bundle: bool
) -> None:
    body: object = envelope(json.loads((tree / "gate.intoto.json").read_text()))
    write(tree, "signed.json", json.dumps({"dsseEnvelope": body} if bundle else body))
    assert call(tree, "--subject", MANIFEST, file="signed.json") == 0
    assert "verify it with cosign or gh, this does not" in capsys.readouterr().out
    assert call(tree, "--json", "--subject", MANIFEST, file="signed.json") == 0
    assert json.loads(capsys.readouterr().out)["signature_checked"] is False


def test_the_object_names_subjects_result_records_and_policy(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(tree, "--json", "--subject", MANIFEST) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["command"], answer["status"], answer["envelope"]) == ("verify-attestation", "verified", "none")
    assert (answer["result"], answer["channel"]) == ("PASSED", "release")
    assert answer["subjects"] == [{"name": "release", "sha256": MANIFEST[7:]}]
    assert [item["name"] for item in answer["records"]] == ["check.json", "image-release.json", "smoke-sm90.json"]
    assert len(answer["policy_sha256"]) == 64
    assert answer["judged"] == {
        "channel": "release", "verdict": "PASS", "asOf": "2026-06-01T12:00:00.000Z", "commit": "b" * 40,
    }  # fmt: skip


@pytest.mark.parametrize("text", ["a\n::error::b", "\x1b[2J\x1b]0;t\x07", "\u202eb", "##[group]a", "a" * 10_000])
def test_no_text_of_an_attestation_steers_the_terminal_or_the_server_that_reads_it(
    tree: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    body = json.loads((tree / "gate.intoto.json").read_text())
    body["subject"][0]["name"] = text
    body["predicate"].update(result="WARNED", warnedTests=[text])
    body["predicate"]["configuration"][0]["annotations"].update(asOf=text, commit=text)
    body["predicate"]["configuration"][-1]["name"] = text
    write(tree, "gate.intoto.json", json.dumps(body))
    call(tree, "--evidence", str(tree / "evidence"))
    out = capsys.readouterr().out
    assert not any(sign in out for sign in ("\x1b", "\u202e", "##[", "\n::"))
    assert max(map(len, out.splitlines())) < 3000
    assert "WARNED" in out


def test_the_predicate_alone_is_written_once_all_holds(tree: Path) -> None:
    target = tree / "predicate.json"
    assert call(tree, "--subject", CONFIG, "--predicate", str(target)) == 4
    assert not target.exists()
    assert call(tree, "--subject", MANIFEST, "--predicate", str(target)) == 0
    assert json.loads(target.read_text()) == json.loads((tree / "gate.intoto.json").read_text())["predicate"]


def test_a_predicate_that_cannot_be_written_is_the_world_s_answer(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(tree, "--subject", MANIFEST, "--predicate", str(tree / "nowhere/predicate.json")) == 3
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "file", "reason"),
    [
        ([], "nowhere.json", "UNREADABLE"),
        ([], "evidence", "UNREADABLE"),
        ([], "release.toml", "BAD_ATTESTATION"),
        (["--channel", "nope"], "gate.intoto.json", "UNKNOWN_CHANNEL"),
        (["--policy", "nowhere.toml"], "gate.intoto.json", "UNREADABLE"),
        (["--policy", ""], "gate.intoto.json", "BAD_ARGUMENTS"),
        (["--evidence", "nowhere"], "gate.intoto.json", "NO_EVIDENCE"),
        (["--evidence", ""], "gate.intoto.json", "BAD_ARGUMENTS"),
        (["--subject", "release:0.6.13"], "gate.intoto.json", "BAD_ARGUMENTS"),
        (["--subject", "sha256:" + "A" * 64], "gate.intoto.json", "BAD_ARGUMENTS"),
    ],
    ids=["no file", "a folder", "no JSON", "no such channel", "no policy", "empty policy", "no evidence",
         "empty evidence", "a tag", "capitals"],
)  # fmt: skip
def test_bad_input_ends_with_2_and_a_reason(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    words: list[str], file: str, reason: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tree)
    assert call(tree, "--json", *words, file=file) == 2
    assert json.loads(capsys.readouterr().out)["error"]["reason"] == reason


def test_a_tree_without_channels_has_nothing_to_trust(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tree, "release.toml", RELEASE_TOML)
    assert call(tree, "--json") == 2
    assert json.loads(capsys.readouterr().out)["error"]["reason"] == "UNKNOWN_CHANNEL"


def test_provenance_of_another_builder_is_refused_and_not_bad_input(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = json.loads((tree / "gate.intoto.json").read_text())
    write(tree, "gate.intoto.json", json.dumps({**body, "predicateType": "https://slsa.dev/provenance/v1"}))
    assert call(tree, "--json") == 4
    answer = json.loads(capsys.readouterr().out)
    assert [item["reason"] for item in answer["findings"]] == ["PREDICATE_TYPE"]
    assert answer["result"] is None


def test_nothing_is_written_unless_it_is_asked_for(tree: Path) -> None:
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    call(tree, "--subject", MANIFEST, "--evidence", str(tree / "evidence"))
    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before


def test_the_moment_of_the_verdict_is_in_the_statement(tree: Path) -> None:
    assert AS_OF.isoformat(timespec="milliseconds").replace("+00:00", "Z") in (tree / "gate.intoto.json").read_text()


def test_what_the_gate_attests_holds_until_a_record_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "judged"
    write(root, "release.toml", samples.POLICY)
    for record in samples.evidence().values():
        write_record(root / "evidence", record)
    moment = samples.AS_OF.isoformat()
    words = ["--root", str(root), "--channel", "release", "--as-of", moment, "--attest", str(root / "gate.intoto.json")]
    assert cli.main(["gate", *words]) == 0, capsys.readouterr()
    body = json.loads((root / "gate.intoto.json").read_text())
    subjects = [word for item in body["subject"] for word in ("--subject", f"sha256:{item['digest']['sha256']}")]
    asked = ["--channel", "release", *subjects, "--evidence", str(root / "evidence")]
    assert call(root, *asked) == 0, capsys.readouterr()
    assert body["predicate"]["failedTests"] == []
    changed = next((root / "evidence").glob("smoke*.json"))
    changed.write_bytes(changed.read_bytes() + b"\n")
    assert call(root, *asked) == 4
    assert "the file of that name is sha256:" in capsys.readouterr().out


def test_a_verdict_that_is_incomplete_is_attested_as_failed_and_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "judged"
    write(root, "release.toml", samples.POLICY)
    for title, record in samples.evidence().items():
        if not title.startswith("smoke"):
            write_record(root / "evidence", record)
    moment = samples.AS_OF.isoformat()
    words = ["--root", str(root), "--channel", "release", "--as-of", moment, "--attest", str(root / "gate.intoto.json")]
    assert cli.main(["gate", *words]) == 5
    assert call(root, "--channel", "release") == 4
    assert "it says FAILED (the gate's INCOMPLETE): smoke sm90" in capsys.readouterr().out
