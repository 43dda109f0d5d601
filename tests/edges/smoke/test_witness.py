"""What is seen of FlashInfer from beside it, on modules shaped as its own are: compiling inside of tuning, skip_ops, logs."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tooling.edges.smoke.witness import Witness


class JitSpec:
    """As FlashInfer's: loading builds, and building runs ninja."""

    def build_and_load(self) -> None:
        self.build()

    def build(self) -> None:
        sys.modules["flashinfer.jit.core"].run_ninja()  # type: ignore[attr-defined]


@contextlib.contextmanager
def autotune(tune_mode: bool = True, skip_ops: Any = None) -> Iterator[None]:
    yield


@pytest.fixture
def flashinfer(monkeypatch: pytest.MonkeyPatch) -> Any:
    core, tuner = ModuleType("flashinfer.jit.core"), ModuleType("flashinfer.autotuner")
    core.run_ninja = lambda: time.sleep(0.2)  # type: ignore[attr-defined]
    core.JitSpec = type("JitSpec", (JitSpec,), {})  # type: ignore[attr-defined]
    tuner.autotune = autotune  # type: ignore[attr-defined]
    core.logger = tuner.logger = logging.Logger("flashinfer.jit", logging.INFO)  # type: ignore[attr-defined]
    for name, module in (("flashinfer", ModuleType("flashinfer")), ("flashinfer.jit", ModuleType("flashinfer.jit")),
                         ("flashinfer.jit.core", core), ("flashinfer.autotuner", tuner)):  # fmt: skip
        monkeypatch.setitem(sys.modules, name, module)
    return tuner


def test_compiling_is_told_apart_from_tuning_and_counted_once(flashinfer: Any) -> None:
    witness = Witness()
    witness.install()
    with flashinfer.autotune(True):
        sys.modules["flashinfer.jit.core"].JitSpec().build_and_load()
        time.sleep(0.1)
    sys.modules["flashinfer.jit.core"].JitSpec().build_and_load()
    assert witness.knows_jit
    assert witness.jit.seconds >= 0.4
    assert witness.tuning.seconds >= 0.3
    assert witness.jit_in_tuning == pytest.approx(witness.jit.seconds / 2, rel=0.5)
    assert 0.1 <= witness.tuning_s <= witness.tuning.seconds - 0.2


def test_outside_of_tuning_mode_nothing_is_tuning(flashinfer: Any) -> None:
    witness = Witness()
    witness.install()
    with flashinfer.autotune(False):
        time.sleep(0.05)
    assert witness.tuning_s == 0.0


@pytest.mark.parametrize(
    ("given", "passed"),
    [({}, None), ({"skip_ops": set()}, ()), ({"skip_ops": {"b", "a"}}, ("a", "b")), ({"skip_ops": "a"}, ("a",))],
)
def test_the_argument_of_the_call_counts(
    flashinfer: Any, given: dict[str, Any], passed: tuple[str, ...] | None
) -> None:
    witness = Witness()
    witness.install()
    with flashinfer.autotune(True, **given):
        pass
    assert witness.passed == passed


def test_lines_about_memory_and_tactics_are_kept_once_though_they_are_for_debugging(flashinfer: Any) -> None:
    witness = Witness()
    witness.install()
    for _ in range(2):
        flashinfer.logger.warning("[Autotuner]: OOM detected, falling back: CUDA out of memory. Tried 2 GiB\nmore")
        flashinfer.logger.debug("[Autotuner]: Skipping tactic Runner 3, due to failure while profiling: x")
        flashinfer.logger.info("[Autotuner]: Autotuning process starts ...")
    assert witness.lines.out_of_memory == ["[Autotuner]: OOM detected, falling back: CUDA out of memory. Tried 2 GiB"]
    assert witness.lines.skipped_tactics == ["[Autotuner]: Skipping tactic Runner 3, due to failure while profiling: x"]
