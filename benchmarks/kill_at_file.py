"""Runs a tool, `kill_at_file.py N -m MODULE …` or `… -c CODE …`, and kills it when its n-th pinned file was touched.

Touched means: opened for writing in place, or replaced by a rename. The tool runs unchanged; a system that loses power
or runs out of memory stops it in the same place.
"""

from __future__ import annotations

import builtins
import io
import os
import runpy
import signal
import sys
from pathlib import Path
from typing import Any

PINNED = ("versions.json", "requirements/cuda.txt", "docker/Dockerfile", "docker/Dockerfile.nightly_torch")
touched: set[str] = set()


def touch(path: Any) -> None:
    name = os.path.relpath(os.fspath(path)) if isinstance(path, str | Path) else ""
    if name in PINNED:
        touched.add(name)
        if len(touched) == number:
            os.kill(os.getpid(), signal.SIGKILL)


def open_and_touch(path: Any, mode: str = "r", *args: Any, **more: Any) -> Any:
    file = real_open(path, mode, *args, **more)
    if set(mode) & set("wa+x"):
        touch(path)
    return file


def replace_and_touch(source: Any, target: Any, **more: Any) -> None:
    real_replace(source, target, **more)
    touch(target)


number = int(sys.argv[1])
real_open, real_replace = io.open, os.replace
builtins.open = io.open = open_and_touch
os.replace = replace_and_touch
option, what, *words = sys.argv[2:]
sys.path[0] = ""
if option == "-m":
    sys.argv = [what, *words]
    runpy.run_module(what, run_name="__main__", alter_sys=True)
else:
    sys.argv = ["tool", *words]
    exec(what)
