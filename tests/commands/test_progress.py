"""A slow step says what it is doing, on stderr; a quick one says nothing."""

from __future__ import annotations

import time

import pytest

from tooling.commands import progress


def test_a_quick_step_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.waiting("asking"):
        pass
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_a_slow_step_says_one_line_on_stderr(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(progress, "QUIET_S", 0.01)
    seen = ""
    with progress.waiting("asking the index"):
        for _ in range(1000):
            seen += capsys.readouterr().err
            if seen:
                break
            time.sleep(0.01)
    assert seen == "asking the index …\n"


def test_a_terminal_shows_a_spinner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress.waiting("asking the index"):
        pass
    assert capsys.readouterr().out == ""
