"""The reference runner: a model of FlashInfer layers behind the protocol of an engine's model runner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from tooling.warmup.reference.operations import Shape, default_labels, make_layer

MAX_TOKENS = 64
"""Seven buckets; two operations in two types tune within 30 s beside compiling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """How far an operation is from float32: the largest difference, over the largest exact value; `finite` or not."""

    label: str
    largest: float
    finite: bool

    def as_json(self) -> dict[str, object]:
        return {"label": self.label, "largest": self.largest, "finite": self.finite}


class ReferenceRunner:
    """Satisfies `tooling.warmup.runner.Runner`.

    `labels` are keys of OPERATIONS, by default those for this GPU. With more than one rank each layer's output is
    summed over all ranks, as a tensor-parallel layer does: a rank that sits out hangs the others. `before_layer` is
    called with each label, for tests that inject faults; `summed` False leaves the sum out.
    """

    def __init__(
        self,
        *,
        labels: Sequence[str] | None = None,
        max_tokens: int = MAX_TOKENS,
        shape: Shape | None = None,
        all2all_backend: str | None = None,
        device: str | None = None,
        before_layer: Callable[[str], None] | None = None,
        summed: bool = True,
    ) -> None:
        torch = import_module("torch")
        self._torch, self._dist = torch, import_module("torch.distributed")
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        if labels is None:
            labels = default_labels(torch.cuda.get_device_capability() if self.device == "cuda" else (0, 0))
        self.shape = shape or Shape()
        self.layers = {label: make_layer(label, self.shape, self.device) for label in labels}
        self._summed = summed
        self._before_layer = before_layer or (lambda _: None)
        ranks = self._dist.get_world_size() if self._several() else 1
        self.scheduler_config = SimpleNamespace(max_num_batched_tokens=max_tokens)
        self.vllm_config = SimpleNamespace(
            parallel_config=SimpleNamespace(all2all_backend=all2all_backend, tensor_parallel_size=ranks),
            model_config=SimpleNamespace(dtype="bfloat16", quantization=None),
        )
        self._model = _make_model(torch, self.layers)

    def get_model(self) -> Any:
        return self._model

    def _dummy_run(self, *, num_tokens: int, skip_eplb: bool = True, is_profile: bool = True) -> dict[str, Any]:  # noqa: ARG002  # an engine's signature
        """Every layer on the same rows, summed over the ranks; results by label."""
        rows = self.rows(num_tokens)
        return {label: self._sum(self._call(label, rows)) for label in self.layers}

    def rows(self, num_tokens: int) -> Any:
        """The input of a pass of that size, the same everywhere."""
        generator = self._torch.Generator().manual_seed(num_tokens)
        values = self._torch.randn(num_tokens, self.shape.in_features, generator=generator)
        return values.to(device=self.device, dtype=self._torch.bfloat16)

    def errors(self, num_tokens: int) -> tuple[Error, ...]:
        """Each operation against float32 at that size, on this rank alone."""
        rows = self.rows(num_tokens)
        with self._torch.inference_mode():
            return tuple(self._error(label, rows) for label in self.layers)

    def results(self, num_tokens: int) -> dict[str, Any]:
        """Each operation's output at that size, on this rank alone."""
        with self._torch.inference_mode():
            return {label: layer.run(self.rows(num_tokens)) for label, layer in self.layers.items()}

    def _call(self, label: str, rows: Any) -> Any:
        self._before_layer(label)
        return self.layers[label].run(rows)

    def _sum(self, rows: Any) -> Any:
        """In float32: gloo sums neither half type on every machine."""
        if not (self._summed and self._several()):
            return rows
        summed = rows.float()
        self._dist.all_reduce(summed)
        return summed.to(rows.dtype)

    def _several(self) -> bool:
        return bool(self._dist.is_available() and self._dist.is_initialized() and self._dist.get_world_size() > 1)

    def _error(self, label: str, rows: Any) -> Error:
        layer = self.layers[label]
        exact, found = layer.exact(rows), layer.run(rows).float()
        largest = float((found - exact).abs().max() / exact.abs().max())
        return Error(label=label, largest=largest, finite=bool(self._torch.isfinite(found).all()))


def _make_model(torch: Any, layers: dict[str, Any]) -> Any:
    """A module of modules, one for each layer, named as an engine names its own."""
    model = torch.nn.Module()
    for label, layer in layers.items():
        linear = torch.nn.Module()
        linear.register_parameter("weight", torch.nn.Parameter(layer.weight, requires_grad=False))
        model.add_module(label, linear)
    return model
