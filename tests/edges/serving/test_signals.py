"""A wish to end is heard once and carried out undisturbed; outside, and where our caller ignores it, nothing changes."""

from __future__ import annotations

import signal

import pytest

from tooling.edges.serving import signals
from tooling.edges.serving.signals import WISHES, ending_politely


@pytest.mark.parametrize("first", WISHES)
def test_what_the_first_wish_to_end_begins_no_other_one_disturbs(first: signal.Signals) -> None:
    heard, ended = [], []
    with ending_politely():
        try:
            signal.raise_signal(first)
        except KeyboardInterrupt as wish:
            heard.append(str(wish))
            for number in WISHES:
                signal.raise_signal(number)
            ended.append("all")
    assert (heard, ended) == ([first.name], ["all"])


def test_an_end_that_hangs_can_be_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "CLEANING_S", -1.0)
    with ending_politely():
        for number in WISHES:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)


def test_afterwards_all_is_as_before() -> None:
    before = [signal.getsignal(number) for number in WISHES]
    with pytest.raises(KeyboardInterrupt), ending_politely():
        signal.raise_signal(signal.SIGTERM)
    assert [signal.getsignal(number) for number in WISHES] == before


def test_what_our_caller_ignores_is_not_heard() -> None:
    """`nohup` ignores SIGHUP; a shell without job control ignores Ctrl-C for what it starts in the background."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGINT)}
    try:
        with ending_politely():
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGINT)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
