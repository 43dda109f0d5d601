"""What a worker sees of FlashInfer from beside it: time spent compiling and tuning, `skip_ops`, log lines.

Every function is wrapped where FlashInfer itself looks it up, so that what is observed is the call, not our record.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from tooling.warmup.jit_clock import JitClock, jit_clock
from tooling.warmup.wrapping import Call, wrapped

PROFILE = "_profile_single_kernel"
"""AutoTuner's method that times one tactic."""
MOST_LINES = 20
"""Log lines of each kind that are kept."""


class Lines(logging.Handler):
    """FlashInfer's lines about memory that ran out and tactics that were left out.

    Their words are the same from 0.6.12 to 0.7.4. While ranks time together (process groups, from 0.6.16 on) a tactic
    that runs out of memory has no line; `note_out_of_memory` is for what is seen beside the log.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.out_of_memory: list[str] = []
        self.skipped_tactics: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        low = text.lower()
        if "out of memory" in low or "outofmemory" in low or " oom" in low:
            self._keep(self.out_of_memory, text)
        elif "skipping tactic" in low:
            self._keep(self.skipped_tactics, text)

    def note_out_of_memory(self, text: str) -> None:
        self._keep(self.out_of_memory, text)

    def _keep(self, lines: list[str], text: str) -> None:
        line = text.split("\n", 1)[0][:300]
        if line not in lines and len(lines) < MOST_LINES:
            lines.append(line)


class Witness:
    """What was seen so far. `passed`: the last `skip_ops`, None where no call had the argument."""

    def __init__(self) -> None:
        self._watching = contextlib.ExitStack()
        self._jit = JitClock()
        self._tunings = 0
        self.tuning_s = 0.0
        """In tuning mode, without compiling."""
        self.passed: tuple[str, ...] | None = None
        self.lines = Lines()

    @property
    def jit_s(self) -> float | None:
        """Seconds spent compiling; None where this release compiles through functions that are not known."""
        return self._jit.seconds if self._jit.watched else None

    def install(self) -> None:
        """Wraps the installed FlashInfer's functions, for the rest of the process or until `close`."""
        with contextlib.ExitStack() as given_up:
            given_up.callback(self.close)
            self._jit = self._watching.enter_context(jit_clock())
            autotuner = import_module("flashinfer.autotuner")
            self._wrap(autotuner, "autotune", lambda call: self._watch_tuning(call, _autotune_tunes))
            self._wrap(getattr(autotuner, "AutoTuner", None), PROFILE, self._watch_profiling)
            with contextlib.suppress(ImportError):
                managed = import_module("flashinfer.autotune_cache")
                self._wrap(managed, "autotune_v2", lambda call: self._watch_tuning(call, _autotune_v2_tunes))
            self._listen()
            given_up.pop_all()

    def close(self) -> None:
        """Nothing is watched any longer; what was seen stays."""
        self._watching.close()

    def _wrap(self, owner: Any, name: str, around: Callable[[Call], Call]) -> None:
        self._watching.enter_context(wrapped(owner, name, around))

    def _watch_tuning(self, original: Call, tunes: Callable[..., bool]) -> Call:
        def watched(*args: Any, **kwargs: Any) -> Any:
            if "skip_ops" in kwargs:
                given = kwargs["skip_ops"]
                names = (given,) if isinstance(given, str) else tuple(given or ())
                self.passed = tuple(sorted(map(str, names)))
            context = original(*args, **kwargs)
            return self._measured(context) if tunes(*args, **kwargs) else context

        return watched

    def _watch_profiling(self, original: Call) -> Call:
        def watched(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            except Exception as error:
                if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
                    self.lines.note_out_of_memory(f"while a kernel was timed: {error}")
                raise

        return watched

    @contextlib.contextmanager
    def _measured(self, context: Any) -> Iterator[Any]:
        """The context, its time added up; of nested ones the outermost counts."""
        began, compiled = time.monotonic(), self._jit.seconds
        self._tunings += 1
        try:
            with context as value:
                yield value
        finally:
            self._tunings -= 1
            if not self._tunings:
                self.tuning_s += time.monotonic() - began - (self._jit.seconds - compiled)

    def _listen(self) -> None:
        """Takes debug lines too, in which tactics that failed are told; what FlashInfer prints stays as it was."""
        for name in ("flashinfer.jit.core", "flashinfer.autotuner", "flashinfer.autotuner.autotuner"):
            with contextlib.suppress(ImportError):
                logger = getattr(import_module(name), "logger", None)
                if isinstance(logger, logging.Logger) and self.lines not in logger.handlers:
                    for handler in logger.handlers:
                        handler.setLevel(max(handler.level, logger.getEffectiveLevel()))
                    logger.setLevel(logging.DEBUG)
                    logger.addHandler(self.lines)
                    self._watching.callback(logger.removeHandler, self.lines)


def _autotune_tunes(tune_mode: bool = True, *_: Any, **__: Any) -> bool:  # FlashInfer's signature
    return tune_mode


def _autotune_v2_tunes(mode: str = "tune", *_: Any, **__: Any) -> bool:
    return mode == "tune"
