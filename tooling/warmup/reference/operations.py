"""The operations that the reference model can hold: how each is called, and what it should give in float32.

Imports torch and FlashInfer when a layer is made. `HOST` needs no GPU: see `host`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol


class Layer(Protocol):
    """One layer: its weight is made with it; `run` and `exact` take rows of `in_features` in bfloat16 and give rows."""

    weight: Any

    def run(self, rows: Any) -> Any: ...

    def exact(self, rows: Any) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Columns in and out of a layer, and the seed of its weight."""

    in_features: int = 1024
    out_features: int = 1024
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation by label: FlashInfer's name for it in `skip_ops`, the type that comes out, and when it is asked for.

    `blackwell`: needs compute capability 10 or more. `on_request`: never part of the default.
    """

    label: str
    name: str
    out: str
    blackwell: bool = False
    on_request: bool = False


OPERATIONS = {
    item.label: item
    for item in (
        Operation(label="bf16_cudnn_bf16", name="bf16_gemm", out="bfloat16"),
        Operation(label="bf16_cudnn_fp16", name="bf16_gemm", out="float16"),
        Operation(label="fp8_cublas_bf16", name="fp8_gemm", out="bfloat16"),
        Operation(label="fp8_cublas_fp16", name="fp8_gemm", out="float16"),
        Operation(label="fp4_bf16", name="fp4_gemm", out="bfloat16", blackwell=True),
        Operation(label="moe_bf16", name="trtllm::fused_moe::gemm1", out="bfloat16", on_request=True),
        Operation(label="host_bf16", name="host_gemm", out="bfloat16", on_request=True),
        Operation(label="host_fp16", name="host_gemm", out="float16", on_request=True),
    )
}
"""Each GEMM comes with bf16 and fp16 output at one shape: keys that lack the output's type collide only then."""


def default_labels(capability: tuple[int, int]) -> tuple[str, ...]:
    """What a model holds by default on a GPU of that compute capability."""
    return tuple(
        label
        for label, item in OPERATIONS.items()
        if not item.on_request and (capability >= (10, 0) or not item.blackwell)
    )


def make_layer(label: str, shape: Shape, device: str) -> Layer:
    """The layer of that label. Raises KeyError for an unknown one."""
    item = OPERATIONS[label]
    kinds = {"bf16_gemm": Bf16Layer, "fp8_gemm": Fp8Layer, "fp4_gemm": Fp4Layer}
    if item.name == "host_gemm":
        return import_module("tooling.warmup.reference.host").HostLayer(item, shape)  # type: ignore[no-any-return]
    kind: Any = kinds.get(item.name, MoeLayer)
    return kind(item, shape, device)  # type: ignore[no-any-return]


class Bf16Layer:
    """bf16 by bf16 through cuDNN."""

    def __init__(self, item: Operation, shape: Shape, device: str) -> None:
        self.weight = make_weight(shape, device)
        self._out = getattr(import_module("torch"), item.out)
        self._gemm = import_module("flashinfer").mm_bf16

    def run(self, rows: Any) -> Any:
        return self._gemm(rows, self.weight.t(), out_dtype=self._out, backend="cudnn")

    def exact(self, rows: Any) -> Any:
        return rows.float() @ self.weight.float().t()


class Fp8Layer:
    """fp8 (e4m3) by fp8 through cuBLAS; `exact` is over the values after rounding to fp8, so only the kernel errs."""

    def __init__(self, item: Operation, shape: Shape, device: str) -> None:
        torch = import_module("torch")
        self._fp8 = torch.float8_e4m3fn
        self._out = getattr(torch, item.out)
        self._gemm = import_module("flashinfer").bmm_fp8
        self.weight = make_weight(shape, device).to(self._fp8)
        self._scale = torch.ones((), device=device, dtype=torch.float32)

    def run(self, rows: Any) -> Any:
        small = rows.to(self._fp8).unsqueeze(0)
        columns = self.weight.unsqueeze(0).transpose(-2, -1)
        return self._gemm(small, columns, self._scale, self._scale, self._out, backend="cublas").squeeze(0)

    def exact(self, rows: Any) -> Any:
        return rows.to(self._fp8).float() @ self.weight.float().t()


