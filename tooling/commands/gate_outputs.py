"""Where a verdict goes: the terminal, and the files that were asked for."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from tooling.commands.argument_types import file
from tooling.commands.gate_inputs import evidence_folders, read_by_gate
from tooling.commands.terminal import Terminal
from tooling.edges.output_files import write_output
from tooling.errors import InputError
from tooling.gate.missing import render_missing
from tooling.gate.text import render_text
from tooling.gate.told import errands
from tooling.gate.values import Verdict
from tooling.pins.settings import FILE

RENDERERS = {
    "junit": ("junit", "render_junit", "the verdict as JUnit XML, for CI's own reports"),
    "markdown": ("markdown", "render_markdown", "the verdict as a GitHub job summary"),
    "html": ("html_page", "render_html", "the verdict as one self-contained page"),
    "attest": ("attestation", "render_statement", "the verdict as an in-toto Statement, to sign"),
}
"""Option, then module and function of `tooling.gate`, imported when they are asked for, and the help text."""

STDOUT = Path("-")


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("files (- is the terminal, in place of the summary)")
    for option, (_, _, text) in RENDERERS.items():
        group.add_argument(f"--{option}", type=file, metavar="FILE", help=text)


def check_outputs(args: argparse.Namespace) -> dict[str, Path]:
    """The files that were asked for, by option.

    Raises:
        InputError: two of them are one file, or one would be read as a record the next time.
    """
    outputs = {option: path for option in RENDERERS if (path := getattr(args, option)) is not None}
    seen: dict[Path, str] = {}
    for option, path in outputs.items():
        place = path if path == STDOUT else path.resolve()
        if place in seen:
            raise InputError(f"--{option} {path}: is where --{seen[place]} goes as well", reason="BAD_ARGUMENTS")
        seen[place] = option
        if place == (args.policy or args.root / FILE).resolve():
            raise InputError(
                f"--{option} {path}: is the policy itself", hint="name another file", reason="BAD_ARGUMENTS"
            )
        if path != STDOUT and read_by_gate(path, [*evidence_folders(args), *args.before]):
            raise InputError(
                f"--{option} {path}: lies in a folder of evidence, where the next gate would take it for a record",
                hint="name a file elsewhere",
                reason="BAD_ARGUMENTS",
            )
    return outputs


def say_verdict(terminal: Terminal, verdict: Verdict, outputs: Mapping[str, Path], *, only_missing: bool) -> None:
    """The summary, or with `--missing` the commands alone; nothing where a file's text goes to the terminal."""
    if STDOUT in outputs.values():
        return
    if only_missing:
        terminal.say(render_missing(errands(verdict), verdict.outcome).rstrip("\n"))
        return
    terminal.say(render_text(verdict, terminal.paint).rstrip("\n"))


def write_outputs(terminal: Terminal, verdict: Verdict, outputs: Mapping[str, Path]) -> None:
    """Renders all that was asked for before the first file is written.

    Raises:
        EdgeError: a file cannot be written.
    """
    texts = {option: _renderer(option)(verdict) for option in outputs}
    for option, path in outputs.items():
        if path == STDOUT:
            terminal.say(texts[option].rstrip("\n"))
        else:
            write_output(path, texts[option])


def _renderer(option: str) -> Callable[[Verdict], str]:
    module, function, _ = RENDERERS[option]
    found: Callable[[Verdict], str] = getattr(import_module(f"tooling.gate.{module}"), function)
    return found
