"""One file of a set: how it compares with the record, its new content laid beside it, and the rename over it.

The set as a whole, and what to do when one of these fails, is `applying`.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from tooling.edges.files.durable import flush_folder, write_all
from tooling.edges.files.journal import Journal
from tooling.edges.files.reading import load_bytes
from tooling.errors import InputError
from tooling.pins.healing import FileState
from tooling.pins.texts import FileEdit

_NOT_ALLOWED = {errno.EPERM, errno.EINVAL, errno.ENOTSUP}
"""What giving a file away answers without the right to, or in a user namespace that does not know the owner."""


def state_of(root: Path, edit: FileEdit) -> FileState:
    """How the file compares with the edit now; a link in its place, or what cannot be read, is neither."""
    if (root / edit.path).is_symlink():
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


def write_staged(root: Path, journal: Journal, edit: FileEdit, data: bytes) -> None:
    """Lays content beside the file with the file's own mode and owner, flushed. Raises OSError."""
    staged = root / journal.staged_name(edit.path)
    with suppress(FileNotFoundError):
        os.unlink(staged)
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        _take_over(descriptor, root / edit.path)
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename_staged(root: Path, journal: Journal, edit: FileEdit) -> None:
    """Puts the staged content in the file's place, durably. Raises OSError.

    A file with several hard links is parted from them, as git does it; a name of it elsewhere keeps the old content.
    """
    path = root / edit.path
    os.replace(root / journal.staged_name(edit.path), path)
    flush_folder(path.parent)


def restore(root: Path, journal: Journal, edit: FileEdit) -> None:
    """Gives a file that is new its old content back, or takes it away again if it was made anew. Raises OSError."""
    if edit.before is None:
        os.unlink(root / edit.path)
        flush_folder((root / edit.path).parent)
        return
    write_staged(root, journal, edit, edit.before)
    rename_staged(root, journal, edit)


def remove_staged(root: Path, journal: Journal) -> None:
    """Takes away what waits beside the files, durably: the record that names it goes next. Raises OSError."""
    folders: dict[Path, None] = {}
    for edit in journal.edits:
        staged = root / journal.staged_name(edit.path)
        with suppress(FileNotFoundError):
            os.unlink(staged)
            folders[staged.parent] = None
    for folder in folders:
        flush_folder(folder)


def _take_over(descriptor: int, path: Path) -> None:
    """Gives a new file the owner, mode and extended attributes of the one at `path`, as far as we may."""
    try:
        facts = os.stat(path)
    except FileNotFoundError:
        return
    made = os.fstat(descriptor)
    if (made.st_uid, made.st_gid) != (facts.st_uid, facts.st_gid):
        _give(descriptor, facts)
        made = os.fstat(descriptor)
    if stat.S_IMODE(made.st_mode) != stat.S_IMODE(facts.st_mode):
        os.fchmod(descriptor, stat.S_IMODE(facts.st_mode))
    if sys.platform == "linux":
        _copy_attributes(descriptor, path)


def _give(descriptor: int, facts: os.stat_result) -> None:
    """Owner and group, else the group alone, else what the maker of the file is."""
    for owner in (facts.st_uid, -1):
        try:
            os.fchown(descriptor, owner, facts.st_gid)
        except OSError as cause:
            if cause.errno not in _NOT_ALLOWED:
                raise
        else:
            return


def _copy_attributes(descriptor: int, path: Path) -> None:
    """Access lists and labels; a file system without them, or a label that only the system gives, is normal."""
    with suppress(OSError):
        for name in os.listxattr(path):
            with suppress(OSError):
                os.setxattr(descriptor, name, os.getxattr(path, name))
