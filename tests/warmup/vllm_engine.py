"""A runner as a version of vLLM would have it: what the adapter looks for in the vLLM that is loaded, and no more."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

UTILS = "vllm.utils.flashinfer"


def as_in_vllm(runner: Any, version: dict[str, Any], seen: list[dict[str, Any]]) -> Any:
    """The adapter around that runner, in a process whose vLLM has `buckets`, `flag`, and experts that put off `defer`.

    `seen` gets token count, flag and tuning mode of every pass.
    """
    import torch
    from flashinfer import autotuner
    from flashinfer.fused_moe.utils import get_hybrid_num_tokens_buckets

    from tooling.warmup.vllm import VllmRunner

    utils: Any = ModuleType(UTILS)
    if version.get("buckets"):
        utils.flashinfer_get_hybrid_num_tokens_buckets = get_hybrid_num_tokens_buckets
    if version.get("flag"):
        utils._is_fi_autotuning = False
    sys.modules[UTILS] = utils
    for number, count in enumerate(version.get("defer", [])):
        experts = torch.nn.Module()
        experts.moe_config = SimpleNamespace(use_deferred_moe_finalize=True, defer_moe_finalize_max_num_tokens=count)
        runner.get_model().add_module(f"experts{number}", experts)
    run = runner._dummy_run

    def noted(
        num_tokens: int, skip_eplb: bool = False, is_profile: bool = False, randomize_inputs: bool = False
    ) -> Any:
        flag = getattr(utils, "_is_fi_autotuning", None)
        mode = autotuner.AutoTuner.get().is_tuning_mode
        seen.append({"tokens": num_tokens, "flag": flag, "tuning": mode, "random": randomize_inputs})
        return run(num_tokens=num_tokens, skip_eplb=skip_eplb, is_profile=is_profile)

    runner._dummy_run = noted
    return VllmRunner(runner)
