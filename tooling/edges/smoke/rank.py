"""The warm-up of one rank, and what is measured of it afterwards. Imports torch and FlashInfer when a rank works."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tooling.capabilities.gating import Strategy, World
from tooling.capabilities.table import Row
from tooling.capabilities.table_text import parse
from tooling.edges.smoke.channel import Channel
from tooling.edges.smoke.witness import Witness
from tooling.smoke.observations import ErrorSeen
from tooling.smoke.orders import Order
from tooling.warmup import count_lookups, flashinfer_autotune
from tooling.warmup.planning import make_plan
from tooling.warmup.reference.operations import OPERATIONS
from tooling.warmup.reference.runner import ReferenceRunner
from tooling.warmup.runtime import load_settings
from tooling.warmup.tuner import open_tuner


class FlashInferCuteDslNvFp4LinearKernel:
    """Stands for an engine's class of that name, which is all that the rule of skipped operations looks at."""


class Work:
    """One rank's work. `found` holds fields of `RankSeen`, `extra` what the orchestrator asks beside them."""

    def __init__(self, order: Order, channel: Channel, witness: Witness) -> None:
        self._order = order
        self._channel = channel
        self._witness = witness
        self._torch, self._dist = import_module("torch"), import_module("torch.distributed")
        self.found: dict[str, Any] = {}
        self.extra: dict[str, Any] = {}

    def conduct(self) -> None:
        """Joins the other ranks, warms up, measures. Raises what the warm-up raises."""
        order = self._order
        self._join()
        runner = self._make_runner()
        row, world = self._row(), self._world()
        self.extra["path"] = self._path(runner, row, world)
        compiled, tuned = self._witness.jit_s, self._witness.tuning_s
        started = time.monotonic()
        record = flashinfer_autotune(
            runner,
            row=row,
            strict=True,
            world=world,
            forced=Strategy(order.forced) if order.forced else None,
            listener=self._channel.hear,
        )
        self.extra["seconds"] = time.monotonic() - started
        # Only what fell into those seconds: making the model and what is measured afterwards may compile as well.
        now = self._witness.jit_s
        self.found["jit_s"] = None if now is None else now - (compiled or 0.0)
        self.found["tuning_s"] = self._witness.tuning_s - tuned
        whole = record.as_json()
        self.extra["record"] = {key: value for key, value in whole.items() if key != "ranks"}
        mine = next((report for report in record.ranks if report.rank == order.rank), None)
        self.found["report"] = mine.as_json() if mine else {}
        self.found["strategy"] = record.strategy
        self.found["tactics_sha256"] = mine.digest if mine else ""
        self._measure(runner)
        self._keep()
        self._leave()

    def _join(self) -> None:
        order = self._order
        if order.gpu is not None:
            self._torch.cuda.set_device(order.gpu)
            name = self._torch.cuda.get_device_name(order.gpu)
            self.found["device"] = f"cuda:{order.gpu} {name}"
        else:
            self.found["device"] = "cpu"
        if order.ranks > 1:
            self._channel.at("join")
            self._dist.init_process_group(
                order.transport,
                init_method=order.meeting,
                rank=order.rank,
                world_size=order.ranks,
                timeout=timedelta(seconds=order.total_s),
            )

    def _make_runner(self) -> ReferenceRunner:
        order = self._order
        runner = ReferenceRunner(
            labels=order.labels or None, max_tokens=order.max_tokens, all2all_backend=order.backend
        )
        if order.slow_kernel:
            module = self._torch.nn.Module()
            module.quant_method = SimpleNamespace(kernel=FlashInferCuteDslNvFp4LinearKernel())
            runner.get_model().add_module("slow", module)
        return runner

    def _row(self) -> Row | None:
        return parse(Path(self._order.table).read_text()).rows[0] if self._order.table else None

    def _world(self) -> World | None:
        """None, and the warm-up looks itself; a rehearsal claims a GPU, which its record then lacks."""
        order = self._order
        if not order.rehearsal:
            return None
        return World(ranks=order.ranks, backend=order.backend, gpu=True, cache_off=order.cache_off)

    def _path(self, runner: ReferenceRunner, row: Row | None, world: World | None) -> str:
        """The folder that a cache of this world lies in, relative to the root, whatever the strategy does with it."""
        order = self._order
        plan = make_plan(runner, order.ranks, load_settings(), row=row, strict=True, world=world)
        return str(replace(plan.identity, ranks=order.ranks).folder)

    def _measure(self, runner: ReferenceRunner) -> None:
        order = self._order
        self._channel.at("errors")
        errors = runner.errors(order.max_tokens)
        self._channel.at("results")
        digests = {label: _digest(rows) for label, rows in runner.results(order.max_tokens).items()}
        self.found["errors"] = tuple(
            ErrorSeen(
                label=error.label,
                operation=OPERATIONS[error.label].name,
                largest=error.largest if error.finite else None,
                finite=error.finite,
                out=OPERATIONS[error.label].out,
                sha256=digests[error.label],
            )
            for error in errors
        )
        self.found["lookups"] = {str(size): self._count(runner, size) for size in order.count_at}
        self.found["sticky_error"] = self._sticky_error()

    def _count(self, runner: ReferenceRunner, size: int) -> Mapping[str, Mapping[str, int]]:
        self._channel.at(f"look up at {size}")
        return {name: counts.as_json() for name, counts in count_lookups(runner, num_tokens=size).items()}

    def _sticky_error(self) -> str:
        """What a failed kernel left behind, or ""."""
        if self._order.gpu is None:
            return ""
        try:
            self._torch.cuda.synchronize()
            self._torch.zeros(8, device="cuda").sum().item()
        except RuntimeError as error:
            return str(error).split("\n", 1)[0]
        return ""

    def _keep(self) -> None:
        """Puts what FlashInfer would save where the order says, for scenarios that lay a file beforehand."""
        if self._order.keep and (data := open_tuner().save()):
            Path(self._order.keep).write_bytes(data)

    def _leave(self) -> None:
        """Waits for the others, so that nobody's exit breaks a collective of theirs."""
        if self._order.ranks > 1:
            self._channel.at("close")
            devices = {"device_ids": [self._order.gpu]} if self._order.transport == "nccl" else {}
            self._dist.barrier(**devices)


def _digest(rows: Any) -> str:
    return "sha256:" + hashlib.sha256(rows.float().cpu().numpy().tobytes()).hexdigest()
