"""Which version of a distribution the Python behind a server's command has installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_PYTHON = re.compile(r"python(3(\.\d+)?)?$")


def find_installed(package: str, argv: Sequence[str], environ: Mapping[str, str]) -> tuple[str, str] | None:
    """The version and how it is known, or None: no Python found behind the command, or it has no such package."""
    python = _find_python(argv, environ)
    if python is None:
        return None
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    try:
        done = subprocess.run(
            [python, "-c", code], capture_output=True, text=True, timeout=60, check=False, env=dict(environ)
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = done.stdout.strip()
    return (version, f"package metadata of {python}") if done.returncode == 0 and version else None


def _find_python(argv: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """The interpreter itself, or the one that a script's first line names."""
    found = shutil.which(argv[0], path=environ.get("PATH", os.defpath))
    if found is None:
        return None
    if _PYTHON.search(Path(found).name):
        return found
    try:
        with Path(found).open("rb") as file:
            first = file.readline(1000)
    except OSError:
        return None
    words = first.removeprefix(b"#!").decode(errors="replace").split() if first.startswith(b"#!") else []
    if words and words[0].endswith("/env") and len(words) > 1:
        words = [shutil.which(words[1], path=environ.get("PATH", os.defpath)) or ""]
    return words[0] if words and _PYTHON.search(words[0]) else None
