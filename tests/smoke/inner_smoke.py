"""Stands for `tooling.commands.smoke` in a copy of the package: with `--image` the real container's way, else, inside
the container, whatever the test names with `--scenario`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

from tooling.commands.recording import add_evidence_argument, load_pinned_tree, make_record, save_record
from tooling.commands.report import Report
from tooling.commands.terminal import Terminal
from tooling.errors import EdgeError, ExitCode, InputError
from tooling.evidence import Status, seal
from tooling.findings import Finding


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--image")
    parser.add_argument("--scenario", nargs="+", default=["pass"])
    parser.add_argument("--jit-cache", type=Path)
    parser.add_argument("--jit-image")
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--stop", type=int, default=30)
    parser.add_argument("--network", default="none")
    add_evidence_argument(parser)


def run(args: argparse.Namespace, terminal: Terminal) -> Report:
    if args.image is not None:
        from tooling.commands.smoke_image import InnerRun, run_in_image

        inner = InnerRun(
            options=["--scenario", *args.scenario],
            limit_s=args.limit,
            stop_s=args.stop,
            network=args.network,
            jit_cache=args.jit_cache,
        )
        return run_in_image(args, terminal, inner)
    act = globals()[f"_{args.scenario[0].replace('-', '_')}"]
    report: Report = act(args, terminal)
    return report


def _record(
    args: argparse.Namespace, status: Status, *, reason: str | None = None, error: EdgeError | None = None
) -> Report:
    findings = (Finding(check="smoke", detail="one entry was lost", reason="LOST"),) if status == "fail" else ()
    tree = load_pinned_tree(args.root)
    seen: dict[str, object] = {
        "environ": dict(os.environ),
        "user": os.getuid(),
        "interfaces": sorted(os.listdir("/sys/class/net")),
        "shared_memory": os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize,
    }
    record = make_record(
        tree, stage="smoke", subject="sm90", status=status, reason=reason, findings=findings, measurements=seen
    )
    save_record(args, record)
    code = {"pass": ExitCode.OK, "fail": ExitCode.FINDINGS, "not-run": ExitCode.WORLD}[status]
    return Report(
        command="smoke", status=status, exit_code=code, findings=findings, error=error,
        fields={"records": [seal(record)], "story": "a story"},
    )  # fmt: skip


def _pass(args: argparse.Namespace, terminal: Terminal) -> Report:
    terminal.say("first line inside")
    (args.evidence / "smoke-sm90.log").write_text("what a worker said\n")
    (args.evidence / "image-release.json").write_text("{}")
    terminal.say("last line inside")
    return _record(args, "pass")


def _fail(args: argparse.Namespace, terminal: Terminal) -> Report:
    return _record(args, "fail", reason="LOST")


def _no_gpu(args: argparse.Namespace, terminal: Terminal) -> Report:
    return _record(
        args, "not-run", reason="NO_GPU", error=EdgeError("there is no GPU", hint="get one", reason="NO_GPU")
    )


def _old_driver(args: argparse.Namespace, terminal: Terminal) -> Report:
    terminal.say("UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 12080).")
    return _no_gpu(args, terminal)


def _bad_input(args: argparse.Namespace, terminal: Terminal) -> Report:
    raise InputError("no scenario is called 'x'", hint="there are others", reason="UNKNOWN_SCENARIO")


def _no_record(args: argparse.Namespace, terminal: Terminal) -> Report:
    return Report(command="smoke", status="pass", exit_code=ExitCode.OK, fields={"records": []})


def _crash(args: argparse.Namespace, terminal: Terminal) -> Report:
    raise ZeroDivisionError("a bug")


def _killed(args: argparse.Namespace, terminal: Terminal) -> Report:
    terminal.say("about to die")
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def _broken_record(args: argparse.Namespace, terminal: Terminal) -> Report:
    report = _record(args, "fail")
    path = args.evidence / "smoke-sm90.json"
    path.write_text(path.read_text().replace('"status": "fail"', '"status": "pass"'))
    return report


def _other_pins(args: argparse.Namespace, terminal: Terminal) -> Report:
    path = args.root / "versions.json"
    args.root = args.evidence / "moved"
    args.root.mkdir()
    body = json.loads(path.read_text())
    body["variable"]["FLASHINFER_VERSION"]["default"] = "0.6.12"
    (args.root / "versions.json").write_text(json.dumps(body))
    return _record(args, "pass")


def _hang_politely(args: argparse.Namespace, terminal: Terminal) -> Report:
    def end(*_: object) -> None:
        _record(args, "not-run", reason="INTERRUPTED")
        sys.exit(130)

    signal.signal(signal.SIGTERM, end)
    terminal.say("hanging")
    time.sleep(600)
    raise AssertionError


def _hang(args: argparse.Namespace, terminal: Terminal) -> Report:
    """As a process that waits for a driver: it hears no wish to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    terminal.say("hanging")
    time.sleep(600)
    raise AssertionError


def _jit(args: argparse.Namespace, terminal: Terminal) -> Report:
    known = args.jit_cache / "kernel.so"
    terminal.say(f"compiled before: {known.read_text()} {known.stat().st_mtime} {known.stat().st_mode & 0o111 != 0}")
    (args.jit_cache / "deep").mkdir()
    (args.jit_cache / "deep" / "new.so").write_text("new")
    known.write_text("changed")
    return _record(args, "pass")
