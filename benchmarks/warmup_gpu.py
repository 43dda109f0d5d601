"""Measures the warm-up on a GPU with the installed FlashInfer: every strategy, cold and warm, on one rank and on two.

Writes one JSON file, anew after each run. Each run is a fresh process, or two on the one GPU over gloo; compiled
kernels are shared, tuned ones are not. What does not fit the budget is listed as not run; a run that failed says so and
holds the ends of its logs.

Examples:
    python benchmarks/warmup_gpu.py --out warmup-0.6.13.json
    python benchmarks/warmup_gpu.py --table row.json --budget-s 280 --out warmup-0.6.13.json
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BETWEEN = (3, 24, 48, 64)
"""Token counts at which look-ups are counted: three between buckets, one on the largest."""
REPEATS = 3
SKIPPED = "bf16_gemm"
LIMIT_S = 150.0
"""For the ranks of one run; compiling the fp8 operation takes 30 to 40 s of it, once."""
PACKAGES = (
    "flashinfer-python",
    "apache-tvm-ffi",
    "nvidia-cudnn-frontend",
    "torch",
    "nvidia-cublas",
    "nvidia-cudnn-cu13",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="where the JSON goes")
    parser.add_argument("--table", type=Path, help="a table with the release's row (default: the shipped one)")
    parser.add_argument("--budget-s", type=float, default=600.0, help="start nothing new after this many seconds")
    parser.add_argument("--without", nargs="*", default=[], metavar="NAME", help="runs to leave out, as `1 all_ranks`")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return work(json.loads(args.worker))
    if not args.out.parent.is_dir():
        parser.error(f"{args.out.parent}: no such folder")
    if args.table and not args.table.is_file():
        parser.error(f"{args.table}: no such file")
    if shutil.which("nvidia-smi") is None:
        parser.error("needs a machine with an NVIDIA GPU; nvidia-smi was not found")
    return measure(args.out, args.table, args.budget_s, args.without)


def measure(out: Path, table: Path | None, budget_s: float, without: list[str]) -> int:
    """Runs everything in order of worth, and writes after each run what is known so far."""
    began = time.monotonic()
    body: dict[str, Any] = {
        "machine": machine(),
        "measured": f"{datetime.now(UTC):%Y-%m-%d}",
        "runs": {},
        "not_run": [],
    }
    with tempfile.TemporaryDirectory(prefix="warmup-gpu-") as name:
        for label, run in planned(Path(name), table):
            spent = time.monotonic() - began
            if spent > budget_s or label in without:
                body["not_run"].append(label)
            else:
                print(f"{spent:6.0f} s  {label} ...", flush=True)
                body["runs"][label] = answer = run()
                body["took_s"] = time.monotonic() - began
                print(f"{body['took_s']:6.0f} s  {label}: {told(answer)}", flush=True)
            out.write_text(json.dumps(body, indent=1, sort_keys=True) + "\n")
    return 0


def planned(folder: Path, table: Path | None) -> list[tuple[str, Callable[[], Any]]]:
    """The runs in order of worth: the rule's own choice, what a warm start and a skipped operation cost, the rest."""
    pairs = [(f"{ranks} {name}", strategy_pair(folder, table, name, ranks)) for ranks, name in wanted()]
    return [
        ("compile", lambda: once(folder, table, kind="compile")),
        *pairs[:2],
        ("overhead", lambda: overhead(folder, table)),
        ("skip", lambda: once(folder, table, kind="skip")),
        *pairs[2:],
    ]


def told(answer: dict[str, Any]) -> str:
    """The answer in a line: seconds cold and warm, of them compiling, or what went wrong."""
    if "cold" not in answer:
        return "FAILED" if "failed" in answer else json.dumps(answer)[:160]
    starts = []
    for name in ("cold", "warm"):
        record = answer[name].get("record")
        took = f"{answer[name]['took_s']:.2f} s ({record['jit_s']:.1f} s compiling)" if record else "FAILED"
        starts.append(f"{name} {took}")
    return ", ".join(starts)


