"""Stands for a worker that another rank of the launcher's world runs: `python -m tooling.edges.smoke.relay ORDER`."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tooling.edges.files.durable import replace_file
from tooling.edges.smoke.channel import open_channel
from tooling.edges.smoke.launcher import SILENT_S, Launched, open_store
from tooling.smoke.environment import OURS, TAKEN
from tooling.smoke.orders import Order
from tooling.warmup.settings import TIMEOUT

PASSED_ON = (*sorted(TAKEN | OURS), TIMEOUT)
"""Variables that make the scenario; all others are the other host's own."""
WORLD = "TOOLING_SMOKE_WORLD"
"""The launcher's world, as JSON: a worker's environment has no launcher's variables."""
LOOK_EVERY_S = 0.1


def main(path: str) -> None:
    order = Order.from_json(json.loads(Path(path).read_text()))
    channel = open_channel(f"{path}.log")
    channel.listen()
    store = open_store(Launched(**json.loads(os.environ[WORLD])))
    key = f"{order.scenario}/{order.temperature}/{order.rank}"
    variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    store.set(f"{key}/order", json.dumps({"order": order.as_json(), "environ": variables}))
    number = store.add(f"queue/{order.rank}", 1)
    store.set(f"queue/{order.rank}/{number}", key)
    status = _follow(store, key, channel)
    if store.check([f"{key}/answer"]):
        replace_file(Path(order.answer), store.get(f"{key}/answer"))
    print(store.get(f"{key}/log").decode("utf-8", "replace") if store.check([f"{key}/log"]) else "", flush=True)  # noqa: T201  # the log
    if status < 0:
        os.kill(os.getpid(), -status)
    os._exit(status)


def _follow(store: Any, key: str, channel: Any) -> int:
    """Passes the word to go on and steps back, until the other side says how its worker ended."""
    line, told_go, heart, heard = 1, False, 0, time.monotonic()
    while not store.check([f"{key}/end"]):
        if channel.may_go and not told_go:
            store.set(f"{key}/go", "1")
            told_go = True
        line = _repeat(store, key, channel, line)
        store.add(f"{key}/relay", 1)
        beat = store.add(f"{key}/server", 0)
        if beat != heart:
            heart, heard = beat, time.monotonic()
        elif time.monotonic() - heard > SILENT_S:
            return -signal.SIGKILL
        time.sleep(LOOK_EVERY_S)
    _repeat(store, key, channel, line)  # what was said last, which came before the end
    return int(store.get(f"{key}/end"))


def _repeat(store: Any, key: str, channel: Any, line: int) -> int:
    """Says the steps that have come since that line; the number of the next one."""
    while store.check([f"{key}/line/{line}"]):
        said = json.loads(store.get(f"{key}/line/{line}"))
        channel.repeat(said["step"], said["profiles"])
        line += 1
    return line


if __name__ == "__main__":
    main(sys.argv[1])
