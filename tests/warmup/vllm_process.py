"""Ranks of a real vLLM in processes of their own: its configuration, loader, model and model runner, on the CPU.

vLLM's wheel holds no kernels for a CPU. Its own layers in plain torch stand for them, and each linear layer's product is
the host GEMM, which the real AutoTuner tunes. The adapter sees the runner as vLLM made it.
"""

from __future__ import annotations

import functools
import os
from types import SimpleNamespace
from typing import Any

os.environ.update(
    {
        "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "HF_HUB_OFFLINE": "1",
    }
)

import torch
from flashinfer import autotuner
from vllm import platforms
from vllm.platforms.cpu import CpuPlatform

from tests.warmup import worker
from tooling.warmup.reference import host

platforms._current_platform = CpuPlatform()  # the wheel's own choice is a GPU, or nothing

IMPORTED_ONCE = (
    "vllm.engine.arg_utils",
    "vllm.model_executor.models.llama",
    "vllm.utils.flashinfer",
    "vllm.v1.worker.cpu_model_runner",
    "vllm.v1.worker.gpu_worker",
    "tooling.capabilities.table_text",
    "tooling.warmup.autotune",
    "tooling.warmup.vllm",
)


def warm_up(spec: dict[str, Any]) -> dict[str, Any]:
    """Makes the runner of `engine`'s arguments and warms it up.

    `gpu` False says what a machine without one gets, `own` is vLLM's own autotune instead of ours.
    """
    from vllm.config import set_current_vllm_config
    from vllm.engine.arg_utils import EngineArgs
    from vllm.v1.worker.cpu_model_runner import CPUModelRunner
    from vllm.v1.worker.gpu_worker import init_worker_distributed_environment

    tune_linear_layers()
    config = EngineArgs(
        tensor_parallel_size=spec["ranks"],
        distributed_executor_backend="mp" if spec["ranks"] > 1 else "uni",
        skip_tokenizer_init=True,
        load_format="dummy",
        dtype="float32",
        enforce_eager=True,
        compilation_config={"custom_ops": ["none"]},
        **spec["engine"],
    ).create_engine_config()
    with set_current_vllm_config(config):
        init_worker_distributed_environment(config, spec["rank"], f"file://{spec['meeting']}", spec["rank"], "gloo")
        runner = CPUModelRunner(config, torch.device("cpu"))
        runner.load_model()
        return warm_up_runner(runner, spec)


def warm_up_runner(runner: Any, spec: dict[str, Any]) -> dict[str, Any]:
    from vllm.model_executor.warmup import kernel_warmup

    from tooling.capabilities.gating import World
    from tooling.warmup import flashinfer_autotune
    from tooling.warmup import vllm as adapter
    from tooling.warmup.runner import describe_runner

    engine = adapter.VllmRunner(runner)
    facts = describe_runner(engine)
    if spec.get("own"):
        kernel_warmup.flashinfer_autotune(runner)
        return {"entries": entries()}
    if not spec.get("gpu", True):
        record = adapter.warm_up(SimpleNamespace(model_runner=runner))
        return {"none": True} if record is None else record.as_json()
    world = World(ranks=spec["ranks"], backend=facts.all2all_backend, gpu=True, cache_off=False)
    passes = watch_passes(runner)
    body = flashinfer_autotune(engine, world=world).as_json()
    return body | {
        "ran": passes,
        "entries": entries(),
        "facts": {
            "max_tokens": facts.max_tokens,
            "backend": facts.all2all_backend,
            "dtype": facts.dtype,
            "parallel": facts.parallel,
            "buckets": facts.buckets,
            "shapes": facts.shapes,
        },
    }


def entries() -> list[list[str]]:
    """What the tuner holds: key, runner and tactic."""
    from tooling.warmup.tuner import open_tuner

    return sorted([entry.file_keys[0], entry.runner, str(entry.tactic)] for entry in open_tuner().memory())


def watch_passes(runner: Any) -> list[dict[str, Any]]:
    """What vLLM's own `_dummy_run` is given from now on, and the rows that come out of it."""
    seen: list[dict[str, Any]] = []
    run = runner._dummy_run

    @functools.wraps(run)
    def watched(**given: Any) -> Any:
        answer = run(**given)
        seen.append({**given, "rows": len(answer[0])})
        return answer

    runner._dummy_run = watched
    return seen


def tune_linear_layers() -> None:
    """Every linear layer asks the real tuner for a tactic, as vLLM's FlashInfer layers do on a GPU."""
    from vllm.model_executor.layers.linear import UnquantizedLinearMethod

    product = host.make_runner(torch.float32)
    config = host.tuning_config(autotuner)

    def apply(self: Any, layer: Any, x: Any, bias: Any = None) -> Any:
        inputs = [x.reshape(-1, x.shape[-1]), layer.weight]
        chosen, tactic = autotuner.AutoTuner.get().choose_one("host_gemm", [product], config, inputs)
        rows = chosen(inputs, tactic=tactic).reshape(*x.shape[:-1], -1)
        return rows if bias is None else rows + bias

    UnquantizedLinearMethod.apply = apply


if __name__ == "__main__":
    worker.serve(warm_up, IMPORTED_ONCE)
