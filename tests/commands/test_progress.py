"""A slow step says what it is doing, on stderr; a quick one says nothing."""

from __future__ import annotations

import pytest

from tests.waiting import wait_for
from tooling.commands import progress


def test_a_quick_step_says_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "QUIET_S", 600.0)
    with progress.waiting("asking"):
        pass
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_a_slow_step_says_one_line_on_stderr(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(progress, "QUIET_S", 0.01)
    seen = ""

    def has_spoken() -> bool:
        nonlocal seen
        seen += capsys.readouterr().err
        return seen.endswith("\n")

    with progress.waiting("asking the index"):
        wait_for(has_spoken)
    assert seen == "asking the index …\n"


def test_a_terminal_shows_a_spinner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress.waiting("asking the index"):
        pass
    assert capsys.readouterr().out == ""
