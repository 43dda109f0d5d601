"""The command where there is no GPU: bad input writes nothing, a missing GPU is recorded, and nothing extra is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tooling.cli import main
from tooling.evidence import parse_record

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with pins and no git."""
    root = tmp_path / "tree"
    (root / "requirements").mkdir(parents=True)
    (root / "versions.json").write_text('{"variable": {"FLASHINFER_VERSION": {"default": "0.6.13"}}}\n')
    (root / "requirements" / "cuda.txt").write_text("flashinfer-python==0.6.13\ntorch==2.11.0\n")
    return root


def ran(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    code = main(["smoke", "--json", *words])
    body: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert body["exit"] == code
    return body


BAD = {
    "UNKNOWN_SCENARIO": ["--scenario", "one-rank", "three-ranks"],
    "BAD_ARGUMENTS": ["--ranks", "1"],
    "BAD_ARGUMENTS ": ["--max-tokens", "0"],
    "BAD_ARGUMENTS  ": ["--no-progress-s", "nan"],
    "BAD_ARGUMENTS   ": ["--jit-image", "sha256:x"],
    "BAD_ARGUMENTS    ": ["--device", "gpu0"],
    "BAD_ARGUMENTS     ": ["--jit-cache", __file__],
    "BAD_ARGUMENTS      ": ["--jit-cache", __file__, "--image", "flashinfer-pin:1"],
    "NO_ROOT": ["--root", "/nonexistent"],
}


@pytest.mark.parametrize("reason", BAD)
def test_bad_input_writes_nothing(capsys: pytest.CaptureFixture[str], tree: Path, tmp_path: Path, reason: str) -> None:
    body = ran(capsys, "--root", str(tree), "--evidence", str(tmp_path / "out"), *BAD[reason])
    assert (body["exit"], body["error"]["reason"]) == (2, reason.strip())
    assert not (tmp_path / "out").exists()


def test_an_unknown_scenario_is_answered_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert "deepep-low-latency" in ran(capsys, "--scenario", "three-ranks")["error"]["hint"]


def test_a_broken_table_is_bad_input(
    capsys: pytest.CaptureFixture[str], tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tooling.commands import smoke_running
    from tooling.edges.capability_table import load_table

    broken = tmp_path / "capabilities.json"
    broken.write_text('{"format": 1, "rows": [')
    monkeypatch.setattr(smoke_running, "load_table", lambda: load_table(broken))
    body = ran(capsys, "--root", str(tree), "--evidence", str(tmp_path / "out"))
    assert (body["exit"], body["error"]["reason"]) == (2, "BAD_TABLE")
    assert not (tmp_path / "out").exists()


def test_an_evidence_folder_that_cannot_be_written_is_said_before_any_work(
    capsys: pytest.CaptureFixture[str], tree: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    body = ran(capsys, "--root", str(tree), "--evidence", str(tmp_path / "file" / "out"))
    assert (body["exit"], body["error"]["reason"]) == (3, "UNWRITABLE")


def test_without_torch_or_gpu_the_record_says_that_nothing_ran(
    capsys: pytest.CaptureFixture[str], tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLASHINFER_DISABLE_VERSION_CHECK", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    body = ran(capsys, "--root", str(tree), "--evidence", str(tmp_path / "out"), "--commit", "a" * 40)
    record = parse_record((tmp_path / "out" / "smoke-none.json").read_text())
    assert (body["exit"], body["status"]) == (3, "not-run")
    assert body["error"]["reason"] in {"NO_TORCH", "NO_GPU"}
    assert (record.status, record.reason, record.subject) == ("not-run", body["error"]["reason"], "none")
    assert record.commit == "a" * 40
    assert record.measurements["bypasses"] == {"FLASHINFER_DISABLE_VERSION_CHECK": "1"}
    assert body["records"] == [json.loads((tmp_path / "out" / "smoke-none.json").read_text())]


def test_half_of_a_launchers_variables_is_bad_input(
    capsys: pytest.CaptureFixture[str], tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    body = ran(capsys, "--root", str(tree), "--evidence", str(tmp_path / "out"))
    assert (body["exit"], body["error"]["reason"]) == (2, "BAD_WORLD")


@pytest.mark.parametrize("content", [None, "{", '{"format": 1}'])
def test_explaining_what_is_no_record_is_bad_input(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "record.json"
    if content is not None:
        path.write_text(content)
    assert ran(capsys, "--explain", str(path))["exit"] == 2


def test_the_command_needs_packaging_torch_and_flashinfer_only() -> None:
    """What its modules import beside the standard library, before torch and FlashInfer are asked for."""
    code = """
import sys
def names(): return {name.split('.')[0] for name in sys.modules}
before = names()
from tooling.cli import main
from tooling.commands import smoke
from tooling.edges.smoke import relay, serving_rank, worker
print(*sorted(names() - before - set(sys.stdlib_module_names)))
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ}, capture_output=True, text=True, check=True
    )
    assert {name for name in ran.stdout.split() if not name.startswith("_")} == {"tooling", "packaging"}


def test_a_records_story_is_told_and_nothing_runs(
    capsys: pytest.CaptureFixture[str], tree: Path, tmp_path: Path
) -> None:
    ran(capsys, "--root", str(tree), "--evidence", str(tmp_path / "out"))
    before = (tmp_path / "out" / "smoke-none.json").read_bytes()
    assert main(["smoke", "--explain", str(tmp_path / "out" / "smoke-none.json")]) == 0
    assert "not-run" in capsys.readouterr().out
    assert (tmp_path / "out" / "smoke-none.json").read_bytes() == before


def test_a_flag_that_is_given_twice_names_more() -> None:
    from argparse import ArgumentParser

    from tooling.commands import smoke

    parser = ArgumentParser()
    smoke.add_arguments(parser)
    given = parser.parse_args(
        ["--scenario", "one-rank", "--device", "0", "--scenario", "foreign", "truncated", "--device", "1"]
    )
    assert (given.scenario, given.device) == (["one-rank", "foreign", "truncated"], [0, 1])


def test_no_flag_leads_to_a_rehearsal() -> None:
    from argparse import ArgumentParser

    from tooling.commands import smoke

    parser = ArgumentParser()
    smoke.add_arguments(parser)
    names = {action.dest for action in parser._actions}
    assert names.isdisjoint({"rehearsal", "table", "prelude", "labels", "gpu"})
