"""Runs the chosen scenarios, each cold and then warm, and returns what was seen. Never raises for what a worker does.

The workers of the next run are started while the present one works: they import meanwhile, and wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from tooling.capabilities.gating import Strategy, World, gate
from tooling.edges.smoke.cache_root import check_room, lay_out, list_files, place
from tooling.edges.smoke.process import Worker
from tooling.edges.smoke.runs import Conditions, Run, make_run
from tooling.edges.smoke.watching import Crew
from tooling.smoke.expectations import fit_scenario
from tooling.smoke.files_seen import FilesSeen
from tooling.smoke.observations import RankSeen, RunSeen, ScenarioSeen
from tooling.smoke.scenarios import Scenario
from tooling.warmup.identity import cache_name
from tooling.warmup.settings import Deadlines

NO_ROW = "the capabilities table has no row for the installed release"
BROKEN_IMPORT = "FlashInfer cannot be imported"
UNPREPARED = "while the file was made that is laid out here"


class Audience(Protocol):
    """Whoever watches while scenarios run."""

    def begin(self, scenario: str, temperature: str) -> None: ...

    def working(self, workers: Sequence[Worker]) -> None: ...

    def end(self, scenario: str, temperature: str, run: RunSeen) -> None: ...


class Orchestrator:
    """One smoke run. `seen` grows while it works, so that what was seen before an interrupt can be recorded."""

    def __init__(self, conditions: Conditions, scenarios: Sequence[Scenario], audience: Audience) -> None:
        self._conditions = conditions
        self._audience = audience
        self.scenarios = tuple(fit_scenario(scenario, conditions.row) for scenario in scenarios)
        self.seen: dict[str, ScenarioSeen] = {}
        self._kept: dict[int, dict[str, Any]] = {}
        self._spent: dict[str, float] = {}
        self._next: Crew | None = None
        self._next_folder: Path | None = None

    def conduct(self) -> tuple[ScenarioSeen, ...]:
        """Runs them in order. No process is left, also when it is interrupted."""
        if why := self._nothing_to_run():
            self.seen = {one.name: ScenarioSeen(name=one.name, not_run=why) for one in self.scenarios}
            return self.result()
        runs = self._plan()
        try:
            for number, run in enumerate(runs):
                if self._is_worth_it(run):
                    self._conduct(run, next((one for one in runs[number + 1 :] if self._is_worth_it(one)), None))
        finally:
            if self._next is not None:
                self._next.close()
                self._next = None
        return self.result()

    def result(self, not_run: str = "") -> tuple[ScenarioSeen, ...]:
        """What was seen of every scenario; `not_run` says why those are missing that have no two runs."""
        found = [self.seen.get(one.name, ScenarioSeen(name=one.name)) for one in self.scenarios]
        return tuple(replace(one, not_run=not_run) if not_run and one.warm is None else one for one in found)

    def _nothing_to_run(self) -> str:
        """Why no worker could do anything on the installed release, or ""."""
        if self._conditions.broken:
            return BROKEN_IMPORT
        if self._conditions.row is None:
            return NO_ROW
        gating = gate(self._conditions.row.facts, World())
        return gating.why if gating.strategy is Strategy.NONE else ""

    def _is_worth_it(self, run: Run) -> bool:
        """A warm run after a cold one that did not end would show nothing, nor any without the file to lay out."""
        before = self.seen.get(run.scenario.name)
        return before is None or (run.temperature == "warm" and before.cold is not None and before.cold.ended)

    def _plan(self) -> list[Run]:
        laid = {one.ranks: one for one in self.scenarios if one.layout != "none"}
        runs = [self._preparation(scenario) for _, scenario in sorted(laid.items())]
        for scenario in self.scenarios:
            cold, warm = (make_run(self._conditions, scenario, temperature) for temperature in ("cold", "warm"))
            if scenario.layout != "none":
                cold.lay = self._layer(scenario, cold.cache)
            runs += [cold, warm]
        # Preparations come right before the first scenario that needs one, so that the plain ones are seen first.
        plain = [run for run in runs if run.shown and run.scenario.layout == "none" and not run.scenario.forced]
        forced = [run for run in runs if run.scenario.forced]
        return [*plain, *(run for run in runs if run not in plain and run not in forced), *forced]

    def _preparation(self, scenario: Scenario) -> Run:
        """A cold run of the same world, whose cache the layouts are made from."""
        world = replace(scenario, name=f"prepare-{scenario.ranks}", layout="none")
        run = make_run(self._conditions, world, "cold", keep=True)
        run.shown = False
        return run

    def _layer(self, scenario: Scenario, cache: Path) -> Callable[[], None]:
        def lay() -> None:
            kept = self._kept.get(scenario.ranks, {})
            source = self._conditions.folder / f"prepare-{scenario.ranks}"
            if lay_out(scenario.layout, source / "cache", cache):
                return
            saved = source / "cold" / "saved.json"
            if saved.is_file() and kept.get("path"):
                altered = source / "altered"
                name = cache_name(Strategy.LEADER_BROADCAST, rank=0, ranks=scenario.ranks)
                place(saved, altered, kept["path"], name)
                lay_out(scenario.layout, altered, cache)

        return lay

    def _conduct(self, run: Run, following: Run | None) -> None:
        crew = self._take(run)
        try:
            run.cache.mkdir(parents=True, exist_ok=True)
            if run.lay is not None:
                run.lay()
            if run.shown:
                self._audience.begin(run.scenario.name, run.temperature)
            before = list_files(run.cache)
            self._next = self._start(following) if following and self._conditions.ahead else None
            started = time.monotonic()
            ranks = crew.run(self._left(run), self._audience.working, peer_grace_s=self._conditions.peer_grace_s)
            self._spent[run.scenario.name] = self._spent.get(run.scenario.name, 0.0) + time.monotonic() - started
        finally:
            crew.close()
        answers = [worker.answer() for worker in crew.workers]
        seen = _run_seen(ranks, answers, FilesSeen(before=before, after=list_files(run.cache)))
        if not seen.ended:
            check_room(self._conditions.folder, self._conditions.jit)
        if run.shown:
            self._note(run, seen)
        elif seen.ended:
            self._kept[run.scenario.ranks] = answers[0]
        else:
            self._note_unprepared(run.scenario.ranks, seen)

    def _left(self, run: Run) -> Deadlines:
        """A scenario's two runs share its total."""
        deadlines = self._conditions.deadlines
        return replace(deadlines, total_s=max(deadlines.total_s - self._spent.get(run.scenario.name, 0.0), 1.0))

    def _start(self, run: Run) -> Crew:
        self._next_folder = run.folder
        return Crew(
            run.orders,
            run.folder,
            run.environ,
            python=self._conditions.python,
            relayed=self._conditions.launched is not None,
        )

    def _take(self, run: Run) -> Crew:
        """The crew that was started for that run ahead, or a new one; one for a run that is left out is ended."""
        ahead, self._next = self._next, None
        if ahead is not None and self._next_folder == run.folder:
            return ahead
        if ahead is not None:
            ahead.close()
        return self._start(run)

    def _note_unprepared(self, ranks: int, seen: RunSeen) -> None:
        """Scenarios for which no file could be made take the run that was to make it for their cold one."""
        failed = tuple(
            rank if rank.end == "ended" else replace(rank, why=f"{rank.why} ({UNPREPARED})") for rank in seen.ranks
        )
        for scenario in self.scenarios:
            if scenario.layout != "none" and scenario.ranks == ranks:
                run = make_run(self._conditions, scenario, "cold")
                self._audience.begin(scenario.name, run.temperature)
                self._note(run, replace(seen, ranks=failed))

    def _note(self, run: Run, seen: RunSeen) -> None:
        name = run.scenario.name
        before = self.seen.get(name, ScenarioSeen(name=name))
        self.seen[name] = replace(before, cold=seen) if run.temperature == "cold" else replace(before, warm=seen)
        self._audience.end(name, run.temperature, seen)


def _run_seen(ranks: tuple[RankSeen, ...], answers: list[dict[str, Any]], files: FilesSeen) -> RunSeen:
    """The run of those ranks. What was read cannot be told where a rank left no answer."""
    told = [answer for answer in answers if answer]
    there = {file.path for file in (*files.before, *files.after)}
    opened = {name for answer in told for name in answer["opened"]} & there
    seconds = [answer["seconds"] for answer in told if "seconds" in answer]
    return RunSeen(
        ranks=ranks,
        seconds=max(seconds) if seconds else None,
        record=next((answer["record"] for answer in told if "record" in answer), {}),
        files=replace(files, read=tuple(sorted(opened)) if len(told) == len(ranks) else None),
    )
