"""Applies a set of edits all or nothing, and heals a set that was cut short.

The order is: record, new contents beside the files, renames, end of the record. Killed before the first rename, all
files are old; killed after it, the record finishes the rest. Signals wait until the set is whole.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tooling.edges.files.journal import (
    Journal,
    drop_journal,
    drop_unfinished,
    has_journal,
    load_journal,
    make_journal,
    write_journal,
)
from tooling.edges.files.reading import resolve_inside
from tooling.edges.files.staging import remove_staged, rename_staged, restore, state_of, write_staged
from tooling.errors import EdgeError, ExitCode, InputError, ToolingError
from tooling.pins.healing import Direction, FileState, decide_healing
from tooling.pins.texts import FileEdit

_RECORD = ".bump/journal.json"
_HEAL_HINT = "run `check --heal`"


class StalePlanError(ToolingError):
    """A file changed between reading and applying; nothing was written, or what was is put back."""

    exit_code = ExitCode.FINDINGS
    kind = "refusal"
    reason = "STALE_PLAN"


class UnhealableError(ToolingError):
    """A file of an interrupted bump is neither old nor new, so nothing was touched."""

    exit_code = ExitCode.FINDINGS
    kind = "refusal"
    reason = "UNHEALABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Healing:
    """What became of an interrupted bump: `to` is `old` or `new`, `version` the one that all files hold now."""

    to: Direction
    version: str
    files: tuple[str, ...]


def apply_edits(root: Path, edits: Sequence[FileEdit], *, from_label: str = "", to_label: str = "") -> None:
    """Writes every edit or none. The caller holds `lock_tree`. Edits that change nothing are left out.

    Raises:
        StalePlanError: a file no longer equals `before`; all others are as they were.
        InputError: a file or its folder is read-only, missing, or leads out of the root.
        EdgeError: a write failed (full disk, …); the files are old again, or the message says that they are not.
    """
    real = _real_edits(root, edits)
    for edit in real:
        _check_target(root, edit)
    if not real:
        return
    if has_journal(root):
        raise EdgeError("an interrupted bump is not healed yet", hint=_HEAL_HINT, reason="INTERRUPTED")
    journal = make_journal(real, from_label=from_label, to_label=to_label)
    with _signals_held():
        _stage(root, journal)
        _commit(root, journal)


def heal(root: Path) -> Healing | None:
    """Finishes or undoes an interrupted bump, or does nothing if there is none. The caller holds `lock_tree`.

    A set that cannot be finished, because one file refuses to be replaced, is undone.

    Raises:
        UnhealableError: a file is neither old nor new; it is named and nothing is touched.
        InputError: the record is damaged or not ours.
        EdgeError: a write failed; the record stays, and healing can be tried again.
    """
    journal = load_journal(root)
    with _signals_held():
        if journal is None:
            _drop_unfinished(root)
            return None
        direction = _finish(root, journal, _direction(root, journal))
    version = journal.to_label if direction == "new" else journal.from_label
    return Healing(to=direction, version=version, files=tuple(edit.path for edit in journal.edits))


def find_interrupted(root: Path) -> tuple[str, str] | None:
    """The versions from and to of a bump that was cut short, or None. Touches nothing."""
    journal = load_journal(root)
    return None if journal is None else (journal.from_label, journal.to_label)


def _real_edits(root: Path, edits: Sequence[FileEdit]) -> list[FileEdit]:
    """The edits on the files behind links, each once, in a fixed order."""
    base = root.resolve()
    by_path: dict[str, FileEdit] = {}
    for edit in edits:
        path = str(resolve_inside(base, edit.path).relative_to(base))
        known = by_path.setdefault(path, FileEdit(path=path, before=edit.before, after=edit.after))
        if (known.before, known.after) != (edit.before, edit.after):
            raise InputError(f"{edit.path}: two names of one file, with different edits")
    return [edit for _, edit in sorted(by_path.items()) if edit.before != edit.after]


def _check_target(root: Path, edit: FileEdit) -> None:
    if state_of(root, edit) is not FileState.BEFORE:
        raise StalePlanError(f"{edit.path}: changed since it was read", hint="nothing was written; run again")
    path = root / edit.path
    if not path.parent.is_dir():
        raise InputError(f"{edit.path}: its folder does not exist", hint="nothing was written", reason="MISSING")
    for checked in [path.parent, *([path] if edit.before is not None else [])]:
        # The mode bits count for root too: who takes the write bits away does not want the file changed.
        if not checked.stat().st_mode & 0o222 or not os.access(checked, os.W_OK):
            shown = os.path.relpath(checked, root)
            raise InputError(
                f"{shown}: is read-only", hint=f"nothing was written; `chmod u+w {shown}`", reason="READ_ONLY"
            )


def _stage(root: Path, journal: Journal) -> None:
    """The record and every new content, durable; on failure all of it is taken away again."""
    path = _RECORD
    try:
        write_journal(root, journal)
        for edit in journal.edits:
            path = edit.path
            write_staged(root, journal, edit, edit.after)
    except OSError as cause:
        raise EdgeError(
            f"{path}: cannot be written: {_why(cause)}",
            hint=f"nothing was changed{_clear(root, journal)}",
            reason="WRITE_FAILED",
        ) from cause


def _clear(root: Path, journal: Journal) -> str:
    """Takes record and staged contents away before any rename; returns what to add to a hint if that fails too."""
    try:
        remove_staged(root, journal)
        drop_journal(root)
    except OSError as cause:
        if not has_journal(root):
            return ""
        return f", but what was begun cannot be cleared away ({_why(cause)}); when that is mended, {_HEAL_HINT}"
    return ""


def _commit(root: Path, journal: Journal) -> None:
    """Every rename, then the end of the record; on failure the files that were renamed are put back."""
    for edit in journal.edits:
        try:
            if state_of(root, edit) is not FileState.BEFORE:
                raise StalePlanError(f"{edit.path}: changed since it was read", hint="run again")
            rename_staged(root, journal, edit)
        except StalePlanError as changed:
            _put_back(root, journal, failed=edit.path, cause=changed, foreign={edit.path})
            raise
        except OSError as cause:
            _put_back(root, journal, failed=edit.path, cause=cause, foreign=set())
            raise EdgeError(
                f"{edit.path}: cannot be replaced: {_why(cause)}", hint=_replace_hint(cause), reason="WRITE_FAILED"
            ) from cause
    try:
        drop_journal(root)
    except OSError as cause:
        raise EdgeError(
            f"{_RECORD}: every file is new, but the record cannot be removed: {_why(cause)}",
            hint=f"when that is mended, {_HEAL_HINT}",
            reason="INTERRUPTED",
        ) from cause


def _put_back(root: Path, journal: Journal, *, failed: str, cause: OSError | StalePlanError, foreign: set[str]) -> None:
    """Restores what was renamed, leaves `foreign` files alone, and ends the record; else raises what it could not."""
    problem = ""
    try:
        for edit in journal.edits:
            if state_of(root, edit) is FileState.AFTER:
                restore(root, journal, edit)
        astray = [
            edit.path
            for edit in journal.edits
            if edit.path not in foreign and state_of(root, edit) is not FileState.BEFORE
        ]
        if not astray:
            remove_staged(root, journal)
            drop_journal(root)
            return
        problem = f"{', '.join(astray)} cannot be read back"
    except OSError as second:
        problem = _why(second)
    raise EdgeError(
        f"{failed}: cannot be replaced: {_why(cause)}; putting the others back failed too: {problem}",
        hint=f"the tree may hold two versions; when the cause is mended, {_HEAL_HINT}",
        reason="INTERRUPTED",
    ) from cause


def _direction(root: Path, journal: Journal) -> Direction:
    direction = decide_healing({edit.path: state_of(root, edit) for edit in journal.edits})
    if isinstance(direction, str):
        return direction
    raise UnhealableError(
        f"{', '.join(direction)}: changed since the bump from {journal.from_label} to {journal.to_label} broke off",
        hint=f"put back one of the two versions (see `git diff`), or delete {_RECORD} to keep what is there",
    )


def _finish(root: Path, journal: Journal, direction: Direction) -> Direction:
    """Brings every file to one side, forward if it can be, and ends the record; returns the side."""
    try:
        try:
            _bring(root, journal, direction)
        except OSError:
            if direction == "old":
                raise
            # Finishing may be impossible for good (a mount point in the way), undoing not: all old is as whole.
            direction = "old"
            _bring(root, journal, direction)
        remove_staged(root, journal)
        drop_journal(root)
    except OSError as cause:
        raise EdgeError(
            f"{cause.filename or _RECORD}: the interrupted bump cannot be healed: {_why(cause)}",
            hint=f"when that is mended, {_HEAL_HINT}",
            reason="INTERRUPTED",
        ) from cause
    return direction


def _bring(root: Path, journal: Journal, direction: Direction) -> None:
    """Makes every file new, or every file old. Raises OSError that names the file."""
    wanted = FileState.AFTER if direction == "new" else FileState.BEFORE
    for edit in journal.edits:
        try:
            state = state_of(root, edit)
            if state is wanted:
                continue
            if state is FileState.NEITHER:
                raise OSError(errno.ESTALE, "changed while it was healed")
            if direction == "new":
                write_staged(root, journal, edit, edit.after)
                rename_staged(root, journal, edit)
            else:
                restore(root, journal, edit)
        except OSError as cause:
            raise OSError(cause.errno, _why(cause), edit.path) from cause


def _drop_unfinished(root: Path) -> None:
    try:
        drop_unfinished(root)
    except OSError as cause:
        raise EdgeError(f".bump/journal.new: cannot be removed: {_why(cause)}", reason="UNWRITABLE") from cause


def _replace_hint(cause: OSError) -> str:
    kept = "every file is as it was"
    return f"{kept}; a mount point lies in the way: bump outside of it" if cause.errno == errno.EBUSY else kept


def _why(cause: OSError | ToolingError) -> str:
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause)


@contextmanager
def _signals_held() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until the block ends; it lasts as long as a few flushes of the disk."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
