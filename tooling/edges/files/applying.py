"""Applies a set of edits all or nothing, and heals a set that was cut short.

The order is: record, new contents beside the files, renames, end of the record. Killed before the first rename, all
files are old; killed after it, the record finishes the rest. Signals wait until the set is whole.
"""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tooling.edges.files.durable import flush_folder, write_all
from tooling.edges.files.journal import Journal, drop_journal, load_journal, make_journal, write_journal
from tooling.edges.files.reading import load_bytes, resolve_inside
from tooling.errors import EdgeError, ExitCode, InputError, ToolingError
from tooling.pins.healing import Direction, FileState, decide_healing
from tooling.pins.texts import FileEdit

_HEAL_HINT = "run `check --heal`"


class StalePlanError(ToolingError):
    """A file changed between reading and applying; nothing was written."""

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
        StalePlanError: a file no longer equals `before`.
        InputError: a file or its folder is read-only, or leads out of the root.
        EdgeError: a write failed (full disk, …); the files are old again, or the message says that they are not.
    """
    real = _real_edits(root, edits)
    for edit in real:
        _check_target(root, edit)
    if not real:
        return
    journal = make_journal(real, from_label=from_label, to_label=to_label)
    with _signals_held():
        _stage(root, journal)
        _commit(root, journal)


def heal(root: Path) -> Healing | None:
    """Finishes or undoes an interrupted bump, or does nothing if there is none. The caller holds `lock_tree`.

    Raises:
        UnhealableError: a file is neither old nor new; it is named and nothing is touched.
        EdgeError: a write failed; the record stays, and healing can be tried again.
    """
    journal = load_journal(root)
    if journal is None:
        return None
    direction = decide_healing({edit.path: _state(root, edit) for edit in journal.edits})
    if not isinstance(direction, str):
        raise UnhealableError(
            f"{', '.join(direction)}: changed since the bump from {journal.from_label} to {journal.to_label} broke off",
            hint="put back one of the two versions (`git diff`), or delete .bump/journal.json to keep what is there",
        )
    with _signals_held():
        _finish_healing(root, journal, direction)
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
    if _state(root, edit) is not FileState.BEFORE:
        raise StalePlanError(f"{edit.path}: changed since it was read", hint="nothing was written; run again")
    path = root / edit.path
    for checked in [path.parent, *([path] if edit.before is not None else [])]:
        if not checked.stat().st_mode & 0o222 or not os.access(checked, os.W_OK):
            shown = os.path.relpath(checked, root)
            raise InputError(
                f"{shown}: is read-only", hint=f"nothing was written; `chmod u+w {shown}`", reason="READ_ONLY"
            )


def _state(root: Path, edit: FileEdit) -> FileState:
    path = root / edit.path
    if path.is_symlink():
        return FileState.NEITHER
    try:
        found: bytes | None = load_bytes(root, edit.path)
    except InputError as cause:
        if cause.reason != "MISSING":
            return FileState.NEITHER
        found = None
    if found == edit.after:
        return FileState.AFTER
    return FileState.BEFORE if found == edit.before else FileState.NEITHER


def _stage(root: Path, journal: Journal) -> None:
    """The record and every new content, durable; on failure all of it is taken away again."""
    path = ".bump/journal.json"
    try:
        write_journal(root, journal)
        for edit in journal.edits:
            path = edit.path
            _write_staged(root, journal, edit, edit.after)
    except OSError as cause:
        with suppress(OSError):
            _remove_staged(root, journal)
            drop_journal(root)
        raise EdgeError(
            f"{path}: cannot be written: {cause.strerror}", hint="nothing was changed", reason="WRITE_FAILED"
        ) from cause


def _commit(root: Path, journal: Journal) -> None:
    """Every rename, then the end of the record; on failure the files that were renamed are put back."""
    path = ""
    try:
        for edit in journal.edits:
            path = edit.path
            _rename_staged(root, journal, edit)
    except OSError as cause:
        _put_back(root, journal, failed=path, cause=cause)
    try:
        drop_journal(root)
    except OSError as cause:
        raise EdgeError(
            f".bump/journal.json: every file is new, but the record cannot be removed: {cause.strerror}",
            hint=_HEAL_HINT,
            reason="WRITE_FAILED",
        ) from cause


def _put_back(root: Path, journal: Journal, *, failed: str, cause: OSError) -> None:
    """Restores what was renamed before `failed`, and raises the error that says how it ended."""
    try:
        for edit in journal.edits:
            if _state(root, edit) is FileState.AFTER:
                _restore(root, journal, edit)
        _remove_staged(root, journal)
        drop_journal(root)
    except OSError as second:
        raise EdgeError(
            f"{failed}: cannot be replaced: {cause.strerror}; putting the others back failed too: {second.strerror}",
            hint=f"the tree holds two versions; when the cause is mended, {_HEAL_HINT}",
            reason="INTERRUPTED",
        ) from cause
    raise EdgeError(
        f"{failed}: cannot be replaced: {cause.strerror}",
        hint="every file is as it was",
        reason="WRITE_FAILED",
    ) from cause


def _restore(root: Path, journal: Journal, edit: FileEdit) -> None:
    if edit.before is None:
        os.unlink(root / edit.path)
        flush_folder((root / edit.path).parent)
        return
    _write_staged(root, journal, edit, edit.before)
    _rename_staged(root, journal, edit)


def _finish_healing(root: Path, journal: Journal, direction: Direction) -> None:
    path = ".bump/journal.json"
    try:
        for edit in journal.edits:
            path = edit.path
            if direction == "new" and _state(root, edit) is FileState.BEFORE:
                _write_staged(root, journal, edit, edit.after)
                _rename_staged(root, journal, edit)
        _remove_staged(root, journal)
        drop_journal(root)
    except OSError as cause:
        raise EdgeError(
            f"{path}: cannot be healed: {cause.strerror}",
            hint=f"when that is mended, {_HEAL_HINT}",
            reason="INTERRUPTED",
        ) from cause


def _write_staged(root: Path, journal: Journal, edit: FileEdit, data: bytes) -> None:
    """Lays content beside the file with the file's own mode and owner, flushed."""
    staged = root / journal.staged_name(edit.path)
    with suppress(FileNotFoundError):
        os.unlink(staged)
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        with suppress(FileNotFoundError):
            facts = os.stat(root / edit.path)
            with suppress(PermissionError):
                os.fchown(descriptor, facts.st_uid, facts.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(facts.st_mode))
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rename_staged(root: Path, journal: Journal, edit: FileEdit) -> None:
    path = root / edit.path
    os.replace(root / journal.staged_name(edit.path), path)
    flush_folder(path.parent)


def _remove_staged(root: Path, journal: Journal) -> None:
    for edit in journal.edits:
        with suppress(FileNotFoundError):
            os.unlink(root / journal.staged_name(edit.path))


@contextmanager
def _signals_held() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until the block ends; it lasts as long as a few flushes of the disk."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
