"""Starts a server, asks it GSM8K's word problems, and tells a crash from a slow start from wrong answers.

The budget for the start and the environment that is set are said first. The record goes to
evidence/gsm8k-CONFIG.json, with every question, a report and the server's log beside it.

Examples:
  tooling gsm8k configs/gsm8k/qwen3-0.6b.yaml
  tooling gsm8k CONFIG --image flashinfer-pin:cu130 --restarts 1
  tooling gsm8k CONFIG --server http://127.0.0.1:8000
  tooling gsm8k CONFIG --data ../gsm8k --baseline baselines/gsm8k-qwen3-0.6b.json
  tooling gsm8k CONFIG --plan
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tooling.commands.gsm8k_inputs import Asked, load_asked
from tooling.commands.gsm8k_serving import Stage
from tooling.commands.recording import PinnedTree, add_evidence_argument, load_pinned_tree, make_record, save_record
from tooling.commands.report import Report
from tooling.commands.terminal import Terminal
from tooling.edges.files.durable import make_private_folder, replace_file
from tooling.edges.files.reading import check_root
from tooling.edges.serving.ports import find_free_port
from tooling.edges.serving.signals import ending_politely
from tooling.errors import EdgeError, ExitCode
from tooling.evidence import Record, Status, seal
from tooling.findings import Finding, Severity
from tooling.gsm8k.comparison import Comparison
from tooling.gsm8k.config import Config
from tooling.gsm8k.hiding import find_secrets, show_address, show_variables, show_words
from tooling.gsm8k.launch import VERSION_CHECK_OFF, Launch, plan_launch
from tooling.gsm8k.report import render_comparison, render_plan, render_report, render_run
from tooling.gsm8k.results import (
    Run,
    ServerFacts,
    render_measurements,
    render_questions,
)
from tooling.gsm8k.verdict import blames_world, check_data, compare_runs, judge_stage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", type=Path, metavar="CONFIG", help="a YAML file; vLLM's own evaluation files too")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--image", metavar="TAG", help="run the server in a container of that image")
    where.add_argument("--server", metavar="URL", help="evaluate a server that runs already")
    parser.add_argument(
        "--restarts", type=int, choices=(0, 1), default=0, help="1: start and evaluate again over the warm cache"
    )
    parser.add_argument("--baseline", type=Path, metavar="RECORD", help="compare with an earlier gsm8k record")
    parser.add_argument("--data", metavar="DIR|URL", help="train.jsonl and test.jsonl there, in place of CONFIG's")
    parser.add_argument("--strict", action="store_true", help="oddities of CONFIG are errors")
    parser.add_argument("--plan", action="store_true", help="say what would be started and asked, and stop")
    add_evidence_argument(parser)


def run(args: argparse.Namespace, terminal: Terminal) -> Report:
    """Exit 0: good enough; 2: bad input; 3: no server, or a start-up timeout; 4: crash, wrong answers, a drop."""
    args.root = check_root(args.root)
    asked = load_asked(args)
    tree = load_pinned_tree(args.root, commit=args.commit)
    launch = None if args.server is not None else _plan_launch(args, asked)
    stage = _make_stage(args, asked, launch, terminal)
    for line in render_plan(asked.config, asked.data, stage.facts, restarts=args.restarts):
        terminal.say(line)
    early = [*asked.parsed.findings, *(launch.findings if launch else ()), *check_data(asked.config, asked.data)]
    if args.plan:
        terminal.say_findings(early)
        return Report(command="gsm8k", status="planned", exit_code=ExitCode.OK, findings=tuple(early))
    try:
        error = _conduct(stage, args.restarts, begin=lambda: _save_unfinished(args, asked, stage, tree, "UNFINISHED"))
    except KeyboardInterrupt:
        _save_unfinished(args, asked, stage, tree, "INTERRUPTED")
        raise
    return _finish(args, terminal, asked, stage, tree=tree, error=error, early=early)


def _plan_launch(args: argparse.Namespace, asked: Asked) -> Launch:
    return plan_launch(
        asked.config, free_port=find_free_port(), environ=asked.environ, path=str(args.config), strict=args.strict
    )


def _make_stage(args: argparse.Namespace, asked: Asked, launch: Launch | None, terminal: Terminal) -> Stage:
    config = asked.config
    url = launch.url if launch else str(args.server)
    log_path = _folder(args) / f"gsm8k-{config.name}.server.log"
    key = launch.api_key if launch else None
    if config.api_key_variable is not None:
        key = asked.environ.get(config.api_key_variable) or key
    return Stage(
        config=config,
        data=asked.data,
        launch=launch,
        url=url,
        api_key=key,
        image=args.image,
        environ=asked.environ,
        log_path=log_path,
        terminal=terminal,
        facts=ServerFacts(
            kind="url" if launch is None else "image" if args.image else "process",
            url=show_address(url),
            model=config.served_model_name,
            command=show_words(launch.argv) if launch else None,
            env=show_variables({**_inherited(args, asked), **launch.env}) if launch else {},
            image=args.image,
            log=log_path.name if launch else None,
        ),
        secrets=find_secrets(
            (*(launch.argv if launch else ()), url), {**asked.environ, **(launch.env if launch else config.env)}, key
        ),
    )


def _inherited(args: argparse.Namespace, asked: Asked) -> Mapping[str, str]:
    """What silences FlashInfer's own check in a process that we start here; a container inherits nothing."""
    value = asked.environ.get(VERSION_CHECK_OFF)
    return {} if args.image or value is None else {VERSION_CHECK_OFF: value}


