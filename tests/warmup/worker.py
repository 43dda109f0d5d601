"""Ranks in processes of their own: the real FlashInfer on the CPU, nothing replaced but the timing of a kernel.

`python worker.py` imports torch and FlashInfer once and reads orders from stdin, one JSON object a line: `specs`, paths,
`limit_s` and `mercy_s`. It forks a process for each spec, which writes its record, or the error that it ended with, where
the spec says. When all have ended, or the limit is over and it has killed the rest, it answers with their exit statuses.
Once one has ended the others have `mercy_s` more, if that is not null: for runs in which one hangs for ever.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import flashinfer
import torch
import torch.distributed as dist
from flashinfer import autotuner
from packaging.version import Version

IMPORTED_ONCE = (
    "tests.warmup.faults",
    "tooling.capabilities.table_text",
    "tooling.warmup.autotune",
    "tooling.warmup.reference.host",
    "tooling.warmup.reference.runner",
)
"""What every fork would import for itself otherwise."""
ENDED_THREADS_S = 5.0


def replace_timing(noise: int) -> None:
    """The timing of a kernel, and nothing else: a tactic's time is made up, and differs among ranks by `noise`.

    FlashInfer averages inside that function where a process group is set, and so does this.
    """

    def timed(self: Any, runner: Any, inputs: Any, tactic: Any, *_: Any, **kwargs: Any) -> float:
        milliseconds = float((tactic + noise) % 3 + 1)
        group = getattr(autotuner, "get_autotune_process_group", lambda: None)()
        if group is not None:
            value = torch.tensor([milliseconds])
            dist.all_reduce(value, group=group)
            milliseconds = float(value) / dist.get_world_size(group)
        return milliseconds

    autotuner.AutoTuner._profile_single_kernel = timed
    if Version(flashinfer.__version__) >= Version("0.6.18"):
        torch.cuda.is_current_stream_capturing = lambda: False


Work = Callable[[dict[str, Any]], dict[str, Any]]
"""What a rank does with its spec; the answer is its result."""


def serve(work: Work, imported_once: Sequence[str] = IMPORTED_ONCE) -> None:
    """Answers orders until stdin ends."""
    torch.set_num_threads(1)
    for name in imported_once:
        import_module(name)
    gc.freeze()  # what is there already needs no look by any fork
    for line in sys.stdin:
        order = json.loads(line)
        children = {fork(path, work): path for path in order["specs"]}
        print(json.dumps(reap(children, order["limit_s"], order["mercy_s"])), flush=True)


def fork(path: str, work: Work) -> int:
    pid = os.fork()
    if pid == 0:
        log = os.open(f"{path}.log", os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        try:
            rank(path, work)
        except BaseException:  # noqa: BLE001  # a fork must not go on as its parent
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)  # a rank whose peers are dead hangs in torch's own goodbye
    return pid


def reap(children: dict[int, str], limit_s: float, mercy_s: float | None) -> dict[str, int]:
    """The exit status of every child by its spec; 137 for those that had to be killed."""
    deadline = time.monotonic() + limit_s
    statuses: dict[str, int] = {}
    while len(statuses) < len(children):
        for pid in [pid for pid, path in children.items() if path not in statuses]:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                statuses[children[pid]] = os.waitstatus_to_exitcode(status)
                deadline = min(deadline, time.monotonic() + mercy_s) if mercy_s is not None else deadline
            elif time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                statuses[children[pid]] = 137
        time.sleep(0.01)
    return statuses


def rank(path: str, work: Work) -> None:
    """One rank from beginning to end."""
    spec = json.loads(Path(path).read_text())
    os.environ.update(spec.get("environment", {}))
    for name in spec.get("unset", []):
        os.environ.pop(name, None)
    if spec["ranks"] > 1:
        meeting = spec["meeting"] if "://" in spec["meeting"] else f"file://{spec['meeting']}"
        dist.init_process_group(
            "gloo", init_method=meeting, rank=spec["rank"], world_size=spec["ranks"], timeout=timedelta(seconds=60)
        )
    if "host" in spec:
        socket.gethostname = lambda: spec["host"]
    replace_timing(spec["rank"] * spec.get("noise", 1) + spec.get("shift", 0))
    try:
        result: dict[str, Any] = {"record": work(spec)}
    except Exception as error:  # noqa: BLE001  # what a rank ends with is its result
        result = {"error": type(error).__name__, "message": str(error), "reason": getattr(error, "reason", "")}
    os.seteuid(os.getuid())  # a fault may have given it away
    Path(spec["result"]).write_text(json.dumps(result))


def warm_up(spec: dict[str, Any]) -> dict[str, Any]:
    from tests.warmup import faults
    from tooling.capabilities.gating import Strategy, World
    from tooling.capabilities.table_text import parse
    from tooling.warmup import count_lookups, flashinfer_autotune, resolve_flashinfer_autotune_file
    from tooling.warmup.reference.runner import ReferenceRunner

    row = parse(Path(spec["table"]).read_text()).rows[0] if spec.get("table") else None
    runner = ReferenceRunner(
        labels=spec.get("labels", ["host_bf16", "host_fp16"]),
        max_tokens=spec.get("max_tokens", 16),
        all2all_backend=spec.get("backend"),
        before_layer=faults.before_layer(spec.get("fault", ""), spec["rank"], Path(spec["result"]).parent),
        summed=not spec.get("alone", False),
    )
    vars(runner.vllm_config.parallel_config).update(spec.get("parallel", {}))
    for module in spec.get("slow_kernel_on", []):
        faults.give_slow_kernel(runner.get_model(), module)
    faults.inject(spec.get("fault", ""), spec["rank"])
    world = None
    if spec.get("world", True):
        world = World(
            ranks=spec["ranks"],
            backend=spec.get("backend"),
            gpu=spec.get("gpu", True),
            cache_off=spec.get("cache_off", False),
        )
    steps: list[str] = []
    passes = watch_passes(runner)
    engine: Any = runner
    as_vllm: list[dict[str, Any]] = []
    if "vllm" in spec:
        from tests.warmup.vllm_engine import as_in_vllm

        engine = as_in_vllm(runner, spec["vllm"], as_vllm)
    log = Log()
    logging.getLogger("tooling.warmup").setLevel(logging.INFO)
    logging.getLogger("tooling.warmup").addHandler(log)
    forced = Strategy(spec["forced"]) if spec.get("forced") else None
    held = []
    failed: list[str] = []
    for attempt in range(spec.get("times", 1)):
        forgiven = attempt < spec.get("forgiving", 0)
        if not forgiven and failed:
            runner._before_layer = lambda _: None
        started = time.monotonic()
        try:
            record = flashinfer_autotune(
                engine,
                row=row,
                strict=spec.get("strict", False),
                world=world,
                forced=forced,
                listener=make_listener(spec, steps),
            )
        except Exception as error:
            if not forgiven:
                raise
            failed.append(type(error).__name__)
        took_s = time.monotonic() - started
        if spec.get("times"):
            held.append(what_is_held(held[-1]["threads"] if held else sys.maxsize))
    body = record.as_json()
    if spec.get("resolve"):
        body["resolved"] = str(resolve_flashinfer_autotune_file(engine, row=row, world=world))
    sizes = spec.get("count_at", [])
    body |= {
        "vllm_passes": as_vllm,
        "failed": failed,
        "dummy_runs": list(passes),
        "log": log.lines,
        "held": held,
        "steps": steps,
        "took_s": took_s,
    }
    body["counted"] = {str(size): count_lookups(runner, num_tokens=size)["host_gemm"].as_json() for size in sizes}
    body["errors"] = [error.as_json() for error in runner.errors(spec.get("max_tokens", 16))]
    return body


def make_listener(spec: dict[str, Any], steps: list[str]) -> Callable[[str], None]:
    """Notes the steps; at two of them other ranks may be waiting for this one, or it waits for them."""
    from tests.warmup.faults import AT_BARRIER

    def hear(step: str) -> None:
        steps.append(step)
        if step == "waits at barrier" and spec["rank"] == 0:
            Path(spec["result"]).with_name(AT_BARRIER).touch()
        if step == "tune" and spec.get("together"):
            wait_for_all(Path(spec["together"]), spec["of"])

    return hear


def watch_passes(runner: Any) -> list[dict[str, Any]]:
    """What each dummy pass is given from now on, and whether it runs in inference mode."""
    seen: list[dict[str, Any]] = []
    run = runner._dummy_run

    def watched(*args: Any, **kwargs: Any) -> Any:
        seen.append({"args": list(args), **kwargs, "inference": torch.is_inference_mode_enabled()})
        return run(*args, **kwargs)

    runner._dummy_run = watched
    return seen


class Log(logging.Handler):
    """Keeps the lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def wait_for_all(folder: Path, count: int) -> None:
    """Returns once that many processes are here: each has looked at its cache by then, and none has written it."""
    folder.mkdir(exist_ok=True)
    (folder / str(os.getpid())).touch()
    while len(os.listdir(folder)) < count:
        time.sleep(0.01)


def what_is_held(threads_before: int) -> dict[str, Any]:
    """How many files and threads this process has, and its children.

    A thread that was joined is listed until it has run once more, which takes its time on a busy machine.
    """
    gc.collect()
    deadline = time.monotonic() + ENDED_THREADS_S
    while len(os.listdir("/proc/self/task")) > threads_before and time.monotonic() < deadline:
        time.sleep(0.01)
    children = []
    tasks = os.listdir("/proc/self/task")
    for task in tasks:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            children += Path(f"/proc/self/task/{task}/children").read_text().split()
    return {"files": len(os.listdir("/proc/self/fd")), "threads": len(tasks), "children": children}


if __name__ == "__main__":
    serve(warm_up)
