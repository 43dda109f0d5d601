"""Which operations are not tuned, and why. Looking at a model's modules is here; passing the set on is the tuner's."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tooling.warmup.settings import parse_skip_ops

SLOW_KERNEL = "FlashInferCuteDslNvFp4LinearKernel"
"""Tuning it compiles a kernel per candidate, minutes in all, while its fallback is an analytic heuristic already."""
SLOW_OPERATIONS = frozenset({"fp4_gemm"})
HOLDERS = ("quant_method", "scheme")
"""Attributes of an engine's layer that may hold a `kernel`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipping:
    """The operations to skip, where the wish came from (`operator`, `model`, `other rank`), and what to warn about."""

    operations: frozenset[str] = frozenset()
    source: str = "model"
    warnings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Sorted, for logs."""
        return ", ".join(sorted(self.operations)) or "nothing"


def flashinfer_autotune_skip_ops(modules: Iterable[object], wish: Collection[str] | None = None) -> Skipping:
    """The operations to skip: the operator's wish, or what the model's modules ask for if there is none (None).

    A wish that is one text is a comma list, as in the environment variable.
    """
    operations = parse_skip_ops(wish) if isinstance(wish, str) else wish
    if operations is not None:
        return Skipping(operations=frozenset(operations), source="operator")
    if any(has_slow_kernel(module) for module in modules):
        return Skipping(operations=SLOW_OPERATIONS, source="model")
    return Skipping()


def has_slow_kernel(module: object) -> bool:
    """Whether `quant_method.kernel` or `scheme.kernel` is the slow one, by class name anywhere in its bases."""
    for holder in HOLDERS:
        kernel = _attribute(_attribute(module, holder), "kernel")
        if kernel is not None and any(base.__name__ == SLOW_KERNEL for base in type(kernel).__mro__):
            return True
    return False


def _attribute(owner: object, name: str) -> Any:
    """The attribute, or None: a property of an engine's layer may raise anything before its weights are there."""
    try:
        return getattr(owner, name, None)
    except Exception:  # noqa: BLE001  # whatever it raises, an engine must be able to start
        return None


def fit(operations: Collection[str], *, supported: bool, known: Collection[str] | None, release: str) -> Skipping:
    """What of that set goes to a release: nothing if it takes no `skip_ops`, and a warning for each name it lacks.

    `known` None: the release's operations are not known, no name is judged. A known name may be a pattern (`moe_*`).
    """
    if operations and not supported:
        names = ", ".join(sorted(operations))
        return Skipping(warnings=(f"FlashInfer {release} takes no skip_ops; {names} will be tuned",))
    strangers = sorted(name for name in set(operations) if known is not None and not _is_known(name, known))
    warnings = tuple(
        f"{name!r} is no operation that FlashInfer {release} tunes; skipping it does nothing" for name in strangers
    )
    return Skipping(operations=frozenset(operations), warnings=warnings)


def _is_known(name: str, known: Collection[str]) -> bool:
    return name in known or any(fnmatchcase(name, pattern) for pattern in known)
