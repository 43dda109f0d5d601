"""Messages as engines, NVIDIA's library and torch write them; the links name threads in which they were reported."""

from __future__ import annotations

import pytest

from tooling.errors import ExitCode
from tooling.smoke.container_errors import (
    lacks,
    read_cuda_message,
    read_death,
    read_engine_message,
    read_init_message,
)
from tooling.smoke.one_line import one_line

HOOK = (
    "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "
    "error during container init: error running hook #0: error running hook: exit status 1, stdout: , stderr: "
)
OLD_HOOK = (
    "OCI runtime create failed: container_linux.go:349: starting container process caused "
    '"process_linux.go:449: container init caused \\"process_linux.go:432: running prestart hook 0 caused '
    '\\\\\\"error running hook: exit status 1, stdout: , stderr: '
)
SHIM = "failed to create task for container: failed to create shim task: OCI runtime create failed: "
CDI = SHIM + "could not apply required modification to OCI specification: error modifying OCI spec: "

ENGINE = {
    # Docker 20.10 itself, on a machine without NVIDIA's toolkit
    "no driver of that kind": ('could not select device driver "" with capabilities: [[gpu]]', "NO_GPU_RUNTIME"),
    # github.com/infiniflow/ragflow/issues/9573
    "no driver of that name": (
        'could not select device driver "nvidia" with capabilities: [[gpu]]',
        "NO_GPU_RUNTIME",
    ),
    # github.com/NVIDIA/nvidia-docker/issues/1642
    "no driver, without quotes": ("could not select device driver with capabilities: [[gpu]].", "NO_GPU_RUNTIME"),
    # github.com/ShaneIsrael/fireshare/issues/689
    "no vendor in CDI": ("failed to discover GPU vendor from CDI: no known GPU vendor found", "NO_GPU_RUNTIME"),
    # github.com/devnen/Chatterbox-TTS-Server/issues/5
    "no such CDI device": (
        "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all",
        "NO_GPU_RUNTIME",
    ),
    # github.com/NVIDIA/nvidia-container-toolkit/issues/1537
    "no such CDI device, by the runtime": (
        CDI + "failed to inject CDI devices: unresolvable CDI devices runtime.nvidia.com/gpu=all: unknown",
        "NO_GPU_RUNTIME",
    ),
    # github.com/warmshao/FasterLivePortrait/issues/116
    "no such CDI device, podman": ("setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all", "NO_GPU_RUNTIME"),
    # github.com/dusty-nv/jetson-containers/issues/1460
    "no runtime of that name": ("unknown or invalid runtime name: nvidia", "NO_GPU_RUNTIME"),
    # github.com/Xilinx/Vitis-AI/pull/28
    "no runtime of that name, old": ("Unknown runtime specified nvidia.", "NO_GPU_RUNTIME"),
    # github.com/NVIDIA/nvidia-docker/issues/1337
    "the hook is gone": ('exec: "nvidia-container-runtime-hook": executable file not found in $PATH.', "NO_GPU_RUNTIME"),
    # github.com/NVIDIA/nvidia-docker/issues/1190
    "the runtime is gone": (
        ("OCI runtime create failed: unable to retrieve OCI runtime error exec: "
        '"nvidia-container-runtime": executable file not found in $PATH: : unknown.'),
        "NO_GPU_RUNTIME",
    ),
    # github.com/NVIDIA/nvidia-docker/issues/686
    "the runtime's file is gone": (
        "fork/exec /usr/bin/nvidia-container-runtime: no such file or directory: unknown",
        "NO_GPU_RUNTIME",
    ),
    # github.com/SyneRBI/PETRIC2/issues/27
    "driver too old": (
        HOOK + "Auto-detected mode as 'legacy'\nnvidia-container-cli: requirement error: unsatisfied condition: "
        "cuda>=12.8, please update your driver to a newer version, or use an earlier cuda container",
        "DRIVER_TOO_OLD",
    ),
    # github.com/iot-salzburg/gpu-jupyter/issues/24
    "driver too old, docker 19": (
        OLD_HOOK + "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=10.1, please update your "
        'driver to a newer version, or use an earlier cuda container\\\\\\\\n\\\\\\"\\"": unknown.',
        "DRIVER_TOO_OLD",
    ),
    # github.com/NVIDIA/nvidia-docker/issues/536
    "driver too old, with spaces": (
        OLD_HOOK + "exec command: [/usr/bin/nvidia-container-cli --load-kmods configure --device=all "
        "--require=cuda>=9.0 --pid=4781 /var/lib/docker/overlay2/7c/merged]\\\\\\\\nnvidia-container-cli: "
        'requirement error: unsatisfied condition: cuda >= 9.0\\\\\\\\n\\\\\\"\\""',
        "DRIVER_TOO_OLD",
    ),
    # github.com/NVIDIA/nvidia-docker/issues/1711
    "no driver": (
        HOOK + "Auto-detected mode as 'legacy'\nnvidia-container-cli: initialization error: load library failed: "
        "libnvidia-ml.so.1: cannot open shared object file: no such file or directory: unknown.",
        "NO_GPU_DRIVER",
    ),
    # github.com/NVIDIA/nvidia-docker/issues/1629
    "driver not loaded": (
        HOOK + "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown.",
        "NO_GPU_DRIVER",
    ),
    # github.com/NVIDIA/nvidia-docker/issues/1648
    "driver does not answer": (
        HOOK + "nvidia-container-cli: initialization error: driver rpc error: timed out: unknown.",
        "NO_GPU_DRIVER",
    ),
    # github.com/NVIDIA/nvidia-container-toolkit/issues/2102
    "driver does not answer, Go": ("nvidia-container-cli: initialization error: nvcgo rpc error: timed out", "NO_GPU_DRIVER"),
    # github.com/NVIDIA/nvidia-docker/issues/1203
    "driver fails": (
        OLD_HOOK + "nvidia-container-cli: initialization error: driver error: failed to process request",
        "NO_GPU_DRIVER",
    ),
    # github.com/Deep-MI/FastSurfer/issues/329
    "no adapter under WSL": (
        HOOK + "nvidia-container-cli: initialization error: WSL environment detected but no adapters were found: unknown.",
        "NO_GPU_DRIVER",
    ),
    # Docker 20.10 itself, without --init
    "no Python": (
        ("failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "
        'exec: "python3": executable file not found in $PATH: unknown'),
        "IMAGE_LACKS_PYTHON",
    ),
    "another processor": (SHIM + "exec /usr/bin/python3: exec format error: unknown", "IMAGE_OTHER_MACHINE"),
    "disk": ("Error processing tar file(exit status 1): write /x: no space left on device", "INFRA_DISK"),
    "something new": ("the moon is in the wrong phase", "ENGINE_REFUSED"),
}  # fmt: skip


