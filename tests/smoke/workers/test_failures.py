"""Ranks that die, hang, raise or leave half an answer: named with their last step, and the other scenarios still run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.smoke.workers.conftest import Rehearse, living
from tooling.smoke.observations import RankSeen, ScenarioSeen
from tooling.smoke.scenarios import ORDINARY_BACKEND, Scenario

pytestmark = pytest.mark.online
RELEASE = "0.6.13"


def pair(name: str) -> Scenario:
    return Scenario(name=name, about="a fault", ranks=2, backend=ORDINARY_BACKEND)


def sound(name: str) -> Scenario:
    return Scenario(name=name, about="nothing is wrong")


FAULTS: dict[str, dict[str, Any]] = {
    "dies-joining": {"kind": "die", "rank": 0, "step": "join"},
    "dies-tuning": {"kind": "die", "rank": 0, "step": "tune"},
    "dies-waiting": {"kind": "die", "rank": 1, "step": "waits at barrier"},
    "dies-looking-up": {"kind": "die", "rank": 1, "step": "look up at 16"},
    "hangs-tuning": {"kind": "hang", "rank": 1, "step": "verify"},
    "raises-checking": {"kind": "raise", "rank": 0, "step": "check 1"},
    "corrupts-its-answer": {"kind": "corrupt", "rank": 0, "step": "errors"},
}


@pytest.fixture(scope="module")
def seen(rehearse: Rehearse, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ScenarioSeen]]:
    """Every fault in a scenario of its own, with a sound one behind; the hang in a run of its own, so that the others may
    be as slow as the machine is.
    """
    home = tmp_path_factory.mktemp("failures")
    faults = [{**fault, "scenario": name} for name, fault in FAULTS.items()]
    others = [*(pair(name) for name in FAULTS if name != "hangs-tuning"), sound("sound")]
    hung = [pair("hangs-tuning"), sound("sound behind a hang")]
    yield {
        **rehearse(RELEASE, home / "others", others, ahead=False, faults=faults),
        **rehearse(RELEASE, home / "hung", hung, no_progress_s=20.0, ahead=False, faults=faults),
    }
    assert living(home) == []


def cold(seen: dict[str, ScenarioSeen], name: str) -> tuple[RankSeen, RankSeen]:
    found = seen[name].cold
    assert found is not None
    first, second = found.ranks
    return first, second


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault["kind"] == "die"])
def test_a_rank_that_dies_is_named_with_its_last_step(seen: dict[str, ScenarioSeen], name: str) -> None:
    fault = FAULTS[name]
    dead = cold(seen, name)[fault["rank"]]
    assert (dead.end, dead.step) == ("died", fault["step"])
    assert "SIGKILL" in dead.why
    assert seen[name].warm is None


@pytest.mark.parametrize("name", FAULTS)
def test_no_rank_beside_a_failed_one_counts_as_evidence(seen: dict[str, ScenarioSeen], name: str) -> None:
    found = seen[name].cold
    assert found is not None
    assert not found.ended


def test_a_hang_is_killed_and_each_rank_tells_where_it_was(seen: dict[str, ScenarioSeen]) -> None:
    waiting, stuck = cold(seen, "hangs-tuning")
    assert (stuck.end, stuck.step) == ("hung", "verify")
    assert "no rank made progress for 20 s" in stuck.why
    assert waiting.end in {"hung", "error"}


def test_a_rank_that_raises_says_what(seen: dict[str, ScenarioSeen]) -> None:
    broken, _ = cold(seen, "raises-checking")
    assert broken.end == "error"
    assert broken.why == "RuntimeError: this rank is broken on purpose"
    assert "broken on purpose" in broken.log_tail


def test_half_an_answer_is_none(seen: dict[str, ScenarioSeen]) -> None:
    broken, _ = cold(seen, "corrupts-its-answer")
    assert broken.end == "died"
    assert "its answer cannot be read" in broken.why
    assert broken.report == {}


@pytest.mark.parametrize("name", ["sound", "sound behind a hang"])
def test_the_other_scenarios_still_run(seen: dict[str, ScenarioSeen], name: str) -> None:
    found = seen[name]
    assert found.cold is not None
    assert found.warm is not None
    assert (found.cold.ended, found.warm.ended) == (True, True)
