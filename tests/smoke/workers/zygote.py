"""Workers without the seconds that importing torch takes: one process imports it, and forks a worker for each order.

`python -m tests.smoke.workers.zygote SOCKET` is that process. What it forks is a session and a process group of its
own, as what `subprocess.Popen` starts, with the worker's own `main`; only the importing is shared. `Zygote.popen` stands
for `subprocess.Popen` in `tooling.edges.smoke.process`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

MESSAGE_BYTES = 1 << 20


class Zygote:
    """The process that forks, for one release. `close` ends it; it has no children then."""

    def __init__(self, python: Path, environ: Mapping[str, str]) -> None:
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(
                [str(python), "-P", "-m", "tests.smoke.workers.zygote", str(other.fileno())],
                env=dict(environ), pass_fds=[other.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip

    def ask(self, question: Mapping[str, Any], handles: Sequence[int] = ()) -> Any:
        socket.send_fds(self._socket, [json.dumps(question).encode()], list(handles))
        return json.loads(self._socket.recv(MESSAGE_BYTES))

    def popen(self, command: Sequence[str], *, env: Mapping[str, str], **_: Any) -> Forked:
        return Forked(self, command[-1], env)

    def close(self) -> None:
        assert self.ask({"do": "count"}) == 0, "workers were left behind"
        self._socket.close()
        self._process.wait(timeout=240)


class Forked:
    """What the orchestrator uses of a `Popen`."""

    def __init__(self, zygote: Zygote, order: str, env: Mapping[str, str]) -> None:
        self._zygote = zygote
        self.returncode: int | None = None
        (theirs_in, ours_in), (ours_out, theirs_out) = os.pipe(), os.pipe()
        self.pid: int = zygote.ask({"do": "fork", "order": order, "env": dict(env)}, [theirs_in, theirs_out])
        os.close(theirs_in)
        os.close(theirs_out)
        self.stdin, self.stdout = os.fdopen(ours_in, "wb", buffering=0), os.fdopen(ours_out, "rb", buffering=0)

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._zygote.ask({"do": "poll", "pid": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        began = time.monotonic()
        while self.poll() is None:
            if timeout is not None and time.monotonic() - began > timeout:
                raise subprocess.TimeoutExpired("a forked worker", timeout)
            time.sleep(0.02)
        assert self.returncode is not None
        return self.returncode


def serve(line: socket.socket) -> None:
    """Answers until the other side is gone."""
    children: set[int] = set()
    while True:
        data, handles, _, _ = socket.recv_fds(line, MESSAGE_BYTES, 2)
        if not data:
            return
        question = json.loads(data)
        answer: int | None = None
        match question["do"]:
            case "fork":
                answer = _fork(question, handles, line)
                children.add(answer)
            case "poll":
                pid, status = os.waitpid(question["pid"], os.WNOHANG)
                answer = os.waitstatus_to_exitcode(status) if pid else None
                children -= {pid}
            case "count":
                answer = len(children)
        for handle in handles:
            os.close(handle)
        line.send(json.dumps(answer).encode())


def _fork(question: Mapping[str, Any], handles: Sequence[int], line: socket.socket) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        line.close()
        os.setsid()
        for place, handle in enumerate(handles):
            os.dup2(handle, place)
            os.close(handle)
        os.environ.clear()
        os.environ.update(question["env"])
        from tooling.edges.smoke.worker import main

        main(question["order"])
        status = 0
    except BaseException:  # noqa: BLE001  # it must not go on as a second zygote
        traceback.print_exc()
    finally:
        os._exit(status)


if __name__ == "__main__":
    import flashinfer
    import flashinfer.autotuner  # noqa: F401
    import torch
    import torch.distributed

    import tooling.edges.smoke.rank  # noqa: F401

    torch.set_num_threads(1)
    with suppress(KeyboardInterrupt), socket.socket(fileno=int(sys.argv[1])) as own:
        serve(own)
