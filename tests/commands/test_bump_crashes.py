"""The command `bump`, struck at every step that it takes on the disk, and what the next command makes of it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.edges.files.faults import Fault, Steps, in_child
from tests.trees import FILES, commit_all, make_tree, snapshot
from tooling import cli
from tooling.edges.files.applying import find_interrupted
from tooling.edges.files.journal import lock_tree

OLD, NEW = "0.6.12", "0.6.13"
REPOSITORY = Path(__file__).resolve().parents[2]


def run(root: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the JSON object of a command."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = cli.main([*words, "--json", "--root", str(root)])
    return code, json.loads(out.getvalue()) if out.getvalue() else {}


def bump(root: Path) -> tuple[int, dict[str, Any]]:
    return run(root, "bump", NEW, "--offline")


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[[], Path]:
    """Lays a tree that is all old in place of the last one."""
    original = make_tree(tmp_path / "original", OLD)

    def lay() -> Path:
        root = tmp_path / "tree"
        shutil.rmtree(root, ignore_errors=True)
        return Path(shutil.copytree(original, root))

    return lay


@pytest.fixture
def states(tmp_path: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The tree all old, and all new."""
    return snapshot(make_tree(tmp_path / "old", OLD)), snapshot(make_tree(tmp_path / "new", NEW)) | {
        "requirements/cuda.txt": (tmp_path / "new" / "requirements" / "cuda.txt")
        .read_bytes()
        .replace(b"some-other-lib==0.6.13", b"some-other-lib==0.6.12")
    }


def steps_of(root: Path) -> int:
    with Steps() as steps:
        assert bump(root)[0] == 0
    assert steps.names.count("replace") == 1 + len(FILES) + 1, "the record, the files, the evidence"
    return len(steps.names)


def test_killed_at_any_step_the_next_command_makes_it_whole_and_says_which(
    fresh: Callable[[], Path], states: tuple[dict[str, bytes], dict[str, bytes]]
) -> None:
    old, new = states
    outcomes = set()
    for at in range(1, steps_of(fresh()) + 1):
        root = fresh()
        with Steps(Fault(kind="SIGKILL"), at=at):
            assert in_child(lambda root=root: bump(root)) == -signal.SIGKILL
        interrupted = find_interrupted(root) is not None
        assert interrupted or snapshot(root) in (old, new), f"step {at}"
        if at % 2:
            code, answer = run(root, "check", "--heal")
            whole = {OLD: old, NEW: new}[answer["version"]]
        else:
            code, answer = bump(root)
            whole = new
        assert code == 0, f"step {at}: {answer}"
        assert snapshot(root) == whole, f"step {at}"
        assert (answer["healed"] is not None) == interrupted, f"step {at}: {answer}"
        outcomes.add(interrupted and answer["healed"]["to"])
        assert bump(root)[0] == 0
        assert snapshot(root) == new
    assert outcomes == {False, "old", "new"}


@pytest.mark.parametrize("kind", ["ENOSPC", "EROFS"])
def test_a_disk_that_fails_from_any_step_on_is_exit_3_and_the_next_bump_works(
    fresh: Callable[[], Path], states: tuple[dict[str, bytes], dict[str, bytes]], kind: str
) -> None:
    old, new = states
    for at in range(1, steps_of(fresh()) + 1, 2):
        root = fresh()
        with Steps(Fault(kind=kind, lasting=True), at=at):
            code, answer = bump(root)
        assert (code, answer["exit"]) == (3, 3) or (code, snapshot(root)) == (0, new), f"step {at}: {answer}"
        if find_interrupted(root) is None:
            assert snapshot(root) in (old, new), f"step {at}"
        assert bump(root)[0] == 0
        assert snapshot(root) == new


@pytest.mark.parametrize(
    ("kind", "rename", "code"),
    [("SIGKILL", 3, -9), ("SIGTERM", 3, -15), ("SIGINT", 3, 130), ("EIO", 3, 3)],
    ids=["kill -9", "terminated", "Ctrl-C", "a failing disk"],
)
def test_a_real_process_struck_at_the_second_file(
    tmp_path: Path, states: tuple[dict[str, bytes], dict[str, bytes]], kind: str, rename: int, code: int
) -> None:
    old, new = states
    root = make_tree(tmp_path / "tree", OLD)
    words = [sys.executable, "-m", "tests.commands.kill_at", kind, str(rename), "bump", NEW, "--offline"]
    done = subprocess.run([*words, "--root", str(root)], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    if kind == "SIGKILL":
        assert snapshot(root) not in (old, new)
        assert run(root, "check")[0] == 4
        assert bump(root)[1]["healed"] == {"to": "new", "version": NEW}
        assert snapshot(root) == new
    elif kind == "EIO":
        assert snapshot(root) == old
        assert "every file is as it was" in done.stderr
    else:
        assert snapshot(root) == new, "the signal waited until the set was whole"
    assert find_interrupted(root) is None


def test_an_interrupted_tree_is_reported_by_every_command_and_a_dry_run_heals_nothing(tmp_path: Path) -> None:
    root = make_tree(tmp_path, OLD)
    with Steps(Fault(kind="SIGKILL", when="after"), at=3, of="replace"):
        in_child(lambda: bump(root))
    left = snapshot(root)
    for words in (["bump", NEW, "--offline", "--dry-run"], ["check"]):
        code, answer = run(root, *words)
        assert code == 4
        assert [item for item in answer["findings"] if "interrupted" in f"{item['detail']} {item['reason']}".lower()]
        assert snapshot(root) == left
    assert run(root, "check", "--heal")[1]["healed"] == {"to": "new", "version": NEW}


def test_a_file_changed_by_hand_after_a_crash_is_exit_4_and_named(tmp_path: Path) -> None:
    root = make_tree(tmp_path, OLD)
    with Steps(Fault(kind="SIGKILL", when="after"), at=3, of="replace"):
        in_child(lambda: bump(root))
    (root / "versions.json").write_text("by hand")
    left = snapshot(root)
    for words in (["bump", NEW, "--offline"], ["check", "--heal"]):
        code, answer = run(root, *words)
        assert (code, answer["error"]["reason"]) == (4, "UNHEALABLE")
        assert "versions.json" in answer["error"]["message"]
        assert snapshot(root) == left


def test_of_two_bumps_at_once_one_wins_and_the_other_says_so(tmp_path: Path) -> None:
    root = make_tree(tmp_path, OLD)
    with lock_tree(root):
        codes = [in_child(lambda: os._exit(bump(root)[0])), in_child(lambda: os._exit(run(root, "check", "--heal")[0]))]
    assert codes == [3, 3]
    assert bump(root)[0] == 0


def test_a_crash_leaves_git_nothing_to_see_but_the_pins(tmp_path: Path) -> None:
    root = make_tree(tmp_path, OLD)
    commit_all(root, "pin")
    with Steps(Fault(kind="SIGKILL", when="after"), at=3, of="replace"):
        in_child(lambda: bump(root))
    assert bump(root)[0] == 0
    status = subprocess.run(
        ["git", "-C", str(root), "status", "--porcelain"], check=True, capture_output=True, text=True
    )
    assert sorted(status.stdout.splitlines()) == sorted(f" M {path}" for path in FILES)
