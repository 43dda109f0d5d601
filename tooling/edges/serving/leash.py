"""Runs beside a server as `python -m tooling.edges.serving.leash`: if its parent dies unheard, it ends the server.

It reads its standard input. A line `done` means that the parent has ended the server; the end of the input without it
means that the parent was killed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tooling.edges.serving.reaping import end_all
from tooling.errors import ToolingError


class Leash:
    """A leash on a process group (`process MARK GROUP`) or on a container (`container ID`; `engine-container ID` where
    the engine is that of docker's own command line).
    """

    def __init__(self, *words: str, environ: Mapping[str, str]) -> None:
        package_home = str(Path(__file__).resolve().parents[3])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tooling.edges.serving.leash", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**environ, "PYTHONPATH": package_home},
        )

    def release(self) -> None:
        """Ends the leash without touching the server. Doing it twice is harmless."""
        stdin = self._process.stdin
        if stdin is not None and not stdin.closed:
            with suppress(OSError):
                stdin.write(b"done\n")
                stdin.close()
        self._process.wait()


def main(words: list[str]) -> None:
    if "done" in sys.stdin.read().split():
        return
    if words[0] == "process":
        end_all(words[1], int(words[2]), grace_s=2.0)
    elif words[0] == "engine-container":
        from tooling.edges import docker_engine  # noqa: PLC0415  # as below

        with suppress(ToolingError), docker_engine.connect() as client:
            client.containers.get(words[1]).remove(force=True, v=True)
    else:
        import docker  # noqa: PLC0415  # the leash of a process starts faster without it

        with suppress(docker.errors.APIError):
            docker.from_env().containers.get(words[1]).remove(force=True)


if __name__ == "__main__":
    main(sys.argv[1:])
