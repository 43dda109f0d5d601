"""A throw-away environment with one release of FlashInfer, made by uv with pip's own settings, and what runs in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import sys_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from tooling.edges.environment import load_environment
from tooling.edges.pip_config import IndexSettings
from tooling.errors import EdgeError
from tooling.releases.addresses import file_path

NEEDED = ("apache-tvm-ffi", "numpy", "nvidia-ml-py", "packaging", "requests", "tqdm")
"""What importing flashinfer.autotuner takes beside torch, on a machine without a GPU."""
INSTALL_TIMEOUT_S = 900
STEP_TIMEOUT_S = 300
WORKER = Path(__file__).with_name("worker.py")
STEPS = ("tune", "load", "mismatch")


@contextmanager
def throw_away(release: str, *, torch: str | None, requires: Sequence[str], settings: IndexSettings) -> Iterator[Path]:
    """The interpreter of an environment that holds that release (a version, or a wheel's path); gone after the block.

    Raises:
        EdgeError: uv cannot make it, or an index does not answer.
    """
    with tempfile.TemporaryDirectory(prefix="flashinfer-probe-") as folder:
        _uv(["venv", "--quiet", "--python", sys.executable, f"{folder}/venv"], settings)
        python = Path(folder, "venv", "bin", "python")
        install = ["pip", "install", "--quiet", "--python", str(python), *uv_options(settings)]
        companions = [name for name in NEEDED if not any(_name_of(line) == name for line in requires)]
        pinned = [line for line in requires if _name_of(line) in NEEDED]
        _uv([*install, torch or torch_at_hand(settings), *companions, *pinned], settings)
        wheel = release if release.endswith(".whl") else f"flashinfer-python=={release}"
        _uv([*install, "--no-deps", wheel], settings)
        yield python


def observe(python: Path) -> dict[str, Any]:
    """What the worker saw, of all its steps, each in a process of its own. A step that crashed is `crashed`.

    Raises:
        EdgeError: a step does not end.
    """
    seen: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="flashinfer-probe-") as folder:
        for step in STEPS:
            if step == "load" and not seen.get("config_files"):
                continue
            seen |= _step(python, step, folder)
    return seen


def uv_options(settings: IndexSettings) -> list[str]:
    """Pip's indexes, find-links and constraints in uv's words.

    With several indexes pip takes the best match of all; uv does so only when told.
    """
    options = ["--no-index"] if settings.no_index else []
    if settings.main is not None:
        options += ["--index-url", settings.main.url]
    for extra in settings.extra:
        folder = file_path(extra.url)
        if folder is None or folder.is_dir():
            options += ["--extra-index-url", extra.url]
    for place in settings.find_links:
        options += ["--find-links", place.url]
    for file in settings.constraints:
        options += ["--constraint", file]
    return [*options, *(["--index-strategy", "unsafe-best-match"] if settings.extra else [])]


def torch_at_hand(settings: IndexSettings) -> str:
    """The torch to install: the newest wheel for this interpreter in a find-links folder, a CPU one first; else any."""
    tags = set(sys_tags())
    found: list[tuple[bool, Version, str]] = []
    for place in settings.find_links:
        folder = file_path(place.url) or Path(place.url)
        for wheel in folder.glob("torch-*.whl") if folder.is_dir() else ():
            try:
                _, version, _, wheel_tags = parse_wheel_filename(wheel.name)
            except InvalidWheelFilename:
                continue
            if wheel_tags & tags:
                found.append((version.local == "cpu", version, str(wheel)))
    return max(found)[2] if found else "torch"


def _step(python: Path, step: str, folder: str) -> dict[str, Any]:
    command = [str(python), "-I", str(WORKER), step, folder]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=STEP_TIMEOUT_S, check=False, env=_plain(folder)
        )
    except subprocess.TimeoutExpired as cause:
        raise EdgeError(f"the tuner's {step} did not end within {STEP_TIMEOUT_S} s", reason="TIMEOUT") from cause
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {f"{step}_crashed": last}
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def _plain(folder: str) -> dict[str, str]:
    """No cache, blocklist or version-check setting of the caller; FlashInfer's own files go into the folder."""
    kept = {name: value for name, value in load_environment().items() if not name.startswith(("FLASHINFER_", "PYTHON"))}
    return {**kept, "FLASHINFER_WORKSPACE_BASE": folder, "CUDA_VISIBLE_DEVICES": ""}


def _uv(arguments: Sequence[str], settings: IndexSettings) -> None:
    from uv import find_uv_bin  # noqa: PLC0415  # only where an environment is made

    environ: Mapping[str, str] = load_environment()
    extra = {"SSL_CERT_FILE": str(settings.cert)} if settings.cert else {}
    try:
        done = subprocess.run(
            [os.fsdecode(find_uv_bin()), *arguments],
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
            env={**environ, "UV_HTTP_TIMEOUT": f"{settings.timeout_s:.0f}", **extra},
        )
    except subprocess.TimeoutExpired as cause:
        raise EdgeError(f"uv did not end within {INSTALL_TIMEOUT_S} s", reason="TIMEOUT") from cause
    except OSError as cause:
        raise EdgeError(f"uv cannot be started: {cause}", hint="pip install uv", reason="NO_UV") from cause
    if done.returncode:
        words = " ".join(line.strip() for line in done.stderr.strip().splitlines()[-4:])
        raise EdgeError(f"uv cannot make the environment: {words}", reason="NO_ENVIRONMENT")


def _name_of(line: str) -> str:
    try:
        return canonicalize_name(Requirement(line).name)
    except InvalidRequirement:
        return ""
