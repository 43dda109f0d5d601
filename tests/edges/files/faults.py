"""Faults at the n-th step that a piece of code takes on the disk: a signal, an error, half a write. Not a test itself.

A step is a call that changes the disk or flushes it. `Steps()` counts them; `Steps(fault)` also strikes. A fault that
is a signal ends the process, so `in_child` runs the code in a fork of this one.
"""

from __future__ import annotations

import errno
import os
import signal
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self

STEPS = ("open", "write", "fsync", "replace", "unlink", "mkdir", "fchmod", "fchown")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_NEEDS_SPACE = {"open", "write", "mkdir"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What strikes, and when: `kind` is a signal's or an errno's name; `lasting` strikes at every later step too."""

    kind: str
    when: Literal["before", "after", "half"] = "before"
    lasting: bool = False

    @property
    def is_signal(self) -> bool:
        return self.kind.startswith("SIG")

    def __str__(self) -> str:
        return f"{self.kind} {self.when}{' and ever after' if self.lasting else ''}"


class Steps:
    """Counts the steps while it is entered, and strikes at step `at` (counted from 1), or at that one `of` a name.

    `observe` is told every step that was taken: its name, its arguments and what it returned.
    """

    def __init__(
        self,
        fault: Fault | None = None,
        *,
        at: int = 0,
        of: str | None = None,
        observe: Callable[[str, tuple[Any, ...], Any], None] | None = None,
    ) -> None:
        self.fault = fault
        self.at = at
        self.of = of
        self.observe = observe
        self.names: list[str] = []
        self._real: dict[str, Any] = {}

    def __enter__(self) -> Self:
        for name in STEPS:
            self._real[name] = getattr(os, name)
            setattr(os, name, self._counted(name, self._real[name]))
        return self

    def __exit__(self, *exception: object) -> None:
        for name, real in self._real.items():
            setattr(os, name, real)

    def _counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **more: Any) -> Any:
            if name == "open" and (args[0] == os.devnull or not args[1] & _WRITING):
                return self._seen(name, args, real(*args, **more))
            self.names.append(name)
            fault = self.fault
            if fault is None or not self._hits(fault, name):
                return self._seen(name, args, real(*args, **more))
            if fault.when == "before":
                self._strike(fault)
                return self._seen(name, args, real(*args, **more))
            if fault.when == "half":
                args = (args[0], bytes(args[1])[: len(args[1]) // 2])
            result = self._seen(name, args, real(*args, **more))
            self._strike(fault)
            return result

        return step

    def _hits(self, fault: Fault, name: str) -> bool:
        if self.of not in {None, name}:
            return False
        number = len(self.names) if self.of is None else self.names.count(name)
        if number < self.at or (number > self.at and not fault.lasting):
            return False
        if fault.when == "half" and name != "write":
            return False
        return not (fault.lasting and fault.kind == "ENOSPC" and name not in _NEEDS_SPACE)

    def _strike(self, fault: Fault) -> None:
        if fault.is_signal:
            os.kill(os.getpid(), getattr(signal, fault.kind))
            return
        number = getattr(errno, fault.kind)
        raise OSError(number, os.strerror(number))

    def _seen(self, name: str, args: tuple[Any, ...], result: Any) -> Any:
        if self.observe is not None:
            self.observe(name, args, result)
        return result


def in_child(work: Callable[[], object]) -> int:
    """Runs the work in a fork and returns how it ended: 0, 1 after an exception, or minus the signal's number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of other tests hold nothing that the work needs
        child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            work()
            code = 0
        except KeyboardInterrupt:
            code = 130
        except BaseException:  # noqa: BLE001  # nothing of the child may go on in the caller's frames
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
