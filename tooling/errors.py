"""The errors that a user can act on, in two families, and the exit codes. A fact about a release is a finding."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process ends with; finer reasons are the `reason` in the JSON."""

    OK = 0
    CRASH = 1
    INPUT = 2
    WORLD = 3
    FINDINGS = 4
    INCOMPLETE = 5


class ToolingError(Exception):
    """One sentence that says where, what was found and what was expected; `hint` says what to do.

    `reason` is a short upper-case word for machines.
    """

    exit_code = ExitCode.CRASH
    kind = "error"
    reason = "ERROR"

    def __init__(self, message: str, *, hint: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if reason:
            self.reason = reason


class InputError(ToolingError):
    """An argument or an input file is wrong; the user mends it, and nothing was written."""

    exit_code = ExitCode.INPUT
    kind = "input"
    reason = "BAD_INPUT"


class EdgeError(ToolingError):
    """The world did not answer: an index, an engine, a GPU runtime, a server, a disk."""

    exit_code = ExitCode.WORLD
    kind = "edge"
    reason = "NO_ANSWER"