@pytest.mark.parametrize(("message", "reason"), ENGINE.values(), ids=ENGINE)
def test_what_the_engine_says_is_told_by_its_reason(message: str, reason: str) -> None:
    cause = read_engine_message(message)
    assert cause.reason == reason
    assert (cause.exit_code is ExitCode.FINDINGS) == reason.startswith("IMAGE_")
    assert cause.hint or reason == "ENGINE_REFUSED"


def test_a_driver_that_is_too_old_is_said_with_what_the_image_needs() -> None:
    assert "needs cuda>=12.8" in read_engine_message(ENGINE["driver too old"][0]).sentence
    assert "needs cuda >= 9.0," in read_engine_message(ENGINE["driver too old, with spaces"][0]).sentence


def test_a_requirement_in_a_command_line_is_not_an_unsatisfied_one() -> None:
    said = OLD_HOOK + "exec command: [nvidia-container-cli --require=cuda>=9.0] nvml error: driver not loaded"
    assert read_engine_message(said).reason == "NO_GPU_DRIVER"


def test_an_unknown_refusal_is_quoted() -> None:
    assert "the moon is in the wrong phase" in read_engine_message("the moon is\nin the wrong phase").sentence


def test_a_long_message_keeps_its_end() -> None:
    cut = one_line("begin " + "x" * 5000 + " end")
    assert cut.startswith("begin ")
    assert cut.endswith(" end")
    assert len(cut) < 400


