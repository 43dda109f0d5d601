"""What of a command line is said again inside a container."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from tooling.commands import smoke
from tooling.commands.smoke_image import plan_inner
from tooling.smoke.scenarios import choose


def _parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    smoke.add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--scenario", "one-rank", "cache-off"],
        ["--force-persistent"],
        ["--device", "0", "1", "--ranks", "3", "--max-tokens", "64"],
        ["--no-progress-s", "12.5", "--scenario-timeout-s", "99"],
    ],
    ids=["nothing", "scenarios", "forced", "devices", "deadlines"],
)
def test_the_run_inside_has_the_same_options(words: list[str]) -> None:
    given = _parse("--image", "some:1", *words)
    inside = _parse(*plan_inner(given, choose([], force_persistent=False)).options)
    assert vars(inside) == {**vars(given), "image": None}


def test_what_means_another_thing_inside_is_not_said_again() -> None:
    words = ["--jit-cache", "kernels", "--evidence", "out", "--commit", "0" * 40, "--network", "host"]
    given = _parse("--image", "some:1", "--jit-image", "sha256:1", *words)
    inner = plan_inner(given, choose([], force_persistent=False))
    assert inner.options == plan_inner(_parse("--image", "some:1"), choose([], force_persistent=False)).options
    assert (inner.network, inner.jit_cache) == ("host", Path("kernels"))


def test_the_whole_may_take_as_long_as_all_scenarios_and_what_they_need() -> None:
    given = _parse("--image", "some:1", "--scenario-timeout-s", "100")
    two = choose(["one-rank", "cache-off"], force_persistent=False)
    assert 400 < plan_inner(given, two).limit_s < 400 + 1000
    assert plan_inner(given, choose([], force_persistent=False)).limit_s > plan_inner(given, two).limit_s