def wanted() -> list[tuple[int, str]]:
    """Ranks and strategy; the rule's own choice for each world first."""
    from packaging.version import Version

    release = Version(metadata.version("flashinfer-python"))
    pairs = [
        (1, "rule"),
        (2, "rule"),
        (1, "leader_broadcast"),
        (2, "leader_broadcast"),
        (1, "all_ranks"),
        (2, "all_ranks"),
    ]
    if release < Version("0.6.13"):
        return [pair for pair in pairs if pair[1] != "all_ranks"]
    if release < Version("0.6.16"):
        return [pair for pair in pairs if pair[1] != "leader_broadcast"]
    return pairs


def strategy_pair(folder: Path, table: Path | None, name: str, ranks: int) -> Callable[[], dict[str, Any]]:
    """A cold and a warm run with one cache root of their own, and how far the warm results are from the cold ones."""

    def run() -> dict[str, Any]:
        cache = folder / f"cache-{ranks}-{name}"
        cold = together(folder, table, ranks, kind="warm_up", cache=str(cache), forced="" if name == "rule" else name)
        warm = together(folder, table, ranks, kind="warm_up", cache=str(cache), forced="" if name == "rule" else name)
        return {"cold": cold, "warm": warm, "difference": differences(cold, warm)}

    return run


def together(folder: Path, table: Path | None, ranks: int, **spec: Any) -> dict[str, Any]:
    """Starts the ranks, waits for them, and returns rank 0's answer, or what went wrong."""
    home = Path(tempfile.mkdtemp(dir=folder))
    processes = []
    for rank in range(ranks):
        own = {**spec, "rank": rank, "ranks": ranks, "home": str(home), "table": table and str(table)}
        environment = {**os.environ, "FLASHINFER_WORKSPACE_BASE": str(folder / "workspace")}
        if spec.get("cache"):
            environment["VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR"] = spec["cache"]
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
        log = (home / f"log-{rank}").open("w")
        command = [sys.executable, __file__, "--out", "-", "--worker", json.dumps(own)]
        processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
    until = time.monotonic() + LIMIT_S
    for process in processes:
        try:
            process.wait(timeout=max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    answer = home / "answer-0.json"
    if answer.exists():
        return json.loads(answer.read_text())
    logs = [(home / f"log-{rank}").read_text(errors="replace")[-1500:] for rank in range(ranks)]
    return {"failed": [process.returncode for process in processes], "logs": logs}


def once(folder: Path, table: Path | None, **spec: Any) -> dict[str, Any]:
    return together(folder, table, 1, **spec)


def overhead(folder: Path, table: Path | None) -> dict[str, Any]:
    """A warm start with our function, and with FlashInfer's own load_configs and the same one pass, in turns."""
    cache = str(folder / "cache-overhead")
    common = {"cache": cache, "forced": "leader_broadcast", "passes": 0}
    first = once(folder, table, kind="warm_up", **common)
    ours, direct = [], []
    for _ in range(REPEATS):
        ours.append(once(folder, table, kind="warm_up", **common).get("took_s"))
        direct.append(
            once(folder, table, kind="direct", file=first.get("record", {}).get("file"), **common).get("took_s")
        )
    if None in ours or None in direct:
        return {"ours_s": ours, "direct_s": direct}
    gap = statistics.median(ours) - statistics.median(direct)
    return {"ours_s": ours, "direct_s": direct, "gap_s": gap, "share": gap / statistics.median(direct)}


def differences(cold: dict[str, Any], warm: dict[str, Any]) -> dict[str, Any]:
    """Whether the warm results have the cold ones' bits, by operation."""
    labels = cold.get("digests", {})
    return {label: digest == warm.get("digests", {}).get(label) for label, digest in labels.items()}


def machine() -> dict[str, Any]:
    import torch

    asked = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "gpu": subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip(),
        "cuda": torch.version.cuda,
        "python": sys.version.split()[0],
        "cores": os.cpu_count(),
        "packages": versions,
    }


def work(spec: dict[str, Any]) -> int:
    """One rank of one run, in a process of its own."""
    import torch
    import torch.distributed as dist

    if spec["ranks"] > 1:
        meeting = f"file://{spec['home']}/meeting"
        dist.init_process_group("gloo", init_method=meeting, rank=spec["rank"], world_size=spec["ranks"])
    import flashinfer  # noqa: F401  # its import is not part of what is timed

    torch.zeros(1, device="cuda")
    answer = {"compile": do_compile, "warm_up": do_warm_up, "direct": do_direct, "skip": do_skip}[spec["kind"]](spec)
    answer["sticky_error"] = sticky_error(torch)
    Path(spec["home"], f"answer-{spec['rank']}.json").write_text(json.dumps(answer))
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()
    return 0


