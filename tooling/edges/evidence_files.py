"""Writes evidence records into their folder, which git ignores by its own `.gitignore`, and reads whole folders."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from tooling.edges.files.durable import make_private_folder, replace_file
from tooling.edges.files.reading import load_bytes, resolve_inside
from tooling.errors import EdgeError, InputError
from tooling.evidence import Record, parse_record, render_record
from tooling.gate.policy import STAGES
from tooling.gate.values import EvidenceFile

MAX_SIZE_BYTES = 32_000_000
"""The largest record seen, an evaluation of 1,319 questions with its flips, has well under 1 MB."""
MAX_FOLDERS = 1000
"""Of one folder that is read; a folder of evidence has a few, and `/proc` or a home folder is none."""

_RECORD_NAME = re.compile(rf"(?:{'|'.join((*STAGES, 'bump'))})(?:-.+)?\.json", re.DOTALL)


def write_record(folder: Path, record: Record) -> Path:
    """Replaces the record of the same stage and subject; returns its path.

    Raises:
        EdgeError: the folder cannot be made or written.
    """
    path = folder / record.file_name
    prepare_folder(folder)
    try:
        replace_file(path, render_record(record).encode("utf-8", "backslashreplace"))
    except OSError as cause:
        raise _unwritable(path, cause) from cause
    return path


def prepare_folder(folder: Path) -> None:
    """Makes the folder, or raises EdgeError: asked before work that could not be recorded afterwards."""
    try:
        make_private_folder(folder)
    except OSError as cause:
        raise _unwritable(folder, cause) from cause
    if not os.access(folder, os.W_OK):
        raise _unwritable(folder, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))


def load_record(path: Path) -> Record:
    """The record in that one file.

    Raises:
        InputError: it cannot be read, is too large, or is no record; the path is in the sentence.
    """
    real = Path(os.path.realpath(path))
    try:
        _check_size(real.parent, real.name)
        return parse_record(load_bytes(real.parent, real.name, max_size_bytes=MAX_SIZE_BYTES).decode())
    except UnicodeDecodeError as cause:
        detail = f"{path}: byte {cause.start} of the record is not UTF-8"
        raise InputError(detail, reason="UNDECODABLE") from cause
    except InputError as cause:
        problem = cause.message.removeprefix(f"{real.name}: ")
        hint = cause.hint if cause.reason == "HAND_EDITED" else "name a record that a stage wrote"
        raise InputError(f"{path}: {problem}", hint=hint, reason=cause.reason) from cause


def load_evidence(
    folders: Iterable[Path], *, option: str = "--evidence", leave_out: Iterable[Path] = ()
) -> tuple[EvidenceFile, ...]:
    """Every `*.json` of these folders as it was found, in the order of their paths; a file given twice counts once.

    CI unpacks each artifact into a folder of its own, so what is named like a record counts also one folder below,
    `leave_out` excepted. What cannot be read is a value with a reason, since one bad file must neither hide nor stop
    the others.

    Raises:
        InputError: a folder is missing, no folder, cannot be listed, or has too many folders in it.
    """
    others = {os.path.realpath(folder) for folder in leave_out}
    found: dict[tuple[str, str], EvidenceFile] = {}
    for folder in folders:
        for name in _names(folder, option, others):
            file = _load_one(folder, name)
            key = (file.sha256, "" if file.sha256 else file.path)
            found[key] = min(file, found.get(key, file), key=lambda one: one.path)
    return tuple(sorted(found.values(), key=lambda file: file.path))


def is_record_name(name: str) -> bool:
    """Whether a stage's record may have that name; in a folder's own folders only such files count."""
    return _RECORD_NAME.fullmatch(name) is not None


def _names(folder: Path, option: str, leave_out: Collection[str]) -> list[str]:
    """Names of files relative to the folder; a folder below that cannot be listed is among them, to be told of."""
    try:
        own = sorted(name for name in os.listdir(folder) if not name.startswith("."))
        below = [name for name in own if not name.endswith(".json") and (folder / name).is_dir()]
    except OSError as cause:
        raise InputError(
            f"{option} {folder}: found no folder that can be listed ({cause.strerror})",
            hint="run the stages first, or name the folders that they wrote to",
            reason="NO_EVIDENCE",
        ) from cause
    if len(below) > MAX_FOLDERS:
        raise InputError(
            f"{option} {folder}: found {len(below):,} folders in it, expected {MAX_FOLDERS:,} at most",
            hint="name the folders that the stages wrote to",
            reason="TOO_MANY_FOLDERS",
        )
    kept = [name for name in below if os.path.realpath(folder / name) not in leave_out]
    return [*(name for name in own if name.endswith(".json")), *(one for name in kept for one in _below(folder, name))]


def _below(folder: Path, name: str) -> list[str]:
    try:
        return sorted(f"{name}/{one}" for one in os.listdir(folder / name) if is_record_name(one))
    except OSError:
        return [name]


def _load_one(folder: Path, name: str) -> EvidenceFile:
    path = str(folder / name).encode("utf-8", "backslashreplace").decode()
    sha256 = ""
    try:
        _check_size(folder, name)
        raw = load_bytes(folder, name, max_size_bytes=MAX_SIZE_BYTES)
        sha256 = hashlib.sha256(raw).hexdigest()
        return EvidenceFile(path=path, sha256=sha256, record=parse_record(raw.decode()))
    except UnicodeDecodeError as cause:
        return EvidenceFile(
            path=path, sha256=sha256, reason="UNDECODABLE", problem=f"byte {cause.start} of the record is not UTF-8"
        )
    except InputError as error:
        problem = error.message.removeprefix(f"{name}: ")
        return EvidenceFile(path=path, sha256=sha256, reason=_REASONS.get(error.reason, error.reason), problem=problem)


_REASONS = {"TOO_LARGE": "TOO_BIG"}


def _check_size(folder: Path, name: str) -> None:
    """Refuses a file by its size before a byte of it is read; what cannot be asked is left to the reading."""
    try:
        size_bytes = resolve_inside(folder, name).stat().st_size
    except OSError:
        return
    if size_bytes > MAX_SIZE_BYTES:
        raise InputError(
            f"the record has {size_bytes:,} bytes; no stage writes more than {MAX_SIZE_BYTES:,}", reason="TOO_BIG"
        )


def _unwritable(path: Path, cause: OSError) -> EdgeError:
    return EdgeError(
        f"{path}: the record cannot be written: {cause.strerror}",
        hint="name another folder with --evidence DIR",
        reason="UNWRITABLE",
    )
