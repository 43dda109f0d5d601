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


def make_spec() -> type:
    class JitSpec:
        """As FlashInfer's: loading builds, and building takes its time."""

        def build_and_load(self) -> None:
            self.build()

        def build(self) -> None:
            time.sleep(0.2)

    return JitSpec


@contextlib.contextmanager
def autotune(tune_mode: bool = True, skip_ops: Any = None) -> Iterator[None]:
    yield


def make_tuner() -> type:
    class AutoTuner:
        """As FlashInfer's, whose kernel fails as a test wants."""

        def _profile_single_kernel(self, error: Exception) -> float:
            raise error

    return AutoTuner


@pytest.fixture
def tuner(monkeypatch: pytest.MonkeyPatch) -> Any:
    core, tuner = ModuleType("flashinfer.jit.core"), ModuleType("flashinfer.autotuner")
    core.JitSpec = make_spec()  # type: ignore[attr-defined]
    tuner.AutoTuner = make_tuner()  # type: ignore[attr-defined]
    tuner.autotune = autotune  # type: ignore[attr-defined]
    core.logger = tuner.logger = logging.Logger("flashinfer.jit", logging.INFO)  # type: ignore[attr-defined]
    for name, module in (("flashinfer", ModuleType("flashinfer")), ("flashinfer.jit", ModuleType("flashinfer.jit")),
                         ("flashinfer.jit.core", core), ("flashinfer.autotuner", tuner)):  # fmt: skip
        monkeypatch.setitem(sys.modules, name, module)
    return tuner


@pytest.fixture
def witness(tuner: Any) -> Iterator[Witness]:
    made = Witness()
    made.install()
    yield made
    made.close()
    assert tuner.autotune is autotune


def test_compiling_is_told_apart_from_tuning_and_counted_once(tuner: Any, witness: Witness) -> None:
    began = time.monotonic()
    with tuner.autotune(True), tuner.autotune(True):
        sys.modules["flashinfer.jit.core"].JitSpec().build_and_load()
        time.sleep(0.1)
    sys.modules["flashinfer.jit.core"].JitSpec().build_and_load()
    took = time.monotonic() - began
    assert witness.jit_s is not None
    assert witness.jit_s >= 0.4
    assert 0.1 <= witness.tuning_s <= took - witness.jit_s


def test_a_witness_that_ends_before_a_later_one_leaves_nothing(tuner: Any) -> None:
    before = [dict(vars(owner)) for owner in (tuner, tuner.AutoTuner, sys.modules["flashinfer.jit.core"].JitSpec)]
    first, second = Witness(), Witness()
    first.install()
    second.install()
    first.close()
    with tuner.autotune(True, skip_ops={"a"}):
        pass
    second.close()
    assert (first.passed, second.passed) == (None, ("a",))
    assert before == [
        dict(vars(owner)) for owner in (tuner, tuner.AutoTuner, sys.modules["flashinfer.jit.core"].JitSpec)
    ]


def test_a_witness_that_cannot_be_installed_takes_back_what_it_did(tuner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(vars(sys.modules["flashinfer.jit.core"].JitSpec))
    monkeypatch.setitem(sys.modules, "flashinfer.autotuner", None)
    with pytest.raises(ImportError):
        Witness().install()
    assert dict(vars(sys.modules["flashinfer.jit.core"].JitSpec)) == before


def test_outside_of_tuning_mode_nothing_is_tuning(tuner: Any, witness: Witness) -> None:
    with tuner.autotune(False):
        time.sleep(0.05)
    assert witness.tuning_s == 0.0


@pytest.mark.parametrize(
    ("given", "passed"),
    [({}, None), ({"skip_ops": set()}, ()), ({"skip_ops": {"b", "a"}}, ("a", "b")), ({"skip_ops": "a"}, ("a",))],
)
def test_the_argument_of_the_call_counts(
    tuner: Any, witness: Witness, given: dict[str, Any], passed: tuple[str, ...] | None
) -> None:
    with tuner.autotune(True, **given):
        pass
    assert witness.passed == passed


OOM = "[Autotuner]: OOM detected, falling back to default tactic"
SKIPPING = "[Autotuner]: Skipping tactic Runner 3, due to failure while profiling: x"
RANKING = "[Autotuner]: Skipping tactic Runner 3 while ranking bf16_gemm: x"


def test_lines_about_memory_and_tactics_are_kept_once_though_they_are_for_debugging(
    tuner: Any, witness: Witness
) -> None:
    """The words of 0.6.12, 0.6.13, 0.7.0.post1 and 0.7.4."""
    for _ in range(2):
        tuner.logger.warning("%s\nmore", OOM)
        tuner.logger.debug(SKIPPING)
        tuner.logger.debug(RANKING)
        tuner.logger.debug("[Autotuner]: Failed when profiling Runner 3, shapes=[]. Error occurred: x")
        tuner.logger.info("[Autotuner]: Autotuning process starts ...")
        tuner.logger.info("[AutoTuner]: Skipping autotuning for 'bf16_gemm' (in skip_ops)")
    assert witness.lines.out_of_memory == [OOM]
    assert witness.lines.skipped_tactics == [SKIPPING, RANKING]


class OutOfMemoryError(RuntimeError):
    """As torch's."""


@pytest.mark.parametrize("error", [OutOfMemoryError("Tried to allocate 2 GiB"), MemoryError("Tried to allocate 2 GiB")])
def test_a_tactic_that_runs_out_of_memory_without_a_line_in_the_log_is_seen(
    tuner: Any, witness: Witness, error: Exception
) -> None:
    with pytest.raises(type(error)):
        tuner.AutoTuner()._profile_single_kernel(error)
    with pytest.raises(ValueError, match="illegal"):
        tuner.AutoTuner()._profile_single_kernel(ValueError("illegal"))
    assert witness.lines.out_of_memory == ["while a kernel was timed: Tried to allocate 2 GiB"]
