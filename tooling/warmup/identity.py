"""What a cache's path says: which facts go into it, and which stay out on purpose. Facts are gathered elsewhere.

<root>/<FlashInfer version>/<architecture>/<hash>/autotune_configs.json      leader_broadcast
<root>/<FlashInfer version>/<architecture>/<hash>/rank-0-of-2.json           synchronized
<root>/<FlashInfer version>/<architecture>/<hash>/managed/                   managed: FlashInfer's own layout
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from types import MappingProxyType

from tooling.capabilities.gating import Strategy
from tooling.warmup.errors import DisagreementError

IN_HASH: Mapping[str, str] = MappingProxyType(
    {
        "shapes": "class, name, shape and type of every kind of parameter: they are what kernels are tuned for",
        "dtype": "the type the model computes in",
        "parallel": "tensor, pipeline, data and expert parallel sizes: they cut the shapes",
        "ranks": "the number of ranks that meet",
        "quantization": "the scheme picks the operation",
        "max_tokens": "the largest token count: FlashInfer's buckets follow from it",
        "buckets": "what else shapes token buckets: the largest captured graph, microbatches, sequence parallelism",
        "metadata": "every field by which FlashInfer calls a file foreign: an upgrade gets a path of its own",
    }
)
"""What the hash is over, and why."""

NOT_IN_HASH: Mapping[str, str] = MappingProxyType(
    {
        "skip_ops": "entries are per operation; skipping one leaves the others as they are",
        "log_level": "changes no kernel",
        "engine_commit": "each pull would tune anew",
        "host_name": "a fleet shares the cache; the GPU is in the metadata",
        "all2all_backend": "decides the strategy, not the kernels",
        "replica": "data parallel replicas tune for the same shapes, and share one path under a lock",
    }
)
"""What stays out on purpose, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The facts that decide where a cache lies. `shapes` is sorted, each once; `metadata` is FlashInfer's own."""

    version: str
    arch: str
    shapes: tuple[str, ...] = ()
    dtype: str = ""
    parallel: Mapping[str, int] = field(default_factory=dict)
    ranks: int = 1
    quantization: str = ""
    max_tokens: int = 0
    buckets: Mapping[str, int] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """What the hash is over, and the two parts that can be read off the path."""
        return {
            "version": self.version,
            "arch": self.arch,
            "shapes": list(self.shapes),
            "dtype": self.dtype,
            "parallel": dict(sorted(self.parallel.items())),
            "ranks": self.ranks,
            "quantization": self.quantization,
            "max_tokens": self.max_tokens,
            "buckets": dict(sorted(self.buckets.items())),
            "metadata": dict(sorted(self.metadata.items())),
        }

    @property
    def hash(self) -> str:
        """Twenty hex digits of a sha256 over everything in the identity."""
        text = json.dumps(self.as_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    @property
    def folder(self) -> PurePosixPath:
        """`version/arch/hash`, relative to the cache root."""
        return PurePosixPath(_part(self.version), _part(self.arch), self.hash)


def combine(identities: Sequence[Identity]) -> Identity:
    """The one identity of all ranks: pipeline stages hold other shapes, all else must be alike.

    Raises:
        DisagreementError: a field other than the shapes differs.
    """
    first = identities[0]
    for name in ("version", "arch", "dtype", "parallel", "ranks", "quantization", "max_tokens", "buckets", "metadata"):
        values = {rank: json.dumps(identity.as_json()[name]) for rank, identity in enumerate(identities)}
        if len(set(values.values())) > 1:
            raise DisagreementError(name, values)
    shapes = sorted({shape for identity in identities for shape in identity.shapes})
    return replace(first, shapes=tuple(shapes))


def cache_name(strategy: Strategy, *, rank: int, ranks: int) -> str:
    """The file or folder below the identity's folder that this rank reads, or "" where the strategy keeps none.

    Each name has one writer: the leader, a rank, or FlashInfer's own store in the one process.
    """
    match strategy:
        case Strategy.LEADER_BROADCAST:
            return "autotune_configs.json"
        case Strategy.SYNCHRONIZED:
            return f"rank-{rank}-of-{ranks}.json"
        case Strategy.MANAGED:
            return "managed"
        case Strategy.NONE | Strategy.ALL_RANKS:
            return ""


def _part(text: str) -> str:
    """The text as one path component."""
    return re.sub(r"[^A-Za-z0-9.+_-]", "_", text) or "unknown"
