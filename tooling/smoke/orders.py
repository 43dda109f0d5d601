"""What a worker is told to do, one rank of one run: a value and its JSON. Starting workers is `edges.smoke`'s."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from tooling.smoke.scenarios import SKIPPED, Scenario

MAX_TOKENS = 64
"""Seven buckets: what the reference operations tune in 11 s on an H200."""
FEW_TOKENS = 16
"""Five buckets, where the whole workload would show nothing more."""
WHOLE = frozenset({"one-rank", "two-ranks", "force-persistent"})
"""Scenarios with every reference operation; keys collide only where bf16 and fp16 come out of one shape."""
QUICK = ("fp8_cublas_bf16", "fp8_cublas_fp16")
WITH_SKIPPED = ("bf16_cudnn_bf16", "fp8_cublas_bf16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is tuned: labels of the reference model (empty: those of this GPU) and the largest token count."""

    labels: tuple[str, ...] = ()
    max_tokens: int = MAX_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """How tests run the same orchestration without a GPU: `module.prepare(order, channel)` is called in each worker.

    No flag leads here, and a record that was made so has no GPU, which never passes.
    """

    module: str
    labels: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One rank of one run.

    `gpu`: the device's number, null for none. `transport`: the default group's backend; `meeting`: torch.distributed's
    init method. `table`: a file with the row to use, "" for the shipped one. `keep`: where the bytes go that FlashInfer
    would save, "" for nowhere. `rehearsal`: as `Rehearsal`, {} outside of tests.
    """

    scenario: str
    temperature: str
    rank: int
    ranks: int
    answer: str
    cache_root: str
    backend: str | None = None
    gpu: int | None = None
    transport: str = "gloo"
    meeting: str = ""
    table: str = ""
    labels: tuple[str, ...] = ()
    max_tokens: int = MAX_TOKENS
    count_at: tuple[int, ...] = ()
    forced: str = ""
    slow_kernel: bool = False
    keep: str = ""
    total_s: float = 600.0
    cache_off: bool = False
    rehearsal: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Order:
        values = {item.name: body[item.name] for item in fields(Order)}
        return Order(**{**values, "labels": tuple(body["labels"]), "count_at": tuple(body["count_at"])})


def choose_workload(scenario: Scenario, max_tokens: int) -> Workload:
    """The whole of the reference operations where that shows something, else as little as shows the same."""
    if scenario.name in WHOLE:
        return Workload(max_tokens=max_tokens)
    labels = WITH_SKIPPED if scenario.skip in {"given", "empty"} else QUICK
    return Workload(labels=labels, max_tokens=min(max_tokens, FEW_TOKENS))


def count_sizes(max_tokens: int) -> tuple[int, ...]:
    """Token counts at which look-ups are counted: between two buckets, and on one. Buckets are powers of two."""
    bucket = 1 << (max(max_tokens // 4, 1).bit_length() - 1)
    sizes = (3, bucket, max_tokens * 3 // 8, max_tokens * 3 // 4, max_tokens)
    return tuple(sorted({size for size in sizes if 0 < size <= max_tokens}))


def scenario_environment(scenario: Scenario) -> dict[str, str]:
    """The operator's variables that make the scenario."""
    variables = {}
    if scenario.skip in {"given", "empty"}:
        variables["VLLM_FLASHINFER_AUTOTUNE_SKIP_OPS"] = SKIPPED if scenario.skip == "given" else ""
    if scenario.cache_off:
        variables["VLLM_DISABLE_FLASHINFER_AUTOTUNE_CACHE"] = "1"
    return variables
