"""The warm-up's own records of an H200, as a smoke run would have seen them, come out as the documents say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.smoke.samples import LABELS, judge, seen_for
from tooling.findings import Severity
from tooling.smoke.files_seen import FileSeen, FilesSeen
from tooling.smoke.judgement import Judgement
from tooling.smoke.observations import ErrorSeen, RankSeen, RunSeen, ScenarioSeen

FOLDER = Path(__file__).parents[1] / "data/warmup"
RUNS = {"one-rank": "1 rule", "two-ranks": "2 rule", "force-persistent": "1 leader_broadcast"}


def measured(release: str, name: str) -> ScenarioSeen:
    """A scenario out of the measured record; only the files are made up, from what the record names."""
    body = json.loads((FOLDER / f"h200-{release}.json").read_text())["runs"][RUNS[name]]
    cold, warm = ({**body[run]["record"], "run": body[run]} for run in ("cold", "warm"))
    paths = written_paths(cold)
    files = tuple(FileSeen(path=path, size_bytes=9, sha256=f"sha256:{path}") for path in paths)
    return ScenarioSeen(
        name=name,
        cold=run_of(cold, FilesSeen(after=files, read=())),
        warm=run_of(warm, FilesSeen(before=files, after=files, read=paths)),
    )


def written_paths(record: dict[str, Any]) -> tuple[str, ...]:
    if record["file"] is None:
        return ()
    place = record["file"].split("/", 4)[4]
    if record["strategy"] == "managed":
        return (f"{place}/v2/1f0a/entries/00.json", f"{place}/v2/1f0a/manifest.json")
    return (
        tuple(place.replace("rank-0", f"rank-{rank}") for rank in range(len(record["ranks"])))
        if "rank-0" in place
        else (place,)
    )


def run_of(record: dict[str, Any], files: FilesSeen) -> RunSeen:
    run = record.pop("run")
    skips = record["skip_passed"] and record["skip_ops"] == []
    errors = tuple(
        ErrorSeen(
            label=one["label"], operation=LABELS[one["label"]][0], largest=one["largest"], finite=one["finite"],
            out=LABELS[one["label"]][1], sha256=f"sha256:{run['digests'][one['label']]}",
        )
        for one in run["errors"]
    )  # fmt: skip
    ranks = tuple(
        RankSeen(
            rank=rank["rank"], end="ended", exit_status=0, device="cuda:0 NVIDIA H200", strategy=record["strategy"],
            report=rank, lookups=run["counted"],
            tactics_sha256=rank["digest"], passed=() if skips and enters(record, rank) else None, errors=errors,
            sticky_error=run["sticky_error"],
        )
        for rank in record["ranks"]
    )  # fmt: skip
    rest = {key: value for key, value in record.items() if key != "ranks"}
    return RunSeen(ranks=ranks, seconds=run["took_s"], record=rest, files=files)


def enters(record: dict[str, Any], rank: dict[str, Any]) -> bool:
    if record["strategy"] == "leader_broadcast" and rank["rank"]:
        return "complete" in rank["passes"]
    return "tune" in rank["passes"] or record["strategy"] == "managed"


def judged(release: str, *names: str) -> Judgement:
    scenarios = tuple(measured(release, name) for name in names)
    return judge(seen_for(release, names=(), scenarios=scenarios), release, names=names)


def test_0_6_12_keeps_no_cache_passes_and_shows_both_known_faults() -> None:
    found = judged("0.6.12", "one-rank", "two-ranks")
    assert (found.status, found.reason) == ("pass", None)
    assert {fault.id: fault.state for fault in found.faults} == {
        "flashinfer#3436": "seen",
        "flashinfer#3868": "seen",
        "flashinfer#3868/cublaslt": "not-looked-at",
    }
    assert [scenario.status for scenario in found.scenarios] == ["known", "known"]


def test_0_6_12_with_the_cache_forced_on_shows_the_lost_entries() -> None:
    found = judged("0.6.12", "force-persistent")
    loss = next(finding for finding in found.findings if finding.reason == "EXPECTED_LOSS")
    assert (found.status, loss.severity) == ("pass", Severity.NOTE)
    assert "28 entries in memory, 21 on disk: 7 lost to equal keys, 4 come back with another tactic" in loss.detail


def test_0_6_13_keeps_a_cache_passes_and_shows_the_known_fault_before_it_is_healed() -> None:
    found = judged("0.6.13", "one-rank", "two-ranks")
    assert (found.status, found.reason) == ("pass", None)
    assert {fault.id: fault.state for fault in found.faults} == {
        "flashinfer#3868": "seen",
        "flashinfer#3868/cublaslt": "not-looked-at",
    }
    assert {trace.where for trace in found.faults[0].symptoms} == {"verify"}
    assert [scenario.ratio for scenario in found.scenarios] == [
        pytest.approx(42.8, abs=0.1),
        pytest.approx(4.9, abs=0.1),
    ]


def test_0_7_0_post1_keeps_its_caches_and_nothing_misses() -> None:
    found = judged("0.7.0.post1", "one-rank", "two-ranks")
    assert (found.status, found.reason) == ("pass", None)
    assert [(scenario.status, scenario.misses) for scenario in found.scenarios] == [("pass", 0), ("pass", 0)]
    assert [str(scenario.expected.strategy) for scenario in found.scenarios if scenario.expected] == [
        "managed",
        "synchronized",
    ]


def test_0_6_12s_run_is_not_mistaken_for_a_run_of_0_6_13() -> None:
    scenarios = (measured("0.6.12", "one-rank"),)
    found = judge(seen_for("0.6.13", names=(), scenarios=scenarios), "0.6.13", names=("one-rank",))
    assert {"OTHER_MACHINE", "WRONG_STRATEGY", "NOT_KEPT", "WARM_MISSED"} <= {
        finding.reason for finding in found.findings
    }
