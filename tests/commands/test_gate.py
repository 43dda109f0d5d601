"""`gate` as a user runs it: exit codes, folders of several machines, files, bad input, and the same bytes each time."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.gate.samples import AS_OF, COMMIT, OTHER_PINS, POLICY, evidence, failing, make_record, measured
from tests.trees import commit_all, make_tree, snapshot, write
from tooling import cli
from tooling.commands.recording import load_pins
from tooling.edges.evidence_files import write_record
from tooling.evidence import Record

AT = "2026-06-01T12:00:00Z"
ROOT = Path(__file__).resolve().parents[2]
OUTPUTS = ("junit", "markdown", "html", "attest")


def prepare(root: Path, records: Mapping[str, Record] | None = None, *, policy: str = POLICY) -> Path:
    """A folder with a policy and evidence, and no pins of its own."""
    write(root, "release.toml", policy)
    for record in (evidence() if records is None else records).values():
        write_record(root / "evidence", record)
    return root


def gate(root: Path, *words: str) -> int:
    return cli.main(["gate", "--root", str(root), "--channel", "release", "--as-of", AT, *words])


def asked(capsys: pytest.CaptureFixture[str], root: Path, *words: str) -> dict[str, Any]:
    code = gate(root, "--json", *words)
    body: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert body["exit"] == code
    return body


def test_complete_evidence_passes_with_exit_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = prepare(tmp_path)
    before = snapshot(root)
    assert gate(root) == 0
    assert snapshot(root) == before
    assert capsys.readouterr().out.startswith("PASS")


def test_a_failing_record_ends_with_exit_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = prepare(tmp_path, {**evidence(), "smoke sm90": failing(make_record("smoke", "sm90"))})
    body = asked(capsys, root)
    assert (body["exit"], body["status"], body["verdict"]) == (4, "fail", "FAIL")
    assert (body["reasons"][0]["reason"], body["reasons"][0]["stage"]) == ("BROKEN", "smoke")
    assert ("docker/Dockerfile", 3) in {(item["path"], item["line"]) for item in body["findings"]}


def test_a_missing_record_ends_with_exit_5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = prepare(tmp_path)
    (root / "evidence/gsm8k-qwen.json").unlink()
    body = asked(capsys, root)
    assert (body["exit"], body["status"], body["verdict"]) == (5, "incomplete", "INCOMPLETE")
    assert [item["reason"] for item in body["reasons"] if item["outcome"] != "PASS"] == ["MISSING"]
    assert body["missing"][0]["command"].startswith("nox -s gsm8k -- configs/gsm8k/qwen.yaml --image sha256:")


def test_an_empty_folder_is_incomplete_and_never_a_pass(tmp_path: Path) -> None:
    root = prepare(tmp_path, {})
    (root / "evidence").mkdir()
    assert gate(root) == 5


def test_folders_of_several_machines_are_read_together(tmp_path: Path) -> None:
    root = prepare(tmp_path, {})
    for title, record in evidence().items():
        write_record(tmp_path / "from" / title.replace(" ", "-"), record)
    folders = sorted(map(str, (tmp_path / "from").iterdir()))
    assert gate(root, "--evidence", *folders) == 0
    assert gate(root, "--evidence", *folders[:2], "--evidence", *folders[2:]) == 0
    assert gate(root, "--evidence", *folders[1:]) == 5


def test_missing_prints_the_commands_and_where_to_run_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = prepare(tmp_path)
    (root / "evidence/smoke-sm90.json").unlink()
    assert gate(root, "--missing") == 5
    out = capsys.readouterr().out
    assert (
        out
        == f"on a machine with an sm90 GPU and the image:\n  nox -s smoke -- --image sha256:{'1' * 64}    # smoke sm90\n"
    )


def test_a_missing_evaluation_is_compared_with_the_record_of_the_release_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = prepare(tmp_path)
    (root / "evidence/gsm8k-qwen.json").unlink()
    before = replace(evidence()["gsm8k qwen"], flashinfer_version="0.6.12")
    write_record(tmp_path / "last one", before)
    assert gate(root, "--missing") == 5
    assert "--baseline RECORD" in capsys.readouterr().out
    assert gate(root, "--missing", "--before", str(tmp_path / "last one")) == 5
    assert f"--baseline '{tmp_path}/last one/gsm8k-qwen.json'" in capsys.readouterr().out


def test_the_json_is_one_object_and_the_text_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(prepare(tmp_path), "--json") == 0
    streams = capsys.readouterr()
    body = json.loads(streams.out)
    assert (body["command"], body["verdict"], body["channel"], body["as_of"]) == ("gate", "PASS", "release", AT)
    assert "PASS" in streams.err


BAD: dict[str, tuple[tuple[str, ...], str, str]] = {
    "no evidence": (("--evidence", "nowhere"), "NO_EVIDENCE", "--evidence nowhere: found no folder"),
    "no earlier evidence": (("--before", "nowhere"), "NO_EVIDENCE", "--before nowhere: found no folder"),
    "an unknown channel": (("--channel", "weekly"), "UNKNOWN_CHANNEL", "no channel is called 'weekly'; it has release"),
    "an empty channel name": (("--channel", ""), "UNKNOWN_CHANNEL", "no channel is called ''; it has release"),
    "an empty policy name": (("--policy", ""), "BAD_ARGUMENTS", "found an empty text, expected a file"),
    "no policy": (("--policy", "nowhere.toml"), "NO_POLICY", "nowhere.toml: no such file"),
    "a time without its zone": (("--as-of", "2026-06-01"), "BAD_ARGUMENTS", "expected a time with its zone"),
    "no time": (("--as-of", "yesterday"), "BAD_ARGUMENTS", "found 'yesterday'"),
    "a branch for a commit": (("--commit", "main"), "BAD_ARGUMENTS", "expected 7 to 64 hexadecimal digits"),
    "an empty folder name": (("--evidence", ""), "BAD_ARGUMENTS", "found an empty text"),
    "an empty file name": (("--html", ""), "BAD_ARGUMENTS", "found an empty text"),
    "two outputs in one file": (("--html", "a", "--junit", "./a"), "BAD_ARGUMENTS", "is where --junit goes as well"),
    "an output over the policy": (
        ("--html", "release.toml"),
        "BAD_ARGUMENTS",
        "--html release.toml: is the policy itself",
    ),
    "an empty channel": (("--channel", ""), "UNKNOWN_CHANNEL", "no channel is called ''; it has release"),
    "a time beyond all calendars": (("--as-of", "9999-12-31T23:59:59-14:00"), "BAD_ARGUMENTS", "expected a time"),
    "two outputs on the terminal": (("--html", "-", "--junit", "-"), "BAD_ARGUMENTS", "is where --junit goes as well"),
}


@pytest.mark.parametrize(("words", "reason", "message"), BAD.values(), ids=BAD)
def test_bad_input_ends_with_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...], reason: str, message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(prepare(tmp_path))
    body = asked(capsys, tmp_path, *words)
    assert (body["exit"], body["status"], body["verdict"]) == (2, "error", None)
    assert body["error"]["reason"] == reason
    assert message in body["error"]["message"]


def test_a_tree_without_evidence_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = asked(capsys, prepare(tmp_path, {}))
    assert (body["exit"], body["error"]["reason"]) == (2, "NO_EVIDENCE")


def test_every_problem_of_a_policy_is_named_with_its_key_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "policy.toml", '[channels.release]\nstages = ["smoke"]\nallow = ["all"]\n')
    body = asked(capsys, prepare(tmp_path), "--policy", str(tmp_path / "policy.toml"))
    assert (body["exit"], body["error"]["reason"]) == (2, "BAD_POLICY")
    assert "channels.release.allow" in body["error"]["message"]
    assert "channels.release.smoke.architectures" in body["error"]["message"]


def test_a_policy_that_asks_for_nothing_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = asked(capsys, prepare(tmp_path, policy="[channels.release]\nstages = []\n"))
    assert (body["exit"], body["error"]["reason"]) == (2, "BAD_POLICY")


def test_an_output_in_the_evidence_folder_would_be_read_as_a_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = prepare(tmp_path)
    body = asked(capsys, root, "--attest", str(root / "evidence/attest.json"))
    assert (body["exit"], body["error"]["reason"]) == (2, "BAD_ARGUMENTS")
    assert gate(root, "--html", str(root / "evidence/gate.html")) == 0
    assert gate(root) == 0


def test_bad_files_in_the_folder_are_named_and_make_it_incomplete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = prepare(tmp_path)
    os.mkfifo(root / "evidence/a.json")
    with open(root / "evidence/smoke-sm100.json", "wb") as file:
        file.truncate(100_000_000)
    (root / "evidence/z.json").symlink_to("/etc/hostname")
    body = asked(capsys, root)
    assert body["exit"] == 5
    assert {item["reason"] for item in body["reasons"] if item["outcome"] != "PASS"} == {
        "NOT_A_FILE",
        "TOO_BIG",
        "OUTSIDE",
    }


def test_files_are_written_and_a_dash_is_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = prepare(tmp_path)
    words = [word for name in OUTPUTS for word in (f"--{name}", str(tmp_path / f"gate.{name}"))]
    assert gate(root, *words) == 0
    written = {name: (tmp_path / f"gate.{name}").read_text() for name in OUTPUTS}
    assert written["junit"].startswith("<?xml")
    assert "<!doctype html>" in written["html"][:100].lower()
    assert json.loads(written["attest"])["_type"] == "https://in-toto.io/Statement/v1"
    capsys.readouterr()
    assert gate(root, "--markdown", "-") == 0
    assert capsys.readouterr().out.strip() == written["markdown"].strip()


@pytest.mark.parametrize("option", ["junit", "markdown", "html", "attest"])
def test_a_file_on_the_terminal_is_whole_and_nothing_else_on_github_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    root = prepare(tmp_path, {**evidence(), "check": failing(make_record("check"))})
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert gate(root, f"--{option}", str(tmp_path / "file")) == 4
    assert "::error file=docker/Dockerfile,line=3" in capsys.readouterr().err
    assert gate(root, f"--{option}", "-") == 4
    assert capsys.readouterr().out == (tmp_path / "file").read_text()


def test_a_file_that_cannot_be_written_ends_with_exit_3(tmp_path: Path) -> None:
    assert gate(prepare(tmp_path), "--html", str(tmp_path / "missing/gate.html")) == 3


def test_the_same_records_policy_and_time_give_the_same_bytes(tmp_path: Path) -> None:
    root = prepare(tmp_path)
    write_record(tmp_path / "more", failing(make_record("smoke", "sm100", ended=AS_OF)))
    write_record(tmp_path / "more", make_record("bump", measurements={"from": "0.6.12", "to": "0.6.13"}))
    results = []
    elsewhere = {"TZ": "Pacific/Apia", "LC_ALL": "C", "PYTHONUTF8": "0"}
    for seed, folders, more in (
        ("1", ("evidence", "more"), {}), ("2", ("more", "evidence"), elsewhere), ("3", ("more", "evidence", "more"), {}),
    ):  # fmt: skip
        words = [word for name in OUTPUTS for word in (f"--{name}", f"gate.{name}")]
        done = subprocess.run(
            [sys.executable, "-m", "tooling", "gate", "--json", "--channel", "release", "--as-of", AT,
             "--evidence", *folders, *words],
            cwd=root, env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed, **more}, capture_output=True,
            timeout=300, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 4, done.stderr
        results.append([done.stdout, done.stderr, *((root / f"gate.{name}").read_bytes() for name in OUTPUTS)])
    assert results[0] == results[1] == results[2]


def test_judging_again_at_the_time_that_was_shown_gives_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, outs = prepare(tmp_path), []
    words = ["gate", "--root", str(root), "--channel", "release", "--json"]
    for more in ([], ["--as-of"]):
        cli.main([*words, *more, *([json.loads(outs[0])["as_of"]] if more else [])])
        outs.append(capsys.readouterr().out)
    assert outs[0] == outs[1]


def test_a_statement_can_be_made_again_at_the_moment_that_it_names(tmp_path: Path) -> None:
    root, words = prepare(tmp_path), []
    for name in ("first", "second"):
        cli.main(["gate", "--root", str(root), "--channel", "release", "--attest", str(tmp_path / name), *words])
        policy = json.loads((tmp_path / name).read_text())["predicate"]["configuration"][0]
        words = ["--as-of", policy["annotations"]["asOf"]]
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_records_must_be_of_the_trees_own_pins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_tree(tmp_path, "0.6.13", release_toml=POLICY)
    pins, version, _ = load_pins(root, "versions.json")
    assert version == "0.6.13"
    for record in evidence().values():
        write_record(root / "evidence", record)
    assert {item["reason"] for item in asked(capsys, root)["reasons"] if item["outcome"] != "PASS"} >= {"FOREIGN"}
    text = "accuracy_threshold: 0.4\n"
    told = measured(evidence()["gsm8k qwen"], "config", "sha256", to=hashlib.sha256(text.encode()).hexdigest())
    for record in {**evidence(), "gsm8k qwen": told}.values():
        write_record(root / "evidence", replace(record, pins_sha256=pins))
    missing = asked(capsys, root)
    assert [item["reason"] for item in missing["reasons"] if item["outcome"] != "PASS"] == ["FOREIGN"]
    assert missing["reasons"][0]["detail"].endswith("expected none: the tree has no such file")
    write(root, "configs/gsm8k/qwen.yaml", text)
    assert gate(root) == 0
    write(root, "requirements/cuda.txt", "flashinfer-python==0.6.13\n")
    assert gate(root) == 5


def test_an_evaluation_must_be_by_the_trees_own_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "accuracy_threshold: 0.4\n"
    records = evidence()
    told = measured(records["gsm8k qwen"], "config", "sha256", to=hashlib.sha256(text.encode()).hexdigest())
    root = prepare(tmp_path, {**records, "gsm8k qwen": told})
    write(root, "configs/gsm8k/qwen.yaml", text)
    assert asked(capsys, root)["verdict"] == "PASS"
    write(root, "configs/gsm8k/qwen.yaml", "accuracy_threshold: 0.5\n")
    assert [item["reason"] for item in asked(capsys, root)["reasons"] if item["outcome"] != "PASS"] == ["FOREIGN"]


def test_a_moment_within_a_second_is_judged_as_it_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ended = AS_OF - timedelta(hours=168)
    root = prepare(tmp_path, {**evidence(), "check": make_record("check", started=ended, ended=ended)})
    assert asked(capsys, root, "--as-of", AT.replace("Z", ".9Z"))["as_of"] == AT
    assert gate(root, "--as-of", AT.replace("Z", ".9Z")) == gate(root, "--as-of", AT) == 0


def test_the_commit_that_is_given_must_be_the_records(tmp_path: Path) -> None:
    root = prepare(tmp_path)
    assert gate(root, "--commit", COMMIT[:12].upper()) == 0
    assert gate(root, "--commit", "f" * 40) == 5


def test_the_default_channel_and_time(tmp_path: Path) -> None:
    root = prepare(tmp_path, policy=POLICY + '[gate]\nchannel = "release"\n')
    assert cli.main(["gate", "--root", str(root), "--as-of", AT]) == 0
    assert cli.main(["gate", "--root", str(root), "--as-of", "2026-06-01T14:00:00+02:00"]) == 0
    now = datetime.now(UTC)
    for record in evidence().values():
        write_record(root / "evidence", replace(record, started=now - timedelta(hours=1), ended=now))
    allowed = POLICY.replace("2026-12-31", str((now + timedelta(days=400)).date()))
    prepare(root, {}, policy=allowed + '[gate]\nchannel = "release"\n')
    assert cli.main(["gate", "--root", str(root)]) == 0
    for record in evidence().values():
        write_record(
            root / "evidence", replace(record, started=now - timedelta(days=11), ended=now - timedelta(days=10))
        )
    assert cli.main(["gate", "--root", str(root)]) == 5


def test_the_release_before_is_compared_row_against_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = prepare(tmp_path)
    assert asked(capsys, root)["bump"] is None
    write_record(tmp_path / "last", make_record("check", flashinfer_version="0.6.12", pins_sha256=OTHER_PINS))
    bump = asked(capsys, root, "--before", str(tmp_path / "last"))["bump"]
    assert (bump["from"], bump["to"]) == ("0.6.12", "0.6.13")
    assert any("skip_ops" in change["text"] for change in bump["changes"])


def test_a_bump_record_tells_what_moved_and_a_failing_one_only_informs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = {
        "from": "0.6.12", "to": "0.6.13", "dropped": ["flashinfer-cubin"], "restored": [],
        "companions_moved": [{"package": "apache-tvm-ffi", "path": "r", "before": "==0.1.8", "after": "==0.1.9"}],
    }  # fmt: skip
    root = prepare(tmp_path)
    write_record(root / "evidence", make_record("bump", measurements=moved))
    body = asked(capsys, root)
    assert (body["exit"], body["bump"]["from"]) == (0, "0.6.12")
    assert body["bump"]["companions"] == {
        "apache-tvm-ffi": {"from": "==0.1.8", "to": "==0.1.9"}, "flashinfer-cubin": {"from": "0.6.12", "to": None},
    }  # fmt: skip
    write_record(root / "evidence", failing(make_record("bump", measurements=moved)))
    body = asked(capsys, root)
    assert (body["exit"], body["bump"]) == (0, None)
    assert "INFORMS" in [item["reason"] for item in body["reasons"]]


def test_findings_in_any_script_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finding = replace(
        failing(make_record("check")).findings[0], detail="größe \U0001f600 \u202e \x1b[31m", path="a\udc80"
    )
    root = prepare(tmp_path, {**evidence(), "check": failing(make_record("check"), findings=(finding,))})
    words = [word for name in OUTPUTS for word in (f"--{name}", str(tmp_path / f"gate.{name}"))]
    assert gate(root, *words) == 4
    assert "\x1b[31m" not in capsys.readouterr().out
    assert asked(capsys, root)["reasons"][0]["detail"].endswith("größe \U0001f600 \u202e \x1b[31m")


def test_this_repositorys_own_policy_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for channel in ("pr", "nightly", "release"):
        code = cli.main(["gate", "--root", str(ROOT), "--channel", channel, "--evidence", str(tmp_path), "--json"])
        assert (code, json.loads(capsys.readouterr().out)["verdict"]) == (5, "INCOMPLETE")


def test_a_verdict_shows_the_folders_as_they_were_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["gate", "--channel", "release", "--as-of", AT, "--html", "gate.html"]) == 0
    assert "evidence/check.json" in capsys.readouterr().out
    assert str(tmp_path) not in (tmp_path / "gate.html").read_text()


def test_artifacts_in_folders_of_their_own_are_one_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = prepare(tmp_path, {})
    for title, record in evidence().items():
        write_record(root / "evidence" / f"evidence-{title.replace(' ', '-')}", record)
    assert gate(root) == 0
    write_record(root / "evidence/evidence-sm100", failing(make_record("smoke", "sm100")))
    assert gate(root) == 4
    capsys.readouterr()
    inside = root / "evidence/evidence-sm100/check-new.json"
    assert gate(root, "--attest", str(inside)) == 2
    assert "lies in a folder of evidence" in capsys.readouterr().err


def test_an_earlier_release_inside_of_the_folder_is_compared_with_and_not_judged(tmp_path: Path) -> None:
    root = prepare(tmp_path)
    write_record(root / "evidence/before", failing(make_record("smoke", "sm90", ended=AS_OF)))
    assert gate(root) == 4
    assert gate(root, "--before", str(root / "evidence/before")) == 0


HOSTILE = "<img src=x onerror=alert(1)> ]]>&amp;| `x` \n::error::owned\n\u202e\x1b[31m"


def test_a_release_is_not_compared_with_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = prepare(tmp_path)
    (tmp_path / "link").symlink_to(root / "evidence")
    for folder in ("evidence", "link"):
        assert gate(root, "--before", str(tmp_path / folder)) == 2
        assert "is where the records to judge lie" in capsys.readouterr().err


def test_hostile_text_stays_text_through_the_whole_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finding = replace(
        failing(make_record("check")).findings[0], detail=HOSTILE, hint=HOSTILE, path=HOSTILE, check=HOSTILE
    )
    failed = failing(make_record("check"), findings=(finding,))
    root = prepare(tmp_path, {**evidence(), "check": failed})
    nasty = root / "evidence" / "a\n::error::owned\u202e<b>.json"
    nasty.write_text("{")
    outputs = {name: tmp_path / f"gate.{name}" for name in OUTPUTS}
    assert gate(root, *(word for name, path in outputs.items() for word in (f"--{name}", str(path)))) == 4
    texts = {"text": capsys.readouterr().out, **{name: path.read_text() for name, path in outputs.items()}}
    for name, text in texts.items():
        # JUnit and HTML keep the lines of a text, and are files, in which no CI server looks for commands.
        assert name in {"junit", "html"} or not any(line.lstrip().startswith("::") for line in text.splitlines()), name
        assert not {"\x1b", "\u202e"} & set(text), name
        if name in {"html", "junit", "markdown"}:
            assert "<img" not in text, name
    assert asked(capsys, root)["exit"] == 4


def test_a_session_that_nox_skipped_leaves_no_record_and_is_no_pass(tmp_path: Path) -> None:
    """A green job in which nothing ran: no folder is an error, an empty one INCOMPLETE, and so is a stage that says so."""
    root = prepare(tmp_path, {})
    assert gate(root) == 2
    (root / "evidence").mkdir()
    assert gate(root) == 5
    for record in evidence().values():
        write_record(root / "evidence", replace(record, status="not-run", reason="NO_GPU", findings=()))
    assert gate(root) == 5
    assert "error_on_missing_interpreters = True" in (ROOT / "noxfile.py").read_text()


def test_a_release_that_was_built_with_a_version_of_its_own_does_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A version argument of the build wins over versions.json: it is told, and so is what it put into the image."""
    image = evidence()["image release"]
    told = replace(image, measurements={**image.measurements, "overrides": ["release.args.FLASHINFER_VERSION=0.6.14"]})
    body = asked(capsys, prepare(tmp_path, {**evidence(), "image release": told}))
    assert (body["exit"], body["reasons"][0]["reason"]) == (5, "OVERRIDE")
    held = replace(image, measurements={**image.measurements, "versions": {"flashinfer-python": "0.6.14"}})
    body = asked(capsys, prepare(tmp_path, {**evidence(), "image release": held}))
    assert (body["exit"], body["reasons"][0]["reason"]) == (5, "CONTRADICTORY")
    assert body["reasons"][0]["detail"] == "the image passes at 0.6.13 and holds flashinfer-python 0.6.14"


