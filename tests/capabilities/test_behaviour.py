"""Reading against running: equal is quiet, a contradiction names both."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.version import Version

from tooling.capabilities.behaviour import check_behaviour, compare_behaviour
from tooling.capabilities.table import lookup
from tooling.edges.capability_table import load_table

RELEASE = Version("0.6.13")
ROW = lookup(load_table(), RELEASE)
assert ROW is not None
FACTS = ROW.facts
FIELDS = list(FACTS["metadata_fields"].value)  # type: ignore[arg-type]

AGREES: dict[str, Any] = {
    "layout": "module",
    "parameters": ["tune_mode", "cache", "tuning_buckets", "round_up", "skip_ops"],
    "config_files": True,
    "process_group": False,
    "managed_store": False,
    "tuned": {"one": 1, "other": 2},
    "found": {"one": 1, "other": 2},
    "loaded": True,
    "entries": 2,
    "in_memory": 2,
    "metadata_fields": FIELDS,
    "foreign_save": "merged",
    "unknown_save": "merged",
    "skip": {"accepted": True, "tactic": -1, "profiled": 0},
    "metadata": {
        "foreign": "refused",
        "missing_field": "refused",
        "wildcard": "loaded",
        "none": "loaded",
        "truncated": "JSONDecodeError",
    },
    "mismatch": "raise",
}


def test_a_release_that_runs_as_it_reads_has_no_finding() -> None:
    assert list(check_behaviour(RELEASE, FACTS, AGREES)) == []
    assert len(compare_behaviour(FACTS, AGREES)) == 15


@pytest.mark.parametrize(
    ("change", "fact", "ran"),
    [
        ({"found": {"one": 2, "other": 2}, "entries": 1}, "disk_key_has_runner_extras", "False"),
        ({"found": {"one": 2, "other": 1}}, "disk_key_has_runner_extras", "found"),
        ({"loaded": False}, "disk_key_has_runner_extras", "its own file was not loaded"),
        ({"skip": {"accepted": True, "tactic": 1, "profiled": 3}}, "skip_ops", "tactic 1, 3 profiled"),
        ({"skip": {"accepted": False}}, "skip_ops", "TypeError"),
        ({"foreign_save": "kept"}, "foreign_save", "kept and merged"),
        ({"foreign_save": "kept", "unknown_save": "replaced"}, "foreign_save", "skip_or_replace"),
        ({"layout": "package"}, "autotuner", "package"),
        ({"parameters": ["tune_mode"]}, "autotune_parameters", "tune_mode"),
        ({"metadata_fields": ["gpu"]}, "metadata_fields", "gpu"),
        ({"mismatch": "no-raise"}, "mismatch_policy", "no raise"),
        ({"managed_store": True}, "managed_store", "True"),
        ({"process_group": True}, "process_group_timing", "True"),
        ({"metadata": {**AGREES["metadata"], "foreign": "loaded"}}, "metadata: foreign", "loaded"),
        ({"metadata": {**AGREES["metadata"], "truncated": "loaded"}}, "metadata: truncated", "loaded"),
    ],
)
def test_a_contradiction_names_what_was_read_and_what_was_run(change: dict[str, Any], fact: str, ran: str) -> None:
    (finding,) = check_behaviour(RELEASE, FACTS, {**AGREES, **change})
    assert finding.reason == "CONTRADICTION"
    assert f"{fact}: reading says" in finding.detail
    assert "running says" in finding.detail
    assert ran in finding.detail.split("running says")[1]


def test_a_step_that_crashed_is_a_finding_with_its_last_words() -> None:
    findings = list(check_behaviour(RELEASE, FACTS, {**AGREES, "load_crashed": "ImportError: no tvm_ffi"}))
    assert [(item.reason, "no tvm_ffi" in item.detail) for item in findings] == [("CRASHED", True)]


def test_a_fact_that_could_not_be_told_is_not_compared() -> None:
    without = {name: fact for name, fact in FACTS.items() if name != "managed_store"}
    assert "managed_store" not in {item.fact for item in compare_behaviour(without, AGREES)}
