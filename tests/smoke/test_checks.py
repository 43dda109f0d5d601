"""Runs as they were measured pass; each thing that is altered in them turns the verdict, with its own reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.smoke.samples import RELEASES, altered, judge, judged_for, row_for, seen_for
from tooling.capabilities.facts import KnownFault
from tooling.findings import Severity
from tooling.smoke.checks import judge_smoke
from tooling.smoke.files_seen import FileSeen
from tooling.smoke.judgement import Judgement
from tooling.smoke.observations import INTERRUPTED, ScenarioSeen, Seen
from tooling.smoke.outcome import WEIGHTS
from tooling.smoke.scenarios import FORCED, SCENARIOS

EVERYTHING = (*SCENARIOS, "force-persistent")
COLD, WARM = ("scenarios", 0, "cold"), ("scenarios", 0, "warm")
FIRST, LAST = (*COLD, "ranks", 0), (*COLD, "ranks", 1)
NO_COUNTS = {"calls": 0, "lookups": 0, "hits": 0, "misses": 0, "fell_back": 0, "skipped": 0, "tuned": 0}
MISSED = {**NO_COUNTS, "calls": 2, "lookups": 2, "misses": 2, "fell_back": 2}
HALF = {**NO_COUNTS, "calls": 2, "lookups": 2, "hits": 1, "misses": 1, "fell_back": 1}
NO_FILES: dict[str, list[str]] = {name: [] for name in ("before", "after", "created", "changed", "removed")}
STRANGER = {"path": "x/left-behind.json", "size_bytes": 1, "sha256": "sha256:x"}


@pytest.mark.parametrize("release", RELEASES)
def test_a_run_as_it_was_measured_passes(release: str) -> None:
    judged = judged_for(release, names=EVERYTHING)
    assert (judged.status, judged.reason) == ("pass", None)
    assert {finding.severity for finding in judged.findings} == {Severity.NOTE}
    again = judge_smoke(seen_for(release), row_for(release), requested=tuple(SCENARIOS.values()))
    assert again.findings == judged_for(release).findings


@dataclass(frozen=True)
class Altered:
    """One alteration, and what it must bring: the stage's status, its reason, and the check that says so."""

    path: tuple[str | int, ...]
    to: Any
    reason: str
    check: str
    release: str = "0.6.13"
    name: str = "one-rank"
    status: str = "fail"


def files(*, add: tuple[dict[str, Any], ...] = (), keep: bool = True) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A run's files with others afterwards, all told as the watcher tells them."""

    def change(body: dict[str, Any]) -> dict[str, Any]:
        after = [*(body["after"] if keep else []), *add]
        known = {file["path"]: file["sha256"] for file in body["before"]}
        there = {file["path"] for file in after}
        return {
            **body,
            "after": after,
            "created": [file["path"] for file in after if file["path"] not in known],
            "changed": [file["path"] for file in after if known.get(file["path"], file["sha256"]) != file["sha256"]],
            "removed": [path for path in known if path not in there],
        }

    return change


def overwritten(body: dict[str, Any]) -> dict[str, Any]:
    """The first file that lay there has other bytes afterwards."""
    first = {**body["before"][0], "sha256": "sha256:other"}
    return files(add=(first, *body["after"][1:]), keep=False)(body)


