"""A signal that comes while something is ended or removed waits until that is done."""

from __future__ import annotations

import os
import shutil
import signal
from typing import Any

import pytest

from tooling.edges.serving.signals import undisturbed
from tooling.edges.smoke.scratch import scratch_folder


def test_a_signal_is_heard_at_the_end_and_handlers_are_as_before() -> None:
    before, done = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with undisturbed():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("after it")

    with pytest.raises(KeyboardInterrupt, match="SIGINT"):
        work()
    assert done == ["after it"]
    assert signal.getsignal(signal.SIGINT) is before


def test_without_a_signal_nothing_is_raised_and_what_the_block_raises_goes_on() -> None:
    with undisturbed():
        pass
    with pytest.raises(ValueError, match="own"), undisturbed():
        raise ValueError("own")


def test_a_folder_is_removed_whole_though_somebody_is_impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.rmtree

    def impatiently(*words: Any, **options: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        real(*words, **options)

    monkeypatch.setattr(shutil, "rmtree", impatiently)
    with pytest.raises(KeyboardInterrupt), scratch_folder() as folder:
        (folder / "kernel.so").write_bytes(b"x")
    assert not folder.exists()
