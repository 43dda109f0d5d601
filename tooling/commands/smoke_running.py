"""The smoke stage on this machine: what is loaded before, what is recorded whatever comes, and the report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from tooling.capabilities.table import Row, Table, lookup
from tooling.commands.recording import (
    REQUIREMENTS,
    evidence_folder,
    load_pinned_tree,
)
from tooling.commands.report import Report
from tooling.commands.smoke_progress import open_showing
from tooling.commands.smoke_stage import Stage
from tooling.commands.terminal import Terminal
from tooling.edges.capability_table import load_table
from tooling.edges.environment import load_environment
from tooling.edges.evidence_files import load_record, prepare_folder
from tooling.edges.files.reading import check_root
from tooling.edges.files.tree import load_optional_text
from tooling.edges.serving.signals import ending_politely
from tooling.edges.smoke.devices import check_gpus, choose_devices
from tooling.edges.smoke.jit_cache import open_jit_cache
from tooling.edges.smoke.launcher import Launched, find_launched, open_store, say_done
from tooling.edges.smoke.machine import look_at_machine
from tooling.edges.smoke.orchestrator import Orchestrator
from tooling.edges.smoke.refusals import read_refusal
from tooling.edges.smoke.runs import Conditions
from tooling.edges.smoke.scratch import scratch_folder
from tooling.edges.smoke.serving_rank import serve
from tooling.errors import EdgeError, ExitCode, InputError, ToolingError
from tooling.evidence import Record, seal
from tooling.findings import Finding
from tooling.pins.requirements import RequirementLine, parse_requirements
from tooling.smoke.checks import judge_smoke
from tooling.smoke.environment import Cleaned, clean
from tooling.smoke.judgement import measurements
from tooling.smoke.observations import BROKEN, INTERRUPTED, MachineSeen, ScenarioSeen
from tooling.smoke.orders import Rehearsal
from tooling.smoke.pinned import find_pinned
from tooling.smoke.scenarios import Scenario
from tooling.smoke.story import render_story
from tooling.smoke.summary import render_summary
from tooling.warmup.settings import Deadlines

MAIN = "flashinfer-python"


def run_here(
    args: argparse.Namespace,
    terminal: Terminal,
    requested: tuple[Scenario, ...],
    *,
    rehearsal: Rehearsal | None = None,
    table: Path | None = None,
) -> Report:
    """Runs the scenarios in the Python at hand. `rehearsal` and `table` are for tests; a rehearsal never passes.

    Raises:
        InputError: something to mend, and nothing was written. EdgeError: the evidence folder cannot be written.
    """
    args.root = check_root(args.root)
    tree = load_pinned_tree(args.root, commit=args.commit)
    pinned = find_pinned(tree.variables, _requirements(args.root))
    rows = load_table(table) if table else load_table()
    prepare_folder(evidence_folder(args))
    environ = load_environment()
    launched = find_launched(environ)
    if launched is not None and launched.rank > 0:
        return _serve(launched, clean(environ))
    ranks = launched.ranks if launched else args.ranks
    stage = Stage(
        args=args,
        terminal=terminal,
        tree=tree,
        cleaned=clean(environ),
        pinned=pinned,
        requested=tuple(replace(one, ranks=ranks) if one.ranks > 1 else one for one in requested),
        launched=launched,
    )
    with _leading(launched) as report:
        report.append(_run(stage, rows, rehearsal, str(table) if table else ""))
        return report[0]


def _run(stage: Stage, rows: Table, rehearsal: Rehearsal | None, table: str) -> Report:
    try:
        with ending_politely():
            devices = _look(stage, rehearsal)
            return _conduct(stage, rows, devices, {"rehearsal": rehearsal, "table": table})
    except EdgeError as error:
        return _not_run(stage, error)
    except KeyboardInterrupt:
        stage.interrupted()
        raise


def _serve(launched: Launched, cleaned: Cleaned) -> Report:
    """What another rank than the first does: rank 0 records, and this one ends as it does."""
    with ending_politely(), scratch_folder() as folder:
        code = ExitCode(serve(launched, folder, cleaned.environ, sys.executable))
    status = {ExitCode.OK: "pass", ExitCode.FINDINGS: "fail"}.get(code, "not-run")
    return Report(command="smoke", status=status, exit_code=code, fields={"records": []})


@contextmanager
def _leading(launched: Launched | None) -> Iterator[list[Report]]:
    """Lets the other ranks of a launcher's world end once this one has, whatever it ends with."""
    reports: list[Report] = []
    store = open_store(launched, hosts=True) if launched else None
    try:
        yield reports
    finally:
        if launched is not None:
            say_done(store, launched, int(reports[0].exit_code if reports else ExitCode.WORLD))


def explain(path: Path, terminal: Terminal) -> Report:
    """Tells a record's story. Raises InputError where it is no smoke record."""
    record = load_record(path)
    try:
        story = render_story(record)
    except InputError as cause:
        raise InputError(f"{path}: {cause.message}", hint=cause.hint, reason=cause.reason) from cause
    for line in story:
        terminal.say(line)
    return Report(
        command="smoke", status=record.status, exit_code=ExitCode.OK, findings=record.findings,
        fields={"records": [seal(record)]},
    )  # fmt: skip


