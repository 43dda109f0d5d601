"""Environments with real FlashInfer wheels on CPU torch, made once and kept under .cache/, and processes that run in them."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.version import Version

from tooling.capabilities.derive import derive
from tooling.capabilities.table import Row, Table
from tooling.capabilities.table_text import dump, parse

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".cache" / "warmup"
TORCH = "torch==2.13.0"
COMPANIONS = ("numpy", "packaging", "tqdm", "requests", "nvidia-ml-py", "einops")
TVM_FFI = "apache-tvm-ffi>=0.1.12,<0.2"
LIMIT_S = 240.0


def newest_release() -> str:
    """The newest release that the shipped table has a row for."""
    table = parse((ROOT / "tooling" / "data" / "capabilities.json").read_text())
    return str(max(release for row in table.rows for release in row.releases))


def base_python() -> Path:
    """An interpreter with torch and what FlashInfer's import needs; all releases share it, since torch is big."""
    with _alone("base"):
        python = KEPT / "base" / "bin" / "python"
        if not (KEPT / "base.done").exists():
            subprocess.run([sys.executable, "-m", "venv", str(KEPT / "base")], check=True)
            _install(python, TORCH, *COMPANIONS)
            (KEPT / "base.done").touch()
    return python


def release_folder(release: str) -> Path:
    """A folder for PYTHONPATH with that release's wheel, its version check's companions and nothing else."""
    python = base_python()
    folder = KEPT / f"release-{release}"
    with _alone(f"release-{release}"):
        if not (KEPT / f"release-{release}.done").exists():
            _install(python, "--no-deps", "--target", str(folder), f"flashinfer-python=={release}", TVM_FFI)
            (KEPT / f"release-{release}.done").touch()
    return folder


def vllm_folder() -> Path:
    """A folder for PYTHONPATH with one release of vLLM and what its CPU runner imports, each at the version written down.

    Installed without asking for dependencies: those for a GPU are many gigabytes, and nothing here runs on one.
    """
    python = base_python()
    wanted = Path(__file__).with_name("vllm-requirements.txt")
    name = f"vllm-{hashlib.sha256(wanted.read_bytes()).hexdigest()[:12]}"
    with _alone(name):
        if not (KEPT / f"{name}.done").exists():
            _install(python, "--no-deps", "--target", str(KEPT / name), "--requirement", str(wanted))
            (KEPT / f"{name}.done").touch()
    return KEPT / name


def table_of(release: str) -> Path:
    """A table with one row: what the release's own source says, without the operations."""
    path = KEPT / f"row-{release}.json"
    folder = release_folder(release)
    members = [str(item.relative_to(folder)) for item in folder.glob("flashinfer/**/*.py")]
    members += [str(item.relative_to(folder)) for item in folder.glob("flashinfer_python-*.dist-info/METADATA")]
    derived = derive(members, lambda name: (folder / name).read_bytes(), with_operations=False)
    row = Row(releases=(Version(release),), facts=dict(derived.facts), known_faults=derived.known_faults)
    with _alone(f"row-{release}"):
        new = path.with_suffix(".new")
        new.write_text(dump(Table(rows=(row,))))
        new.replace(path)  # at once: another test process may be reading it
    return path


def _install(python: Path, *words: str) -> None:
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *words], check=True)


@contextlib.contextmanager
def _alone(name: str) -> Iterator[None]:
    """One maker at a time, among test processes that share the folder."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass
class Ran:
    """What the ranks of one run left: records or errors by rank, exit statuses, logs."""

    results: list[dict[str, Any]]
    statuses: list[int]
    logs: list[str]

    @property
    def record(self) -> dict[str, Any]:
        """Rank 0's record."""
        assert "record" in self.results[0], (self.results, self.logs)
        return self.results[0]["record"]

    def passes(self, rank: int, name: str) -> dict[str, int]:
        """The counts of the host GEMM in one pass of one rank."""
        return self.record["ranks"][rank]["passes"][name]["host_gemm"]


@dataclass
class Release:
    """One release's process that forks ranks; ended by `close`. `script` is what runs in them, with `path` to import from."""

    version: str
    home: Path
    script: str = "worker.py"
    path: tuple[Path, ...] = ()
    table: Path = field(init=False)
    process: subprocess.Popen[str] = field(init=False)
    number: int = 0

    def __post_init__(self) -> None:
        self.table = table_of(self.version)
        self.home.mkdir(parents=True, exist_ok=True)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "PYTHONPATH": os.pathsep.join(map(str, (*self.path, release_folder(self.version), ROOT))),
            "FLASHINFER_WORKSPACE_BASE": str(self.home),
            "OMP_NUM_THREADS": "1",
        }
        self.process = subprocess.Popen(
            [str(base_python()), str(ROOT / "tests" / "warmup" / self.script)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, cache: Path | None, *, limit_s: float = LIMIT_S, mercy_s: float | None = None, **spec: Any) -> Ran:
        """Runs that many `ranks` with this cache root. `each` holds what is special to a rank; `spec` is for all.

        What still runs `limit_s` after the start, or `mercy_s` after the first rank has ended, is killed.
        """
        return self.run_groups(cache, {}, limit_s=limit_s, mercy_s=mercy_s, **spec)[0]

    def run_groups(
        self,
        cache: Path | None,
        *special: dict[str, Any],
        limit_s: float = LIMIT_S,
        mercy_s: float | None = None,
        ranks: int = 1,
        each: dict[int, Any] | None = None,
        **spec: Any,
    ) -> list[Ran]:
        """Runs groups of that many ranks at once, which know nothing of each other; `special` is each group's own.

        If there are several, none tunes before all have looked at the cache.
        """
        if len(special) > 1:
            spec |= {"together": str(self.home / f"together-{self.number}"), "of": ranks * len(special)}
        groups = [self._specs(cache, ranks, each or {}, {**spec, **own}) for own in special]
        assert self.process.stdin
        assert self.process.stdout
        paths = [str(path) for group in groups for path in group]
        self.process.stdin.write(json.dumps({"specs": paths, "limit_s": limit_s, "mercy_s": mercy_s}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return [
            Ran(
                [_read(path.with_name(f"result-{rank}.json")) for rank, path in enumerate(group)],
                [answer[str(path)] for path in group],
                [Path(f"{path}.log").read_text(errors="replace") for path in group],
            )
            for group in groups
        ]

    def _specs(self, cache: Path | None, ranks: int, each: dict[int, Any], spec: dict[str, Any]) -> list[Path]:
        self.number += 1
        folder = self.home / f"run-{self.number}"
        folder.mkdir()
        paths = []
        for rank in range(ranks):
            own = {"rank": rank, "ranks": ranks, "meeting": str(folder / "meeting"), "table": str(self.table)}
            own |= {"result": str(folder / f"result-{rank}.json"), **spec, **each.get(rank, {})}
            roots = {"VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR": str(cache)} if cache else {}
            own["environment"] = {**roots, **own.get("environment", {})}
            paths.append(folder / f"spec-{rank}.json")
            paths[-1].write_text(json.dumps(own))
        return paths

    def close(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait(timeout=240)
        self.process.stdout.close()


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}
