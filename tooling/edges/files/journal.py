"""The write-ahead record of a set of edits, and the lock that guards it: `.bump/journal.json` and `.bump/lock`.

The record holds every file's content before and after, so that whoever finds it can finish or undo. It appears and
disappears whole: written beside, flushed, renamed.
"""

from __future__ import annotations

import base64
import errno
import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tooling.edges.files.durable import flush_folder, make_private_folder, write_durably
from tooling.errors import EdgeError, InputError
from tooling.pins.texts import FileEdit

FOLDER = ".bump"
FORMAT = 1
_TOKEN = re.compile(r"[0-9a-f]{12}")
_LOCK_TRIES = 10
_LOCK_PAUSE_S = 0.02
"""`is_locked` of another process holds the lock for microseconds; only who holds it longer is a bump."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """A set of edits under way; `path` of each edit is the real file's, relative to the root; labels are versions."""

    token: str
    from_label: str
    to_label: str
    edits: tuple[FileEdit, ...]

    def staged_name(self, path: str) -> str:
        """Where the new content of that file waits: in the same folder, under a short name of its own."""
        digest = hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()
        return os.path.join(os.path.dirname(path), f".bump-{self.token}-{digest[:12]}")


def make_journal(edits: Sequence[FileEdit], *, from_label: str, to_label: str) -> Journal:
    return Journal(token=os.urandom(6).hex(), from_label=from_label, to_label=to_label, edits=tuple(edits))


def check_folder(root: Path) -> None:
    """Refuses a `.bump` that is no folder, or a link: the record must lie in the tree that it speaks of.

    Raises:
        InputError: it is a link or a file.
    """
    folder = root / FOLDER
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        found = "a link" if folder.is_symlink() else "a file"
        raise InputError(f"{FOLDER}: found {found}, expected a folder", hint=f"move {FOLDER} away", reason="BAD_RECORD")


def has_journal(root: Path) -> bool:
    return os.path.lexists(_journal_path(root))


def load_journal(root: Path) -> Journal | None:
    """The record that a bump left behind, or None.

    Raises:
        InputError: there is one, but it is not ours or damaged.
    """
    check_folder(root)
    try:
        raw = _journal_path(root).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as cause:
        raise _unreadable(cause.strerror or str(cause)) from cause
    try:
        return _parse(raw)
    except KeyError as cause:
        raise _unreadable(f"no key {cause}") from cause
    except (ValueError, TypeError, RecursionError) as cause:
        raise _unreadable(str(cause)) from cause


def write_journal(root: Path, journal: Journal) -> None:
    """Makes the record durable before the first file changes. Raises OSError."""
    body = {
        "format": FORMAT,
        "token": journal.token,
        "from": journal.from_label,
        "to": journal.to_label,
        "edits": [
            {"path": edit.path, "before": _encode(edit.before), "after": _encode(edit.after)} for edit in journal.edits
        ],
    }
    path = _journal_path(root)
    beside = path.with_suffix(".new")
    # Only for the owner: it repeats files whose own modes may be narrower than usual.
    write_durably(beside, json.dumps({**body, "digest": _digest(body)}, indent=1).encode(), mode=0o600)
    os.replace(beside, path)
    flush_folder(path.parent)
    flush_folder(root)


def drop_journal(root: Path) -> None:
    """Ends the record; from here on there is nothing to heal. Raises OSError."""
    path = _journal_path(root)
    drop_unfinished(root)
    with suppress(FileNotFoundError):
        os.unlink(path)
        flush_folder(path.parent)


def drop_unfinished(root: Path) -> None:
    """Takes away a record that never got its name: no file had been touched. Raises OSError."""
    with suppress(FileNotFoundError):
        os.unlink(_journal_path(root).with_suffix(".new"))


@contextmanager
def lock_tree(root: Path) -> Iterator[None]:
    """Holds the tree against other bumps until the block ends; the kernel lets go of it when the process dies.

    Raises:
        InputError: `.bump` is a file or a link.
        EdgeError: another bump is at work (`BUSY`), or the folder cannot be made or locked.
    """
    check_folder(root)
    descriptor = _open_and_lock(root / FOLDER)
    try:
        yield
    finally:
        os.close(descriptor)


def is_locked(root: Path) -> bool:
    """True while another process holds the tree. Makes nothing."""
    try:
        descriptor = os.open(root / FOLDER / "lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as cause:
        return cause.errno == errno.EWOULDBLOCK
    finally:
        os.close(descriptor)
    return False


def _parse(raw: bytes) -> Journal:
    """Raises ValueError, KeyError, TypeError or RecursionError for what `write_journal` did not write."""
    data = json.loads(raw)
    if not isinstance(data, dict):
        raise TypeError("found no object")
    if data["format"] != FORMAT:
        raise ValueError(f"found format {data['format']!r}, expected {FORMAT}")
    if data["digest"] != _digest({key: value for key, value in data.items() if key != "digest"}):
        raise ValueError("it does not match its own digest")
    if not _TOKEN.fullmatch(data["token"]):
        raise ValueError(f"found token {data['token']!r}")
    return Journal(
        token=data["token"],
        from_label=data["from"],
        to_label=data["to"],
        edits=tuple(
            FileEdit(path=item["path"], before=_decode(item["before"]), after=base64.b64decode(item["after"]))
            for item in data["edits"]
        ),
    )


def _unreadable(problem: str) -> InputError:
    return InputError(
        f"{FOLDER}/journal.json: the record of an interrupted bump cannot be read: {problem}",
        hint="compare the pins by hand (`check`), then delete that file",
        reason="BAD_RECORD",
    )


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _open_and_lock(folder: Path) -> int:
    """The locked file's descriptor. A lock on a file that was deleted meanwhile guards nothing and is taken again."""
    path = folder / "lock"
    for attempt in range(_LOCK_TRIES):
        descriptor = _open_lock(folder)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except OSError as cause:
            if cause.errno != errno.EWOULDBLOCK:
                os.close(descriptor)
                raise EdgeError(
                    f"{FOLDER}/lock: this file system cannot lock files: {cause.strerror}",
                    reason="NO_LOCKS",
                    hint="bump in a clone on a local disk",
                ) from cause
        os.close(descriptor)
        if attempt + 1 < _LOCK_TRIES:
            time.sleep(_LOCK_PAUSE_S)
    raise EdgeError("another bump is at work in this tree", hint="wait until it ends, then run again", reason="BUSY")


def _open_lock(folder: Path) -> int:
    try:
        make_private_folder(folder)
        return os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as cause:
        raise EdgeError(
            f"{FOLDER}: cannot be written: {cause.strerror}",
            hint="a bump keeps its write-ahead record there",
            reason="UNWRITABLE",
        ) from cause


def _journal_path(root: Path) -> Path:
    return root / FOLDER / "journal.json"


def _encode(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _decode(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
