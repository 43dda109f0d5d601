"""Orders, workloads, the cleaned environment, and what a tree pins: values only."""

from __future__ import annotations

import json

import pytest

from tooling.pins.requirements import parse_requirements
from tooling.smoke.environment import clean
from tooling.smoke.orders import Order, choose_workload, count_sizes, scenario_environment
from tooling.smoke.pinned import absent_companions, find_pinned
from tooling.smoke.scenarios import FORCED, SCENARIOS, SKIPPED
from tooling.warmup.reference.operations import OPERATIONS


def test_an_order_survives_json() -> None:
    order = Order(
        scenario="two-ranks",
        temperature="cold",
        rank=1,
        ranks=2,
        answer="/a",
        cache_root="/c",
        labels=("host_bf16",),
        count_at=(3, 4),
        rehearsal={"module": "m", "options": {"x": 1}},
    )
    assert Order.from_json(json.loads(json.dumps(order.as_json()))) == order


@pytest.mark.parametrize("name", ["one-rank", "two-ranks", "force-persistent"])
def test_the_whole_workload_runs_where_keys_can_collide(name: str) -> None:
    scenario = FORCED if name == "force-persistent" else SCENARIOS[name]
    assert (choose_workload(scenario, 64).labels, choose_workload(scenario, 64).max_tokens) == ((), 64)


@pytest.mark.parametrize("name", ["skip-given", "skip-empty"])
def test_a_skipped_operation_is_in_the_workload_beside_one_that_is_tuned(name: str) -> None:
    operations = {OPERATIONS[label].name for label in choose_workload(SCENARIOS[name], 64).labels}
    assert SKIPPED in operations
    assert len(operations) > 1


@pytest.mark.parametrize("most", [4, 16, 64, 100])
def test_lookups_are_counted_between_buckets_and_on_one(most: int) -> None:
    sizes = count_sizes(most)
    assert sizes[-1] == most
    assert any(size & (size - 1) for size in sizes)
    assert any(not size & (size - 1) for size in sizes)


def test_skipping_nothing_is_not_the_same_as_not_saying() -> None:
    name = "VLLM_FLASHINFER_AUTOTUNE_SKIP_OPS"
    assert scenario_environment(SCENARIOS["skip-empty"]) == {name: ""}
    assert scenario_environment(SCENARIOS["skip-given"]) == {name: SKIPPED}
    assert scenario_environment(SCENARIOS["skip-automatic"]) == {}
    assert scenario_environment(SCENARIOS["cache-off"]) == {"VLLM_DISABLE_FLASHINFER_AUTOTUNE_CACHE": "1"}


@pytest.mark.parametrize(
    "name",
    [
        "FLASHINFER_DISABLE_VERSION_CHECK",
        "FLASHINFER_AUTOTUNER_LOAD_FROM_FILE",
        "FLASHINFER_TACTICS_BLOCKLIST",
        "FLASHINFER_SOMETHING_THAT_COMES_LATER",
        "VLLM_DISABLE_FLASHINFER_AUTOTUNE_CACHE",
        "VLLM_FLASHINFER_AUTOTUNE_SKIP_OPS",
        "VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR",
    ],
)
def test_a_bypass_is_taken_out_and_reported(name: str) -> None:
    cleaned = clean({name: "1", "PATH": "/bin"})
    assert name not in cleaned.environ
    assert dict(cleaned.bypasses) == {name: "1"}
    assert cleaned.environ["PATH"] == "/bin"


@pytest.mark.parametrize(
    "name",
    [
        "FLASHINFER_CUDA_ARCH_LIST",
        "FLASHINFER_NVCC",
        "CUDA_LAUNCH_BLOCKING",
        "CUBLAS_WORKSPACE_CONFIG",
        "NVIDIA_TF32_OVERRIDE",
        "LD_PRELOAD",
    ],
)
def test_what_says_how_kernels_are_compiled_or_chosen_stays_and_is_reported(name: str) -> None:
    cleaned = clean({name: "x"})
    assert (cleaned.environ[name], dict(cleaned.overrides), dict(cleaned.bypasses)) == ("x", {name: "x"}, {})


@pytest.mark.parametrize("name", ["CUDA_HOME", "CUDA_VERSION", "CUDA_VISIBLE_DEVICES", "NCCL_VERSION"])
def test_what_an_image_or_a_lender_of_gpus_sets_stays_and_overrides_nothing(name: str) -> None:
    cleaned = clean({name: "x"})
    assert (cleaned.environ[name], dict(cleaned.overrides), dict(cleaned.bypasses)) == ("x", {}, {})


def test_a_secret_in_an_address_is_not_recorded() -> None:
    cleaned = clean({"FLASHINFER_CUBINS_REPOSITORY": "https://me:hush@cubins.test/x"})
    assert "hush" not in cleaned.overrides["FLASHINFER_CUBINS_REPOSITORY"]
    assert "hush" in cleaned.environ["FLASHINFER_CUBINS_REPOSITORY"]


def test_a_launchers_place_does_not_reach_workers() -> None:
    assert clean({"RANK": "0", "TORCHELASTIC_RUN_ID": "x", "MASTER_PORT": "1"}).environ == {}


def test_versions_json_has_the_last_word_on_what_is_pinned() -> None:
    lines = parse_requirements("flashinfer-python==0.6.12\ntorch==2.11.0\napache-tvm-ffi==0.1.9\nnumpy>=1\n")
    pinned = find_pinned({"FLASHINFER_VERSION": "0.6.13"}, lines)
    assert pinned == {"apache-tvm-ffi": "0.1.9", "flashinfer-python": "0.6.13", "torch": "2.11.0"}


def test_an_absent_companion_is_not_covered_and_an_absent_flashinfer_is_no_companion() -> None:
    pinned = {"apache-tvm-ffi": "0.1.9", "nvidia-cutlass-dsl": "4.5.2", "flashinfer-python": "0.6.13"}
    assert absent_companions(pinned, {"apache-tvm-ffi": "0.1.9"}) == ("nvidia-cutlass-dsl",)
