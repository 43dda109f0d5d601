"""docker's command line: buildx's version, bake's own evaluation, registry look-ups and builds. Decides nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tooling.errors import EdgeError
from tooling.redaction import redact_text

LOCAL_TIMEOUT_S = 10
"""Bound for questions that the client answers by itself (its version, bake's evaluation): 0.2 s on a quiet machine."""
REGISTRY_TIMEOUT_S = 120
"""Bound for questions to a registry; a look-up through a slow proxy took 20 s."""
STOP_TIMEOUT_S = 30
"""How long a build that was interrupted may take to cancel itself before it is ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one call said; `text` None if it failed, `complaint` is its stderr. `is_late`: it was ended unanswered."""

    text: str | None
    complaint: str
    is_late: bool = False


def has_client() -> bool:
    return shutil.which("docker") is not None


def ask(words: Sequence[str], *, root: Path, environ: Mapping[str, str], timeout_s: float) -> Answer:
    """Runs `docker WORDS` and waits for the answer. A client that is missing or hangs gives a complaint."""
    try:
        process = subprocess.Popen(
            [_client(), *words], cwd=root, env=dict(environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as cause:
        return Answer(text=None, complaint=f"docker cannot be started: {cause.strerror}")
    with process:
        try:
            said, complained = process.communicate(timeout=timeout_s)
        except BaseException as cause:
            _kill(process)
            if isinstance(cause, subprocess.TimeoutExpired):
                late = f"`docker {' '.join(words[:2])}` did not answer within {timeout_s:g} s"
                return Answer(text=None, complaint=late, is_late=True)
            raise
    return Answer(text=said if process.returncode == 0 else None, complaint=complained.strip() or said.strip())


def environment_without(names: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for docker: without those variables, and with messages in English."""
    left_out = set(names)
    return {name: value for name, value in environ.items() if name not in left_out} | {"LC_ALL": "C.UTF-8"}


def build(
    words: Sequence[str], *, root: Path, environ: Mapping[str, str], log: Path, show: Callable[[str], None]
) -> int:
    """Runs a build; every line goes to `show` and to the log file as it comes, without credentials of addresses in it.

    Returns docker's exit status.

    Ctrl-C cancels the build, waits until it has ended, and goes on as KeyboardInterrupt.

    Raises:
        EdgeError: docker cannot be started, or the log cannot be written.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8", buffering=1) as kept:
            process = subprocess.Popen(
                [_client(), *words], cwd=root, env=dict(environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
            )  # fmt: skip
            try:
                assert process.stdout is not None
                for raw in process.stdout:
                    line = redact_text(raw)
                    kept.write(line)
                    show(line.rstrip("\n"))
                return process.wait()
            except BaseException:
                _stop(process)
                raise
            finally:
                if process.stdout is not None:
                    process.stdout.close()
    except FileNotFoundError as cause:
        raise EdgeError("docker cannot be started: there is none on the PATH", reason="TOOL_MISSING") from cause
    except OSError as cause:
        full = cause.errno == 28
        raise EdgeError(
            f"{log}: the build's log cannot be written: {cause.strerror}", reason="INFRA_DISK" if full else "UNWRITABLE"
        ) from cause


def _client() -> str:
    found = shutil.which("docker")
    if found is None:
        raise FileNotFoundError(2, "there is no program `docker` on the PATH")
    return found


def _stop(process: subprocess.Popen[str]) -> None:
    """Interrupts the whole group, as Ctrl-C in a terminal would; the builder then cancels what it runs."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        try:
            os.killpg(process.pid, number)
            process.wait(STOP_TIMEOUT_S)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def _kill(process: subprocess.Popen[str]) -> None:
    """Ends the client with the plugins that it started; they would wait on without it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
