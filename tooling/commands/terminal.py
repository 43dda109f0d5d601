"""Where people read: text on stdout, or on stderr when stdout carries JSON; colour only on a terminal."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TextIO

from tooling.errors import EdgeError, ToolingError
from tooling.findings import Finding, Severity

_CODES = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36, "bold": 1, "dim": 2}
_SEVERITY_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


@dataclass(frozen=True, slots=True)
class Terminal:
    """A stream for people and whether it shows colour."""

    stream: TextIO
    colour: bool

    def say(self, text: str = "") -> None:
        """Prints the text with a newline, at once. A reader that has gone away is not an error.

        What the stream cannot encode (a file name that is no UTF-8, a dash on an ASCII terminal) is shown escaped.
        """
        try:
            print(_encodable(text, self.stream), file=self.stream, flush=True)
        except BrokenPipeError:
            _forget(self.stream)
        except OSError as cause:
            _forget(self.stream)
            raise EdgeError(
                f"the output cannot be written: {cause.strerror}", hint="send it elsewhere", reason="OUTPUT_FAILED"
            ) from cause

    def paint(self, text: str, *styles: str) -> str:
        """The text in those styles (`red`, `bold`, …) where colour is on; unchanged elsewhere."""
        if not self.colour or not styles:
            return text
        return f"\x1b[{';'.join(str(_CODES[style]) for style in styles)}m{text}\x1b[0m"

    def say_findings(self, findings: Iterable[Finding]) -> None:
        """One line a finding, errors first, each with its place and its hint below."""
        order = list(Severity)
        for finding in sorted(findings, key=lambda item: order.index(item.severity)):
            place = f"{finding.where}: " if finding.where else ""
            label = self.paint(f"{finding.severity}:", _SEVERITY_COLOURS[finding.severity], "bold")
            self.say(f"{place}{label} {finding.detail} {self.paint(f'[{finding.check}]', 'dim')}")
            if finding.hint:
                self.say(f"    {self.paint('hint:', 'blue')} {finding.hint}")

    def say_error(self, error: ToolingError) -> None:
        self.say(f"{self.paint('error:', 'red', 'bold')} {error.message}")
        if error.hint:
            self.say(f"    {self.paint('hint:', 'blue')} {error.hint}")

    def say_diff(self, lines: Iterable[str]) -> None:
        """A unified diff in git's colours."""
        for line in lines:
            self.say(self.paint(line, *_diff_style(line)))


def make_terminal(stream: TextIO | None, environ: Mapping[str, str]) -> Terminal:
    """A terminal on that stream, on nothing if it was closed; `NO_COLOR` and `FORCE_COLOR` are obeyed."""
    if stream is None:
        stream = io.StringIO()
    if environ.get("NO_COLOR"):
        return Terminal(stream, False)
    wanted = stream.isatty() and environ.get("TERM") != "dumb"
    return Terminal(stream, bool(environ.get("FORCE_COLOR")) or wanted)


def _diff_style(line: str) -> tuple[str, ...]:
    if line.startswith(("---", "+++")):
        return ("bold",)
    return {"+": ("green",), "-": ("red",), "@": ("cyan",)}.get(line[:1], ())


def _encodable(text: str, stream: TextIO) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _forget(stream: TextIO) -> None:
    """Points a broken stream at nothing, so that the interpreter's flush at exit stays quiet."""
    if stream in {sys.stdout, sys.stderr}:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
