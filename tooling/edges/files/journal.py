"""The write-ahead record of a set of edits, and the lock that guards it: `.bump/journal.json` and `.bump/lock`.

The record holds every file's content before and after, so that whoever finds it can finish or undo. It appears and
disappears whole: written beside, flushed, renamed.
"""

from __future__ import annotations

import base64
import errno
import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tooling.edges.files.durable import flush_folder, make_private_folder, write_durably
from tooling.errors import EdgeError, InputError
from tooling.pins.texts import FileEdit

FOLDER = ".bump"
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """A set of edits under way; `path` of each edit is the real file's, relative to the root; labels are versions."""

    token: str
    from_label: str
    to_label: str
    edits: tuple[FileEdit, ...]

    def staged_name(self, path: str) -> str:
        """Where the new content of that file waits: in the same folder, under a name of its own."""
        folder, name = os.path.split(path)
        return os.path.join(folder, f".{name[:100]}.bump-{self.token}")


def make_journal(edits: Sequence[FileEdit], *, from_label: str, to_label: str) -> Journal:
    return Journal(token=secrets.token_hex(6), from_label=from_label, to_label=to_label, edits=tuple(edits))


def load_journal(root: Path) -> Journal | None:
    """The record that a bump left behind, or None.

    Raises:
        InputError: there is one, but it is not ours or damaged.
    """
    path = _journal_path(root)
    try:
        data = json.loads(path.read_bytes())
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']}")
        edits = tuple(
            FileEdit(path=item["path"], before=_decode(item["before"]), after=base64.b64decode(item["after"]))
            for item in data["edits"]
        )
        return Journal(token=data["token"], from_label=data["from"], to_label=data["to"], edits=edits)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise InputError(f"{FOLDER}: found a file, expected a folder", hint=f"move {FOLDER} away") from None
    except (OSError, ValueError, KeyError, TypeError) as cause:
        raise InputError(
            f"{FOLDER}/journal.json: the record of an interrupted bump cannot be read: {cause}",
            hint="compare the pins by hand (`check`), then delete that file",
        ) from cause


def write_journal(root: Path, journal: Journal) -> None:
    """Makes the record durable before the first file changes. Raises OSError."""
    data = {
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
    write_durably(beside, json.dumps(data, indent=1).encode())
    os.replace(beside, path)
    flush_folder(path.parent)
    flush_folder(root)


def drop_journal(root: Path) -> None:
    """Ends the record; from here on there is nothing to heal. Raises OSError."""
    path = _journal_path(root)
    with suppress(FileNotFoundError):
        os.unlink(path.with_suffix(".new"))
    with suppress(FileNotFoundError):
        os.unlink(path)
        flush_folder(path.parent)


@contextmanager
def lock_tree(root: Path) -> Iterator[None]:
    """Holds the tree against other bumps until the block ends; the kernel lets go of it when the process dies.

    Raises:
        EdgeError: another bump is at work (`BUSY`), or the folder cannot be made or locked.
    """
    folder = root / FOLDER
    try:
        make_private_folder(folder)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as cause:
        raise EdgeError(
            f"{FOLDER}: cannot be written: {cause.strerror}",
            hint="a bump keeps its write-ahead record there",
            reason="UNWRITABLE",
        ) from cause
    try:
        _take(descriptor)
        yield
    finally:
        os.close(descriptor)


def is_locked(root: Path) -> bool:
    """True while another process holds the tree. Makes nothing."""
    try:
        descriptor = os.open(root / FOLDER / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as cause:
        return cause.errno == errno.EWOULDBLOCK
    finally:
        os.close(descriptor)
    return False


def _take(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as cause:
        raise _not_locked(cause) from cause


def _not_locked(cause: OSError) -> EdgeError:
    if cause.errno == errno.EWOULDBLOCK:
        return EdgeError(
            "another bump is at work in this tree", hint="wait until it ends, then run again", reason="BUSY"
        )
    return EdgeError(
        f"{FOLDER}/lock: this file system cannot lock files: {cause.strerror}",
        reason="NO_LOCKS",
        hint="bump in a clone on a local disk",
    )


def _journal_path(root: Path) -> Path:
    return root / FOLDER / "journal.json"


def _encode(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _decode(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
