"""What the smoke stage saw, as values, and the JSON that an evidence record's `measurements` hold of it.

`Seen.as_json` is the whole of `measurements`; `Seen.from_json` reads it back, so that a record can be judged again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tooling.smoke.files_seen import FilesSeen

End = Literal["ended", "error", "died", "hung", "not-started"]
"""How one rank of a run came out: it wrote its answer; its warm-up raised; it was killed or crashed; our deadline
killed it; it never came to life (or the run was given up before)."""

INTERRUPTED = "interrupted"
"""A scenario's `not_run` where the operator broke it off; what was seen until then may still be there."""

BROKEN = "import_error"
"""In `MachineSeen.api`, instead of all else: what importing FlashInfer raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSeen:
    """One operation against float32: the largest difference over the largest exact value.

    `out` is the type that comes out, as torch names it; `sha256` is over the output's bytes; both "" where they were
    not taken.
    """

    label: str
    operation: str
    largest: float | None
    finite: bool
    out: str = ""
    sha256: str = ""

    def as_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> ErrorSeen:
        return ErrorSeen(
            label=body["label"],
            operation=body["operation"],
            largest=body["largest"],
            finite=body["finite"],
            out=body["out"],
            sha256=body["sha256"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSeen:
    """One rank of one run.

    `strategy` is the one that this rank's own warm-up record names, "" if it has none. `report` is this rank's part of
    the warm-up's record (`RankReport.as_json`), {} if it has none. `lookups`: token count as text, then operation, then
    counts (`Counts.as_json`), taken after the warm-up. `passed`: the operations that were handed to FlashInfer's
    `autotune(skip_ops=…)`, null where it was called without the argument or not at all. `jit_s` is time spent
    compiling, `tuning_s` time in tuning mode without it. `sticky_error`: what CUDA still complains of afterwards.
    `out_of_memory`, `skipped_tactics`: lines of FlashInfer's log. `downloads`: addresses that the rank asked for.
    """

    rank: int
    end: End
    step: str = ""
    why: str = ""
    exit_status: int | None = None
    device: str = ""
    strategy: str = ""
    report: Mapping[str, Any] = field(default_factory=dict)
    lookups: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    tactics_sha256: str = ""
    passed: tuple[str, ...] | None = None
    jit_s: float | None = None
    tuning_s: float | None = None
    errors: tuple[ErrorSeen, ...] = ()
    sticky_error: str = ""
    out_of_memory: tuple[str, ...] = ()
    skipped_tactics: tuple[str, ...] = ()
    downloads: tuple[str, ...] = ()
    log_tail: str = ""

    def as_json(self) -> dict[str, object]:
        return {
            "rank": self.rank,
            "end": self.end,
            "step": self.step,
            "why": self.why,
            "exit_status": self.exit_status,
            "device": self.device,
            "strategy": self.strategy,
            "report": dict(self.report),
            "lookups": {size: {name: dict(one) for name, one in by.items()} for size, by in self.lookups.items()},
            "tactics_sha256": self.tactics_sha256,
            "passed": None if self.passed is None else list(self.passed),
            "jit_s": self.jit_s,
            "tuning_s": self.tuning_s,
            "errors": [error.as_json() for error in self.errors],
            "sticky_error": self.sticky_error,
            "out_of_memory": list(self.out_of_memory),
            "skipped_tactics": list(self.skipped_tactics),
            "downloads": list(self.downloads),
            "log_tail": self.log_tail,
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> RankSeen:
        simple = (
            "rank end step why exit_status device strategy report lookups tactics_sha256 jit_s tuning_s sticky_error"
            " log_tail"
        )
        passed = body["passed"]
        return RankSeen(
            **{name: body[name] for name in simple.split()},
            passed=None if passed is None else tuple(passed),
            errors=tuple(ErrorSeen.from_json(one) for one in body["errors"]),
            out_of_memory=tuple(body["out_of_memory"]),
            skipped_tactics=tuple(body["skipped_tactics"]),
            downloads=tuple(body["downloads"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeen:
    """One run of a scenario, cold or warm: fresh processes, one for each rank.

    `seconds`: of the warm-up, the slowest rank's. `record` is the warm-up's own record without its ranks' parts
    (`WarmupRecord.as_json`), {} if no rank got that far.
    """

    ranks: tuple[RankSeen, ...]
    seconds: float | None = None
    record: Mapping[str, Any] = field(default_factory=dict)
    files: FilesSeen = field(default_factory=FilesSeen)

    @property
    def ended(self) -> bool:
        return bool(self.ranks) and all(rank.end == "ended" for rank in self.ranks)

    def as_json(self) -> dict[str, object]:
        return {
            "seconds": self.seconds,
            "record": dict(self.record),
            "files": self.files.as_json(),
            "ranks": [rank.as_json() for rank in self.ranks],
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> RunSeen:
        return RunSeen(
            ranks=tuple(RankSeen.from_json(one) for one in body["ranks"]),
            seconds=body["seconds"],
            record=body["record"],
            files=FilesSeen.from_json(body["files"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioSeen:
    """A scenario's two runs. `not_run`: why it did not take place, or INTERRUPTED; "" if it did."""

    name: str
    cold: RunSeen | None = None
    warm: RunSeen | None = None
    not_run: str = ""

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "not_run": self.not_run,
            "cold": self.cold and self.cold.as_json(),
            "warm": self.warm and self.warm.as_json(),
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> ScenarioSeen:
        return ScenarioSeen(
            name=body["name"],
            not_run=body["not_run"],
            cold=RunSeen.from_json(body["cold"]) if body["cold"] else None,
            warm=RunSeen.from_json(body["warm"]) if body["warm"] else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSeen:
    """What the scenarios ran on. Versions are null where they cannot be told; `packages` maps distributions to theirs,
    null for those that are not installed. `api`: what the installed tuner offers, named as the table's facts.
    """

    gpus: tuple[str, ...] = ()
    arch: str = ""
    driver: str | None = None
    cuda: str | None = None
    nvcc: str | None = None
    python: str = ""
    packages: Mapping[str, str | None] = field(default_factory=dict)
    api: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        return {
            "gpus": list(self.gpus),
            "arch": self.arch,
            "driver": self.driver,
            "cuda": self.cuda,
            "nvcc": self.nvcc,
            "python": self.python,
            "packages": dict(self.packages),
            "api": dict(self.api),
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> MachineSeen:
        names = ("arch", "driver", "cuda", "nvcc", "python", "packages", "api")
        return MachineSeen(gpus=tuple(body["gpus"]), **{name: body[name] for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All that a smoke run saw: the whole of its record's `measurements`, beside what is judged of it.

    `pinned`: package and version in versions.json and requirements. `bypasses`: environment variables that were set and
    taken out, with their values. `overrides`: the operator's own settings that stayed. `jit`: `fresh`, or what is known
    of the folder that `--jit-cache` gave. `not_covered`: what this run says nothing about, as packages not installed.
    """

    machine: MachineSeen
    scenarios: tuple[ScenarioSeen, ...] = ()
    pinned: Mapping[str, str] = field(default_factory=dict)
    bypasses: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)
    jit: Mapping[str, Any] = field(default_factory=dict)
    not_covered: tuple[str, ...] = ()
    took_s: float | None = None

    def as_json(self) -> dict[str, object]:
        return {
            "machine": self.machine.as_json(),
            "scenarios": [scenario.as_json() for scenario in self.scenarios],
            "pinned": dict(self.pinned),
            "bypasses": dict(self.bypasses),
            "overrides": dict(self.overrides),
            "jit": dict(self.jit),
            "not_covered": list(self.not_covered),
            "took_s": self.took_s,
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Seen:
        """Raises KeyError, TypeError, ValueError or AttributeError on another shape."""
        return Seen(
            machine=MachineSeen.from_json(body["machine"]),
            scenarios=tuple(ScenarioSeen.from_json(one) for one in body["scenarios"]),
            pinned=body["pinned"],
            bypasses=body["bypasses"],
            overrides=body["overrides"],
            jit=body["jit"],
            not_covered=tuple(body["not_covered"]),
            took_s=body["took_s"],
        )

    def scenario(self, name: str) -> ScenarioSeen | None:
        return next((one for one in self.scenarios if one.name == name), None)
