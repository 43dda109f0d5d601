"""The pre-commit hooks, run by pre-commit itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.trees import commit_all, make_tree, write

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def copy_of_this_checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with this checkout's files as they are now, so that pre-commit can clone it."""
    target = tmp_path_factory.mktemp("hooks") / "repository"
    target.mkdir()
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "tooling", "*.toml", "*.md", ".pre-commit-hooks.yaml"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        write(target, name, (ROOT / name).read_bytes())
    commit_all(target, "the tool")
    return target


@pytest.mark.online
def test_another_repository_can_use_the_hook(copy_of_this_checkout: Path, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "engine", git=True)
    command = [
        sys.executable,
        "-m",
        "pre_commit",
        "try-repo",
        str(copy_of_this_checkout),
        "flashinfer-pin-check",
        "--all-files",
    ]
    sound = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert sound.returncode == 0, sound.stdout + sound.stderr
    write(root, "requirements/cuda.txt", "flashinfer-python==0.6.18\nflashinfer-cubin==0.6.12\n")
    commit_all(root, "drift")
    broken = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert broken.returncode == 1
    assert "requirements/cuda.txt:1: error: flashinfer-python holds 0.6.18" in broken.stdout
    assert not (root / "evidence").exists()