def test_a_pass_on_one_architecture_is_none_on_another_and_lists_what_it_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    smoke = evidence()["smoke sm90"]
    left_out = replace(smoke, measurements={**smoke.measurements, "not_covered": ["fp4_gemm on sm90"]})
    root = prepare(
        tmp_path, {**evidence(), "smoke sm90": left_out}, policy=POLICY.replace('["sm90"]', '["sm90", "sm100"]')
    )
    body = asked(capsys, root)
    assert (body["exit"], body["verdict"]) == (5, "INCOMPLETE")
    assert [(item["reason"], item["subject"]) for item in body["reasons"] if item["outcome"] != "PASS"] == [
        ("MISSING", "sm100"), ("NOT_COVERED", "sm90"),
    ]  # fmt: skip
    assert "fp4_gemm on sm90" in body["reasons"][1]["detail"]
    assert {"smoke sm100", "smoke sm90"} == {title for item in body["missing"] for title in item["for"]}


def test_an_earlier_stage_that_did_not_run_is_not_made_good_by_a_stale_green_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bump passed today, the image was not built, the smoke is of last week and of another image."""
    records = evidence()
    long_ago = {"started": AS_OF - timedelta(days=8), "ended": AS_OF - timedelta(days=8)}
    records["image release"] = replace(records["image release"], status="not-run", reason="NO_ENGINE", image_id=None)
    records["smoke sm90"] = replace(records["smoke sm90"], image_id="sha256:" + "e" * 64, **long_ago)
    body = asked(capsys, prepare(tmp_path, {**records, "bump": make_record("bump")}))
    assert (body["exit"], body["verdict"], body["reasons"][0]["reason"]) == (5, "INCOMPLETE", "NOT_RUN")
    assert {"STALE", "UNPROVEN_IMAGE"} <= {item["reason"] for item in body["reasons"] if item["stage"] == "smoke"}


def test_a_tree_that_has_moved_on_since_its_records_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_tree(tmp_path / "tree", release_toml=None)
    write(root, "release.toml", '[channels.pr]\nstages = ["check"]\n')
    commit = commit_all(root, "one")
    assert cli.main(["check", "--root", str(root)]) == 0

    def told(*words: str) -> tuple[int, list[str]]:
        capsys.readouterr()
        code = cli.main(["gate", "--root", str(root), "--channel", "pr", "--json", *words])
        return code, [reason["reason"] for reason in json.loads(capsys.readouterr().out)["reasons"]]

    assert told() == (0, [])
    write(root, "docker/Dockerfile", "FROM x\nARG FLASHINFER_VERSION=0.6.1\n")
    moved = commit_all(root, "two")
    assert told() == (0, ["OTHER_COMMIT"])
    assert told("--commit", commit) == (0, [])
    assert told("--commit", moved) == (5, ["FOREIGN"])