def _look(stage: Stage, rehearsal: Rehearsal | None) -> tuple[int, ...]:
    """The GPUs to use. Fills in the machine; a rehearsal has no GPU, and its record says so."""
    args = stage.args
    found = look_at_machine(stage.cleaned.environ, stage.pinned)
    stage.machine = _machine_seen(found, devices=())
    if rehearsal is not None:
        return ()
    check_gpus(found)
    devices = choose_devices(args.device, found, ranks=_ranks_here(stage))
    stage.machine = _machine_seen(found, devices=devices)
    return devices


def _machine_seen(found: Mapping[str, Any], *, devices: tuple[int, ...]) -> MachineSeen:
    simple = {name: found[name] for name in ("driver", "cuda", "nvcc", "python", "packages", "api")}
    gpus = tuple(found["gpus"][number] for number in devices)
    return MachineSeen(gpus=gpus, arch=found["archs"][devices[0]] if devices else "", **simple)


def _ranks_here(stage: Stage) -> int:
    """How many ranks of one run this host carries at most."""
    if stage.launched is not None:
        return stage.launched.local_ranks
    return max((scenario.ranks for scenario in stage.requested), default=1)


def _find_row(stage: Stage, rows: Table) -> Row | None:
    """The row of the installed release; None without one, which the checks turn into a finding."""
    try:
        return lookup(rows, Version(stage.machine.packages.get(MAIN) or ""))
    except InvalidVersion:
        return None


def _conduct(stage: Stage, rows: Table, devices: tuple[int, ...], conditions: Mapping[str, Any]) -> Report:
    """Runs the scenarios, and records what was seen of them, however that ends."""
    args, row = stage.args, _find_row(stage, rows)
    made_for = {"cuda": stage.machine.cuda, "flashinfer": stage.machine.packages.get(MAIN), "arch": stage.machine.arch}
    if args.jit_cache is not None:
        stage.jit = open_jit_cache(args.jit_cache, {**made_for, "image": args.jit_image})
    else:
        stage.jit = {"fresh": True}
    stage.save("not-run", "UNFINISHED")
    with scratch_folder() as folder:
        showing = open_showing(stage.terminal, stage.requested)
        orchestrator = Orchestrator(
            Conditions(
                folder=folder / "runs",
                jit=args.jit_cache.resolve() if args.jit_cache else folder / "jit",
                environ=stage.cleaned.environ,
                gpus=devices,
                row=row,
                broken=BROKEN in stage.machine.api,
                max_tokens=args.max_tokens,
                launched=stage.launched,
                deadlines=Deadlines(no_progress_s=args.no_progress_s, total_s=args.scenario_timeout_s),
                **conditions,
            ),
            stage.requested,
            showing,
        )
        why = INTERRUPTED
        try:
            scenarios = orchestrator.conduct()
        except OSError as cause:
            why = "the run could not go on"
            raise read_refusal(cause) from cause
        finally:
            showing.close()
            stage.so_far = orchestrator.result(why)
    return _finish(stage, orchestrator.scenarios, scenarios, row)


def _finish(stage: Stage, requested: Sequence[Scenario], scenarios: Sequence[ScenarioSeen], row: Row | None) -> Report:
    """Judges what was seen, says it, and records it."""
    seen = stage.seen(scenarios)
    judgement = judge_smoke(seen, row, requested=requested)
    record, path = stage.save(
        judgement.status, judgement.reason, findings=judgement.findings, body=measurements(seen, judgement)
    )
    terminal = stage.terminal
    terminal.say("\n".join(["", *render_summary(seen, judgement)]))
    terminal.say_findings(judgement.findings)
    colour = "green" if judgement.status == "pass" else "red"
    terminal.say(f"{terminal.paint(judgement.status, colour, 'bold')}: {path}")
    return _report(record, judgement.findings, error=None)


def _not_run(stage: Stage, error: EdgeError) -> Report:
    """The report of a run that the machine did not allow, with a record that says why."""
    finding = Finding(check="smoke-machine", detail=error.message, hint=error.hint, reason=error.reason)
    record, _ = stage.save("not-run", error.reason, findings=(finding,))
    return _report(record, (finding,), error=error)


def _report(record: Record, findings: Sequence[Finding], *, error: ToolingError | None) -> Report:
    code = {"pass": ExitCode.OK, "fail": ExitCode.FINDINGS, "not-run": ExitCode.WORLD}[record.status]
    return Report(
        command="smoke",
        status=record.status,
        exit_code=code,
        findings=tuple(findings),
        error=error,
        fields={"records": [seal(record)]},
    )


def _requirements(root: Path) -> list[RequirementLine]:
    listed = load_optional_text(root, REQUIREMENTS)
    return [] if listed is None else parse_requirements(listed.text)
