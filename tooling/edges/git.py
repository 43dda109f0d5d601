"""Git, asked through its command line; a tree without git, or without commits, is normal and gives None."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tooling.errors import EdgeError, InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """The commit that is checked out and whether tracked files differ from it; None where git cannot tell."""

    commit: str | None
    dirty: bool | None


def load_revision(root: Path) -> Revision:
    """The tree's commit and state. Untracked files that git does not ignore count as dirty."""
    commit = load_head(root)
    if commit is None:
        return Revision(commit=None, dirty=None)
    status = _ask(root, "status", "--porcelain", "--untracked-files=normal", "--", ".")
    return Revision(commit=commit, dirty=None if status is None else bool(status.strip()))


def load_head(root: Path) -> str | None:
    """The commit that is checked out, or None without git."""
    answer = _ask(root, "rev-parse", "HEAD")
    return None if answer is None else answer.strip()


def load_commit_time(root: Path) -> datetime | None:
    """When HEAD was committed, in UTC, or None without git."""
    answer = _ask(root, "show", "-s", "--format=%ct", "HEAD")
    return None if answer is None else datetime.fromtimestamp(int(answer), tz=UTC)


def load_origin(root: Path) -> str | None:
    """The address of the remote `origin` as git has it, credentials included; None without one."""
    answer = _ask(root, "remote", "get-url", "origin")
    return answer.strip() or None if answer is not None else None


def list_files(root: Path) -> list[str] | None:
    """The files below root that git tracks or does not ignore, relative to root; None where git cannot tell."""
    answer = _ask(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
    return None if answer is None else [name for name in answer.split("\0") if name]


def load_file_at(root: Path, ref: str, path: str) -> bytes | None:
    """A file's bytes at another commit, or None if that commit has no such file.

    Raises:
        InputError: there is no such ref here, or no git.
    """
    if shutil.which("git") is None:
        raise InputError(f"git was not found, and {ref!r} needs it", hint="install git", reason="NO_GIT")
    if _ask(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}") is None:
        is_shallow = (_ask(root, "rev-parse", "--is-shallow-repository") or "").strip() == "true"
        deeper = "this clone is shallow: `git fetch --unshallow`, or `git fetch --depth 1 origin BRANCH`"
        hint = deeper if is_shallow else "fetch it, or name another base"
        raise InputError(f"git knows no commit {ref!r} here", hint=hint, reason="NO_BASE")
    done = _git(root, "show", f"{ref}:./{path}")
    return done.stdout if done is not None and done.returncode == 0 else None


def _ask(root: Path, *words: str) -> str | None:
    done = _git(root, *words)
    return None if done is None or done.returncode != 0 else os.fsdecode(done.stdout)


def _git(root: Path, *words: str) -> subprocess.CompletedProcess[bytes] | None:
    command = ["git", "-C", str(root), "--no-optional-locks", *words]
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        return None
    except subprocess.TimeoutExpired as cause:
        raise EdgeError(f"git did not answer within 60 s in {root}") from cause
