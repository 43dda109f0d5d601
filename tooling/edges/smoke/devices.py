"""Which GPUs a run may use, from what the machine said of itself; each way to have none is told apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tooling.errors import EdgeError, InputError

TOO_OLD = re.compile(
    r"driver on your system is too old|driver version is insufficient|InsufficientDriver", re.IGNORECASE
)
NO_DRIVER = re.compile(r"Found no NVIDIA driver|no CUDA-capable device|No CUDA GPUs are available", re.IGNORECASE)


def check_gpus(machine: Mapping[str, Any]) -> None:
    """Nothing, if torch and FlashInfer work and CUDA sees a GPU.

    Raises:
        EdgeError: which of all that is missing.
    """
    if machine["torch"]:
        raise EdgeError(
            f"torch cannot be imported: {machine['torch']}", hint="install requirements/cuda.txt", reason="NO_TORCH"
        )
    if TOO_OLD.search(machine["trouble"]):
        raise EdgeError(
            f"the driver is too old for torch's CUDA {machine['cuda']}: {machine['trouble']}",
            hint="update the driver, or take a torch that was made for an older CUDA",
            reason="DRIVER_TOO_OLD",
        )
    if machine["cuda"] is None:
        raise EdgeError(
            "there is no GPU for this torch, which was made without CUDA",
            hint="install requirements/cuda.txt on a machine with a GPU",
            reason="NO_GPU",
        )
    if not machine["available"] or not machine["gpus"]:
        raise EdgeError(f"there is no GPU: {_why(machine)}", hint="does `nvidia-smi` list one?", reason="NO_GPU")
    if machine["trouble"]:
        raise EdgeError(f"CUDA does not start: {machine['trouble']}", reason="CUDA_BROKEN")
    if machine["packages"].get("flashinfer-python") is None:
        raise EdgeError(
            "flashinfer-python is not installed", hint="install requirements/cuda.txt", reason="NO_FLASHINFER"
        )


def choose_devices(wanted: Sequence[int], machine: Mapping[str, Any], *, ranks: int) -> tuple[int, ...]:
    """The numbers of the GPUs to use: those asked for, else all.

    Raises:
        InputError: one that is not there, more ranks than GPUs (two may share one), or GPUs that are not alike.
    """
    there = len(machine["gpus"])
    strangers = [number for number in wanted if not 0 <= number < there]
    if strangers:
        raise InputError(
            f"--device {', '.join(map(str, strangers))}: there is no such GPU",
            hint=f"the GPUs of this machine are {', '.join(map(str, range(there)))}",
            reason="UNKNOWN_DEVICE",
        )
    chosen = tuple(dict.fromkeys(wanted)) or tuple(range(there))
    if ranks > max(len(chosen), 2):
        raise InputError(
            f"{ranks} ranks: a world larger than the {len(chosen)} GPU{'s' if len(chosen) != 1 else ''} to use",
            hint="two ranks can share a GPU, more cannot",
            reason="WORLD_TOO_LARGE",
        )
    if len({machine["archs"][number] for number in chosen}) > 1:
        kinds = ", ".join(f"{number} is {machine['archs'][number]}" for number in chosen)
        raise InputError(
            f"GPUs of several architectures: {kinds}",
            hint="a record is of one: choose with --device, and run it once for each",
            reason="MIXED_GPUS",
        )
    return chosen


def _why(machine: Mapping[str, Any]) -> str:
    if machine["available"]:
        return "torch says that CUDA is available and counts no device"
    if NO_DRIVER.search(machine["trouble"]):
        return "no driver answers"
    return machine["trouble"] or "torch sees none"
