"""What people see while scenarios run: lines, or a table where rich is installed."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest

from tooling.commands import smoke_progress
from tooling.commands.smoke_progress import Count, Lines, Table, open_showing, outcome
from tooling.commands.terminal import Terminal
from tooling.smoke.observations import RankSeen, RunSeen
from tooling.smoke.scenarios import SCENARIOS

SOUND = RunSeen(
    ranks=(RankSeen(rank=0, end="ended", report={"tuned": 7, "loaded": 0}),),
    seconds=1.25,
    record={"strategy": "leader_broadcast"},
)
HUNG = RunSeen(ranks=(RankSeen(rank=0, end="ended"), RankSeen(rank=1, end="hung", step="tune: bf16_gemm")))


def workers(profiles: int) -> Any:
    return [SimpleNamespace(rank=0, step="tune: bf16_gemm", profiles=profiles)]


def test_a_run_is_told_in_a_few_words() -> None:
    assert outcome(SOUND) == "1.2 s, leader_broadcast, 7 tuned, 0 loaded"
    assert outcome(HUNG) == "rank 1 hung at 'tune: bf16_gemm'"


def test_profiles_left_are_known_after_a_run_of_as_many_ranks() -> None:
    count = Count()
    count.take(workers(40))
    assert count.text == "40 profiles"
    count.finish()
    count.take(workers(30))
    assert count.text == "30 profiles, at most 10 left"


def test_elsewhere_than_on_a_terminal_each_run_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoke_progress, "SPARSE_S", 0.0)
    stream = io.StringIO()
    showing = open_showing(Terminal(stream, False), list(SCENARIOS.values()))
    assert isinstance(showing, Lines)
    showing.begin("one-rank", "cold")
    showing.working(workers(3))
    showing.end("one-rank", "cold", SOUND)
    showing.close()
    first, second = stream.getvalue().splitlines()
    assert first == "  one-rank, cold: rank 0: tune: bf16_gemm (3 profiles)"
    assert second.startswith("one-rank ")
    assert second.endswith("1.2 s, leader_broadcast, 7 tuned, 0 loaded")


def test_a_terminal_shows_a_row_for_each_scenario(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    showing = open_showing(Terminal(io.StringIO(), False), list(SCENARIOS.values()))
    assert isinstance(showing, Table)
    showing.begin("one-rank", "cold")
    showing.working(workers(3))
    showing.end("one-rank", "cold", SOUND)
    showing.close()
    shown = capsys.readouterr().err
    assert all(name in shown for name in SCENARIOS)
    assert "7 tuned" in shown


def test_a_terminal_that_moves_no_cursor_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert isinstance(open_showing(Terminal(io.StringIO(), False), []), Lines)


def test_what_a_worker_says_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    """Rich would take brackets for markup, and raise over those that close nothing."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    showing = open_showing(Terminal(io.StringIO(), False), list(SCENARIOS.values()))
    assert isinstance(showing, Table)
    showing.begin("one-rank", "cold")
    showing.working([SimpleNamespace(rank=0, step="[/b] [red]", profiles=3)])  # type: ignore[list-item]
    showing.close()
    assert "[/b] [red]" in capsys.readouterr().err


def test_without_rich_a_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setitem(__import__("sys").modules, "rich.console", None)
    assert isinstance(open_showing(Terminal(io.StringIO(), False), []), Lines)
