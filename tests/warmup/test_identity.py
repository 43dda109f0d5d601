"""What goes into a cache's path, and what stays out."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from tooling.capabilities.gating import Strategy
from tooling.warmup.errors import DisagreementError
from tooling.warmup.identity import IN_HASH, NOT_IN_HASH, Identity, cache_name, combine

BASE = Identity(
    version="0.6.13+cu130",
    arch="sm90",
    shapes=("Linear.weight [8, 8] torch.bfloat16",),
    dtype="bfloat16",
    parallel={"tensor_parallel_size": 2},
    ranks=2,
    quantization="fp8",
    max_tokens=8192,
    buckets={"max_cudagraph_capture_size": 512},
    metadata={"cuda_version": "13.0", "gpu": "NVIDIA H200"},
)
CHANGES: dict[str, Any] = {
    "shapes": ("Linear.weight [8, 9] torch.bfloat16",),
    "dtype": "float16",
    "parallel": {"tensor_parallel_size": 4},
    "ranks": 4,
    "quantization": "nvfp4",
    "max_tokens": 4096,
    "buckets": {"max_cudagraph_capture_size": 1024},
    "metadata": {"cuda_version": "13.1", "gpu": "NVIDIA H200"},
}


@pytest.mark.parametrize("name", IN_HASH)
def test_what_shapes_kernels_or_makes_a_file_foreign_changes_the_hash(name: str) -> None:
    changed = replace(BASE, **{name: CHANGES[name]})
    assert changed.hash != BASE.hash
    assert changed.folder.parent == BASE.folder.parent


@pytest.mark.parametrize("name", NOT_IN_HASH)
def test_what_stays_out_has_no_place_in_an_identity(name: str) -> None:
    assert name not in {field.name for field in fields(Identity)}


def test_every_field_is_either_in_the_hash_or_in_the_path() -> None:
    assert {field.name for field in fields(Identity)} == {*IN_HASH, "version", "arch"}


def test_version_and_architecture_can_be_read_off_the_path() -> None:
    assert BASE.folder.parts[:2] == ("0.6.13+cu130", "sm90")
    assert replace(BASE, version="0.7.0").folder.parts[0] == "0.7.0"
    assert "/" not in replace(BASE, arch="../x").folder.parts[1]


def test_order_does_not_matter() -> None:
    assert replace(BASE, metadata=dict(reversed(BASE.metadata.items()))).hash == BASE.hash


def test_pipeline_stages_share_one_identity() -> None:
    other = replace(BASE, shapes=("Head.weight [2, 2] torch.bfloat16",))
    assert combine([BASE, other]) == combine([other, BASE])
    assert combine([BASE, other]).shapes == tuple(sorted(BASE.shapes + other.shapes))


def test_ranks_of_different_environments_are_named() -> None:
    with pytest.raises(DisagreementError, match=r"ranks differ in metadata: .* on rank 0; .* on rank 1"):
        combine([BASE, replace(BASE, metadata=CHANGES["metadata"])])


def test_each_writer_has_a_path_of_its_own() -> None:
    names = [cache_name(Strategy.SYNCHRONIZED, rank=rank, ranks=4) for rank in range(4)]
    assert len(set(names)) == 4
    assert cache_name(Strategy.LEADER_BROADCAST, rank=0, ranks=4) == cache_name(
        Strategy.LEADER_BROADCAST, rank=3, ranks=4
    )
    assert cache_name(Strategy.ALL_RANKS, rank=0, ranks=1) == cache_name(Strategy.NONE, rank=0, ranks=1) == ""
