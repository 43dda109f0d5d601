"""A worker as the orchestrator holds it: started ahead, told to go, heard, ended with everything that it started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tooling.edges.serving.reaping import MARK
from tooling.edges.smoke.answers import load_answer, load_tail
from tooling.smoke.observations import RankSeen
from tooling.smoke.orders import Order

PACKAGE_HOME = Path(__file__).resolve().parents[3]
READ_BYTES = 65536
READS = 16
"""At most so many at once: one worker that never stops talking must not keep the deadlines from being looked at."""
LINE_BYTES = 8192
STEP_CHARACTERS = 300


class Worker:
    """One rank's process. `step` and `profiles` are what it said last; `heard` counts what it said."""

    def __init__(
        self, order: Order, folder: Path, environ: Mapping[str, str], mark: str, *, python: str, relayed: bool = False
    ) -> None:
        self.order = order
        self.step, self.profiles, self.heard, self.ready = "not started", 0, 0, False
        self.killed = ""
        self._rest = b""
        path = folder / f"order-{order.rank}.json"
        path.write_text(json.dumps(order.as_json()))
        self._log = Path(f"{path}.log")
        self._process = subprocess.Popen(
            [python, "-P", "-m", f"tooling.edges.smoke.{'relay' if relayed else 'worker'}", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(environ, mark),
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self.handle = self._process.stdout.fileno()
        os.set_blocking(self.handle, False)

    @property
    def rank(self) -> int:
        return self.order.rank

    @property
    def process_id(self) -> int:
        """Of the process, which leads its group."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def exit_status(self) -> int | None:
        return self._process.returncode

    def go(self) -> None:
        """Lets it work. A worker that is dead already does not hear it."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(b"go\n")
            self._process.stdin.flush()

    def hear(self) -> bool:
        """Takes in what it said, as much as there is or a megabyte; False once it has closed its line."""
        for _ in range(READS):
            try:
                data = os.read(self.handle, READ_BYTES)
            except BlockingIOError:
                return True
            if not data:
                return False
            *lines, rest = (self._rest + data).split(b"\n")
            self._rest = rest[:LINE_BYTES]
            for line in lines:
                self._take(line)
        return True

    def _take(self, line: bytes) -> None:
        """A step; whatever else came out there is none of ours, and no progress."""
        with suppress(ValueError, TypeError, KeyError, OverflowError, RecursionError):
            said = json.loads(line)
            self.step, self.profiles = str(said["step"])[:STEP_CHARACTERS], int(said["profiles"])
            self.heard += 1
            self.ready = self.ready or self.step == "ready"

    def wait(self, timeout_s: float) -> None:
        """Waits for the end of a worker that has closed its line."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)

    def kill(self, why: str) -> None:
        """Ends its whole process group at once; why is kept unless it had ended by itself."""
        if self.alive:
            self.killed = self.killed or why
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Waits for the end of a worker that has ended or was killed. Doing it twice is harmless."""
        assert self._process.stdout is not None
        if self._process.stdout.closed:
            return
        self._process.wait()
        self.hear()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(OSError):
                stream.close()

    def answer(self) -> dict[str, Any]:
        """What it left, {} if nothing or nothing that can be read."""
        return load_answer(Path(self.order.answer), self.rank)

    def seen(self) -> RankSeen:
        """The rank as it came out: its own answer, or what is known of one that left none."""
        body, status = self.answer(), self._process.returncode
        if body and not self.killed:
            answer = {**body["seen"], "exit_status": status, "log_tail": self.log_tail() if body["seen"]["why"] else ""}
            return RankSeen.from_json(answer)
        hung = self.killed.startswith("HUNG: ")
        left = "" if hung or not Path(self.order.answer).exists() else "; its answer cannot be read"
        why = self.killed.removeprefix("HUNG: ") or f"ended with {_words(status)} without an answer{left}"
        return RankSeen(
            rank=self.rank,
            end="hung" if hung else "died" if self.heard else "not-started",
            step=self.step,
            why=why,
            exit_status=status,
            log_tail=self.log_tail(),
        )

    def log_tail(self) -> str:
        return load_tail(self._log)

    @property
    def log_bytes(self) -> int:
        """How much it has printed beside its steps."""
        try:
            return self._log.stat().st_size
        except OSError:
            return 0


def _environment(environ: Mapping[str, str], mark: str) -> dict[str, str]:
    paths = [str(PACKAGE_HOME), *filter(None, [environ.get("PYTHONPATH", "")])]
    return {**environ, MARK: mark, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}


def _words(status: int | None) -> str:
    if status is not None and status < 0:
        with suppress(ValueError):
            return signal.Signals(-status).name
    return f"exit status {status}"