class Fp4Layer:
    """NVFP4 by NVFP4 through FlashInfer's own choice of backend, on Blackwell."""

    def __init__(self, item: Operation, shape: Shape, device: str) -> None:
        self._flashinfer = import_module("flashinfer")
        self._out = getattr(import_module("torch"), item.out)
        self.weight = make_weight(shape, device)
        self._global = _global_scale(self.weight)
        self._small, self._scales = self._quantize(self.weight, self._global)

    def run(self, rows: Any) -> Any:
        scale = _global_scale(rows)
        small, scales = self._quantize(rows, scale)
        alpha = 1.0 / (scale * self._global)
        return self._flashinfer.mm_fp4(small, self._small.T, scales, self._scales.T, alpha, self._out)

    def exact(self, rows: Any) -> Any:
        return rows.float() @ self.weight.float().t()

    def _quantize(self, values: Any, scale: Any) -> Any:
        layout = self._flashinfer.SfLayout.layout_128x4
        return self._flashinfer.nvfp4_quantize(values, scale, sfLayout=layout, do_shuffle=False)


class MoeLayer:
    """Four experts, two for each token, through CUTLASS. Compiling it takes longer than all else: on request only."""

    EXPERTS, TOP = 4, 2

    def __init__(self, item: Operation, shape: Shape, device: str) -> None:
        torch = import_module("torch")
        self._torch, self._out = torch, getattr(torch, item.out)
        self._moe = import_module("flashinfer.fused_moe").cutlass_fused_moe
        up = [
            make_weight(Shape(in_features=shape.in_features, out_features=2 * shape.out_features, seed=s), device)
            for s in range(4)
        ]
        down = [
            make_weight(Shape(in_features=shape.out_features, out_features=shape.in_features, seed=s), device)
            for s in range(4)
        ]
        self.weight, self._down = torch.stack(up), torch.stack(down)

    def run(self, rows: Any) -> Any:
        experts, scales = self._route(rows)
        result = self._moe(rows, experts, scales, self.weight, self._down, self._out, quant_scales=[])
        return result[0] if isinstance(result, list | tuple) else result

    def exact(self, rows: Any) -> Any:
        experts, scales = self._route(rows)
        result = self._torch.zeros(rows.shape[0], self._down.shape[1], device=rows.device)
        for column in range(self.TOP):
            for expert in range(self.EXPERTS):
                chosen = experts[:, column] == expert
                linear, gate = (rows[chosen].float() @ self.weight[expert].float().t()).chunk(2, dim=-1)
                inner = self._torch.nn.functional.silu(gate) * linear
                result[chosen] += scales[chosen, column, None] * (inner @ self._down[expert].float().t())
        return result

    def _route(self, rows: Any) -> Any:
        numbers = self._torch.arange(rows.shape[0], device=rows.device)
        experts = self._torch.stack([numbers % self.EXPERTS, (numbers + 1) % self.EXPERTS], dim=1).to(self._torch.int32)
        return experts, self._torch.full(experts.shape, 1 / self.TOP, device=rows.device, dtype=self._torch.float32)


def make_weight(shape: Shape, device: str) -> Any:
    """Rows of `out_features`, small enough that fp8 and fp16 hold every product's sum; the same on every machine."""
    torch = import_module("torch")
    generator = torch.Generator().manual_seed(shape.seed)
    values = torch.randn(shape.out_features, shape.in_features, generator=generator) / shape.in_features**0.5
    return values.to(device=device, dtype=torch.bfloat16)


def _global_scale(values: Any) -> Any:
    """448 · 6 over the largest value: e4m3's and e2m1's largest numbers, as NVFP4's two levels of scales need."""
    return (448 * 6) / values.float().abs().nan_to_num().max()