def do_compile(spec: dict[str, Any]) -> dict[str, Any]:
    """The first call of every operation, untuned: what compiling costs."""
    runner = make_runner()
    took = {label: timed(lambda label=label: runner._call(label, runner.rows(64))) for label in runner.layers}
    return {"first_call_s": took}


def do_warm_up(spec: dict[str, Any]) -> dict[str, Any]:
    from tooling.capabilities.gating import Strategy
    from tooling.warmup import count_lookups, flashinfer_autotune

    runner = make_runner()
    forced = Strategy(spec["forced"]) if spec.get("forced") else None
    started = time.monotonic()
    record = flashinfer_autotune(runner, row=row_of(spec), forced=forced, check_passes=spec.get("passes", 2))
    took = time.monotonic() - started
    counted = {}
    for tokens in BETWEEN:
        counts = count_lookups(runner, num_tokens=tokens)
        counted[str(tokens)] = {name: one.as_json() for name, one in counts.items()}
    results = runner.results(64)
    return {
        "record": record.as_json(),
        "took_s": took,
        "counted": counted,
        "errors": [error.as_json() for error in runner.errors(64)],
        "digests": {
            label: hashlib.sha256(rows.float().cpu().numpy().tobytes()).hexdigest() for label, rows in results.items()
        },
    }


def do_direct(spec: dict[str, Any]) -> dict[str, Any]:
    """What an engine would do without us: load the file, one pass in tuning mode."""
    import torch
    from flashinfer.autotuner import AutoTuner, autotune

    runner = make_runner()
    started = time.monotonic()
    taken = AutoTuner.get().load_configs(spec["file"])
    with torch.inference_mode(), autotune(True):
        runner._dummy_run(num_tokens=64, skip_eplb=True, is_profile=True)
    torch.cuda.synchronize()
    return {"took_s": time.monotonic() - started, "taken": taken}


def do_skip(spec: dict[str, Any]) -> dict[str, Any]:
    """Calls of an operation that skip_ops leaves out, first and later, and the tuner's part of it alone."""
    import torch

    from tooling.warmup.tuner import open_tuner

    tuner = open_tuner()
    if "skip_ops" not in tuner.parameters:
        return {"supported": False}
    runner = make_runner(["bf16_cudnn_bf16"])
    rows = runner.rows(64)
    inside: list[float] = []
    choose = tuner.instance.choose_one

    def timing_choose(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        chosen = choose(*args, **kwargs)
        inside.append(time.perf_counter() - started)
        return chosen

    tuner.instance.choose_one = timing_choose
    with torch.inference_mode(), tuner.tuning(frozenset({SKIPPED})):
        calls = [timed(lambda: runner._call("bf16_cudnn_bf16", rows)) for _ in range(101)]
    return {
        "supported": True,
        "operation": SKIPPED,
        "first_call_s": calls[0],
        "later_call_s": statistics.median(calls[1:]),
        "first_choice_s": inside[0],
        "later_choice_s": statistics.median(inside[1:]),
    }


def make_runner(labels: list[str] | None = None) -> Any:
    from tooling.warmup.reference.runner import ReferenceRunner

    return ReferenceRunner(labels=labels)


def row_of(spec: dict[str, Any]) -> Any:
    if not spec["table"]:
        return None
    from tooling.capabilities.table_text import parse

    return parse(Path(spec["table"]).read_text()).rows[0]


def timed(call: Callable[[], Any]) -> float:
    import torch

    started = time.perf_counter()
    with torch.inference_mode():
        call()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def sticky_error(torch: Any) -> str:
    """What a failed kernel left behind, or ""."""
    try:
        torch.cuda.synchronize()
        torch.zeros(8, device="cuda").sum().item()
    except RuntimeError as error:
        return str(error).split("\n", 1)[0]
    return ""


if __name__ == "__main__":
    sys.exit(main())
