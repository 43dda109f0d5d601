"""Why a container with GPUs did not start or gave no answer, told from what the engine or CUDA said. Asks nobody."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tooling.errors import ExitCode
from tooling.smoke.one_line import one_line

_TOOLKIT = "install NVIDIA's container toolkit on the engine's machine, then start the engine again"
_NOT_FOUND = 127
_UPDATE = "update the driver of the engine's machine, or build the image for an older CUDA"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why there was no run. Exit code 3 if the machine is in the way, 4 if the image itself is."""

    reason: str
    sentence: str
    hint: str
    exit_code: ExitCode = ExitCode.WORLD


def read_engine_message(message: str) -> Cause:
    """The cause in the engine's answer to starting a container; ENGINE_REFUSED with its words where none is known."""
    if (found := _UNSATISFIED.search(message)) is not None:
        condition = " ".join(found["condition"].split())
        return Cause(
            reason="DRIVER_TOO_OLD",
            sentence=f"the driver is too old: the image needs {condition}, this machine's does not have it",
            hint=_UPDATE,
        )
    for pattern, cause in _ENGINE_RULES:
        if pattern.search(message):
            return cause
    said = one_line(message)
    return Cause(reason="ENGINE_REFUSED", sentence=f"the engine does not start the container: {said}", hint="")


def read_init_message(log: str, *, exit_status: int | None) -> Cause | None:
    """Why the container's init could not begin its program; None if it could."""
    if (found := _NOT_BEGUN.search(log)) is not None:
        return _OTHER_MACHINE if "format" in found["why"] else lacks("python")
    return lacks("python") if exit_status == _NOT_FOUND else None


def read_cuda_message(log: str) -> Cause | None:
    """The cause in what torch or CUDA wrote inside the container; None if it is not the driver's age."""
    if (found := _TORCH_TOO_OLD.search(log)) is not None:
        version = int(found["version"])
        return Cause(
            reason="DRIVER_TOO_OLD",
            sentence=f"the driver is too old: it offers CUDA {version // 1000}.{version % 1000 // 10}, "
            "the image's torch was made for a newer one",
            hint=_UPDATE,
        )
    if _CUDA_TOO_OLD.search(log):
        return Cause(
            reason="DRIVER_TOO_OLD", sentence="the driver is too old for the CUDA runtime in the image", hint=_UPDATE
        )
    return None


def read_death(*, exit_status: int | None, out_of_memory: bool, log: str) -> Cause:
    """Why the container's process ended without an answer. `exit_status` None: it was still there at the deadline."""
    last = one_line(next((line for line in reversed(log.splitlines()) if line.strip()), ""))
    said = f"; the last line that it wrote: {last}" if last else "; it wrote nothing"
    if exit_status is None:
        return Cause(
            reason="TIMEOUT",
            sentence=f"the container did not end within its deadline{said}",
            hint="raise the deadlines, or try fewer scenarios with --scenario",
        )
    if out_of_memory:
        return Cause(
            reason="OUT_OF_MEMORY",
            sentence=f"the container ran out of memory and was killed{said}",
            hint="give the engine's machine more",
        )
    return Cause(
        reason="CONTAINER_DIED",
        sentence=f"the container ended with exit status {exit_status} and gave no answer{said}",
        hint="",
        exit_code=ExitCode.FINDINGS,
    )


def lacks(what: str, found: str = "") -> Cause:
    """An image in which something is missing that the smoke needs: `python`, `torch`, `flashinfer`, `packaging`."""
    if found:
        sentence = f"the image has Python {found}, the smoke needs {what.removeprefix('python>=')} or newer"
        return Cause(
            reason="IMAGE_PYTHON_TOO_OLD", sentence=sentence, hint="build it again", exit_code=ExitCode.FINDINGS
        )
    return Cause(
        reason=f"IMAGE_LACKS_{what.upper()}",
        sentence=f"the image has no {what.capitalize() if what == 'python' else what} that its user can run",
        hint="is it the release image? `nox -s image` says what is in it",
        exit_code=ExitCode.FINDINGS,
    )


# Older releases of NVIDIA's library put spaces around the sign and end the line there.
_UNSATISFIED = re.compile(r"unsatisfied condition: (?P<condition>(?:cuda|driver)\s*[<>=!]+\s*[\d.]+)", re.IGNORECASE)
_NOT_BEGUN = re.compile(r"^\[FATAL tini \(\d+\)\] exec \S+ failed: (?P<why>.*)", re.MULTILINE)
_TORCH_TOO_OLD = re.compile(r"NVIDIA driver on your system is too old \(found version (?P<version>\d+)\)")
_CUDA_TOO_OLD = re.compile(
    r"CUDA driver version is insufficient for CUDA runtime version"
    r"|cudaErrorInsufficientDriver"
    r"|forward compatibility was attempted on non supported HW",
    re.IGNORECASE,
)

_NO_RUNTIME = Cause(
    reason="NO_GPU_RUNTIME",
    sentence="no GPU runtime: the engine cannot give GPUs to a container",
    hint=_TOOLKIT,
)
_NO_CDI = Cause(
    reason="NO_GPU_RUNTIME",
    sentence="no GPU runtime: the engine has no description (CDI) of this machine's GPUs",
    hint="`nvidia-ctk cdi generate` writes it; after a driver's update it has to be written anew",
)
_NO_DRIVER = Cause(
    reason="NO_GPU_DRIVER",
    sentence="the GPU runtime finds no NVIDIA driver that answers",
    hint="does `nvidia-smi` work on the engine's machine?",
)
_NO_DISK = Cause(reason="INFRA_DISK", sentence="the engine's disk is full", hint="free space, then run the smoke again")
_OTHER_MACHINE = Cause(
    reason="IMAGE_OTHER_MACHINE",
    sentence="the image is made for another kind of processor than the engine's machine has",
    hint="build it for this platform",
    exit_code=ExitCode.FINDINGS,
)

_ENGINE_RULES = tuple(
    (re.compile("|".join(patterns), re.IGNORECASE), cause)
    for cause, *patterns in (
        (_NO_DISK, r"no space left on device"),
        (_NO_CDI, r"unresolvable CDI device", r"CDI device injection failed", r"discover GPU vendor from CDI"),
        (
            _NO_RUNTIME,
            r"could not select device driver",
            r"(?:unknown or invalid runtime name:|unknown runtime specified) nvidia",
            r"nvidia-container-(?:runtime-hook|runtime|toolkit|cli)\W+(?:executable file not found|no such file)",
        ),
        (
            _NO_DRIVER,
            r"driver not loaded",
            r"load library failed: libnvidia-ml",
            r"(?:driver|nvcgo) (?:rpc )?error: ",
            r"no adapters were found",
        ),
        (_OTHER_MACHINE, r"exec format error", r"does not match the specified platform"),
        (lacks("python"), r"exec: \W*[\w/]*python3?\W+(?:executable file not found|stat |permission denied)"),
    )
)
"""The first that fits. CDI and a missing runtime come before the driver: with them nobody asked for one."""
