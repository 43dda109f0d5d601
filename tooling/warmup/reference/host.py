"""A GEMM on the CPU that FlashInfer's real tuner tunes: shows the tuner's bookkeeping where there is no GPU.

Its runner puts the output's type into the key, as FlashInfer's own GEMM runners do; up to 0.6.12 that part does not
reach the disk, and entries get lost there.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from tooling.warmup.reference.operations import Operation, Shape, make_weight

TACTICS = (0, 1, 2)


class HostLayer:
    """bf16 rows by a bf16 weight on the CPU; every tactic computes the same."""

    def __init__(self, item: Operation, shape: Shape) -> None:
        tuner = import_module("flashinfer.autotuner")
        self.weight = make_weight(shape, "cpu")
        self._name = item.name
        self._tuner = tuner
        self._runner = make_runner(getattr(import_module("torch"), item.out))
        self._config = tuning_config(tuner)

    def run(self, rows: Any) -> Any:
        inputs = [rows, self.weight]
        runner, tactic = self._tuner.AutoTuner.get().choose_one(self._name, [self._runner], self._config, inputs)
        return runner(inputs, tactic=tactic)

    def exact(self, rows: Any) -> Any:
        return rows.float() @ self.weight.float().t()


def make_runner(out: Any) -> Any:
    """A runner of the installed release's own base class."""
    base: Any = import_module("flashinfer.autotuner").TunableRunner

    class HostGemmRunner(base):  # type: ignore[misc]
        """Three tactics that differ in name only."""

        def __init__(self) -> None:
            self.out = out

        def get_valid_tactics(self, inputs: list[Any], profile: object) -> list[int]:  # noqa: ARG002  # FlashInfer's signature
            return list(TACTICS)

        def get_cache_key_extras(self, inputs: list[Any]) -> tuple[object, ...]:
            return (inputs[0].dtype, self.out)

        def forward(self, inputs: list[Any], tactic: int = -1, **_: Any) -> Any:  # noqa: ARG002
            return (inputs[0].float() @ inputs[1].float().t()).to(self.out)

    return HostGemmRunner()


@lru_cache(maxsize=1)
def tuning_config(tuner: Any) -> Any:
    """Buckets are the powers of two up to the token count. One object per process: FlashInfer caches by identity."""
    spec = tuner.DynamicTensorSpec(
        input_idx=(0,), dim_idx=(0,), gen_tuning_buckets=buckets_up_to, map_to_tuning_buckets=bucket_below
    )
    return tuner.TuningConfig(dynamic_tensor_specs=(spec,))


def buckets_up_to(tokens: int) -> tuple[int, ...]:
    return tuple(1 << power for power in range(bucket_below(tokens).bit_length()))


def bucket_below(tokens: int) -> int:
    """The largest power of two that is not above the token count."""
    return 1 << max(tokens.bit_length() - 1, 0)
