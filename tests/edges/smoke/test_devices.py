"""Each way to have no GPU is told apart, and devices that are not there are refused."""

from __future__ import annotations

from typing import Any

import pytest

from tooling.edges.smoke.devices import check_gpus, choose_devices
from tooling.errors import EdgeError, InputError

SOUND: dict[str, Any] = {
    "torch": "",
    "cuda": "13.0",
    "available": True,
    "gpus": ["NVIDIA H200"],
    "archs": ["sm90"],
    "trouble": "",
    "packages": {"flashinfer-python": "0.6.13"},
}
OLD = "The NVIDIA driver on your system is too old (found version 12020). Please update your GPU driver"
TROUBLES = {
    "NO_TORCH": {"torch": "ModuleNotFoundError: No module named 'torch'"},
    "DRIVER_TOO_OLD": {"available": False, "gpus": [], "trouble": OLD},
    "NO_GPU": {"available": False, "gpus": [], "trouble": "Found no NVIDIA driver on your system."},
    "CUDA_BROKEN": {"trouble": "CUDA error: unspecified launch failure"},
    "NO_FLASHINFER": {"packages": {"flashinfer-python": None}},
}


def test_a_machine_with_a_gpu_is_accepted() -> None:
    check_gpus(SOUND)


@pytest.mark.parametrize("reason", TROUBLES)
def test_each_trouble_has_a_word_of_its_own(reason: str) -> None:
    with pytest.raises(EdgeError) as caught:
        check_gpus({**SOUND, **TROUBLES[reason]})
    assert caught.value.reason == reason


def test_a_torch_without_cuda_sees_no_gpu() -> None:
    with pytest.raises(EdgeError, match="made without CUDA") as caught:
        check_gpus(
            {**SOUND, "cuda": None, "available": False, "gpus": [], "trouble": "Torch not compiled with CUDA enabled"}
        )
    assert caught.value.reason == "NO_GPU"


def test_available_and_no_device_is_no_gpu() -> None:
    with pytest.raises(EdgeError, match="available and counts no device") as caught:
        check_gpus({**SOUND, "gpus": []})
    assert caught.value.reason == "NO_GPU"


def test_all_gpus_are_used_unless_some_are_named() -> None:
    machine = {**SOUND, "gpus": ["a", "b", "c"], "archs": ["sm90", "sm90", "sm90"]}
    assert choose_devices([], machine, ranks=2) == (0, 1, 2)
    assert choose_devices([2, 0, 2], machine, ranks=2) == (2, 0)


@pytest.mark.parametrize("wanted", [[1], [0, 7], [-1]])
def test_a_device_that_is_not_there_is_refused(wanted: list[int]) -> None:
    with pytest.raises(InputError) as caught:
        choose_devices(wanted, SOUND, ranks=1)
    assert caught.value.reason == "UNKNOWN_DEVICE"


def test_two_ranks_share_a_gpu_and_three_do_not() -> None:
    assert choose_devices([], SOUND, ranks=2) == (0,)
    with pytest.raises(InputError, match="larger than the 1 GPU to use") as caught:
        choose_devices([], SOUND, ranks=3)
    assert caught.value.reason == "WORLD_TOO_LARGE"


def test_gpus_of_two_architectures_are_no_world_and_those_of_one_are_chosen_among_them() -> None:
    machine = {**SOUND, "gpus": ["NVIDIA H200", "NVIDIA B200"], "archs": ["sm90", "sm100"]}
    with pytest.raises(InputError, match="0 is sm90, 1 is sm100") as caught:
        choose_devices([], machine, ranks=2)
    assert caught.value.reason == "MIXED_GPUS"
    assert choose_devices([1], machine, ranks=2) == (1,)