def holding(digest: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A rank with tactics of that digest, told alike in both places."""
    return lambda rank: {**rank, "tactics_sha256": digest, "report": {**rank["report"], "digest": digest}}


ALTERED = {
    "no GPU": Altered(("machine", "gpus"), [], "NO_GPU", "smoke-gpu", status="not-run"),
    "no FlashInfer": Altered(("machine", "packages", "flashinfer-python"), None, "NO_FLASHINFER", "smoke-pins"),
    "another release than the row's": Altered(
        ("machine", "packages", "flashinfer-python"), "0.6.16", "WRONG_ROW", "smoke-row"
    ),
    "a release that is no version": Altered(
        ("machine", "packages", "flashinfer-python"), "main", "NO_ROW", "smoke-row"
    ),
    "another companion than pinned": Altered(
        ("machine", "packages", "apache-tvm-ffi"), "0.1.8", "PIN_SKEW", "smoke-pins"
    ),
    "a companion that is not installed": Altered(
        ("machine", "packages", "apache-tvm-ffi"), None, "PIN_SKEW", "smoke-pins"
    ),
    "another cubin than pinned": Altered(
        ("machine", "packages", "flashinfer-cubin"), "0.6.12", "PIN_SKEW", "smoke-pins"
    ),
    "a jit-cache of another release, unpinned": Altered(
        ("machine", "packages", "flashinfer-jit-cache"), "0.6.12+cu130", "PIN_SKEW", "smoke-pins"
    ),
    "another pin": Altered(("pinned", "flashinfer-python"), "0.6.12", "PIN_SKEW", "smoke-pins"),
    "no pins": Altered(("pinned",), {}, "UNPINNED", "smoke-pins"),
    "an interface that was not looked at": Altered(("machine", "api"), {}, "API_DIFFERS", "smoke-interface"),
    "an interface without skip_ops": Altered(
        ("machine", "api", "autotune_parameters"), ["tune_mode"], "API_DIFFERS", "smoke-interface"
    ),
    "a tuner elsewhere": Altered(("machine", "api", "autotuner"), "package", "API_DIFFERS", "smoke-interface"),
    "no configuration files": Altered(("machine", "api", "config_files"), False, "API_DIFFERS", "smoke-interface"),
    "a managed store": Altered(("machine", "api", "managed_store"), True, "API_DIFFERS", "smoke-interface"),
    "process-group timing": Altered(
        ("machine", "api", "process_group_timing"), True, "API_DIFFERS", "smoke-interface"
    ),
    "metadata that the row does not know": Altered(
        ("machine", "api", "metadata_fields"), ["gpu", "moon"], "API_DIFFERS", "smoke-interface"
    ),
    "another GPU than the ranks'": Altered(("machine", "arch"), "sm100", "OTHER_MACHINE", "smoke-runs"),
    "a warm-up of another release": Altered((*COLD, "record", "release"), "0.6.12", "OTHER_MACHINE", "smoke-runs"),
    "a scenario that did not run": Altered(
        ("scenarios", 0), ScenarioSeen(name="one-rank", not_run="too slow").as_json(), "NOT_RUN", "smoke-scenarios",
        status="not-run",
    ),
    "a scenario that was broken off": Altered(
        ("scenarios", 0, "not_run"), INTERRUPTED, "INTERRUPTED", "smoke-scenarios", status="not-run"
    ),
    "a scenario of another name": Altered(
        ("scenarios", 0, "name"), "other", "MISSING_SCENARIO", "smoke-scenarios", status="not-run"
    ),
    "no cold run": Altered(COLD, None, "NO_RUN", "smoke-runs"),
    "no warm run": Altered(WARM, None, "NO_RUN", "smoke-runs"),
    "a rank too few": Altered(
        COLD, lambda _: seen_for("0.6.13", names=("one-rank",)).as_json()["scenarios"][0]["cold"],  # type: ignore[index]
        "NO_RUN", "smoke-runs", name="two-ranks",
    ),
    "a rank that is left out": Altered(
        (*COLD, "ranks"), lambda ranks: ranks[:1], "CORRUPT", "smoke-record", name="two-ranks"
    ),
    "a rank that hung": Altered((*LAST, "end"), "hung", "HUNG", "smoke-runs", name="two-ranks"),
    "a rank that died": Altered((*LAST, "end"), "died", "DIED", "smoke-runs", name="two-ranks"),
    "a rank that raised": Altered((*LAST, "end"), "error", "WARMUP_FAILED", "smoke-runs", name="two-ranks"),
    "a rank that never started": Altered((*LAST, "end"), "not-started", "NOT_STARTED", "smoke-runs", name="two-ranks"),
    "a rank that ended with a signal": Altered((*FIRST, "exit_status"), -11, "CORRUPT", "smoke-record"),
    "a sticky CUDA error": Altered(
        (*FIRST, "sticky_error"), "an illegal memory access", "STICKY_CUDA_ERROR", "smoke-cuda"
    ),
    "memory that ran out": Altered((*FIRST, "out_of_memory"), ["OOM"], "OUT_OF_MEMORY", "smoke-cuda"),
    "another strategy on a rank": Altered((*FIRST, "strategy"), "all_ranks", "CORRUPT", "smoke-record"),
    "no strategy in the record": Altered((*COLD, "record", "strategy"), "", "CORRUPT", "smoke-record"),
    "another rule": Altered((*COLD, "record", "rule"), 3, "WRONG_STRATEGY", "smoke-strategy"),
    "no persistence": Altered((*COLD, "record", "persistent"), False, "WRONG_STRATEGY", "smoke-strategy"),
    "skip_ops that were not passed": Altered((*FIRST, "passed"), None, "SKIP_OPS", "smoke-skipping", name="skip-given"),
    "other skip_ops passed": Altered((*FIRST, "passed"), ["fp8_gemm"], "SKIP_OPS", "smoke-skipping"),
    "skip_ops to a release without them": Altered(
        (*FIRST, "passed"), [], "SKIP_OPS", "smoke-skipping", release="0.6.12"
    ),
    "an automatic skip that was not passed": Altered(
        (*FIRST, "passed"), [], "SKIP_OPS", "smoke-skipping", name="skip-automatic"
    ),
    "skip_ops that the record lacks": Altered(
        (*COLD, "record", "skip_ops"), [], "SKIP_OPS", "smoke-skipping", name="skip-given"
    ),
    "a wish of somebody else": Altered((*COLD, "record", "skip_source"), "operator", "SKIP_OPS", "smoke-skipping"),
    "nothing said of skip_ops": Altered((*COLD, "record", "skip_passed"), False, "SKIP_OPS", "smoke-skipping"),
    "a cache root that was not fresh": Altered((*COLD, "files", "before"), None, "NOT_FRESH", "smoke-files"),
    "nothing laid out": Altered(
        (*COLD, "files"), {"before": [], "after": [], "read": [], "created": [], "changed": [], "removed": []},
        "NOT_LAID_OUT", "smoke-files", name="foreign",
    ),
    "no file kept": Altered((*COLD, "files"), files(keep=False), "NOT_KEPT", "smoke-files"),
    "a cache that could not be written": Altered(
        (*FIRST, "report", "written", "done"), False, "NOT_KEPT", "smoke-files"
    ),
    "a file elsewhere": Altered((*COLD, "record", "file"), "/elsewhere/x.json", "NOT_KEPT", "smoke-files"),
    "no file in the record": Altered((*COLD, "record", "file"), None, "NOT_KEPT", "smoke-files"),
    "a file left where none belongs": Altered(
        (*COLD, "files"), files(add=(STRANGER,)), "LEFT_FILES", "smoke-files", release="0.6.12"
    ),
    "a file left with the cache off": Altered(
        (*WARM, "files"), files(add=(STRANGER,)), "LEFT_FILES", "smoke-files", name="cache-off"
    ),
    "a file that a warm run wrote": Altered((*WARM, "files"), files(add=(STRANGER,)), "LEFT_FILES", "smoke-files"),
    "a file named where none belongs": Altered(
        (*COLD, "record", "file"), "/x/autotune_configs.json", "LEFT_FILES", "smoke-files", release="0.6.12"
    ),
    "a foreign file overwritten": Altered(
        (*COLD, "files"), overwritten, "LAID_OUT_CHANGED", "smoke-files", name="foreign"
    ),
    "a foreign file overwritten by the warm run": Altered(
        (*WARM, "files"), overwritten, "LAID_OUT_CHANGED", "smoke-files", name="foreign"
    ),
    "a foreign file removed": Altered(
        (*COLD, "files"), files(keep=False), "LAID_OUT_CHANGED", "smoke-files", name="foreign"
    ),
    "a foreign file of the managed release overwritten": Altered(
        (*COLD, "files"), overwritten, "LAID_OUT_CHANGED", "smoke-files", name="foreign", release="0.7.0.post1"
    ),
    "a truncated file touched where no cache is kept": Altered(
        (*COLD, "files"), overwritten, "LAID_OUT_CHANGED", "smoke-files", name="truncated", release="0.6.12"
    ),
    "a truncated file that stayed": Altered(
        (*COLD, "files"),
        lambda body: files(add=tuple(body["before"]), keep=False)(body), "NOT_KEPT", "smoke-files", name="truncated",
    ),
    "a foreign file taken for a broken one": Altered(
        (*COLD, "record", "why_cold"), "TRUNCATED", "NOT_RECOGNISED", "smoke-files", name="foreign"
    ),
    "a truncated file that nobody saw": Altered(
        (*COLD, "record", "why_cold"), "NO_CACHE", "NOT_RECOGNISED", "smoke-files", name="truncated"
    ),
    "entries lost on the way to disk": Altered(
        (*FIRST, "report", "round_trip", "lost"), 7, "ROUND_TRIP_LOSS", "smoke-loss"
    ),
    "entries that come back with another tactic": Altered(
        (*FIRST, "report", "round_trip", "other_tactic"), ["key"], "ROUND_TRIP_LOSS", "smoke-loss"
    ),
    "entries that were not compared": Altered(
        (*FIRST, "report", "round_trip", "memory"), 0, "ROUND_TRIP_LOSS", "smoke-loss"
    ),
    "a warm run that missed": Altered((*WARM, "record", "warm"), False, "WARM_MISSED", "smoke-warm"),
    "a warm run that loaded less": Altered(
        (*FIRST, "report", "round_trip", "disk"), 36, "WARM_MISSED", "smoke-warm"
    ),
    "a warm run that found no valid cache": Altered(
        (*WARM, "ranks", 0, "report", "cache", "kind"), "miss", "WARM_MISSED", "smoke-warm"
    ),
    "a warm run that read no file": Altered((*WARM, "files", "read"), [], "WARM_MISSED", "smoke-warm"),
    "a warm run that was slower": Altered((*WARM, "seconds"), 7.0, "NOT_FASTER", "smoke-warm"),
    "a warm run that was not timed": Altered((*WARM, "seconds"), None, "CORRUPT", "smoke-record"),
    "a warm run that used a cache": Altered(
        (*WARM, "record", "warm"), True, "NOT_ANEW", "smoke-warm", release="0.6.12"
    ),
    "a foreign file that was used": Altered((*WARM, "record", "warm"), True, "NOT_ANEW", "smoke-warm", name="foreign"),
    "ranks with different tactics": Altered(
        LAST, holding("sha256:other"), "RANKS_DIFFER", "smoke-ranks", name="two-ranks"
    ),
    "synchronised ranks with different tactics": Altered(
        LAST, holding("sha256:other"), "RANKS_DIFFER", "smoke-ranks", name="two-ranks", release="0.7.0.post1",
    ),
    "a rank that does not tell its tactics": Altered(
        LAST, holding(""), "RANKS_DIFFER", "smoke-ranks", name="two-ranks"
    ),
    "a difference in the record": Altered(
        (*COLD, "record", "difference"), "key", "RANKS_DIFFER", "smoke-ranks", name="two-ranks"
    ),
    "no look-ups at other token counts": Altered((*FIRST, "lookups"), {}, "ZERO_LOOKUPS", "smoke-lookups"),
    "look-ups at buckets only": Altered(
        (*FIRST, "lookups"), lambda by: {"64": by["64"]}, "ZERO_LOOKUPS", "smoke-lookups"
    ),
    "a token count left out on one rank": Altered(
        (*FIRST, "lookups"), lambda by: {size: one for size, one in by.items() if size != "64"}, "ZERO_LOOKUPS",
        "smoke-lookups",
    ),
    "no look-ups of an operation": Altered(
        (*FIRST, "report", "passes", "check 2", "bf16_gemm"), NO_COUNTS, "CORRUPT", "smoke-record"
    ),
    "misses between buckets": Altered((*FIRST, "lookups", "24", "fp8_gemm"), MISSED, "MISSES", "smoke-lookups"),
    "misses at a bucket": Altered((*FIRST, "lookups", "64", "fp8_gemm"), MISSED, "MISSES", "smoke-lookups"),
    "misses that the second round did not heal": Altered(
        (*FIRST, "lookups", "24", "bf16_gemm"), HALF, "MISSES", "smoke-lookups"
    ),
    "a warm run with the fault that was healed": Altered(
        (*WARM, "ranks", 0, "lookups", "24", "bf16_gemm"), HALF, "MISSES", "smoke-lookups"
    ),
    "the known fault on a release that does not have it": Altered(
        (*FIRST, "lookups", "24", "bf16_gemm"), HALF, "MISSES", "smoke-lookups", release="0.7.0.post1",
        name="cache-off",
    ),
    "the known fault, but of every look-up": Altered(
        (*FIRST, "lookups", "64", "bf16_gemm"), MISSED, "MISSES", "smoke-lookups", release="0.6.12"
    ),
    "the fault between buckets at a bucket": Altered(
        (*FIRST, "lookups", "64", "fp8_gemm"), MISSED, "MISSES", "smoke-lookups", release="0.6.12"
    ),
    "a wrong result": Altered((*FIRST, "errors", 0, "largest"), 0.02, "WRONG_NUMBERS", "smoke-numbers"),
    "a wrong result of fp8": Altered((*FIRST, "errors", 3, "largest"), 0.005, "WRONG_NUMBERS", "smoke-numbers"),
    "a wrong result when warm": Altered(
        (*WARM, "ranks", 0, "errors", 1, "largest"), 0.9, "WRONG_NUMBERS", "smoke-numbers"
    ),
    "a result that is not finite": Altered((*FIRST, "errors", 0, "finite"), False, "NOT_FINITE", "smoke-numbers"),
    "a result without a number": Altered((*FIRST, "errors", 0, "largest"), None, "NOT_FINITE", "smoke-numbers"),
    "no results": Altered((*FIRST, "errors"), [], "NO_NUMBERS", "smoke-numbers"),
    "no result of one operation": Altered(
        (*FIRST, "errors"), lambda errors: errors[:2], "NO_NUMBERS", "smoke-numbers"
    ),
    "another error when warm": Altered(
        (*WARM, "ranks", 0, "errors", 1, "largest"), 0.0005, "WARM_DIFFERS", "smoke-numbers"
    ),
    "other bits when warm": Altered(
        (*WARM, "ranks", 0, "errors", 1, "sha256"), "sha256:other", "WARM_DIFFERS", "smoke-numbers"
    ),
    "look-ups that do not add up": Altered(
        (*FIRST, "lookups", "24", "fp8_gemm", "lookups"), 3, "CORRUPT", "smoke-record"
    ),
    "hits that do not add up": Altered((*FIRST, "report", "hits"), 99, "CORRUPT", "smoke-record"),
    "tuned buckets that do not add up": Altered((*FIRST, "report", "tuned"), 1, "CORRUPT", "smoke-record"),
    "a record that does not add up": Altered((*COLD, "record", "tuned"), 1, "CORRUPT", "smoke-record"),
    "a record that says that nothing was tuned": Altered(
        (*COLD, "record", "nothing_to_tune"), True, "CORRUPT", "smoke-record"
    ),
    "a report without passes": Altered((*FIRST, "report", "passes"), None, "CORRUPT", "smoke-record"),
    "an empty report": Altered((*FIRST, "report"), {}, "CORRUPT", "smoke-record"),
    "an empty record": Altered((*COLD, "record"), {}, "CORRUPT", "smoke-record"),
    "look-ups at no token count": Altered((*FIRST, "lookups", "many"), {}, "CORRUPT", "smoke-record"),
    "an end that there is not": Altered((*FIRST, "end"), "fine", "CORRUPT", "smoke-record"),
    "packages that are no versions": Altered(("machine", "packages"), {"torch": 2}, "CORRUPT", "smoke-record"),
    "a cold run that used a cache": Altered(
        (*COLD, "record", "warm"), True, "NOT_FRESH", "smoke-files", release="0.7.0.post1"
    ),
    "a warm run of another cache": Altered((*WARM, "record", "file"), "/elsewhere", "NOT_FRESH", "smoke-files"),
    "a rank with another number": Altered((*FIRST, "rank"), 1, "CORRUPT", "smoke-record"),
    "tuning outside of tuning mode": Altered(
        (*FIRST, "lookups", "24", "fp8_gemm", "tuned"), 1, "CORRUPT", "smoke-record"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ALTERED.values(), ids=ALTERED)
def test_an_alteration_turns_the_verdict(case: Altered) -> None:
    seen = seen_for(case.release, names=(case.name,))
    assert judge(seen, case.release, names=(case.name,)).status == "pass"
    if case.path[-1] == "before":
        judged = judge(_littered(seen), case.release, names=(case.name,))
    else:
        judged = judge(altered(seen, *case.path, to=case.to), case.release, names=(case.name,))
    assert (judged.status, judged.reason) == (case.status, case.reason)
    assert judged.findings[0].check == case.check
    assert judged.findings[0].severity is Severity.ERROR


def _littered(seen: Seen) -> Seen:
    """With a file in the cache root before the cold run."""
    litter = (FileSeen.from_json(STRANGER),)
    scenario = seen.scenarios[0]
    assert scenario.cold is not None
    cold = replace(scenario.cold, files=replace(scenario.cold.files, before=litter))
    return replace(seen, scenarios=(replace(scenario, cold=cold),))


WARNED = {
    "a bypass": Altered(
        ("bypasses",), {"FLASHINFER_DISABLE_VERSION_CHECK": "1"}, "BYPASS_REMOVED", "smoke-environment"
    ),
    "tactics that were skipped": Altered((*FIRST, "skipped_tactics"), ["Skipping"], "SKIPPED_TACTICS", "smoke-cuda"),
    "downloads without the cubin package": Altered(
        (*FIRST, "downloads"), ["https://example.org/x.cubin"], "DOWNLOADS", "smoke-downloads"
    ),
}


@pytest.mark.parametrize("case", WARNED.values(), ids=WARNED)
def test_a_warning_is_reported_and_does_not_fail(case: Altered) -> None:
    judged = judge(
        altered(seen_for("0.6.13", names=("one-rank",)), *case.path, to=case.to), "0.6.13", names=("one-rank",)
    )
    assert judged.status == "pass"
    assert (judged.findings[0].reason, judged.findings[0].check) == (case.reason, case.check)
    assert judged.findings[0].severity is Severity.WARNING


def test_downloads_fail_where_the_cubin_package_is_installed() -> None:
    seen = altered(seen_for("0.6.13", names=("one-rank",)), "machine", "packages", "flashinfer-cubin", to="0.6.13")
    assert judge(seen, "0.6.13", names=("one-rank",)).status == "pass"
    seen = altered(seen, *FIRST, "downloads", to=["https://example.org/x.cubin"])
    assert judge(seen, "0.6.13", names=("one-rank",)).reason == "DOWNLOADS"


def test_a_release_without_a_row_fails_with_the_probe_command() -> None:
    judged = judge_smoke(seen_for("0.6.13"), None, requested=tuple(SCENARIOS.values()))
    assert (judged.status, judged.reason) == ("fail", "NO_ROW")
    assert judged.findings[0].hint == "nox -s probe -- 0.6.13 --add"


def test_nothing_asked_for_is_not_run() -> None:
    judged = judge_smoke(seen_for("0.6.13"), row_for("0.6.13"), requested=())
    assert (judged.status, judged.reason) == ("not-run", "NO_SCENARIO")


def test_a_scenario_that_is_missing_is_not_run_and_the_others_are_judged() -> None:
    judged = judge(seen_for("0.6.13", names=("one-rank",)), "0.6.13", names=("one-rank", "two-ranks"))
    assert (judged.status, judged.reason) == ("not-run", "MISSING_SCENARIO")
    assert [scenario.status for scenario in judged.scenarios] == ["known", "not-run"]


def test_a_real_fault_outweighs_a_scenario_that_is_missing() -> None:
    seen = altered(seen_for("0.6.13", names=("one-rank",)), *FIRST, "sticky_error", to="boom")
    assert judge(seen, "0.6.13", names=("one-rank", "two-ranks")).reason == "STICKY_CUDA_ERROR"


def test_an_interrupt_is_not_run_whatever_was_found_before() -> None:
    seen = altered(seen_for("0.6.13", names=("one-rank", "two-ranks")), *FIRST, "sticky_error", to="boom")
    seen = altered(seen, "scenarios", 1, "not_run", to=INTERRUPTED)
    judged = judge(seen, "0.6.13", names=("one-rank", "two-ranks"))
    assert (judged.status, judged.reason) == ("not-run", "INTERRUPTED")
    assert "STICKY_CUDA_ERROR" in {finding.reason for finding in judged.findings}


def test_what_else_is_wrong_is_told_on_a_machine_without_a_gpu_too() -> None:
    seen = altered(seen_for("0.6.13", names=("one-rank",)), "machine", "gpus", to=[])
    judged = judge(seen, "0.6.12", names=("one-rank",))
    assert (judged.status, judged.reason) == ("not-run", "NO_GPU")
    assert {"WRONG_ROW", "API_DIFFERS", "WRONG_STRATEGY"} <= {finding.reason for finding in judged.findings}


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_larger_world_than_asked_for_is_judged_and_a_smaller_one_is_not(ranks: int) -> None:
    seen = seen_for("0.6.13", names=("two-ranks",))
    if ranks == 1:
        single = seen_for("0.6.13", names=("one-rank",)).scenarios[0]
        seen = replace(seen, scenarios=(replace(single, name="two-ranks"),))
    else:
        requested = replace(SCENARIOS["two-ranks"], ranks=3)
        judged = judge_smoke(seen, row_for("0.6.13"), requested=(requested,))
        assert judged.reason == "NO_RUN"
    assert judge(seen, "0.6.13", names=("two-ranks",)).status == ("fail" if ranks == 1 else "pass")


def skipping_everything() -> Seen:
    """`skip-given` with a model that has nothing but the skipped operation."""

    def only(by: dict[str, Any]) -> dict[str, Any]:
        return {place: {"bf16_gemm": counts["bf16_gemm"]} for place, counts in by.items()}

    seen = seen_for("0.6.13", names=("skip-given",))
    for run in ("cold", "warm"):
        for path in (("report", "passes"), ("lookups",)):
            seen = altered(seen, "scenarios", 0, run, "ranks", 0, *path, to=only)
        seen = altered(seen, "scenarios", 0, run, "ranks", 0, "errors", to=lambda errors: errors[:2])
        for name, value in (("tuned", 0), ("hits", 0), ("loaded", 0)):
            seen = altered(seen, "scenarios", 0, run, "ranks", 0, "report", name, to=value)
        for name, number in (("tuned", 0), ("loaded", 0), ("nothing_to_tune", True)):
            seen = altered(seen, "scenarios", 0, run, "record", name, to=number)
    return seen


def test_nothing_tuned_because_all_was_skipped_is_no_evidence_for_persistence() -> None:
    judged = judge(skipping_everything(), "0.6.13", names=("skip-given",))
    assert (judged.status, judged.reason) == ("not-run", "NOTHING_TO_TUNE")
    assert judged.scenarios[0].status == "nothing_to_tune"
    assert {finding.check for finding in judged.findings if finding.severity is Severity.ERROR} == {"smoke-tuned"}


def test_nothing_tuned_although_nothing_was_skipped_fails() -> None:
    seen = seen_for("0.6.12", names=("one-rank",))
    seen = altered(seen, *FIRST, "report", "passes", "tune", "fp8_gemm", "tuned", to=0)
    seen = altered(altered(seen, *FIRST, "report", "tuned", to=14), *COLD, "record", "tuned", to=14)
    assert judge(seen, "0.6.12", names=("one-rank",)).reason == "NOTHING_TUNED"


def test_a_follower_that_tunes_in_the_leaders_pass_is_no_leader_broadcast() -> None:
    seen = seen_for("0.6.13", names=("two-ranks",))
    seen = altered(seen, *LAST, "report", "passes", "tune", "fp8_gemm", "tuned", to=7)
    seen = altered(altered(seen, *LAST, "report", "tuned", to=14), *COLD, "record", "tuned", to=49)
    judged = judge(seen, "0.6.13", names=("two-ranks",))
    assert judged.reason == "WRONG_STRATEGY"
    assert "this follower tuned 7 buckets in the leader's pass" in judged.findings[0].detail


@pytest.mark.parametrize("release", RELEASES)
def test_every_rank_that_names_another_strategy_than_the_rules_is_told(release: str) -> None:
    seen = seen_for(release, names=("two-ranks",))
    other = "leader_broadcast" if release != "0.6.13" else "all_ranks"
    for rank in (0, 1):
        seen = altered(seen, *COLD, "ranks", rank, "strategy", to=other)
    seen = altered(seen, *COLD, "record", "strategy", to=other)
    judged = judge(seen, release, names=("two-ranks",))
    assert judged.reason == "WRONG_STRATEGY"
    assert sum(f"the strategy is {other}, the rule says" in finding.detail for finding in judged.findings) == 2


def test_a_warm_run_that_failed_does_not_hide_what_the_cold_one_showed() -> None:
    seen = altered(seen_for("0.6.13", names=("one-rank",)), "scenarios", 0, "warm", "ranks", 0, "end", to="died")
    seen = altered(seen, *FIRST, "report", "round_trip", "lost", to=7)
    judged = judge(seen, "0.6.13", names=("one-rank",))
    assert [f.reason for f in judged.findings if f.severity is Severity.ERROR] == ["DIED", "ROUND_TRIP_LOSS"]
    assert judged.faults[0].state == "seen"


def test_the_rank_that_died_comes_before_those_that_waited_for_it() -> None:
    seen = seen_for("0.6.13", names=("two-ranks",))
    seen = altered(seen, *FIRST, "end", to="error")
    seen = altered(seen, *FIRST, "why", to="StuckError: rank 1 did not come, its last step is 'tune'")
    seen = altered(
        altered(altered(seen, *LAST, "end", to="died"), *LAST, "step", to="tune"), *LAST, "exit_status", to=-9
    )
    judged = judge(seen, "0.6.13", names=("two-ranks",))
    assert judged.reason == "DIED"
    assert judged.findings[0].detail == "two-ranks, cold run, rank 1: died at step 'tune' (exit status -9)"
    assert judged.findings[1].reason == "GAVE_UP"


def test_an_absent_companion_that_the_run_says_it_does_not_cover_is_a_note() -> None:
    seen = altered(seen_for("0.6.13", names=("one-rank",)), "machine", "packages", "apache-tvm-ffi", to=None)
    seen = replace(seen, not_covered=("apache-tvm-ffi",))
    judged = judge(seen, "0.6.13", names=("one-rank",))
    assert judged.status == "pass"
    assert "not covered: apache-tvm-ffi" in {finding.detail for finding in judged.findings}


def test_tactics_that_differ_are_a_note_where_every_rank_tunes_for_itself() -> None:
    judged = judged_for("0.6.12", names=("two-ranks",))
    assert judged.status == "pass"
    assert {f.severity for f in judged.findings if f.reason == "RANKS_DIFFER"} == {Severity.NOTE}


def test_the_ratio_is_recorded_where_the_warm_run_must_be_faster() -> None:
    ratios = {scenario.name: scenario.ratio for scenario in judged_for("0.6.13").scenarios}
    assert ratios["one-rank"] == pytest.approx(15.0)
    assert (ratios["deepep-v2"], ratios["foreign"], ratios["cache-off"]) == (None, None, None)


def state(judged: Judgement, fault: str) -> str:
    return next(one.state for one in judged.faults if one.id == fault)


def without_misses(counts: dict[str, int]) -> dict[str, int]:
    return {**counts, "hits": counts["lookups"], "misses": 0, "fell_back": 0}


def healthy(release: str, name: str, operation: str) -> Seen:
    """The scenario without a miss of that operation outside of tuning mode."""
    seen = seen_for(release, names=(name,))
    for run in ("cold", "warm"):
        scenario = seen.scenarios[0]
        ranks = (scenario.cold if run == "cold" else scenario.warm).ranks  # type: ignore[union-attr]
        for rank in range(len(ranks)):
            place = ("scenarios", 0, run, "ranks", rank)
            for where in ("verify", "check 1", "check 2"):
                if where in ranks[rank].report["passes"]:
                    seen = altered(seen, *place, "report", "passes", where, operation, to=without_misses)
            for size in ranks[rank].lookups:
                seen = altered(seen, *place, "lookups", size, operation, to=without_misses)
            body = seen.as_json()["scenarios"][0][run]["ranks"][rank]["report"]  # type: ignore[index]
            hits = sum(one["hits"] for by in body["passes"].values() for one in by.values())
            seen = altered(seen, *place, "report", "hits", to=hits)
    return seen


@pytest.mark.parametrize(
    ("release", "name", "operation", "fault"),
    [
        ("0.6.12", "one-rank", "bf16_gemm", "flashinfer#3868"),
        ("0.6.12", "one-rank", "fp8_gemm", "flashinfer#3436"),
        ("0.6.13", "one-rank", "bf16_gemm", "flashinfer#3868"),
        ("0.6.13", "deepep-v2", "bf16_gemm", "flashinfer#3868"),
    ],
)
def test_a_known_fault_that_no_longer_shows_says_that_the_table_is_out_of_date(
    release: str, name: str, operation: str, fault: str
) -> None:
    assert state(judged_for(release, names=(name,)), fault) == "seen"
    judged = judge(healthy(release, name, operation), release, names=(name,))
    assert (judged.status, state(judged, fault)) == ("pass", "not-seen")
    assert any(f.reason == "TABLE_OUT_OF_DATE" and f.severity is Severity.WARNING for f in judged.findings)


@pytest.mark.parametrize(
    ("release", "name", "fault"),
    [
        ("0.6.12", "one-rank", "flashinfer#3868/cublaslt"),
        ("0.6.12", "force-persistent", "flashinfer#3868"),
        ("0.6.12", "force-persistent", "flashinfer#3436"),
        ("0.6.13", "skip-given", "flashinfer#3868"),
    ],
)
def test_a_known_fault_that_nothing_would_show_was_not_looked_at(release: str, name: str, fault: str) -> None:
    judged = judged_for(release, names=(name,))
    assert (judged.status, state(judged, fault)) == ("pass", "not-looked-at")
    assert "TABLE_OUT_OF_DATE" not in {finding.reason for finding in judged.findings}


def test_a_known_fault_does_not_show_where_only_one_type_comes_out() -> None:
    seen = healthy("0.6.13", "one-rank", "bf16_gemm")
    for run in ("cold", "warm"):
        seen = altered(seen, "scenarios", 0, run, "ranks", 0, "errors", to=lambda errors: [errors[0], *errors[2:]])
    assert state(judge(seen, "0.6.13", names=("one-rank",)), "flashinfer#3868") == "not-looked-at"


def test_a_symptom_without_its_fault_in_the_row_fails_and_says_what_it_looks_like() -> None:
    row = replace(row_for("0.6.12"), known_faults=())
    judged = judge_smoke(seen_for("0.6.12", names=("one-rank",)), row, requested=(SCENARIOS["one-rank"],))
    assert (judged.status, judged.reason) == ("fail", "MISSES")
    hints = {finding.hint for finding in judged.findings if finding.reason == "MISSES"}
    assert hints == {
        "it looks like flashinfer#3868, which is not among this release's known faults",
        "it looks like flashinfer#3436, which is not among this release's known faults",
    }


def test_a_known_fault_of_which_nobody_knows_how_it_shows_explains_every_miss_of_its_operations() -> None:
    fault = KnownFault(id="flashinfer#1", operations=("fp8_gemm",), effect="misses", how_to_see="look", link="")
    row = replace(row_for("0.7.0.post1"), known_faults=(fault,))
    requested = (SCENARIOS["one-rank"],)
    seen = seen_for("0.7.0.post1", names=("one-rank",))
    assert state(judge_smoke(seen, row, requested=requested), "flashinfer#1") == "not-looked-at"
    missed = judge_smoke(altered(seen, *FIRST, "lookups", "64", "fp8_gemm", to=MISSED), row, requested=requested)
    assert (missed.status, state(missed, "flashinfer#1")) == ("pass", "seen")
    other = judge_smoke(altered(seen, *FIRST, "lookups", "64", "bf16_gemm", to=MISSED), row, requested=requested)
    assert (other.status, other.reason) == ("fail", "MISSES")


def test_lost_entries_are_the_expected_diagnosis_where_the_cache_is_forced_on() -> None:
    judged = judged_for("0.6.12", names=("force-persistent",))
    loss = next(finding for finding in judged.findings if finding.reason == "EXPECTED_LOSS")
    assert judged.status == "pass"
    assert "28 entries in memory, 21 on disk: 7 lost to equal keys, 1 come back with another tactic" in loss.detail


def test_no_loss_with_the_cache_forced_on_says_that_the_table_is_out_of_date() -> None:
    lossless = {"memory": 28, "disk": 28, "lost": 0, "lost_keys": [], "other_tactic": []}
    seen = altered(seen_for("0.6.12", names=(FORCED.name,)), *FIRST, "report", "round_trip", to=lossless)
    seen = altered(seen, "scenarios", 0, "warm", "ranks", 0, "report", "loaded", to=28)
    seen = altered(seen, "scenarios", 0, "warm", "record", "loaded", to=28)
    judged = judge(seen, "0.6.12", names=(FORCED.name,))
    assert judged.status == "pass"
    assert [f.reason for f in judged.findings if f.severity is Severity.WARNING] == ["TABLE_OUT_OF_DATE"]


def test_a_corrupt_scenario_does_not_keep_the_others_from_being_judged() -> None:
    seen = altered(seen_for("0.6.13", names=("one-rank", "two-ranks")), *FIRST, "report", to={})
    judged = judge(seen, "0.6.13", names=("one-rank", "two-ranks"))
    assert judged.reason == "CORRUPT"
    assert [scenario.status for scenario in judged.scenarios] == ["fail", "known"]


def failed(end: str, step: str, *, why: str = "", status: int | None = -9) -> dict[str, Any]:
    return {"end": end, "step": step, "why": why, "exit_status": status}


def both_ranks(first: dict[str, Any], second: dict[str, Any]) -> Judgement:
    """A cold run of two ranks that came out so."""
    seen = seen_for("0.6.13", names=("two-ranks",))
    for place, fields in ((FIRST, first), (LAST, second)):
        for name, value in fields.items():
            seen = altered(seen, *place, name, to=value)
    return judge(seen, "0.6.13", names=("two-ranks",))


def test_of_ranks_that_hung_the_one_that_worked_is_named_before_the_one_that_waited() -> None:
    judged = both_ranks(failed("hung", "waits at tuned"), failed("hung", "tune: bf16_gemm"))
    assert judged.findings[0].detail.startswith("two-ranks, cold run, rank 1: made no progress")


def test_a_rank_that_raised_and_wrote_its_answer_has_no_exit_status_to_tell() -> None:
    judged = both_ranks(failed("error", "tune", why="ValueError: no", status=0), failed("hung", "waits at tuned"))
    assert judged.findings[0].detail.endswith("its warm-up raised at step 'tune': ValueError: no")


@pytest.mark.parametrize("words", ["OSError: [Errno 28] No space left on device", "ninja: Disk quota exceeded"])
def test_a_full_disk_is_no_fault_of_the_release(words: str) -> None:
    other = failed("error", "waits at tuned", why="PeerFailedError: rank 0 failed", status=0)
    judged = both_ranks(failed("error", "tune", why=words, status=0), other)
    assert (judged.status, judged.reason, judged.scenarios[0].status) == ("not-run", "NO_DISK", "not-run")
    assert judged.findings[0].reason == "NO_DISK"


def test_what_neither_the_row_nor_the_installed_tuner_can_tell_is_a_difference() -> None:
    row = row_for("0.6.13")
    unknown = replace(row, facts={**row.facts, "managed_store": replace(row.facts["managed_store"], value=None)})
    seen = altered(seen_for("0.6.13", names=("one-rank",)), "machine", "api", "managed_store", to=None)
    judged = judge_smoke(seen, unknown, requested=[SCENARIOS["one-rank"]])
    assert (judged.status, judged.reason) == ("fail", "API_DIFFERS")


@pytest.mark.parametrize(
    ("tactics", "told"), [(["a"], "one tactic failed and was left out: a"), (["a", "b"], "2 tactics")]
)
def test_tactics_that_were_left_out_are_a_warning(tactics: list[str], told: str) -> None:
    seen = altered(seen_for("0.6.13", names=("one-rank",)), *FIRST, "skipped_tactics", to=tactics)
    judged = judge(seen, "0.6.13", names=("one-rank",))
    assert judged.status == "pass"
    assert told in next(one.detail for one in judged.findings if one.reason == "SKIPPED_TACTICS")


def test_all_that_a_compiler_wrote_is_one_line_of_a_finding_and_whole_in_the_record() -> None:
    why = "RuntimeError: Ninja build failed. Ninja output:\n" + "\x1b[31mFAILED:\x1b[0m x.o\n" * 200 + "ninja: stopped."
    judged = both_ranks(failed("error", "tune", why=why, status=0), failed("hung", "waits at tuned"))
    detail = judged.findings[0].detail
    assert "RuntimeError: Ninja build failed. Ninja output: FAILED: x.o" in detail
    assert detail.endswith("FAILED: x.o ninja: stopped.")
    assert len(detail.splitlines()) == 1
    assert len(detail) < 400
    assert "\x1b" not in detail


def test_a_cache_that_could_not_be_written_comes_before_the_warm_run_that_missed_it() -> None:
    seen = seen_for("0.6.13", names=("one-rank",))
    for run in (COLD, WARM):
        seen = altered(seen, *run, "files", to={**NO_FILES, "read": []})
    written = {"done": False, "reason": "UNWRITABLE", "detail": "Read-only file system"}
    seen = altered(altered(seen, *FIRST, "report", "written", to=written), *WARM, "record", "warm", to=False)
    judged = judge(seen, "0.6.13", names=("one-rank",))
    reasons = [one.reason for one in judged.findings if one.severity is Severity.ERROR]
    assert (judged.reason, reasons[0]) == ("NOT_KEPT", "NOT_KEPT")
    assert "WARM_MISSED" in reasons


@pytest.mark.parametrize(
    ("cause", "effect"),
    [
        ("JIT_CACHE_FOREIGN", "DIED"),
        ("SKIP_OPS", "MISSES"),
        ("NOTHING_TUNED", "MISSES"),
        ("LAID_OUT_READ", "NOT_ANEW"),
        ("NOT_RECOGNISED", "LAID_OUT_CHANGED"),
        ("ROUND_TRIP_LOSS", "WARM_MISSED"),
        ("NOT_REPLACED", "WARM_MISSED"),
    ],
)
def test_a_cause_weighs_more_than_what_it_brings_about(cause: str, effect: str) -> None:
    assert WEIGHTS[cause] < WEIGHTS[effect]


@pytest.mark.parametrize(
    ("found", "pin", "same"),
    [
        ("2.11.0+cu130", "2.11.0", True),
        ("2.11.0+cu130", "2.11.0+cu130", True),
        ("2.11.0+cu126", "2.11.0+cu130", False),
        ("2.11.0", "2.11.0+cu130", False),
        ("2.11", "2.11.0", True),
        ("main", "main", True),
        ("main", "2.11.0", False),
        ("2.11.0", "main", False),
    ],
)
def test_a_local_label_counts_where_the_pin_has_one(found: str, pin: str, same: bool) -> None:
    seen = altered(seen_for("0.6.13", names=("one-rank",)), "machine", "packages", "torch", to=found)
    judged = judge(replace(seen, pinned={**seen.pinned, "torch": pin}), "0.6.13", names=("one-rank",))
    assert (judged.status, judged.reason) == (("pass", None) if same else ("fail", "PIN_SKEW"))
