"""The command line: what is found, what is said, and what the process ends with."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tooling import __version__, cli
from tooling.commands.report import Report
from tooling.commands.terminal import Terminal
from tooling.errors import EdgeError, ExitCode, InputError, ToolingError
from tooling.findings import Finding, Severity

ROOT = Path(__file__).resolve().parents[1]
DOC = "Tries things.\n\nMore about it.\n\nExamples:\n    tooling try 5\n"
FINDING = Finding(check="drift", detail="two\nlines", path="a", line=3, severity=Severity.WARNING, hint="h", reason="R")


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[argparse.Namespace]]:
    """Puts a command `try` in the table that does what the test says; returns the arguments it was run with."""

    def put(outcome: Report | BaseException) -> list[argparse.Namespace]:
        seen: list[argparse.Namespace] = []

        def run(args: argparse.Namespace, terminal: Terminal) -> Report:
            seen.append(args)
            terminal.say("for people")
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        def add_arguments(parser: argparse.ArgumentParser) -> None:
            parser.add_argument("number", nargs="?", help="how many")

        module = SimpleNamespace(__doc__=DOC, add_arguments=add_arguments, run=run)
        monkeypatch.setitem(sys.modules, "tooling.commands.try", module)
        monkeypatch.setitem(cli.COMMANDS, "try", "try things")
        return seen

    return put


def report(**more: Any) -> Report:
    return Report(**{"command": "try", "status": "pass", "exit_code": ExitCode.OK, **more})


@pytest.mark.parametrize(
    "words",
    [
        ["--root", "here", "--json", "try", "5"],
        ["try", "--root", "here", "5", "--json"],
        ["--json", "try", "5", "--root=here"],
        ["--root=here", "try", "--json", "5"],
        ["--root", "there", "try", "--json", "5", "--root", "here"],
    ],
    ids=["before", "after", "both", "with =", "the last one counts"],
)
def test_common_options_stand_before_or_after_the_command(
    command: Callable[..., list[argparse.Namespace]], capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    seen = command(report())
    assert cli.main(words) == 0
    assert (str(seen[0].root), seen[0].json, seen[0].number) == ("here", True, "5")
    out, err = capsys.readouterr()
    assert json.loads(out)["command"] == "try"
    assert err == "for people\n"


def test_without_json_people_read_stdout(
    command: Callable[..., list[argparse.Namespace]], capsys: pytest.CaptureFixture[str]
) -> None:
    seen = command(report())
    assert cli.main(["try"]) == 0
    assert capsys.readouterr() == ("for people\n", "")
    assert (str(seen[0].root), seen[0].json, seen[0].number) == (".", False, None)


@pytest.mark.parametrize(
    ("outcome", "code", "kind"),
    [
        (InputError("a: wrong", hint="mend it", reason="BAD"), 2, "input"),
        (EdgeError("no answer"), 3, "edge"),
        (ToolingError("odd"), 1, "error"),
        (ZeroDivisionError("by zero"), 1, "error"),
    ],
    ids=["input", "edge", "own", "bug"],
)
def test_an_error_becomes_an_exit_code_and_an_object(
    command: Callable[..., list[argparse.Namespace]],
    capsys: pytest.CaptureFixture[str],
    outcome: Exception,
    code: int,
    kind: str,
) -> None:
    command(outcome)
    assert cli.main(["--json", "try"]) == code
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert (answer["command"], answer["status"], answer["exit"], answer["error"]["kind"]) == (
        "try",
        "error",
        code,
        kind,
    )
    assert f"error: {answer['error']['message']}" in err
    assert ("Traceback" in err) == isinstance(outcome, ZeroDivisionError)


def test_a_bug_is_called_one(
    command: Callable[..., list[argparse.Namespace]], capsys: pytest.CaptureFixture[str]
) -> None:
    command(ZeroDivisionError("by zero"))
    assert cli.main(["try"]) == ExitCode.CRASH
    assert "this is a bug in the tool: ZeroDivisionError: by zero" in capsys.readouterr().err


def test_a_package_that_is_not_installed_is_no_bug(
    command: Callable[..., list[argparse.Namespace]], capsys: pytest.CaptureFixture[str]
) -> None:
    command(ModuleNotFoundError("No module named 'tomlkit.items'", name="tomlkit.items"))
    assert cli.main(["--json", "try"]) == ExitCode.WORLD
    out, err = capsys.readouterr()
    error = json.loads(out)["error"]
    assert error["message"] == f"{sys.executable} has no package `tomlkit`, which this command needs"
    assert "pip install -e" in error["hint"]
    assert "Traceback" not in err


@pytest.mark.parametrize("name", ["tooling.no_such", None], ids=["one of our modules", "no name"])
def test_a_module_of_our_own_that_is_not_there_is_a_bug(
    command: Callable[..., list[argparse.Namespace]], capsys: pytest.CaptureFixture[str], name: str | None
) -> None:
    command(ModuleNotFoundError("No module", name=name))
    assert cli.main(["try"]) == ExitCode.CRASH
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_checkout_in_a_bare_python_says_what_it_lacks(name: str) -> None:
    bare = [sys.executable, "-S", "-m", "tooling", name, "--help"]
    ended = subprocess.run(bare, cwd=ROOT, env={}, capture_output=True, text=True, check=False)
    assert ended.returncode == ExitCode.WORLD
    assert "has no package `" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_ctrl_c_ends_as_shells_expect(
    command: Callable[..., list[argparse.Namespace]], capsys: pytest.CaptureFixture[str]
) -> None:
    command(KeyboardInterrupt())
    assert cli.main(["try"]) == 130
    assert capsys.readouterr().out == "for people\ninterrupted\n"


def test_the_object_holds_findings_and_the_commands_own_fields(
    command: Callable[..., list[argparse.Namespace]], capsys: pytest.CaptureFixture[str]
) -> None:
    command(report(status="moved", exit_code=ExitCode.FINDINGS, findings=(FINDING,), fields={"to": "caf\u00e9 \udc80"}))
    assert cli.main(["try", "--json"]) == 4
    out = capsys.readouterr().out
    assert out.isascii()
    assert json.loads(out) == {
        "command": "try",
        "status": "moved",
        "exit": 4,
        "findings": [FINDING.as_json()],
        "error": None,
        "to": "caf\u00e9 \udc80",
    }


def test_findings_become_annotations_on_github(
    command: Callable[..., list[argparse.Namespace]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    command(report(findings=(FINDING,)))
    cli.main(["try"])
    streams = capsys.readouterr()
    assert "::warning file=a,line=3,title=drift::two%0Alines h\n" in streams.err
    assert "::" not in streams.out


@pytest.mark.parametrize(
    "words",
    [[], ["nope"], ["--nope", "try"], ["try", "--nope"], ["try", "1", "2"], ["--root"], ["try", "--js"]],
    ids=["nothing", "no such command", "option before", "option after", "too many", "no value", "abbreviated"],
)
def test_bad_arguments_are_an_input_error(
    command: Callable[..., list[argparse.Namespace]], capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    seen = command(report())
    assert cli.main([*words, "--json"] if words else []) == 2
    assert not seen
    captured = capsys.readouterr()
    if words:
        answer = json.loads(captured.out)
        assert (answer["exit"], answer["error"]["reason"]) == (2, "BAD_ARGUMENTS")
        assert "--help" in answer["error"]["hint"]
    else:
        assert captured.err.startswith("error: tooling: the following arguments are required: COMMAND\n")


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    for name, summary in cli.COMMANDS.items():
        assert [name, summary] in [line.strip().split(maxsplit=1) for line in lines]


def test_a_command_with_a_dash_has_a_module_without_one(
    command: Callable[..., list[argparse.Namespace]], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = command(report())
    monkeypatch.setitem(sys.modules, "tooling.commands.try_hard", sys.modules["tooling.commands.try"])
    monkeypatch.setitem(cli.COMMANDS, "try-hard", "try harder")
    assert cli.main(["try-hard", "5"]) == 0
    assert seen[0].number == "5"


def test_help_of_a_command_ends_in_its_examples(
    command: Callable[..., list[argparse.Namespace]], capsys: pytest.CaptureFixture[str]
) -> None:
    command(report())
    with pytest.raises(SystemExit):
        cli.main(["try", "--help"])
    out = capsys.readouterr().out
    assert "Tries things.\n\nMore about it.\n" in out
    assert out.endswith("examples:\n    tooling try 5\n")
    assert out.count("tooling try 5") == 1


def test_the_version_is_told_by_the_module() -> None:
    done = subprocess.run([sys.executable, "-m", "tooling", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"tooling {__version__}\n"
