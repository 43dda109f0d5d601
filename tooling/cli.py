"""The command line: finds a command, imports and runs it, and turns its report into text, JSON and an exit code."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn, Protocol

from tooling import __version__
from tooling.commands.argument_types import folder
from tooling.commands.report import Report, render_json
from tooling.commands.terminal import Terminal, make_terminal
from tooling.errors import EdgeError, ExitCode, InputError, ToolingError
from tooling.findings import render_annotation

INTERRUPTED = 130
"""What shells give a process that Ctrl-C ended."""

FEW_COLLECTIONS = 50_000
"""Allocations between two collections: imports make many objects and no cycles, and the default costs a bump 9 %."""

COMMANDS = {
    "bump": "move the FlashInfer pin in every file at once, or in none",
    "check": "say whether every place agrees with versions.json",
    "sites": "list every place in a tree that holds a FlashInfer version",
    "init": "write a release.toml for a tree, from the pins in it",
    "outdated": "say whether a newer release could be taken",
    "probe": "read what a release can do, from its wheel, without installing it",
    "capabilities": "show what releases can do, their faults, and how to warm up",
    "image": "build the CUDA images and prove that the pin is what is inside",
    "cache": "carry a tuned kernel cache from one machine to a fleet",
    "smoke": "warm FlashInfer up on a GPU in every scenario, and say whether that is what the table promises",
    "gsm8k": "start a server, evaluate it, tell crash from slow start from wrong answers",
    "gate": "read what the stages recorded: PASS, FAIL or INCOMPLETE",
    "verify-attestation": "check what an attestation of the gate says, about which image, under which policy",
    "matrix": "say what CI builds and on which GPUs it runs, as JSON",
}
"""Every command, in the order in which a release goes through them; `module_of` says where each one is."""


class Command(Protocol):
    """What a command's module offers. `run` returns the report; it prints for people through the terminal."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace, terminal: Terminal) -> Report: ...


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are errors like all others, so that `--json` holds for them too."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{self.prog}: {message}", hint=f"see `{self.prog} --help`", reason="BAD_ARGUMENTS")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit code (DESIGN, three outcomes)."""
    gc.set_threshold(FEW_COLLECTIONS)
    words = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in words
    terminal = make_terminal(sys.stderr if as_json else sys.stdout, os.environ)
    name = ""
    try:
        name, rest = _split(words)
        report = _run(name, rest, terminal)
    except ToolingError as error:
        report = _error_report(name, error)
    except KeyboardInterrupt:
        terminal.say("interrupted")
        return INTERRUPTED
    except Exception as bug:  # noqa: BLE001  # the one place where our own crash becomes exit code 1
        absent = _missing_package(bug)
        report = _error_report(name, absent) if absent else _crash_report(name, bug)
    try:
        _finish(report, as_json=as_json)
    except ToolingError as error:
        make_terminal(sys.stderr, os.environ).say_error(error)
        return int(max(report.exit_code, error.exit_code))
    return int(report.exit_code)


def module_of(command: str) -> str:
    """The module of a command: a name may hold dashes, a module may not."""
    return f"tooling.commands.{command.replace('-', '_')}"


def make_parser(name: str) -> argparse.ArgumentParser:
    """The command's own parser, with what every command takes."""
    module: Command = import_module(module_of(name))
    parser = _Parser(
        prog=f"tooling {name}",
        description=(module.__doc__ or "").split("\n\nExamples:")[0],
        epilog=_examples(module.__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--root", type=folder, default=Path(), metavar="DIR", help="the tree to work on (default: here)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, people's text on stderr")
    module.add_arguments(parser)
    return parser


def _run(name: str, words: list[str], terminal: Terminal) -> Report:
    module: Command = import_module(module_of(name))
    return module.run(make_parser(name).parse_args(words), terminal)


def _error_report(name: str, error: ToolingError) -> Report:
    """The report of a command that raised; a command's module may say what its JSON object holds then."""
    shaped: Callable[[ToolingError], Report] | None = None
    if name in COMMANDS:
        with suppress(ImportError):
            shaped = getattr(import_module(module_of(name)), "report_error", None)
    if shaped is not None:
        return shaped(error)
    return Report(command=name, status="error", exit_code=error.exit_code, error=error)


def _missing_package(bug: Exception) -> EdgeError | None:
    """What to say where a package is not installed: a checkout runs as it is, and then has only what Python has."""
    package = (bug.name or "").partition(".")[0] if isinstance(bug, ModuleNotFoundError) else ""
    if package in {"", "tooling"}:
        return None
    return EdgeError(
        f"{sys.executable} has no package `{package}`, which this command needs",
        hint=f"`pip install -e {Path(__file__).parents[1]}` into it, or run the command with nox",
        reason="NO_PACKAGE",
    )


def _crash_report(name: str, bug: Exception) -> Report:
    import traceback  # noqa: PLC0415  # only a crash needs it

    traceback.print_exception(bug)
    crash = ToolingError(f"this is a bug in the tool: {type(bug).__name__}: {bug}", reason="CRASH")
    return Report(command=name, status="error", exit_code=ExitCode.CRASH, error=crash)


def _split(words: list[str]) -> tuple[str, list[str]]:
    """The command's name and all other words; `--root DIR` and `--json` may stand before the name."""
    parser = _Parser(
        prog="tooling",
        description="The release pipeline for the FlashInfer pin.",
        allow_abbrev=False,
        epilog=_overview(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tooling {__version__}")
    parser.add_argument("--root", metavar="DIR", help="the tree to work on (default: here)")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, people's text on stderr")
    parser.add_argument("command", metavar="COMMAND", choices=COMMANDS, help="one of those below")
    position = _command_position(words)
    before = parser.parse_args(words[: position + 1])
    common = [
        *(["--root", before.root] if before.root is not None else []),
        *(["--json"] if before.json else []),
    ]
    return before.command, [*common, *words[position + 1 :]]


def _command_position(words: list[str]) -> int:
    position = 0
    while position < len(words) and words[position].startswith("-"):
        position += 2 if words[position] == "--root" else 1
    return position


def _finish(report: Report, *, as_json: bool) -> None:
    errors = make_terminal(sys.stderr, os.environ)
    if report.error is not None:
        errors.say_error(report.error)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        # GitHub reads both streams; what goes to stdout may be a file, such as `gate --junit - > gate.xml`.
        for finding in report.findings:
            errors.say(render_annotation(finding))
    if as_json:
        make_terminal(sys.stdout, {"NO_COLOR": "1"}).say(render_json(report).rstrip("\n"))


def _overview() -> str:
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:<{width}}{summary}" for name, summary in COMMANDS.items()]
    return "\n".join(["commands:", *lines, "", "`tooling COMMAND --help` shows its options and examples."])


def _examples(docstring: str) -> str:
    _, found, examples = docstring.partition("\n\nExamples:")
    return f"examples:{examples}".rstrip() if found else ""