CUDA = {
    # github.com/pytorch/pytorch/pull/162531
    "torch warns": (
        (
            "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 12080). Please "
            "update your GPU driver by downloading and installing a new version"
        ),
        "offers CUDA 12.8",
    ),
    # github.com/lllyasviel/Fooocus/issues/1313
    "torch raises": (
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update",
        "offers CUDA 11.4",
    ),
    "the runtime": (
        "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version",
        "too old for the CUDA runtime",
    ),
    "the compatibility package": (
        "Error 804: forward compatibility was attempted on non supported HW",
        "too old for the CUDA runtime",
    ),
}


@pytest.mark.parametrize(("log", "said"), CUDA.values(), ids=CUDA)
def test_what_cuda_says_inside_names_the_drivers_age(log: str, said: str) -> None:
    cause = read_cuda_message(f"one line\n{log}\nanother")
    assert cause is not None
    assert (cause.reason, cause.exit_code) == ("DRIVER_TOO_OLD", ExitCode.WORLD)
    assert said in cause.sentence


@pytest.mark.parametrize("log", ["", "no CUDA-capable device is detected", "Found no NVIDIA driver on your system."])
def test_no_device_is_not_an_old_driver(log: str) -> None:
    assert read_cuda_message(log) is None


def test_a_death_without_an_answer_is_told_with_the_last_line() -> None:
    killed = read_death(exit_status=137, out_of_memory=True, log="compiling\n\n")
    hung = read_death(exit_status=None, out_of_memory=False, log="waiting")
    crashed = read_death(exit_status=139, out_of_memory=False, log="")
    assert [one.reason for one in (killed, hung, crashed)] == ["OUT_OF_MEMORY", "TIMEOUT", "CONTAINER_DIED"]
    assert "compiling" in killed.sentence
    assert "waiting" in hung.sentence
    assert "exit status 139" in crashed.sentence
    assert "it wrote nothing" in crashed.sentence
    assert [one.exit_code for one in (killed, hung, crashed)] == [3, 3, 4]


@pytest.mark.parametrize(
    ("log", "exit_status", "reason"),
    [
        ("[FATAL tini (7)] exec python3 failed: No such file or directory", 127, "IMAGE_LACKS_PYTHON"),
        ("[FATAL tini (7)] exec python3 failed: Permission denied", 126, "IMAGE_LACKS_PYTHON"),
        ("[FATAL tini (7)] exec python3 failed: Exec format error", 1, "IMAGE_OTHER_MACHINE"),
        ("another init's words", 127, "IMAGE_LACKS_PYTHON"),
        ("it says: [FATAL tini (7)] exec python3 failed: Exec format error", 1, None),
        ("Traceback", 1, None),
        ("", None, None),
    ],
)
def test_a_program_that_did_not_begin_is_told_from_one_that_failed(
    log: str, exit_status: int | None, reason: str | None
) -> None:
    cause = read_init_message(log, exit_status=exit_status)
    assert (cause and cause.reason) == reason


@pytest.mark.parametrize("what", ["python", "torch", "flashinfer", "packaging"])
def test_what_an_image_lacks_is_in_the_reason(what: str) -> None:
    cause = lacks(what)
    assert (cause.reason, cause.exit_code) == (f"IMAGE_LACKS_{what.upper()}", ExitCode.FINDINGS)
    assert what in cause.sentence.lower()


def test_a_python_that_is_too_old_is_not_a_missing_one() -> None:
    cause = lacks("python>=3.11", "3.8.10")
    assert cause.reason == "IMAGE_PYTHON_TOO_OLD"
    assert "3.8.10" in cause.sentence
    assert "3.11 or newer" in cause.sentence
