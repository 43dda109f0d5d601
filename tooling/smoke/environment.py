"""The operator's environment without what would change what is tested. Reading it is an edge's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tooling.redaction import redact_text

STAY = frozenset(
    {
        "CUBLASLT_WORKSPACE_SIZE",
        "CUBLAS_WORKSPACE_CONFIG",
        "FLASHINFER_CUBIN_DIR",
        "FLASHINFER_CUBINS_REPOSITORY",
        "FLASHINFER_CUDA_ARCH_LIST",
        "FLASHINFER_CXX_LAUNCHER",
        "FLASHINFER_JIT_VERBOSE",
        "FLASHINFER_LOGDEST",
        "FLASHINFER_LOGGING_LEVEL",
        "FLASHINFER_LOGLEVEL",
        "FLASHINFER_NVCC",
        "FLASHINFER_NVCC_LAUNCHER",
        "FLASHINFER_NVCC_THREADS",
        "LD_PRELOAD",
        "NVIDIA_TF32_OVERRIDE",
    }
)
"""How kernels are compiled, which of them libraries may choose, and what is logged; an engine has these as well. Said
in the record, left as they are."""

STAY_PREFIXES = ("CUDA_", "NCCL_", "GLOO_", "TORCH_")
TOLD = frozenset(
    {"CUDA_HOME", "CUDA_PATH", "CUDA_VERSION", "CUDA_VISIBLE_DEVICES", "NCCL_VERSION", "TORCH_CUDA_ARCH_LIST"}
)
"""Set by CUDA's own images and by whoever lends a GPU. What they say is measured (GPUs, nvcc, CUDA) or read by nobody
here (FlashInfer compiles for FLASHINFER_CUDA_ARCH_LIST), so they override nothing."""

OURS = frozenset({"FLASHINFER_WORKSPACE_BASE"})
"""Given by the run itself, so that one that the operator has set is of no effect and no bypass."""

TAKEN_PREFIXES = ("FLASHINFER_",)
TAKEN = frozenset(
    {
        "VLLM_DISABLE_FLASHINFER_AUTOTUNE_CACHE",
        "VLLM_FLASHINFER_AUTOTUNE_SKIP_OPS",
        "VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR",
        "VLLM_CACHE_ROOT",
        "VLLM_ALL2ALL_BACKEND",
    }
)
"""The operator's switches of the warm-up: each scenario sets its own."""

WORLD = frozenset({"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "GROUP_RANK"})
"""A launcher's; a worker gets its place in its order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """What workers get, and what the record says of it: `bypasses` were taken out, `overrides` stayed."""

    environ: Mapping[str, str] = field(repr=False)
    bypasses: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)


def clean(environ: Mapping[str, str]) -> Cleaned:
    bypasses = {name: redact_text(value) for name, value in environ.items() if _is_bypass(name)}
    overrides = {
        name: redact_text(value)
        for name, value in environ.items()
        if name in STAY or (name.startswith(STAY_PREFIXES) and name not in TOLD)
    }
    dropped = {*bypasses, *OURS, *WORLD}
    left = {name: value for name, value in environ.items() if name not in dropped and not _is_elastic(name)}
    return Cleaned(environ=left, bypasses=dict(sorted(bypasses.items())), overrides=dict(sorted(overrides.items())))


def _is_bypass(name: str) -> bool:
    return name in TAKEN or (name.startswith(TAKEN_PREFIXES) and name not in STAY | OURS)


def _is_elastic(name: str) -> bool:
    return name.startswith("TORCHELASTIC_")
