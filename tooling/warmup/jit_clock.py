"""How long FlashInfer compiles: seconds of wall time in which a build was under way, apart from timing kernels.

    with jit_clock() as clock:
        run_whatever_may_compile()
    clock.seconds, clock.builds

Works from 0.6.7 to 0.7.4 and for all threads of this process. What counts is a call of `build_and_load` or `build` of
a `JitSpec` (from 0.7 on of any of its subclasses), or of `build_jit_specs`: waiting for another process that builds the
same, ninja, and loading the library. Where all is in place already such a call counts with the milliseconds that it
takes. Calls that overlap count once. What the CuTe DSL compiles without a JitSpec is not counted. Clocks may be nested;
each counts what happens while it runs. `watched` is False where the installed FlashInfer has none of these.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from tooling.warmup.wrapping import wrapped

MODULES = ("flashinfer.jit.core", "flashinfer.jit")
"""Where the specs are, and where the function is exported a second time."""
METHODS = ("build_and_load", "build")
FUNCTION = "build_jit_specs"


class JitClock:
    """Seconds in which at least one build was under way, and how many began while none was."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.watched = False
        self.builds = 0
        self._clock = clock
        self._lock = threading.Lock()
        self._under_way = 0
        self._since = 0.0
        self._sum = 0.0

    @property
    def seconds(self) -> float:
        """Up to now, a build that is still under way included."""
        with self._lock:
            return self._sum + (self._clock() - self._since if self._under_way else 0.0)

    def begin(self) -> None:
        with self._lock:
            if not self._under_way:
                self._since = self._clock()
                self.builds += 1
            self._under_way += 1

    def end(self) -> None:
        with self._lock:
            self._under_way -= 1
            if not self._under_way:
                self._sum += self._clock() - self._since


@contextlib.contextmanager
def jit_clock() -> Iterator[JitClock]:
    """A clock that runs while FlashInfer builds inside; its functions are as before afterwards."""
    clock = JitClock()
    places = _places()
    clock.watched = bool(places)
    with contextlib.ExitStack() as stack:
        for owner, name in places:
            stack.enter_context(wrapped(owner, name, lambda original: _timed(original, clock)))
        yield clock


def _timed(original: Callable[..., Any], clock: JitClock) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        clock.begin()
        try:
            return original(*args, **kwargs)
        finally:
            clock.end()

    return timed


def _places() -> list[tuple[Any, str]]:
    """Owners and names of the functions that build; none where FlashInfer does not import."""
    try:
        modules = [import_module(name) for name in MODULES]
    except Exception:  # noqa: BLE001  # a broken installation is not this clock's to report
        return []
    spec = getattr(modules[0], "JitSpec", None)
    classes = [spec, *_subclasses(spec)] if isinstance(spec, type) else []
    methods = [(owner, name) for owner in classes for name in METHODS if name in vars(owner)]
    return methods + [(module, FUNCTION) for module in modules if hasattr(module, FUNCTION)]


def _subclasses(kind: type) -> list[type]:
    direct: list[type] = kind.__subclasses__()
    return direct + [each for one in direct for each in _subclasses(one)]
