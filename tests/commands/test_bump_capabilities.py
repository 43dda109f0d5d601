"""`bump` looks the target up in the capabilities table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trees import make_tree, snapshot
from tooling import cli


def bump(capsys: pytest.CaptureFixture[str], root: Path, *words: str) -> dict[str, Any]:
    cli.main(["bump", *words, "--offline", "--json", "--root", str(root)])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_a_target_without_a_row_is_refused_with_the_probe_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_tree(tmp_path, "0.6.13")
    before = snapshot(root)
    answer = bump(capsys, root, "0.6.99")
    assert (answer["exit"], answer["status"]) == (4, "refused")
    (finding,) = answer["findings"]
    assert finding["reason"] == "NO_ROW"
    assert finding["hint"].startswith("derive it: nox -s probe -- 0.6.99 --add")
    assert snapshot(root) == before


def test_allow_unknown_goes_on_with_a_warning_and_no_gating(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = bump(capsys, make_tree(tmp_path, "0.6.13"), "0.6.99", "--allow-unknown")
    assert answer["status"] == "moved"
    assert answer["capabilities"] == {"gating": None, "changes": []}
    assert [finding["severity"] for finding in answer["findings"] if finding["check"] == "capabilities"] == ["warning"]


def test_what_changes_between_the_two_rows_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_tree(tmp_path, "0.6.12")
    assert cli.main(["bump", "0.6.13", "--offline", "--dry-run", "--root", str(root)]) == 0
    said = capsys.readouterr().out
    assert "persistent cache becomes usable on one rank: start-up no longer tunes anew" in said
    assert "`skip_ops` appears" in said
    answer = bump(capsys, root, "0.6.13")
    assert answer["capabilities"]["gating"]["single"]["strategy"] == "leader_broadcast"
    assert {change["fact"] for change in answer["capabilities"]["changes"]} >= {"autotune_parameters", "gating"}


def test_a_tree_that_is_at_an_unknown_release_already_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bump(capsys, make_tree(tmp_path, "0.6.99"), "0.6.99")["status"] == "already"


def test_a_pre_release_that_was_allowed_needs_no_second_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = bump(capsys, make_tree(tmp_path, "0.6.13"), "0.6.14rc1", "--allow-prerelease")
    assert answer["status"] == "moved"
    (finding,) = [item for item in answer["findings"] if item["check"] == "capabilities"]
    assert finding["severity"] == "warning"
    assert "pre-releases have no row" in finding["hint"]
