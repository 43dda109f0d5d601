"""What a worker imports in a rehearsal: the real tuner on the CPU, nothing replaced but the timing of a kernel.

`prepare` also brings about faults: `{"faults": [{"kind": "die", "rank": 1, "step": "tune", "scenario": "two-ranks"}]}`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import Any

from tooling.edges.smoke.channel import Channel
from tooling.smoke.orders import Order


def prepare(order: Order, channel: Channel) -> None:
    import torch

    from tests.warmup.worker import replace_timing

    torch.set_num_threads(1)
    replace_timing(order.rank)
    for fault in order.rehearsal["options"].get("faults", []):
        if strikes(fault, order):
            inject(fault, order, channel)


def strikes(fault: dict[str, Any], order: Order) -> bool:
    wanted = {"rank": order.rank, "temperature": order.temperature, "scenario": order.scenario}
    return all(fault.get(name, value) == value for name, value in wanted.items())


def inject(fault: dict[str, Any], order: Order, channel: Channel) -> None:
    """Strikes when this rank says that step, or an operation at hand."""
    hear, at = channel.hear, channel.at

    def listening(text: str, *, original: Any = hear) -> None:
        original(text)
        if text == fault["step"]:
            strike(fault["kind"], order)

    channel.hear = listening
    channel.at = lambda text: listening(text, original=at)


def strike(kind: str, order: Order) -> None:
    if kind == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "hang":
        subprocess.Popen(["sleep", "600"])
        subprocess.Popen(["sleep", "600"], start_new_session=True)
        time.sleep(600)
    if kind == "raise":
        raise RuntimeError("this rank is broken on purpose")
    if kind == "corrupt":
        with open(order.answer, "w") as file:
            file.write('{"seen": {"rank": 0, "end": "en')
        os.kill(os.getpid(), signal.SIGKILL)
