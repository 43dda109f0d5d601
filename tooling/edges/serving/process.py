"""A server as a process group of this machine, with its log in a file."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tooling.edges.serving.leash import Leash
from tooling.edges.serving.reaping import GRACE_S, MARK, end_all
from tooling.errors import EdgeError
from tooling.gsm8k.causes import Death, read_death


class ProcessServer:
    """A server that can be started again after it has ended. `end` leaves nothing of it alive."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environ: Mapping[str, str],
        env: Mapping[str, str],
        log_path: Path,
        grace_s: float = GRACE_S,
    ) -> None:
        self._argv = list(argv)
        self._environ = dict(environ)
        self._env = dict(env)
        self._log_path = log_path
        self._grace_s = grace_s
        self._mark = secrets.token_hex(8)
        self._process: subprocess.Popen[bytes] | None = None
        self._leash: Leash | None = None

    def start(self) -> None:
        """Starts it; its output is appended to the log.

        Raises:
            EdgeError: there is no such program, or the log cannot be written.
        """
        variables = {**self._environ, **self._env, MARK: self._mark, "PYTHONUNBUFFERED": "1"}
        try:
            with self._log_path.open("ab") as log:
                self._process = subprocess.Popen(
                    self._argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=variables,
                    start_new_session=True,
                )
        except OSError as cause:
            raise EdgeError(
                f"{cause.filename or self._argv[0]}: the server cannot be started: {cause.strerror}",
                hint="is the engine installed here? see server_command, or use --image or --server",
                reason="NO_SERVER",
            ) from cause
        self._leash = Leash("process", self._mark, str(self._process.pid), environ=self._environ)

    def poll(self) -> Death | None:
        """How it ended, or None while it lives."""
        if self._process is None:
            return None
        code = self._process.poll()
        return None if code is None else read_death(code)

    def end(self) -> None:
        """Ends the whole group, by force after a grace. Raises EdgeError if something of it cannot be ended."""
        if self._process is None:
            return
        dead = self._process.poll() is not None
        gone = end_all(self._mark, self._process.pid, grace_s=2.0 if dead else self._grace_s)
        if self._process.poll() is None and gone:
            self._process.wait()
        if self._leash is not None:
            self._leash.release()
        self._process = None
        if not gone:
            raise EdgeError("processes of the server cannot be ended", hint="see `ps`", reason="SURVIVORS")

    def close(self) -> None:
        """Ends it, if it still runs."""
        self.end()
