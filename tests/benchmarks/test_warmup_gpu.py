"""What the benchmark on a GPU would run for a release, and what it leaves behind; nothing is run on a GPU here."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import warmup_gpu

RULES = ["compile", "1 rule", "2 rule", "overhead", "skip"]
ALL = ["1 all_ranks", "2 all_ranks"]
LEADERS = ["1 leader_broadcast", "2 leader_broadcast"]
PLANS = {
    "0.6.12": [*RULES, *LEADERS],
    "0.6.13": [*RULES, *ALL],
    "0.7.0.post1": [*RULES, *LEADERS, *ALL],
}
"""The rule's own choice is all_ranks for the first and leader_broadcast for the second: forcing it adds nothing."""
ANSWER = {"record": {"jit_s": 1.5, "file": "f"}, "took_s": 2.0, "digests": {"a": "1"}}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[int, dict[str, Any]]]]:
    """Installs a release by name and answers in place of the ranks; the runs that were asked for."""

    def install(release: str, answer: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
        asked: list[tuple[int, dict[str, Any]]] = []

        def together(_folder: Path, _table: Path | None, ranks: int, **spec: Any) -> dict[str, Any]:
            asked.append((ranks, spec))
            return answer

        monkeypatch.setattr(warmup_gpu.metadata, "version", lambda _: release)
        monkeypatch.setattr(warmup_gpu, "machine", dict)
        monkeypatch.setattr(warmup_gpu, "together", together)
        return asked

    return install


@pytest.mark.parametrize("release", PLANS)
def test_every_strategy_of_the_release_runs_cold_and_warm_on_one_rank_and_on_two(
    machine: Callable[..., list[tuple[int, dict[str, Any]]]], tmp_path: Path, release: str
) -> None:
    asked = machine(release, ANSWER)
    assert warmup_gpu.measure(tmp_path / "out.json", None, 60.0, []) == 0
    body = json.loads((tmp_path / "out.json").read_text())
    assert (sorted(body["runs"]), body["not_run"]) == (sorted(PLANS[release]), [])
    caches = [(ranks, spec["cache"]) for ranks, spec in asked if spec["kind"] == "warm_up" and "passes" not in spec]
    assert len(caches) == 2 * len(set(caches)), "each twice: cold, then warm"
    assert not Path(caches[0][1]).parent.exists(), "nothing stays behind"
    assert body["measured"]


def test_a_line_before_and_after_each_run_says_where_it_is_and_what_came_of_it(
    machine: Callable[..., list[tuple[int, dict[str, Any]]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine("0.6.13", ANSWER)
    warmup_gpu.measure(tmp_path / "out.json", None, 60.0, [])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * len(PLANS["0.6.13"])
    assert lines[2].endswith("1 rule ...")
    assert lines[3].endswith("1 rule: cold 2.00 s (1.5 s compiling), warm 2.00 s (1.5 s compiling)")


def test_what_was_left_out_or_did_not_fit_the_budget_is_written_down(
    machine: Callable[..., list[tuple[int, dict[str, Any]]]], tmp_path: Path
) -> None:
    machine("0.6.13", ANSWER)
    out = tmp_path / "out.json"
    warmup_gpu.measure(out, None, 60.0, ["2 all_ranks"])
    assert json.loads(out.read_text())["not_run"] == ["2 all_ranks"]
    warmup_gpu.measure(out, None, -1.0, [])
    assert json.loads(out.read_text())["not_run"] == PLANS["0.6.13"]


def test_a_run_that_failed_is_told_and_kept(
    machine: Callable[..., list[tuple[int, dict[str, Any]]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine("0.6.13", {"failed": [1], "logs": ["no GPU"]})
    warmup_gpu.measure(tmp_path / "out.json", None, 60.0, [])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].endswith("compile: FAILED")
    assert lines[3].endswith("1 rule: cold FAILED, warm FAILED")
    assert json.loads((tmp_path / "out.json").read_text())["runs"]["compile"]["logs"] == ["no GPU"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--out", "nowhere/out.json"], "nowhere: no such folder"),
        (["--out", "out.json", "--table", "no.json"], "no.json: no such file"),
        (["--out", "out.json"], "needs a machine with an NVIDIA GPU"),
    ],
    ids=["no folder", "no table", "no GPU"],
)
def test_what_is_missing_is_said_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["warmup_gpu.py", *words])
    with pytest.raises(SystemExit) as ended:
        warmup_gpu.main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
