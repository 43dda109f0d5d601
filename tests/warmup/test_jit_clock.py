"""Compiling and tuning are told apart: the real build functions of each release, with a ninja that takes its time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.warmup.environments import Release, newest_release
from tooling.warmup.jit_clock import JitClock, jit_clock

Releases = Callable[[str], Release]
NEWEST = newest_release()
NINJA_S = 0.4


class Spec:
    """What FlashInfer's JitSpec is to a clock: one method that calls the other."""

    def build_and_load(self) -> str:
        self.build()
        return "loaded"

    def build(self) -> None:
        self.at_work()

    def at_work(self) -> None:
        raise OSError("no compiler")


class Derived(Spec):
    """From 0.7 on `build` is a subclass's."""

    def build(self) -> None:
        return


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module, package = ModuleType("flashinfer.jit.core"), ModuleType("flashinfer.jit")
    module.JitSpec, package.build_jit_specs = Spec, list  # type: ignore[attr-defined]
    for name, item in (
        ("flashinfer", ModuleType("flashinfer")),
        ("flashinfer.jit", package),
        (module.__name__, module),
    ):
        monkeypatch.setitem(sys.modules, name, item)
    return module


class Ticks:
    """A clock that goes on by one with each look."""

    now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def test_builds_inside_one_another_count_once() -> None:
    clock = JitClock(Ticks())
    clock.begin()
    clock.begin()
    clock.end()
    clock.end()
    assert (clock.seconds, clock.builds) == (1, 1)
    clock.begin()
    assert (clock.seconds, clock.builds) == (2, 2), "one that is still under way counts up to now"


@pytest.mark.usefixtures("core")
def test_everything_is_as_before_when_the_clock_stops_also_after_an_error() -> None:
    before = [dict(vars(kind)) for kind in (Spec, Derived)]
    with jit_clock() as outer, jit_clock() as inner:
        assert Derived().build_and_load() == "loaded"
        with pytest.raises(OSError, match="no compiler"):
            Spec().build_and_load()
    assert [dict(vars(kind)) for kind in (Spec, Derived)] == before
    assert (outer.watched, outer.builds, inner.builds) == (True, 2, 2)
    Derived().build()
    assert outer.builds == 2


@pytest.mark.usefixtures("core")
def test_builds_of_other_threads_count() -> None:
    with jit_clock() as clock:
        thread = threading.Thread(target=Derived().build_and_load)
        thread.start()
        thread.join()
    assert clock.builds == 1


def test_without_flashinfer_nothing_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flashinfer.jit.core", None)
    with jit_clock() as clock:
        pass
    assert (clock.watched, clock.seconds, clock.builds) == (False, 0, 0)


@pytest.mark.online
@pytest.mark.parametrize("version", ["0.6.12", "0.6.13", "0.6.16", NEWEST])
def test_a_rank_says_how_long_it_compiled_in_each_pass(releases: Releases, tmp_path: Path, version: str) -> None:
    """A layer builds through the release's own JitSpec, and ninja on the PATH sleeps instead of compiling."""
    ninja = tmp_path / "bin" / "ninja"
    ninja.parent.mkdir()
    ninja.write_text(f"#!/bin/sh\nexec sleep {NINJA_S}\n")
    ninja.chmod(0o755)
    record = (
        releases(version)
        .run(tmp_path / "cache", fault="builds:host_fp16", environment={"PATH": f"{ninja.parent}:/usr/bin:/bin"})
        .record
    )
    (rank,) = record["ranks"]
    assert set(rank["jit_s"]) == set(rank["seconds"])
    assert NINJA_S <= rank["jit_s"]["tune"] <= rank["seconds"]["tune"]
    assert rank["builds"]["tune"] == 1
    assert sum(rank["builds"].values()) == 1, "later passes find the kernel"
    assert record["jit_s"] == pytest.approx(sum(rank["jit_s"].values()))
