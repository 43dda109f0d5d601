"""Reads files of a tree: bounded, inside the root, and only what is text."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from tooling.errors import InputError
from tooling.pins.texts import SourceText

MAX_SIZE_BYTES = 5_000_000
"""No file that carries a pin comes near it; the largest lock file seen in 213 source trees has 2.4 MB."""


def load_text(root: Path, path: str) -> SourceText:
    """The file's text, with BOM and line ends as they are.

    Raises:
        InputError: missing, unreadable, a directory or device, binary, not UTF-8, too large, or a link out of the root.
    """
    raw = load_bytes(root, path)
    if b"\0" in raw:
        raise InputError(f"{path}: found binary data, expected text", hint="save it as UTF-8 text", reason="BINARY")
    try:
        return SourceText(path, raw.decode())
    except UnicodeDecodeError as cause:
        raise InputError(
            f"{path}: byte {cause.start} is not UTF-8", hint="save the file as UTF-8", reason="UNDECODABLE"
        ) from cause


def load_bytes(root: Path, path: str, *, max_size_bytes: int = MAX_SIZE_BYTES) -> bytes:
    """The file's bytes. Raises InputError as `load_text` does."""
    real = resolve_inside(root, path)
    try:
        # Not blocking: opening a named pipe would wait for a writer for ever.
        descriptor = os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError as cause:
        raise _unreadable(path, cause) from cause
    try:
        raw = _read_regular(descriptor, path, max_size_bytes + 1)
    except OSError as cause:
        raise _unreadable(path, cause) from cause
    finally:
        os.close(descriptor)
    if len(raw) > max_size_bytes:
        raise InputError(
            f"{path}: found more than {max_size_bytes:,} bytes, which no file with a pin has",
            hint="leave it out in release.toml, or shorten it",
            reason="TOO_LARGE",
        )
    return raw


def may_hold(root: Path, path: str, marks: Sequence[bytes]) -> bool:
    """True if a mark (lower case) stands in the file's bytes, whatever its case, or if only `load_text` can tell.

    It is the quick question that is asked of every file of a tree; it follows no link and says nothing of errors.
    """
    try:
        descriptor = os.open(os.path.join(root, path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        lower = _read_regular(descriptor, path, MAX_SIZE_BYTES).lower()
    except (OSError, InputError):
        return True
    finally:
        os.close(descriptor)
    return any(mark in lower for mark in marks)


def resolve_inside(root: Path, path: str) -> Path:
    """The real path behind `path`, links followed. Raises InputError if that leaves the root or goes in circles."""
    if "\0" in path:
        raise InputError(f"{path!r}: no file can have this name", reason="BAD_NAME")
    base = os.path.realpath(root)
    try:
        real = os.path.realpath(os.path.join(base, path), strict=True)
    except OSError as cause:
        if cause.errno == errno.ENOENT:
            real = os.path.realpath(os.path.join(base, path))
        else:
            raise _unreadable(path, cause) from cause
    if real != base and not real.startswith(base.rstrip(os.sep) + os.sep):
        raise InputError(
            f"{path}: leads out of the root",
            hint="pins must lie inside the tree that is bumped",
            reason="OUTSIDE",
        )
    return Path(real)


def check_root(root: Path) -> Path:
    """The root as an absolute real path. Raises InputError if it is no directory."""
    if not root.is_dir():
        found = "a file" if root.exists() else "nothing"
        raise InputError(
            f"--root {root}: found {found}, expected a directory", hint="name the tree's top folder", reason="NO_ROOT"
        )
    try:
        real = root.resolve()
    except OSError as cause:  # the folder that we are in was removed under us
        raise InputError(
            f"--root {root}: {cause.strerror}", hint="change to a folder that exists", reason="NO_ROOT"
        ) from cause
    if (top := _configured_above(real)) is not None:
        raise InputError(
            f"--root {root}: is a part of the tree at {top}, whose release.toml speaks for it",
            hint=f"give --root {top}, with --only for a part of its pins",
            reason="INNER_FOLDER",
        )
    return real


def _configured_above(root: Path) -> Path | None:
    """The nearest folder above that holds a release.toml, up to the repository's top; None if root is a tree itself."""
    folder = root
    while not (folder / ".git").exists() and not (folder / "release.toml").exists() and folder != folder.parent:
        folder = folder.parent
        if (folder / "release.toml").is_file():
            return folder
    return None


def _read_regular(descriptor: int, path: str, size_bytes: int) -> bytes:
    """Up to that many bytes of a regular file; anything else has no end or no content."""
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        found = "a directory" if stat.S_ISDIR(mode) else "a device or pipe"
        raise InputError(
            f"{path}: found {found}, expected a file", hint="put the file itself there", reason="NOT_A_FILE"
        )
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        return file.read(size_bytes)


def _unreadable(path: str, cause: OSError) -> InputError:
    if cause.errno == errno.ENOENT:
        return InputError(
            f"{path}: no such file", hint="put it back, or correct release.toml or --root", reason="MISSING"
        )
    if cause.errno == errno.ELOOP:
        return InputError(
            f"{path}: the links go in circles", hint="point the link at the file itself", reason="LINK_LOOP"
        )
    return InputError(
        f"{path}: cannot be read: {cause.strerror}", hint="make it readable for this user", reason="UNREADABLE"
    )
