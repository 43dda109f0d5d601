"""What every rank of a launcher's world but the first does: runs the workers that rank 0 orders, until it says done."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tooling.edges.serving.reaping import end_all
from tooling.edges.serving.signals import undisturbed
from tooling.edges.smoke.launcher import SILENT_S, Launched, hear_done, open_store
from tooling.edges.smoke.process import Worker
from tooling.smoke.orders import Order

LOOK_EVERY_S = 0.1


def serve(launched: Launched, folder: Path, environ: Mapping[str, str], python: str) -> int:
    """Rank 0's exit code. Leaves no process, whatever happens."""
    mark = secrets.token_hex(8)
    try:
        return _serve(launched, folder, environ, python, mark)
    finally:
        with undisturbed():
            end_all(mark, None, grace_s=0.0)


def choose_gpu(order: Order, launched: Launched) -> int | None:
    """The one that rank 0 chose, who knows the GPUs of its own host; on another host the rank's own place there."""
    same_host = launched.rank == launched.local_rank
    return order.gpu if order.gpu is None or same_host else launched.local_rank


def _serve(launched: Launched, folder: Path, environ: Mapping[str, str], python: str, mark: str) -> int:
    store, number = open_store(launched), 1
    while (code := hear_done(store)) is None:
        if store.check([f"queue/{launched.rank}/{number}"]):
            key = store.get(f"queue/{launched.rank}/{number}").decode()
            place = folder / str(number)
            place.mkdir(parents=True)
            words = {"environ": environ, "python": python, "mark": mark}
            threading.Thread(target=_work, args=(launched, key, place), kwargs=words, daemon=True).start()
            number += 1
        time.sleep(LOOK_EVERY_S)
    return code


def _work(launched: Launched, key: str, folder: Path, *, environ: Mapping[str, str], python: str, mark: str) -> None:
    """One order, in a thread of its own: the next run's worker starts while the present one works."""
    store = open_store(launched)
    body = json.loads(store.get(f"{key}/order"))
    order = Order.from_json(body["order"])
    order = replace(order, answer=str(folder / "answer.json"), gpu=choose_gpu(order, launched))
    Path(order.cache_root).mkdir(parents=True, exist_ok=True)
    worker = Worker(order, folder, {**environ, **body["environ"]}, mark, python=python)
    try:
        _follow(store, key, worker)
    finally:
        worker.kill("the relay is gone")
        worker.close()
    answer = Path(order.answer)
    if answer.is_file():
        store.set(f"{key}/answer", answer.read_bytes())
    store.set(f"{key}/log", worker.log_tail())
    store.set(f"{key}/end", str(worker.exit_status))


def _follow(store: Any, key: str, worker: Worker) -> None:
    """Passes steps on until the worker has closed its line, or rank 0's relay is silent."""
    line, told, gone, heart, heard = 1, 0, False, 0, time.monotonic()
    while True:
        ended = not worker.alive  # a process that it has forked may hold its line open
        open_line = worker.hear() and not ended
        if worker.heard != told:
            told = worker.heard
            store.set(f"{key}/line/{line}", json.dumps({"step": worker.step, "profiles": worker.profiles}))
            line += 1
        if not open_line:
            worker.wait(10.0)
            return
        if not gone and store.check([f"{key}/go"]):
            gone = True
            worker.go()
        store.add(f"{key}/server", 1)
        beat = store.add(f"{key}/relay", 0)
        if beat != heart:
            heart, heard = beat, time.monotonic()
        elif time.monotonic() - heard > SILENT_S:
            return
        time.sleep(LOOK_EVERY_S)
