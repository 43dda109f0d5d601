"""The adapter in a real vLLM: configuration, loader, model, tensor parallel ranks and model runner are vLLM's own.

On the CPU, with FlashInfer's real tuner and nothing of it replaced but the timing of a kernel (`vllm_process`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.warmup.environments import Ran, Release, vllm_folder

pytestmark = [pytest.mark.online, pytest.mark.server, pytest.mark.timeout(900)]
MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 512,
}
TOKENS = 24
BUCKETS = (1, 2, 4, 8, 16, TOKENS)
"""FlashInfer's own for that many tokens, and vLLM's: it adds the largest count itself."""
SHAPES = 4
"""The linear layers of a block: QKV, output, gate and up, down; the second block has the same."""
CALLS = 2 * SHAPES
LIMIT_S = 300.0


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """One vLLM with the FlashInfer that its wheel pins, imported once for all ranks."""
    folder = vllm_folder()
    metadata = next(folder.glob("vllm-*.dist-info/METADATA")).read_text()
    pinned = re.search(r"^Requires-Dist: flashinfer-python==(\S+)$", metadata, re.MULTILINE)
    assert pinned
    release = Release(pinned[1], tmp_path_factory.mktemp("vllm") / "home", "vllm_process.py", (folder,))
    yield release
    release.close()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What an engine is started with: a small model of random weights."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "config.json").write_text(json.dumps(MODEL))
    return {"model": str(folder), "max_model_len": 64, "max_num_batched_tokens": TOKENS, "max_num_seqs": 4}


def run(vllm: Release, cache: Path, engine: dict[str, object], **spec: object) -> Ran:
    return vllm.run(cache, limit_s=LIMIT_S, engine=engine, **spec)


@pytest.fixture(scope="module")
def started(
    vllm: Release, tmp_path_factory: pytest.TempPathFactory, engine: dict[str, object]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The records of a first start of one rank and of a second one in a fresh process."""
    cache = tmp_path_factory.mktemp("cache")
    return run(vllm, cache, engine).record, run(vllm, cache, engine).record


def test_one_rank_is_tuned_and_a_fresh_process_takes_what_it_left(
    started: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    cold, warm = started
    assert (cold["strategy"], cold["warm"], cold["tuned"]) == ("managed", False, SHAPES * len(BUCKETS))
    assert (warm["warm"], warm["tuned"], warm["loaded"]) == (True, 0, SHAPES * len(BUCKETS))
    assert warm["file"] == cold["file"]
    for record in started:
        counts = record["ranks"][0]["passes"]["check 2"]["host_gemm"]
        assert (counts["calls"], counts["hits"], counts["misses"]) == (CALLS, CALLS, 0)


def test_every_pass_is_vllms_own_at_the_largest_count(started: tuple[dict[str, Any], dict[str, Any]]) -> None:
    for record in started:
        assert len(record["ran"]) == len(record["ranks"][0]["passes"])
        assert all((one["num_tokens"], one["rows"]) == (TOKENS, TOKENS) for one in record["ran"])
        assert all(one["skip_eplb"] is True and one["is_profile"] is True for one in record["ran"])


def test_facts_come_from_vllms_configuration_and_layers(started: tuple[dict[str, Any], dict[str, Any]]) -> None:
    facts = started[0]["facts"]
    assert (facts["max_tokens"], facts["dtype"], facts["buckets"]["vllm_buckets"]) == (TOKENS, "torch.float32", 1)
    assert facts["parallel"]["tensor_parallel_size"] == 1
    assert "QKVParallelLinear.weight [128, 64] torch.float32" in facts["shapes"]


def test_tensor_parallel_ranks_tune_together_and_start_warm(
    vllm: Release, tmp_path: Path, engine: dict[str, object]
) -> None:
    cold, warm = (run(vllm, tmp_path, engine, ranks=2).record for _ in range(2))
    assert (cold["strategy"], cold["difference"]) == ("synchronized", "")
    assert cold["facts"]["parallel"]["tensor_parallel_size"] == 2
    assert [rank["tuned"] for rank in cold["ranks"]] == [(SHAPES - 1) * len(BUCKETS)] * 2, "two of the shapes are one"
    assert (warm["warm"], warm["tuned"]) == (True, 0)
    for rank in warm["ranks"]:
        assert rank["passes"]["check 2"]["host_gemm"]["hits"] == CALLS


@pytest.mark.parametrize("ranks", [1, 2], ids=["one rank", "two tensor parallel ranks"])
def test_the_same_is_tuned_to_the_same_tactics_as_by_vllms_own_autotune(
    vllm: Release, tmp_path: Path, engine: dict[str, object], ranks: int
) -> None:
    ours = run(vllm, tmp_path / "ours", engine, ranks=ranks)
    theirs = run(vllm, tmp_path / "theirs", engine, ranks=ranks, own=True)
    for mine, own in zip(ours.results, theirs.results, strict=True):
        assert len(own["record"]["entries"]) >= (SHAPES - 1) * len(BUCKETS)
        assert mine["record"]["entries"] == own["record"]["entries"]


def test_deepep_in_vllms_configuration_keeps_no_cache(vllm: Release, tmp_path: Path, engine: dict[str, object]) -> None:
    backend = {"all2all_backend": "deepep_low_latency"}
    cold, warm = (run(vllm, tmp_path, engine | backend, ranks=2).record for _ in range(2))
    assert cold["facts"]["backend"] == "deepep_low_latency"
    assert (cold["strategy"], warm["strategy"]) == ("all_ranks", "all_ranks")
    assert cold["tuned"] == warm["tuned"] > 0
    assert not list(tmp_path.rglob("*.json"))


def test_a_machine_without_a_gpu_starts_untuned(vllm: Release, tmp_path: Path, engine: dict[str, object]) -> None:
    record = run(vllm, tmp_path, engine, gpu=False).record
    assert (record["strategy"], record["tuned"]) == ("none", 0)
    assert record["why"] == "there is no GPU"


def test_an_operator_who_switched_autotune_off_in_vllm_gets_none(
    vllm: Release, tmp_path: Path, engine: dict[str, object]
) -> None:
    off = {"kernel_config": {"enable_flashinfer_autotune": False}}
    assert run(vllm, tmp_path, engine | off, gpu=False).record == {"none": True}
