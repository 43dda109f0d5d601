"""`capabilities` as a user runs it, on the shipped table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trees import make_tree
from tooling import cli
from tooling.capabilities.matrix import render_markdown
from tooling.edges.capability_table import load_table

ROOT = Path(__file__).resolve().parents[2]


def show(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    cli.main(["capabilities", *words, "--json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_a_release_is_shown_with_its_faults_and_gating(capsys: pytest.CaptureFixture[str]) -> None:
    answer = show(capsys, "0.6.13")
    (release,) = answer["releases"]
    assert answer["exit"] == 0
    assert release["facts"]["extras_have_sf_layout"]["value"] is True
    assert {fault["id"] for fault in release["known_faults"]} == {"flashinfer#3868", "flashinfer#3868/cublaslt"}
    assert {world: item["strategy"] for world, item in release["gating"].items()} == {
        "single": "leader_broadcast",
        "multi": "leader_broadcast",
        "deepep": "all_ranks",
    }


def test_a_local_label_does_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(capsys, "0.6.13+cu130")["releases"][0]["facts"] == show(capsys, "0.6.13")["releases"][0]["facts"]


def test_a_release_without_a_row_is_refused_with_the_command_that_makes_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = show(capsys, "0.6.99")
    assert (answer["exit"], answer["error"]["reason"]) == (4, "NO_ROW")
    assert answer["error"]["hint"] == "derive it: nox -s probe -- 0.6.99 --add"


def test_without_a_version_the_tree_s_pin_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_tree(tmp_path, "0.6.12")
    assert show(capsys, "--root", str(root))["releases"][0]["release"] == "0.6.12"


@pytest.mark.parametrize(
    ("span", "effect", "part"),
    [
        ("0.6.12..0.6.13", "gains", "persistent cache becomes usable on one rank: start-up no longer tunes anew"),
        ("0.6.12..0.6.13", "gains", "`skip_ops` appears"),
        ("0.6.13..0.6.12", "breaks", "`skip_ops` is gone"),
        ("0.6.13..0.6.12", "breaks", "it loses the runner's parameters in the key on disk"),
        ("0.7.1..0.7.2", "changes", "a package mismatch no longer stops the import"),
        ("0.6.11.post3..0.6.12", "breaks", "it loses the runner's parameters in the key on disk"),
        ("0.6.18.post1..0.7.0", "breaks", "cache files need cutlass_dsl_version"),
        ("0.6.6..0.6.7", "gains", "`cache` appears"),
    ],
)
def test_what_changes_between_two_releases_is_said(
    capsys: pytest.CaptureFixture[str], span: str, effect: str, part: str
) -> None:
    changes = show(capsys, span)["changes"]
    assert any(change["effect"] == effect and part in change["text"] for change in changes), changes


def test_an_operation_that_is_gone_is_said_to_break_a_skip_list(capsys: pytest.CaptureFixture[str]) -> None:
    texts = [change["text"] for change in show(capsys, "0.5.3..0.6.0")["changes"] if change["effect"] == "breaks"]
    assert any("cutlass_fp4_gemm" in text and "skip list" in text for text in texts), texts


def test_nothing_changes_between_a_release_and_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(capsys, "0.6.13..0.6.13")["changes"] == []


def test_the_matrix_has_every_release(capsys: pytest.CaptureFixture[str]) -> None:
    rows = show(capsys, "--matrix")["releases"]
    assert [row["release"] for row in rows] == [str(release) for release in reversed(load_table().releases)]
    assert cli.main(["capabilities", "--matrix"]) == 0
    assert "0.6.16.post3" in capsys.readouterr().out


def test_the_matrix_in_docs_is_the_table_s(tmp_path: Path) -> None:
    page = ROOT / "docs" / "capabilities-matrix.md"
    made = tmp_path / "matrix.md"
    assert cli.main(["capabilities", "--matrix", "--output", str(made)]) == 0
    assert made.read_text() == render_markdown(load_table())
    assert page.read_text() == made.read_text(), "run `nox -s capabilities_matrix`"


@pytest.mark.parametrize("name", ["nonexistent/x", "file/x", "folder"])
def test_a_matrix_that_cannot_be_written_is_an_input_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    answer = show(capsys, "--matrix", "--output", str(tmp_path / name))
    assert (answer["exit"], answer["error"]["reason"]) == (2, "BAD_INPUT")
    assert "cannot be written" in answer["error"]["message"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["latest"], "no version"),
        (["0.6.12.."], "no version"),
        (["--markdown"], "go with --matrix"),
        (["0.6.13", "--matrix"], "leave VERSION out"),
    ],
)
def test_bad_arguments_are_said(capsys: pytest.CaptureFixture[str], words: list[str], part: str) -> None:
    assert cli.main(["capabilities", *words]) == 2
    assert part in capsys.readouterr().err
