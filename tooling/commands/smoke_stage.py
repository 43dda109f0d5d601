"""A smoke run under way, and the record that is made from it whenever one has to be written."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tooling.commands.recording import PinnedTree, make_record, save_record
from tooling.commands.terminal import Terminal
from tooling.edges.smoke.launcher import Launched
from tooling.evidence import Record, Status
from tooling.findings import Finding
from tooling.smoke.environment import Cleaned
from tooling.smoke.observations import MachineSeen, ScenarioSeen, Seen
from tooling.smoke.pinned import absent_companions
from tooling.smoke.scenarios import Scenario

NO_ARCH = "none"


@dataclass(slots=True, kw_only=True)
class Stage:
    """One smoke run under way: what the record is made from, whenever it has to be written."""

    args: argparse.Namespace
    terminal: Terminal
    tree: PinnedTree
    cleaned: Cleaned
    pinned: Mapping[str, str]
    requested: tuple[Scenario, ...]
    machine: MachineSeen = field(default_factory=MachineSeen)
    jit: Mapping[str, Any] = field(default_factory=dict)
    launched: Launched | None = None
    so_far: tuple[ScenarioSeen, ...] = ()
    began: float = field(default_factory=time.monotonic)

    def seen(self, scenarios: Sequence[ScenarioSeen]) -> Seen:
        return Seen(
            machine=self.machine,
            scenarios=tuple(scenarios),
            pinned={name: version for name, version in self.pinned.items() if name not in self._absent},
            bypasses=self.cleaned.bypasses,
            overrides=self.cleaned.overrides,
            jit=self.jit,
            not_covered=tuple(f"{name} is pinned and not installed" for name in self._absent),
            took_s=time.monotonic() - self.began,
        )

    def save(
        self,
        status: Status,
        reason: str | None,
        *,
        findings: Sequence[Finding] = (),
        body: Mapping[str, object] | None = None,
    ) -> tuple[Record, Path]:
        """Writes the record; without a body it holds what was seen so far."""
        machine = self.machine
        gpu = {"arch": machine.arch, "names": list(machine.gpus), "driver": machine.driver} if machine.gpus else None
        record = make_record(
            self.tree,
            stage="smoke",
            subject=machine.arch or NO_ARCH,
            status=status,
            reason=reason,
            findings=findings,
            measurements=self.seen(self.so_far).as_json() if body is None else body,
            gpu=gpu,
        )
        return record, save_record(self.args, record)

    def interrupted(self) -> None:
        """Records what was seen until somebody broke it off."""
        self.save("not-run", "INTERRUPTED")

    @property
    def _absent(self) -> tuple[str, ...]:
        return absent_companions(self.pinned, self.machine.packages)
