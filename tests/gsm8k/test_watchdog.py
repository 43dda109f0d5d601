"""The watchdogs, event by event."""

from __future__ import annotations

import pytest

from tooling.gsm8k.causes import read_death
from tooling.gsm8k.watchdog import (
    Ask,
    Completed,
    Event,
    Exited,
    Listed,
    Lost,
    NotYet,
    Replied,
    RunWatch,
    StartWatch,
    Stop,
    Tick,
    next_in_run,
    next_step,
    refine_stop,
)

WATCH = StartWatch(started=100.0, budget_s=60.0, expected="tiny")


def play(*events: tuple[Event, float]) -> list[Ask | Stop]:
    watch, steps = WATCH, []
    for event, seconds in events:
        watch, step = next_step(watch, event, 100.0 + seconds)
        steps.append(step)
    return steps


def test_a_healthy_start_asks_for_models_then_for_a_completion() -> None:
    assert play(
        (Tick(), 1), (NotYet("refused"), 2), (Tick(), 3), (Listed(("a", "tiny")), 4), (Tick(), 5), (Completed(), 6)
    ) == [
        Ask.MODELS,
        Ask.WAIT,
        Ask.MODELS,
        Ask.COMPLETION,
        Ask.WAIT,
        Ask.READY,
    ]


def test_a_completion_that_fails_is_asked_for_again() -> None:
    assert play((Listed(("tiny",)), 1), (NotYet("HTTP 503"), 2), (Tick(), 3)) == [
        Ask.COMPLETION,
        Ask.WAIT,
        Ask.COMPLETION,
    ]


def test_an_empty_list_of_models_is_waited_for() -> None:
    assert play((Listed(()), 1), (Tick(), 2)) == [Ask.WAIT, Ask.MODELS]


STOPS: dict[str, tuple[list[tuple[Event, float]], str, str]] = {
    "crash": ([(Exited(read_death(3)), 1.2)], "SERVER_CRASHED", "exited with code 3 1.2 s after its start"),
    "signal": ([(Exited(read_death(-9)), 9)], "SERVER_CRASHED", "SIGKILL (likely out of memory)"),
    "a quiet end": ([(Exited(read_death(0)), 4)], "SERVER_EXITED", "ended without an error 4.0 s"),
    "another model": ([(Listed(("old-model",)), 1)], "WRONG_MODEL", "lists old-model, not tiny"),
    "too slow": ([(NotYet("HTTP 503"), 59), (Tick(), 60)], "STARTUP_TIMEOUT", "after 60 s: it does not list the model (last: HTTP 503)"),
    "lists but cannot answer": ([(Listed(("tiny",)), 1), (NotYet("HTTP 500"), 61)], "STARTUP_TIMEOUT", "no completion came"),
    "lists and hangs": ([(Listed(("tiny",)), 1), (Tick(), 61)], "SERVER_HANG", "no completion came"),
    "a website": ([(NotYet("HTML", True), 1), (NotYet("refused"), 2), (NotYet("HTML", True), 3), (NotYet("HTML", True), 64)],
                  "WRONG_SERVER", "no model server for 61 s: HTML"),
    "a website that makes room": ([(NotYet("HTML", True), 1), (NotYet("HTTP 503"), 62)], "STARTUP_TIMEOUT", "HTTP 503"),
    "dead at the deadline": ([(Tick(), 1), (Exited(read_death(1)), 70)], "SERVER_CRASHED", "code 1"),
}  # fmt: skip


@pytest.mark.parametrize(("events", "reason", "detail"), STOPS.values(), ids=STOPS.keys())
def test_each_end_has_its_own_reason(events: list[tuple[Event, float]], reason: str, detail: str) -> None:
    step = play(*events)[-1]
    assert isinstance(step, Stop)
    assert step.reason == reason
    assert detail in step.detail


def test_a_port_that_was_taken_meanwhile_is_no_crash() -> None:
    crash = Stop(reason="SERVER_CRASHED", detail="the server exited with code 3")
    assert (
        refine_stop(crash, "[Errno 98] error while attempting to bind: address already in use").reason == "PORT_IN_USE"
    )
    assert refine_stop(crash, "ValueError: no") is crash
    assert refine_stop(Stop(reason="SERVER_DIED", detail=""), "address already in use").reason == "SERVER_DIED"


RUN = RunWatch(total=10, allowed_lost=1, stall_s=30.0, last_end=0.0)


def run(*events: tuple[Exited | Replied | Lost | Tick, float], watch: RunWatch = RUN) -> Stop | None:
    stop = None
    for event, now in events:
        watch, stop = next_in_run(watch, event, now)
    return stop


def test_as_many_as_allowed_may_be_lost() -> None:
    assert run((Replied(), 1), (Lost("HTTP 500", False), 2), (Replied(), 3)) is None


def test_one_more_aborts_with_the_counts() -> None:
    stop = run((Replied(), 1), (Lost("HTTP 500", False), 2), (Lost("slow", True), 3))
    assert stop is not None
    assert stop.reason == "EVAL_ABORTED"
    assert "1 of 10 answered, 1 failed, 1 timed out; the last: slow" in stop.detail


def test_a_server_that_answers_nothing_in_time_hangs() -> None:
    stop = run((Lost("slow", True), 1), (Lost("slow", True), 2))
    assert stop is not None
    assert stop.reason == "SERVER_HANG"


def test_silence_is_a_hang_and_timeouts_do_not_break_it() -> None:
    assert run((Replied(), 5), (Tick(), 34)) is None
    stop = run((Replied(), 5), (Lost("slow", True), 34), (Tick(), 35))
    assert stop is not None
    assert stop.reason == "SERVER_HANG"
    assert "no request has ended for 30 s" in stop.detail


HANGS = {
    "only timeouts since the last reply": ([(Replied(), 1), (Lost("slow", True), 2), (Lost("slow", True), 2)], "SERVER_HANG"),
    "after an earlier failure": ([(Lost("HTTP 500", False), 1), (Replied(), 2), (Lost("slow", True), 20)], "SERVER_HANG"),
    "a slow one among others": ([(Lost("slow", True), 1), (Replied(), 2), (Lost("slow", True), 3)], "EVAL_ABORTED"),
    "failures among them": ([(Replied(), 1), (Lost("slow", True), 20), (Lost("HTTP 500", False), 20)], "EVAL_ABORTED"),
}  # fmt: skip


@pytest.mark.parametrize(("events", "reason"), HANGS.values(), ids=HANGS.keys())
def test_losses_are_a_hang_where_the_server_fell_silent(
    events: list[tuple[Exited | Replied | Lost | Tick, float]], reason: str
) -> None:
    stop = run(*events)
    assert stop is not None
    assert stop.reason == reason


def test_a_death_in_mid_run_is_one() -> None:
    stop = run((Replied(), 1), (Exited(read_death(-11)), 2))
    assert stop is not None
    assert stop.reason == "SERVER_DIED"
    assert "SIGSEGV in mid-run; 1 of 10 answered" in stop.detail
