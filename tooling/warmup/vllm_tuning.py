"""How versions of vLLM tune: token buckets of their own, further passes at smaller counts, and a flag for kernels.

Everything is looked for in the vLLM that is loaded, and left out where it has none; nothing of vLLM is imported.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from tooling.warmup.runner import modules_of

UTILS, TUNER = "vllm.utils.flashinfer", "flashinfer.autotuner"
BUCKETS = "flashinfer_get_hybrid_num_tokens_buckets"
"""Where newer versions have FlashInfer's function for the buckets that they tune, rounded up (flashinfer#5450)."""
FLAG = "_is_fi_autotuning"
"""What 0.18 sets meanwhile: kernels that cannot be tuned sit such a pass out."""


@contextlib.contextmanager
def tuning_as_vllm(model_runner: Any, num_tokens: int) -> Iterator[None]:
    """One pass as that vLLM tunes it, inside of a tuning context; nothing outside of one."""
    if not _tunes():
        yield
        return
    with _flagged(), _own_buckets(model_runner, num_tokens):
        yield


def has_own_buckets() -> bool:
    """Whether that vLLM tunes buckets of its own, and the installed FlashInfer takes them."""
    return hasattr(sys.modules.get(UTILS), BUCKETS) and {"tuning_buckets", "round_up"} <= _autotune_parameters()


def bounded_counts(model_runner: Any, max_tokens: int) -> tuple[int, ...]:
    """Token counts of further passes: mixtures of experts that put off their last step for small batches only."""
    found: dict[int, None] = {}
    for module in modules_of(model_runner.get_model()):
        config = getattr(module, "moe_config", None)
        bound = getattr(config, "defer_moe_finalize_max_num_tokens", 0)
        if getattr(config, "use_deferred_moe_finalize", False) is True and isinstance(bound, int) and bound > 0:
            found[min(max_tokens, bound)] = None
    return tuple(count for count in found if count != max_tokens)


def _tunes() -> bool:
    module = sys.modules.get(TUNER)
    return bool(module and module.AutoTuner.get().is_tuning_mode)


def _own_buckets(model_runner: Any, num_tokens: int) -> contextlib.AbstractContextManager[Any]:
    if not has_own_buckets():
        return contextlib.nullcontext()
    buckets: Sequence[int] = getattr(sys.modules[UTILS], BUCKETS)(_most_tokens(model_runner, num_tokens))
    return sys.modules[TUNER].autotune(tuning_buckets=buckets, round_up=True)  # type: ignore[no-any-return]


def _most_tokens(model_runner: Any, num_tokens: int) -> int:
    """The most tokens that any kernel sees in the pass: a drafter may take more of them than the model."""
    drafter = getattr(model_runner, "speculator", None)
    each = getattr(drafter, "num_query_per_req", 0)
    if not isinstance(each, int) or each < 1:
        return num_tokens
    requests: int = min(num_tokens, model_runner.max_num_reqs, model_runner.max_num_tokens // each)
    return max(num_tokens, requests * each)


def _autotune_parameters() -> frozenset[str]:
    module = sys.modules.get(TUNER)
    return frozenset(inspect.signature(module.autotune).parameters) if module else frozenset()


@contextlib.contextmanager
def _flagged() -> Iterator[None]:
    utils = sys.modules.get(UTILS)
    before = getattr(utils, FLAG, None)
    if before is None:
        yield
        return
    setattr(utils, FLAG, True)
    try:
        yield
    finally:
        setattr(utils, FLAG, before)
