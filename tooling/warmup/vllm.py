"""The warm-up in vLLM: its model runner as it is, and the settings that vLLM itself knows. Imports nothing of vLLM.

`warm_up(worker)` stands where vLLM calls its own FlashInfer autotune. Runners of vLLM versions differ in where the
all2all backend is written and in what `_dummy_run` takes; that is evened out here and nowhere else. How a version tunes
is `vllm_tuning`'s.
"""

from __future__ import annotations

import inspect
import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tooling.warmup.vllm_tuning import bounded_counts, has_own_buckets, tuning_as_vllm

if TYPE_CHECKING:
    from tooling.warmup.record import WarmupRecord

BACKEND = "VLLM_ALL2ALL_BACKEND"
"""Where versions before `parallel_config.all2all_backend` had the all2all backend."""
RANDOM = "randomize_inputs"
"""What newer versions ask of `_dummy_run` while they tune: tokens that spread over the experts."""


class VllmRunner:
    """vLLM's GPUModelRunner as the warm-up's runner."""

    def __init__(self, model_runner: Any) -> None:
        self._runner = model_runner
        self.scheduler_config = model_runner.scheduler_config
        self.vllm_config = _with_backend(model_runner.vllm_config)
        self._names, self._takes_any = _parameters(model_runner._dummy_run)  # noqa: SLF001  # vLLM's own name for it

    @property
    def bucket_facts(self) -> dict[str, int]:
        """What shapes token buckets beside the settings, for the cache's path."""
        return {"vllm_buckets": 1} if has_own_buckets() else {}

    def get_model(self) -> Any:
        return self._runner.get_model()

    def _dummy_run(self, *, num_tokens: int, **wishes: Any) -> Any:
        """The pass, and at the largest count vLLM's further ones too, whether or not this rank tunes.

        Passes on what this version's `_dummy_run` takes; `skip_eplb` came later than the function.
        """
        given = {name: wishes[name] for name in wishes if self._takes_any or name in self._names}
        given |= {RANDOM: True} if RANDOM in self._names else {}
        largest = num_tokens == self.scheduler_config.max_num_batched_tokens
        answer = None
        for tokens in (num_tokens, *(bounded_counts(self._runner, num_tokens) if largest else ())):
            with tuning_as_vllm(self._runner, tokens):
                answer = self._runner._dummy_run(num_tokens=tokens, **given)  # noqa: SLF001
        return answer


def warm_up(worker: Any, *, strict: bool = False) -> WarmupRecord | None:
    """Warms up a vLLM worker's model runner. None where the operator switched FlashInfer's autotune off in vLLM."""
    from tooling.warmup.autotune import flashinfer_autotune  # noqa: PLC0415  # only when called

    kernels = getattr(worker.model_runner.vllm_config, "kernel_config", None)
    if getattr(kernels, "enable_flashinfer_autotune", None) is False:
        return None
    return flashinfer_autotune(VllmRunner(worker.model_runner), strict=strict)


def _with_backend(config: Any) -> Any:
    """The configuration with an all2all backend, from the environment where it has none of its own."""
    parallel = config.parallel_config
    if getattr(parallel, "all2all_backend", None) is not None:
        return config
    names = [name for name in dir(parallel) if not name.startswith("_") and name != "all2all_backend"]
    sizes = {name: value for name in names if isinstance(value := getattr(parallel, name, None), int | str)}
    backend = os.environ.get(BACKEND) or None
    return SimpleNamespace(
        parallel_config=SimpleNamespace(**sizes, all2all_backend=backend),
        model_config=getattr(config, "model_config", None),
        compilation_config=getattr(config, "compilation_config", None),
    )


def _parameters(function: Any) -> tuple[frozenset[str], bool]:
    """The names that the function takes, and whether it takes any other too."""
    parameters = inspect.signature(function).parameters.values()
    return frozenset(one.name for one in parameters), any(one.kind is one.VAR_KEYWORD for one in parameters)
