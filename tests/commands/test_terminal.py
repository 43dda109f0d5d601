"""What people see: whole text, colour only where it is shown, and never a crash over a character or a closed pipe."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from tooling.commands.terminal import Terminal, make_terminal
from tooling.errors import InputError
from tooling.findings import Finding, Severity

FINDINGS = [
    Finding(check="age", detail="two weeks old", severity=Severity.NOTE),
    Finding(check="drift", detail="0.6.12, not 0.6.13", path="docker/Dockerfile", line=3, hint="run `bump`"),
    Finding(check="prose", detail="old", path="README.md", severity=Severity.WARNING),
]


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def said(colour: bool = False) -> tuple[Terminal, io.StringIO]:
    stream = io.StringIO()
    return Terminal(stream, colour), stream


def test_findings_are_listed_errors_first() -> None:
    terminal, stream = said()
    terminal.say_findings(FINDINGS)
    assert stream.getvalue() == (
        "docker/Dockerfile:3: error: 0.6.12, not 0.6.13 [drift]\n"
        "    hint: run `bump`\n"
        "README.md: warning: old [prose]\n"
        "note: two weeks old [age]\n"
    )


def test_findings_are_coloured_on_a_terminal() -> None:
    terminal, stream = said(colour=True)
    terminal.say_findings(FINDINGS[1:2])
    assert stream.getvalue() == (
        "docker/Dockerfile:3: \x1b[31;1merror:\x1b[0m 0.6.12, not 0.6.13 \x1b[2m[drift]\x1b[0m\n"
        "    \x1b[34mhint:\x1b[0m run `bump`\n"
    )


def test_an_error_is_one_sentence_and_a_hint() -> None:
    terminal, stream = said()
    terminal.say_error(InputError("a: no such file", hint="make it"))
    terminal.say_error(InputError("b"))
    assert stream.getvalue() == "error: a: no such file\n    hint: make it\nerror: b\n"


def test_a_diff_has_the_colours_of_git() -> None:
    terminal, stream = said(colour=True)
    terminal.say_diff(["--- a/x", "+++ b/x", "@@ -1 +1 @@", "-old", "+new", " same", ""])
    assert stream.getvalue() == (
        "\x1b[1m--- a/x\x1b[0m\n\x1b[1m+++ b/x\x1b[0m\n\x1b[36m@@ -1 +1 @@\x1b[0m\n"
        "\x1b[31m-old\x1b[0m\n\x1b[32m+new\x1b[0m\n same\n\n"
    )


@pytest.mark.parametrize(
    ("stream", "environ", "colour"),
    [
        (Tty(), {}, True),
        (Tty(), {"TERM": "dumb"}, False),
        (Tty(), {"NO_COLOR": "1"}, False),
        (Tty(), {"NO_COLOR": ""}, True),
        (io.StringIO(), {}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
    ids=["terminal", "dumb terminal", "no colour", "empty is unset", "pipe", "forced", "both"],
)
def test_colour_is_only_where_it_is_shown(stream: io.StringIO, environ: Mapping[str, str], colour: bool) -> None:
    assert make_terminal(stream, environ).colour is colour


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("ascii", b"caf\\xe9 \\udc80 \\u2014\n"), ("utf-8", b"caf\xc3\xa9 \\udc80 \xe2\x80\x94\n")],
)
def test_what_a_stream_cannot_encode_is_shown_escaped(encoding: str, shown: bytes) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    Terminal(stream, False).say("caf\u00e9 \udc80 \u2014")
    assert raw.getvalue() == shown
    stream.close()


def test_a_reader_that_has_gone_away_is_no_error() -> None:
    program = (
        "import sys\nfrom tooling.commands.terminal import Terminal\nterminal = Terminal(sys.stdout, False)\n"
        "for _ in range(3): terminal.say('x' * 70_000)\nprint('still here', file=sys.stderr)"
    )
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "still here\n")


def test_a_broken_stream_of_somebody_else_is_left() -> None:
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    Terminal(Broken(), False).say("x")
