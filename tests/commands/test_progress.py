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


def test_with_stderr_closed_nothing_is_said_anywhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    monkeypatch.setattr(progress, "QUIET_S", 0.0)
    monkeypatch.setattr("sys.stderr", None)
    with progress.waiting("asking the index"):
        assert list(progress.follow(range(3), total=3, what="reading")) == [0, 1, 2]
    progress._say("late")
    assert capsys.readouterr().out == ""
