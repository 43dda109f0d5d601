"""What the system refuses a smoke run, told apart: another process, or room for files."""

from __future__ import annotations

import errno

from tooling.errors import EdgeError

NO_PROCESS = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})


def read_refusal(cause: OSError) -> EdgeError:
    """The error to raise from that one."""
    if cause.errno in NO_PROCESS:
        return EdgeError(
            f"no process can be started: {cause.strerror}",
            hint="look at the limits of processes, open files and memory",
            reason="NO_PROCESS",
        )
    return EdgeError(f"the scenarios' files cannot be kept: {cause}", reason="NO_DISK")
