"""What a worker sees of FlashInfer from beside it: time spent compiling and tuning, `skip_ops`, log lines.

Every function is wrapped where FlashInfer itself looks it up, so that what is observed is the call, not our record.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

MOST_LINES = 20
"""Log lines of each kind that are kept."""


class Watch:
    """Seconds of the outermost of nested calls."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0

    @property
    def running(self) -> bool:
        return self._depth > 0

    @contextlib.contextmanager
    def measure(self) -> Iterator[None]:
        self._depth += 1
        started = time.perf_counter()
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self.seconds += time.perf_counter() - started


class Lines(logging.Handler):
    """FlashInfer's lines about memory that ran out and tactics that were left out."""

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

    def _keep(self, lines: list[str], text: str) -> None:
        line = text.split("\n", 1)[0][:300]
        if line not in lines and len(lines) < MOST_LINES:
            lines.append(line)


class Witness:
    """What was seen so far. `passed`: the last `skip_ops`, None where no call had the argument.

    `knows_jit`: this release compiles through functions that are known, so that the seconds can be told.
    """

    def __init__(self) -> None:
        self.jit, self.tuning, self.jit_in_tuning = Watch(), Watch(), 0.0
        self.passed: tuple[str, ...] | None = None
        self.knows_jit = False
        self.lines = Lines()

    @property
    def tuning_s(self) -> float:
        """Without compiling."""
        return self.tuning.seconds - self.jit_in_tuning

    def install(self) -> None:
        """Wraps the installed FlashInfer's functions, for the rest of the process."""
        self._watch_compiling()
        self._watch_tuning(import_module("flashinfer.autotuner"), "autotune", _autotune_tunes)
        with contextlib.suppress(ImportError):
            self._watch_tuning(import_module("flashinfer.autotune_cache"), "autotune_v2", _autotune_v2_tunes)
        self._listen()

    def _watch_compiling(self) -> None:
        core = import_module("flashinfer.jit.core")
        spec = getattr(core, "JitSpec", None)
        for owner, name in ((core, "run_ninja"), (spec, "build"), (spec, "build_and_load")):
            original = getattr(owner, name, None)
            if original is not None:
                setattr(owner, name, self._compiling(original))
                self.knows_jit = True

    def _compiling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def compiling(*args: Any, **kwargs: Any) -> Any:
            before, outermost = self.jit.seconds, not self.jit.running
            try:
                with self.jit.measure():
                    return original(*args, **kwargs)
            finally:
                if outermost and self.tuning.running:
                    self.jit_in_tuning += self.jit.seconds - before

        return compiling

    def _watch_tuning(self, module: Any, name: str, tunes: Callable[..., bool]) -> None:
        original = getattr(module, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if "skip_ops" in kwargs:
                given = kwargs["skip_ops"]
                names = (given,) if isinstance(given, str) else tuple(given or ())
                self.passed = tuple(sorted(map(str, names)))
            context = original(*args, **kwargs)
            return self._measured(context) if tunes(*args, **kwargs) else context

        setattr(module, name, watched)

    @contextlib.contextmanager
    def _measured(self, context: Any) -> Iterator[Any]:
        with self.tuning.measure(), context as value:
            yield value

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


def _autotune_tunes(tune_mode: bool = True, *_: Any, **__: Any) -> bool:  # FlashInfer's signature
    return tune_mode


def _autotune_v2_tunes(mode: str = "tune", *_: Any, **__: Any) -> bool:
    return mode == "tune"
