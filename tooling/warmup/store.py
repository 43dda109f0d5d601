"""FlashInfer's own store as files, read from beside it: nothing here writes there. Tuning into it is the tuner's."""

from __future__ import annotations

import contextlib
import json
import stat
from pathlib import Path

from tooling.warmup.cache_file import read_regular
from tooling.warmup.cache_text import is_entry, is_writable


def managed_entries(root: Path) -> dict[str, list[object]]:
    """The entries of FlashInfer's stores below that root, by key: `[runner, tactic]`; none that cannot be read."""
    found: dict[str, list[object]] = {}
    for path in _entry_paths(root):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            entry = json.loads(read_regular(path))
            key, value = entry["key"], [entry["runner"], entry["tactic"]]
            if isinstance(key, str) and is_entry(value) and is_writable([key, value]):
                found[key] = value
    return found


def blocked_by(root: Path) -> str:
    """What a reader of entries might wait for, such as a pipe, or ""; FlashInfer opens whatever lies there."""
    for path in _entry_paths(root):
        with contextlib.suppress(OSError):
            mode = path.stat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                return f"not a regular file: {str(path)!r}"
    return ""


def _entry_paths(root: Path) -> list[Path]:
    """Where entries lie; none where this user may not look."""
    paths: list[Path] = []
    with contextlib.suppress(OSError):
        paths += root.glob("v*/*/entries/*.json")
    return sorted(paths)