def _conduct(stage: Stage, restarts: int, *, begin: Callable[[], None]) -> EdgeError | None:
    try:
        make_private_folder(stage.log_path.parent)
        with ending_politely():
            stage.conduct(restarts, begin=begin)
    except EdgeError as error:
        return EdgeError(stage.hide(error.message), hint=stage.hide(error.hint), reason=error.reason)
    except OSError as cause:
        return EdgeError(f"{stage.log_path.parent}: cannot be written: {cause.strerror}", reason="UNWRITABLE")
    last = stage.runs[-1].stop
    if last is not None and blames_world(last):
        return EdgeError(last.detail, hint=_hint(stage.runs[-1]), reason=last.reason)
    return None


def _hint(run: Run) -> str:
    if run.stop is None or run.stop.reason != "STARTUP_TIMEOUT":
        return ""
    far = f"it had got as far as: {run.progress[-1]}; " if run.progress else ""
    return f"{far}raise startup_max_wait_seconds if it still made progress"


def _save_unfinished(args: argparse.Namespace, asked: Asked, stage: Stage, tree: PinnedTree, reason: str) -> None:
    """Replaces an earlier record, so that no old pass stands for a stage that was ended from outside."""
    _save(args, asked, stage, tree=tree, status="not-run", reason=reason, findings=(), comparisons={})


def _finish(
    args: argparse.Namespace,
    terminal: Terminal,
    asked: Asked,
    stage: Stage,
    *,
    tree: PinnedTree,
    error: EdgeError | None,
    early: Sequence[Finding],
) -> Report:
    config, runs = asked.config, stage.runs
    comparisons = compare_runs(config, runs, asked.baseline)
    judged = judge_stage(
        config, runs, stage.facts, comparisons, baseline=asked.baseline, pinned=tree.flashinfer_version
    )
    findings = [*judged, *early]
    first = next((finding.reason for finding in findings if finding.severity is Severity.ERROR), None)
    # What a finished run has shown stays true, also where the second start then failed.
    failed = first is not None and (error is None or (bool(runs) and runs[0].stop is None))
    status: Status = "fail" if failed else "pass" if error is None else "not-run"
    reason = first if failed or error is None else error.reason
    for each in runs:
        terminal.say("\n".join(render_run(each, config)))
    for against, comparison in comparisons.items():
        terminal.say(render_comparison(comparison, against))
    terminal.say_findings(findings)
    record, path = _save(
        args, asked, stage, tree=tree, status=status, reason=reason, findings=findings, comparisons=comparisons
    )
    terminal.say(f"{terminal.paint(status, 'green' if status == 'pass' else 'red', 'bold')}: {path}")
    return _report(status, record, findings, error)


def _save(
    args: argparse.Namespace,
    asked: Asked,
    stage: Stage,
    *,
    tree: PinnedTree,
    status: Status,
    reason: str | None,
    findings: Sequence[Finding],
    comparisons: Mapping[str, Comparison],
) -> tuple[Record, Path]:
    """Writes the report, the questions and the record of what `stage` has so far."""
    report = render_report(
        asked.config,
        status=f"{status} ({reason})" if status == "not-run" else status,
        data=asked.data,
        server=stage.facts,
        runs=stage.runs,
        comparisons=comparisons,
        findings=findings,
    )
    files = _write_files(args, asked.config, report, render_questions(stage.runs))
    record = make_record(
        tree,
        stage="gsm8k",
        subject=asked.config.name,
        status=status,
        reason=reason,
        findings=findings,
        image_id=stage.facts.image_id,
        manifest_digest=stage.facts.manifest_digest,
        measurements=_measure(asked, stage, comparisons, files),
    )
    return record, save_record(args, record)


def _measure(
    asked: Asked, stage: Stage, comparisons: Mapping[str, Comparison], files: Mapping[str, object]
) -> dict[str, object]:
    return render_measurements(
        asked.config,
        data=asked.data,
        data_overridden=asked.data_overridden,
        server=stage.facts,
        runs=stage.runs,
        baseline=comparisons.get("baseline"),
        warm=comparisons.get("warm cache"),
        baseline_source=asked.baseline_source,
        baseline_of=asked.baseline_of,
        files=files,
    )


def _report(status: Status, record: Record, findings: Sequence[Finding], error: EdgeError | None) -> Report:
    code = {"pass": ExitCode.OK, "fail": ExitCode.FINDINGS, "not-run": ExitCode.WORLD}[status]
    fields = {"records": [seal(record)]}
    return Report(command="gsm8k", status=status, exit_code=code, findings=tuple(findings), error=error, fields=fields)


def _write_files(args: argparse.Namespace, config: Config, report: str, questions: str) -> dict[str, object]:
    """The report and the questions beside the record; their names and digests for it."""
    written: dict[str, object] = {}
    for key, suffix, text in (("questions", "questions.jsonl", questions), ("report", "report.md", report)):
        path = _folder(args) / f"gsm8k-{config.name}.{suffix}"
        try:
            make_private_folder(path.parent)
            replace_file(path, text.encode())
        except OSError as cause:
            raise EdgeError(f"{path}: cannot be written: {cause.strerror}", reason="UNWRITABLE") from cause
        written[key] = {"name": path.name, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    return written


def _folder(args: argparse.Namespace) -> Path:
    return Path(args.evidence or args.root / "evidence")
