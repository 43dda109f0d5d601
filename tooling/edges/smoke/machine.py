"""The machine as a fresh process sees it: GPU, driver, compiler, packages, and what the installed tuner offers.

`python -m tooling.edges.smoke.machine` prints that as JSON. The orchestrator itself never imports torch: it would hold
a GPU context, and a broken installation would take it down.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from tooling.edges.smoke.process import PACKAGE_HOME
from tooling.edges.smoke.refusals import read_refusal
from tooling.errors import EdgeError
from tooling.smoke.observations import BROKEN

PACKAGES = (
    "flashinfer-python",
    "flashinfer-cubin",
    "flashinfer-jit-cache",
    "torch",
    "apache-tvm-ffi",
    "nvidia-cudnn-frontend",
    "nvidia-cudnn-cu13",
    "nvidia-cudnn-cu12",
    "nvidia-cublas",
    "nvidia-cublas-cu12",
    "nvidia-cutlass-dsl",
    "nvidia-nccl-cu13",
    "nvidia-nccl-cu12",
    "triton",
)
LIMIT_S = 180.0
KEYS = {"torch", "packages", "api"}
"""Some of the answer's, which no other line of JSON has together."""
NO_TUNER: dict[str, Any] = {
    "autotuner": "none", "autotune_parameters": [], "config_files": False, "metadata_fields": [],
    "process_group_timing": False, "managed_store": False,
}  # fmt: skip
"""What a release without `flashinfer.autotuner` offers (before 0.2.6)."""


def look_at_machine(environ: Mapping[str, str], packages: Iterable[str] = ()) -> dict[str, Any]:
    """What this Python's torch and FlashInfer are and see, asked in a process of its own.

    Raises:
        EdgeError: that process did not answer.
    """
    paths = [str(PACKAGE_HOME), *filter(None, [environ.get("PYTHONPATH", "")])]
    command = [sys.executable, "-P", "-m", "tooling.edges.smoke.machine", *packages]
    try:
        done = subprocess.run(
            command,
            env={**environ, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as cause:
        raise EdgeError(
            f"torch and FlashInfer could not be looked at within {LIMIT_S:.0f} s", reason="STUCK"
        ) from cause
    except OSError as cause:
        raise read_refusal(cause) from cause
    if (told := _find_answer(done.stdout)) is not None:
        return told
    last = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
    raise EdgeError(f"looking at torch and FlashInfer ended with {done.returncode}: {last}", reason="BROKEN_PACKAGES")


def _find_answer(text: str) -> dict[str, Any] | None:
    """The answer among whatever packages print when they are imported and when the process ends."""
    for line in reversed(text.splitlines()):
        with suppress(ValueError, RecursionError):
            body = json.loads(line)
            if isinstance(body, dict) and body.keys() >= KEYS:
                return body
    return None


def main(packages: list[str]) -> dict[str, Any]:
    body: dict[str, Any] = {"python": sys.version.split()[0], "packages": _versions([*PACKAGES, *packages])}
    body |= _cuda()
    body |= {"driver": _driver(), "nvcc": _nvcc()}
    try:
        import_module("flashinfer")
        body["api"] = _api()
    except Exception as error:  # noqa: BLE001  # whatever its import raises is what is to be told
        body["api"] = {BROKEN: f"{type(error).__name__}: {error}"}
    return body


def _versions(names: Iterable[str]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def _cuda() -> dict[str, Any]:
    """What torch says of the GPUs; `trouble` is its own complaint where it sees none."""
    body: dict[str, Any] = {"torch": "", "cuda": None, "available": False, "gpus": [], "archs": [], "trouble": ""}
    try:
        torch = import_module("torch")
    except Exception as error:  # noqa: BLE001  # as above
        return {**body, "torch": f"{type(error).__name__}: {error}"}
    body["cuda"] = torch.version.cuda
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body["available"] = torch.cuda.is_available()
            count = torch.cuda.device_count()
            body["gpus"] = [torch.cuda.get_device_name(number) for number in range(count)]
            body["archs"] = ["sm{}{}".format(*torch.cuda.get_device_capability(number)) for number in range(count)]
            torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        body["trouble"] = str(error).split("\n", 1)[0]
    return body


def _driver() -> str | None:
    """The driver's version from nvidia-smi, else from the kernel module's file."""
    try:
        asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        said = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=True)
        return said.stdout.split()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        pass
    try:
        found = re.search(r"\d+\.\d+(\.\d+)?", Path("/proc/driver/nvidia/version").read_text())
    except OSError:
        return None
    return found.group() if found else None


def _nvcc() -> str | None:
    """The release of `$CUDA_HOME/bin/nvcc`, else of the one on the path."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    places = [Path(home, "bin", "nvcc") for home in homes if home]
    nvcc = next((str(path) for path in places if path.is_file()), None) or shutil.which("nvcc")
    if nvcc is None:
        return None
    try:
        said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"V(\d+\.\d+\.\d+)", said)
    return found.group(1) if found else None


def _api() -> dict[str, Any]:
    """What the installed tuner offers, named as the table's facts."""
    try:
        module = import_module("flashinfer.autotuner")
    except ImportError:
        return NO_TUNER
    tuner = module.AutoTuner
    collect = getattr(module, "_collect_metadata", None)
    return {
        "autotuner": "package" if hasattr(module, "__path__") else "module",
        "autotune_parameters": list(inspect.signature(module.autotune).parameters),
        "config_files": hasattr(tuner, "save_configs") and hasattr(tuner, "load_configs"),
        "metadata_fields": sorted(collect()) if collect else [],
        "process_group_timing": hasattr(module, "set_autotune_process_group"),
        "managed_store": hasattr(import_module("flashinfer"), "autotune_v2"),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))  # noqa: T201  # its one answer, read by the orchestrator
