"""What the warm-up asks of an engine's model runner, and the facts it reads off one. vLLM's satisfies it as it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol


class Runner(Protocol):
    """A model runner.

    Beside these, `scheduler_config.max_num_batched_tokens` must be there; `vllm_config.parallel_config` (the all2all
    backend and the parallel sizes) and `vllm_config.model_config` are read where they are, and `bucket_facts`, numbers
    by name, where the runner tunes other buckets than FlashInfer's own.
    """

    scheduler_config: Any
    vllm_config: Any

    def _dummy_run(self, *, num_tokens: int, skip_eplb: bool, is_profile: bool) -> Any: ...

    def get_model(self) -> Any: ...


PARALLEL_SIZES = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "prefill_context_parallel_size",
    "decode_context_parallel_size",
    "enable_expert_parallel",
)

BUCKET_SETTINGS = (
    ("compilation_config", "max_cudagraph_capture_size"),
    ("parallel_config", "enable_dbo"),
    ("parallel_config", "ubatch_size"),
    ("parallel_config", "use_sequence_parallel_moe"),
)
"""What shapes token buckets beside the largest token count: vLLM hands the largest captured graph to mixtures of
experts as `tune_max_num_tokens`, and cuts a pass into microbatches or among ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerFacts:
    """What decides the strategy and the path: token count, all2all backend, shapes, type, parallel sizes, quantisation.

    `buckets` are BUCKET_SETTINGS and the runner's `bucket_facts` by name; `modules` are the model's modules, for the
    skip rule. `elastic`: data parallel replicas run each pass together, but not in one torch.distributed world (vLLM's
    elastic experts).
    """

    max_tokens: int
    all2all_backend: str | None = None
    shapes: tuple[str, ...] = ()
    dtype: str = ""
    parallel: dict[str, int] = field(default_factory=dict)
    quantization: str = ""
    buckets: dict[str, int] = field(default_factory=dict)
    elastic: bool = False
    modules: tuple[object, ...] = ()


def describe_runner(runner: Runner) -> RunnerFacts:
    """The facts of that runner. Raises AttributeError where a part that is always needed is missing."""
    config = getattr(runner, "vllm_config", None)
    parallel = getattr(config, "parallel_config", None)
    model_config = getattr(config, "model_config", None)
    modules = tuple(modules_of(runner.get_model()))
    shapes, dtypes = _shapes(modules)
    sizes = {name: getattr(parallel, name, None) for name in PARALLEL_SIZES}
    return RunnerFacts(
        max_tokens=int(runner.scheduler_config.max_num_batched_tokens),
        all2all_backend=_backend(getattr(parallel, "all2all_backend", None)),
        shapes=shapes,
        dtype=str(getattr(model_config, "dtype", None) or ",".join(dtypes)),
        parallel={name: int(size) for name, size in sizes.items() if isinstance(size, int)},
        quantization=str(getattr(model_config, "quantization", None) or ""),
        buckets=_buckets(config) | dict(getattr(runner, "bucket_facts", {})),
        elastic=bool(getattr(parallel, "enable_elastic_ep", False)),
        modules=modules,
    )


def dummy_pass(runner: Runner, *, num_tokens: int) -> None:
    """One forward pass without metrics, finished on the device. The caller is in inference mode."""
    import torch  # noqa: PLC0415  # only when called

    runner._dummy_run(num_tokens=num_tokens, skip_eplb=True, is_profile=True)  # noqa: SLF001  # engines name it so
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _buckets(config: Any) -> dict[str, int]:
    """Those settings that are there and are numbers; they come as attributes or as properties."""
    found = {}
    for part, name in BUCKET_SETTINGS:
        value = getattr(getattr(config, part, None), name, None)
        if isinstance(value, int):
            found[name] = int(value)
    return found


def _backend(value: object) -> str | None:
    """The backend's name; of an enumeration its value where that is a text, else the member's own name."""
    if isinstance(value, Enum):
        value = value.value if isinstance(value.value, str) else value.name
    return None if value is None else str(value)


def modules_of(model: Any) -> Iterable[object]:
    """The model's modules; a model that is none of torch's is one module. Wrapped models are opened."""
    for name in ("unwrap", "runnable"):
        inner = getattr(model, name, None)
        if inner is not None and not hasattr(model, "modules"):
            model = inner() if callable(inner) and name == "unwrap" else inner
    listed = getattr(model, "modules", None)
    return listed() if callable(listed) else (model,)


def _shapes(modules: Iterable[object]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Every kind of parameter once, as `Class.name [shape] type`, and the types in use; both sorted."""
    shapes: set[str] = set()
    dtypes: set[str] = set()
    for module in modules:
        for name, parameter in getattr(module, "_parameters", {}).items():
            if parameter is not None:
                shapes.add(f"{type(module).__name__}.{name} {list(parameter.shape)} {parameter.dtype}")
                dtypes.add(str(parameter.dtype))
    return tuple(sorted(shapes)), tuple(sorted(dtypes))
