"""The cache root of a scenario, looked at from outside before and after a run, and files that are laid into it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from pathlib import Path

from tooling.smoke.files_seen import FileSeen
from tooling.smoke.scenarios import Layout

ELSEWHERE = "-elsewhere"
"""Behind one field of a foreign file's metadata: a definite value that no machine has."""

ROOM_BYTES = 64 * 1024
"""With less than this on a disk neither an answer nor a kernel can be written."""


def check_room(*folders: Path) -> None:
    """Raises OSError if the disk of one is full: whatever a rank has ended with comes of that."""
    for folder in folders:
        if folder.exists() and shutil.disk_usage(folder).free < ROOM_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def list_files(root: Path) -> tuple[FileSeen, ...]:
    """Every file below the root, sorted by path; locks are files too, and nothing that is no file is opened.

    However large a file is that a worker has left there, it is never in memory as a whole.
    """
    found = []
    for folder, _, names in os.walk(root):
        for path in (Path(folder, name) for name in names):
            if not path.is_file():
                continue
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                size_bytes = file.tell()
            name = path.relative_to(root).as_posix()
            found.append(FileSeen(path=name, size_bytes=size_bytes, sha256=f"sha256:{digest}"))
    return tuple(sorted(found, key=lambda file: file.path))


def lay_out(layout: Layout, source: Path, root: Path) -> int:
    """Copies a cold run's cache below the root, each cache file cut off or made foreign; how many were altered."""
    altered = 0
    for path in sorted(source.rglob("*.json")):
        data = alter(layout, path.read_bytes())
        if data is not None:
            target = root / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            altered += 1
    return altered


def alter(layout: Layout, data: bytes) -> bytes | None:
    """The bytes cut in half, or with one field of the metadata changed; None where there is no such field."""
    if layout == "truncated":
        return data[: len(data) // 2]
    try:
        body = json.loads(data)
        metadata = body["_metadata"]
        name = next(name for name in ("cuda_version", *sorted(metadata)) if isinstance(metadata.get(name), str))
        metadata[name] += ELSEWHERE
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return None
    return json.dumps(body, indent=2).encode()


def place(saved: Path, root: Path, folder: str, name: str) -> None:
    """Puts saved bytes where a cache of that world would lie, for a strategy that keeps none."""
    target = root / folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(saved, target)
