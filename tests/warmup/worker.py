"""One rank in a process of its own: the real FlashInfer on the CPU, nothing replaced but the timing of a kernel.

Called as `python worker.py SPEC.json`; writes its record, or the error that it ended with, where the spec says.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from packaging.version import Version


def replace_timing(noise: int) -> None:
    """The timing of a kernel, and nothing else: a tactic's time is made up, and differs among ranks by `noise`.

    FlashInfer averages inside that function where a process group is set, and so does this.
    """
    import flashinfer
    from flashinfer import autotuner

    def timed(self: Any, runner: Any, inputs: Any, tactic: Any, tuning_config: Any, **kwargs: Any) -> float:
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


def main(path: str) -> None:
    spec = json.loads(Path(path).read_text())
    os.environ.update(spec.get("environment", {}))
    rank, ranks = spec["rank"], spec["ranks"]
    if ranks > 1:
        dist.init_process_group(
            "gloo", init_method=f"file://{spec['meeting']}", rank=rank, world_size=ranks, timeout=timedelta(seconds=60)
        )
    replace_timing(rank * spec.get("noise", 1))
    try:
        result = {"record": warm_up(spec)}
    except Exception as error:
        result = {"error": type(error).__name__, "message": str(error), "reason": getattr(error, "reason", "")}
    Path(spec["result"]).write_text(json.dumps(result))
    sys.stdout.flush()
    os._exit(0)  # a rank whose peers are dead hangs in torch's own goodbye


def warm_up(spec: dict[str, Any]) -> dict[str, Any]:
    from tests.warmup import faults
    from tooling.capabilities.gating import World
    from tooling.capabilities.table import parse
    from tooling.warmup import flashinfer_autotune
    from tooling.warmup.reference.runner import ReferenceRunner

    row = parse(Path(spec["table"]).read_text()).rows[0] if spec.get("table") else None
    runner = ReferenceRunner(
        labels=spec.get("labels", ["host_bf16", "host_fp16"]),
        max_tokens=spec.get("max_tokens", 16),
        all2all_backend=spec.get("backend"),
        before_layer=faults.before_layer(spec.get("fault", ""), spec["rank"]),
    )
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
    started = time.monotonic()
    record = flashinfer_autotune(runner, row=row, strict=spec.get("strict", False), world=world)
    body = record.as_json()
    body["took_s"] = time.monotonic() - started
    body["errors"] = [error.as_json() for error in runner.errors(spec.get("max_tokens", 16))]
    return body


if __name__ == "__main__":
    main(sys.argv[1])
