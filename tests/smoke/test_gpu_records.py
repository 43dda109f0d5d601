"""Records of whole smoke runs on an H200: they parse, come to the same judgement again, and turn with what is altered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.smoke.samples import row_for
from tooling.evidence import Record, parse_record, render_record
from tooling.findings import Severity
from tooling.smoke.checks import judge_smoke
from tooling.smoke.expectations import Expected
from tooling.smoke.judgement import Judgement, measurements
from tooling.smoke.observations import ScenarioSeen, Seen
from tooling.smoke.scenarios import FORCED, SCENARIOS
from tooling.smoke.story import render_story
from tooling.smoke.summary import render_summary, scenario_cells

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "data" / "smoke"
SCHEMAS = ROOT / "tooling" / "data" / "schemas"
RUNS = ("0.6.12", "0.6.13", "0.6.13-jit-cache", "0.7.0.post1", "0.7.0.post1-jit-cache")
TWO_GPUS = {"x2-0.6.13": ("one-rank", "two-ranks", "deepep-v2"), "x2-torchrun-0.6.13": ("two-ranks",)}
"""Runs of some scenarios on two GPUs over NCCL; the second under torchrun."""
FRESH = ("0.6.12", "0.6.13", "0.7.0.post1")
DEEPEP = tuple(name for name in SCENARIOS if name.startswith("deepep"))

Body = dict[str, Any]


@cache
def text_of(run: str) -> str:
    return (FOLDER / f"h200-{run}.json").read_text()


@cache
def record_of(run: str) -> Record:
    return parse_record(text_of(run))


def seen_of(run: str) -> Seen:
    return Seen.from_json(record_of(run).measurements)


def judge(seen: Seen, release: str) -> Judgement:
    """As the run itself judged: against the shipped row, with the scenarios that the record holds."""
    known = {**SCENARIOS, FORCED.name: FORCED}
    return judge_smoke(seen, row_for(release), requested=[known[one.name] for one in seen.scenarios])


def release_of(run: str) -> str:
    return run.removesuffix("-jit-cache").rpartition("x2-")[2].removeprefix("torchrun-")


def scenario_of(run: str, name: str) -> ScenarioSeen:
    found = seen_of(run).scenario(name)
    assert found is not None
    return found


@pytest.mark.parametrize("run", RUNS)
def test_a_record_is_whole_and_has_the_shape_that_the_schemas_say(run: str) -> None:
    body, record = json.loads(text_of(run)), record_of(run)
    jsonschema.validate(body, json.loads((SCHEMAS / "evidence.schema.json").read_text()))
    jsonschema.validate(body["measurements"], json.loads((SCHEMAS / "smoke-measurements.schema.json").read_text()))
    assert render_record(record) == text_of(run)
    assert (record.stage, record.subject, record.status, record.reason) == ("smoke", "sm90", "pass", None)
    assert (record.flashinfer_version, record.dirty) == (release_of(run), False)
    assert record.gpu == {"arch": "sm90", "driver": "580.159.04", "names": ["NVIDIA H200"]}


@pytest.mark.parametrize("run", TWO_GPUS)
def test_two_ranks_have_a_gpu_each_where_there_are_two(run: str) -> None:
    assert tuple(one.name for one in seen_of(run).scenarios) == TWO_GPUS[run]
    assert record_of(run).gpu == {"arch": "sm90", "driver": "580.159.04", "names": ["NVIDIA H200", "NVIDIA H200"]}
    for one in (scenario_of(run, "two-ranks").cold, scenario_of(run, "two-ranks").warm):
        assert one is not None
        assert one.ended
        assert [rank.device for rank in one.ranks] == ["cuda:0 NVIDIA H200", "cuda:1 NVIDIA H200"]


@pytest.mark.parametrize("run", [*RUNS, *TWO_GPUS])
def test_judged_again_a_record_comes_to_what_it_says_to_the_letter(run: str) -> None:
    record, seen = record_of(run), seen_of(run)
    judgement = judge(seen, release_of(run))
    assert (judgement.status, judgement.reason, judgement.findings) == (record.status, record.reason, record.findings)
    assert measurements(seen, judgement) == record.measurements


@pytest.mark.parametrize("run", RUNS)
def test_every_scenario_took_place_cold_and_warm_and_passed(run: str) -> None:
    judgement = judge(seen_of(run), release_of(run))
    wanted = [*SCENARIOS, *([FORCED.name] if run == "0.6.12" else [])]
    assert [one.name for one in judgement.scenarios] == wanted
    assert {one.status for one in judgement.scenarios} <= {"pass", "known"}
    for one in seen_of(run).scenarios:
        assert one.cold is not None
        assert one.warm is not None
        assert (one.cold.ended, one.warm.ended) == (True, True)


@pytest.mark.parametrize(
    ("run", "strategies", "faults"),
    [
        ("0.6.12", {"one-rank": "all_ranks", "two-ranks": "all_ranks"}, {"flashinfer#3436", "flashinfer#3868"}),
        ("0.6.13", {"one-rank": "leader_broadcast", "two-ranks": "leader_broadcast"}, {"flashinfer#3868"}),
        ("0.7.0.post1", {"one-rank": "managed", "two-ranks": "synchronized"}, set()),
    ],
)
def test_a_release_is_gated_as_the_table_says_and_shows_its_known_faults(
    run: str, strategies: dict[str, str], faults: set[str]
) -> None:
    judgement = judge(seen_of(run), run)
    assert {fault.id for fault in judgement.faults if fault.state == "seen"} == faults
    for name, strategy in {**strategies, **dict.fromkeys((*DEEPEP, "cache-off"), "all_ranks")}.items():
        judged, seen = judgement.scenario(name), scenario_of(run, name)
        assert judged is not None
        assert judged.expected is not None
        assert seen.cold is not None
        assert seen.warm is not None
        assert {rank.strategy for rank in (*seen.cold.ranks, *seen.warm.ranks)} == {strategy}
        assert judged.expected.persistent is (strategy != "all_ranks")
        assert bool(seen.cold.files.after) is (strategy != "all_ranks")
        assert seen.warm.record["warm"] is (strategy != "all_ranks")
        assert (judged.ratio is not None) is (strategy != "all_ranks")
        if judged.ratio is not None:
            assert judged.ratio > 2
            assert sum(rank.report["tuned"] for rank in seen.warm.ranks) == 0


def test_forced_on_0_6_12_the_cache_loses_seven_of_28_entries_and_that_is_no_failure() -> None:
    seen, judgement = scenario_of("0.6.12", FORCED.name), judge(seen_of("0.6.12"), "0.6.12")
    assert seen.cold is not None
    trip = seen.cold.ranks[0].report["round_trip"]
    assert (trip["memory"], trip["disk"], trip["lost"]) == (28, 21, 7)
    (loss,) = [one for one in judgement.findings if one.reason == "EXPECTED_LOSS"]
    assert (loss.severity, judgement.status) == (Severity.NOTE, "pass")


@pytest.mark.parametrize("run", RUNS)
def test_a_foreign_file_keeps_its_bytes_and_the_warm_start_tunes_anew(run: str) -> None:
    seen = scenario_of(run, "foreign")
    assert seen.cold is not None
    assert seen.warm is not None
    laid = seen.cold.files.before
    assert laid
    for files in (seen.cold.files, seen.warm.files):
        assert (files.after, files.created, files.changed, files.removed) == (laid, (), (), ())
    assert seen.warm.record["warm"] is False
    assert seen.warm.record["tuned"] == seen.cold.record["tuned"] > 0
    if run != "0.6.12":
        assert (seen.cold.record["why_cold"], seen.warm.record["why_cold"]) == ("FOREIGN", "FOREIGN")


@pytest.mark.parametrize("run", RUNS)
def test_a_whole_run_stays_in_its_time_and_kernels_of_an_earlier_run_are_reused(run: str) -> None:
    """The targets are 10 minutes, and 5 with compiled kernels at hand."""
    seen = seen_of(run)
    reused = run.endswith("-jit-cache")
    compiling = sum(rank.jit_s or 0.0 for one in seen.scenarios if one.cold for rank in one.cold.ranks)
    assert seen.took_s is not None
    assert seen.took_s < (300 if reused else 600)
    assert (compiling < 2) is reused
    assert seen.jit["fresh"] is not reused


@pytest.mark.parametrize("run", RUNS)
def test_nothing_ran_out_of_memory_was_left_out_or_fetched(run: str) -> None:
    for one in seen_of(run).scenarios:
        for part in (one.cold, one.warm):
            for rank in part.ranks if part else ():
                assert (rank.out_of_memory, rank.skipped_tactics, rank.downloads, rank.sticky_error) == ((), (), (), "")


def first(body: Body, run: str = "cold", rank: int = 0) -> Body:
    found: Body = body[run]["ranks"][rank]
    return found


def put(name: str, value: object, run: str = "cold") -> Callable[[Body], None]:
    return lambda body: first(body, run).update({name: value})


def record(name: str, value: object, run: str = "cold") -> Callable[[Body], None]:
    return lambda body: body[run]["record"].update({name: value})


def miss(body: Body) -> None:
    """A count that is tuned for misses, which no known fault explains for fp8."""
    counts = first(body, "warm")["lookups"]["16"]["fp8_gemm"]
    counts.update(hits=0, misses=counts["lookups"], fell_back=counts["calls"])


def emptied(files: Body) -> None:
    for name in ("before", "after", "created", "changed", "removed"):
        files[name] = []


def stray(body: Body) -> None:
    """A file more after the warm run."""
    files = body["warm"]["files"]
    files["after"].append({"path": "zz/new.json", "size_bytes": 1, "sha256": "sha256:1"})
    files["created"] = [*files["created"], "zz/new.json"]


def twice(body: Body) -> None:
    """A lock that is listed twice."""
    files = body["warm"]["files"]
    files["after"] += [{"path": "zz/.lock", "size_bytes": 0, "sha256": "sha256:0"}] * 2
    files["created"] = [*files["created"], "zz/.lock", "zz/.lock"]


def other_tactics(body: Body) -> None:
    """Rank 1 holds others, and says so in both places."""
    rank = first(body, rank=1)
    rank["tactics_sha256"] = rank["report"]["digest"] = "sha256:1"


def nothing_but_compiling(body: Body) -> None:
    """The warm start spent all of its time so; a channel that wants it faster would have no ratio to look at."""
    for rank in body["warm"]["ranks"]:
        rank.update(jit_s=body["warm"]["seconds"], tuning_s=0.0)


def found(kind: str, run: str = "cold") -> Callable[[Body], None]:
    return lambda body: first(body, run)["report"]["cache"].update(kind=kind)


def rewritten(body: Body) -> None:
    """What lay there has other bytes after the cold run, and the warm one finds those."""
    cold, warm = body["cold"]["files"], body["warm"]["files"]
    name = cold["before"][0]["path"]
    for files in (cold["after"], warm["before"], warm["after"]):
        next(one for one in files if one["path"] == name)["sha256"] = "sha256:other"
    cold["changed"] = [name]


ANYWHERE: dict[str, tuple[Callable[[Body], object], str]] = {
    "another strategy": (put("strategy", "none"), "CORRUPT"),
    "another strategy, in the record too": (
        lambda body: [one.update(strategy="none") for one in (*body["cold"]["ranks"], body["cold"]["record"])],
        "WRONG_STRATEGY",
    ),
    "a cache that is said to be the other way": (
        lambda body: body["warm"]["record"].update(persistent=not body["warm"]["record"]["persistent"]),
        "WRONG_STRATEGY",
    ),
    "another rule": (record("rule", 1), "WRONG_STRATEGY"),
    "another release": (record("release", "0.6.11"), "OTHER_MACHINE"),
    "another architecture": (record("arch", "sm100", "warm"), "OTHER_MACHINE"),
    "another skip set in the call": (put("passed", ["other"]), "SKIP_OPS"),
    "another skip set in the record": (record("skip_ops", ["other"], "warm"), "SKIP_OPS"),
    "a rank that died": (put("end", "died", "warm"), "DIED"),
    "a rank that hung": (put("end", "hung"), "HUNG"),
    "an exit status": (put("exit_status", 1), "CORRUPT"),
    "a CUDA error": (put("sticky_error", "an illegal memory access", "warm"), "STICKY_CUDA_ERROR"),
    "memory that ran out": (put("out_of_memory", ["OOM detected"]), "OUT_OF_MEMORY"),
    "no errors taken": (put("errors", []), "NO_NUMBERS"),
    "no lookups": (put("lookups", {}, "warm"), "ZERO_LOOKUPS"),
    "lookups that do not add up": (
        lambda body: first(body)["lookups"]["16"]["fp8_gemm"].update(hits=99), "CORRUPT"
    ),
    "a miss at a bucket": (miss, "MISSES"),
    "a wrong number": (lambda body: first(body)["errors"][0].update(largest=0.5), "WRONG_NUMBERS"),
    "no number": (lambda body: first(body, "warm")["errors"][0].update(finite=False, largest=None), "NOT_FINITE"),
    "more tuned than the passes say": (lambda body: first(body)["report"].update(tuned=99), "CORRUPT"),
    "no pass outside of tuning mode": (
        lambda body: [first(body)["report"]["passes"].pop(name) for name in ("check 1", "check 2")], "CORRUPT"
    ),
    "one rank fewer": (lambda body: body["warm"]["ranks"].clear(), "NO_RUN"),
    "no warm run": (lambda body: body.update(warm=None), "NO_RUN"),
    "not run": (lambda body: body.update(not_run="no time"), "NOT_RUN"),
    "broken off": (lambda body: body.update(not_run="interrupted"), "INTERRUPTED"),
    "a file that came": (stray, "LEFT_FILES"),
    "no look-ups of an operation at one count": (
        lambda body: first(body, "warm")["lookups"]["16"].pop("fp8_gemm"), "ZERO_LOOKUPS"
    ),
    "look-ups without a call": (lambda body: first(body)["lookups"]["16"]["fp8_gemm"].update(calls=0), "CORRUPT"),
    "a call without a look-up": (lambda body: first(body)["lookups"]["16"]["fp8_gemm"].update(calls=9), "CORRUPT"),
    "a count that is not whole": (lambda body: first(body)["lookups"]["16"]["fp8_gemm"].pop("skipped"), "CORRUPT"),
    "a call that was skipped unasked": (
        lambda body: first(body)["report"]["passes"]["tune"]["fp8_gemm"].update(skipped=1), "SKIP_OPS"
    ),
    "a result fewer than elsewhere": (lambda body: first(body, "warm")["errors"].pop(0), "NO_NUMBERS"),
    "a result twice": (lambda body: first(body)["errors"].append(first(body)["errors"][0]), "CORRUPT"),
    "a result of another operation": (lambda body: first(body)["errors"][0].update(operation="other"), "NO_NUMBERS"),
    "a type that the label does not name": (lambda body: first(body)["errors"][0].update(out="float32"), "CORRUPT"),
    "an error below nothing": (lambda body: first(body)["errors"][0].update(largest=-1.0), "CORRUPT"),
    "no exit status": (put("exit_status", None), "CORRUPT"),
    "a rank without a strategy": (put("strategy", "", "warm"), "CORRUPT"),
    "a rank on the processor": (put("device", "cpu"), "OTHER_MACHINE"),
    "a rank on another GPU": (put("device", "cuda:0 NVIDIA A100", "warm"), "OTHER_MACHINE"),
    "a rank on nothing": (put("device", ""), "OTHER_MACHINE"),
    "tactics of another digest": (put("tactics_sha256", "sha256:1"), "CORRUPT"),
    "compiling backwards": (put("jit_s", -1.0, "warm"), "CORRUPT"),
    "compiling for ever": (put("jit_s", float("inf"), "warm"), "CORRUPT"),
    "more compiling than time": (put("jit_s", 10_000.0, "warm"), "CORRUPT"),
    "a pass longer than the whole": (
        lambda body: first(body)["report"]["seconds"].update({"check 1": 10_000.0}), "CORRUPT"
    ),
    "a pass without a time": (lambda body: first(body)["report"]["seconds"].pop("check 1"), "CORRUPT"),
    "longer than all of the run": (lambda body: body["cold"].update(seconds=10_000.0), "CORRUPT"),
    "a run without a time": (lambda body: body["warm"].update(seconds=None), "CORRUPT"),
    "nobody saw what was read": (lambda body: body["warm"]["files"].update(read=None), "CORRUPT"),
    "entries that are nowhere": (
        lambda body: first(body)["report"]["round_trip"].update(memory=99, disk=98, lost=0), "CORRUPT"
    ),
    "fewer entries than none": (lambda body: first(body)["report"]["round_trip"].update(disk=-1), "CORRUPT"),
    "loaded fewer than none": (lambda body: first(body, "warm")["report"].update(loaded=-1), "CORRUPT"),
    "no kind of cache": (lambda body: first(body)["report"]["cache"].pop("kind"), "CORRUPT"),
    "nothing said of not running": (lambda body: body.update(not_run=None), "CORRUPT"),
    "a file told twice": (twice, "CORRUPT"),
}  # fmt: skip
"""An alteration of any scenario of any record, and a reason that it must bring."""

WHERE_A_CACHE_IS_KEPT: dict[str, tuple[Callable[[Body], object], str]] = {
    "no file kept": (lambda body: emptied(body["cold"]["files"]), "NOT_KEPT"),
    "a warm start that says it was cold": (record("warm", False, "warm"), "WARM_MISSED"),
    "a warm start that is slower": (lambda body: body["warm"].update(seconds=body["cold"]["seconds"] * 2), "NOT_FASTER"),
    "a warm start that did nothing but compile": (nothing_but_compiling, "NOT_FASTER"),
    "nobody wrote": (lambda body: first(body)["report"].update(written=None), "NOT_KEPT"),
    "nothing read": (lambda body: body["warm"]["files"].update(read=[]), "WARM_MISSED"),
    "other bits": (lambda body: first(body, "warm")["errors"][0].update(sha256="sha256:1"), "WARM_DIFFERS"),
    "a lost entry": (lambda body: first(body)["report"]["round_trip"].update(lost=1), "ROUND_TRIP_LOSS"),
    "a cache that is not valid": (lambda body: first(body, "warm")["report"]["cache"].update(kind="foreign"), "WARM_MISSED"),
}  # fmt: skip
WHERE_NONE_IS_KEPT: dict[str, tuple[Callable[[Body], object], str]] = {
    "a warm start that says it was warm": (record("warm", True, "warm"), "NOT_ANEW"),
}
WHERE_RANKS_AGREE: dict[str, tuple[Callable[[Body], object], str]] = {
    "other tactics": (other_tactics, "RANKS_DIFFER"),
    "nothing said of the barrier": (lambda body: body["warm"]["record"]["spread_s"].pop("barrier"), "CORRUPT"),
    "a difference": (record("difference", "('bf16_gemm',)"), "RANKS_DIFFER"),
}
WHERE_A_FILE_MUST_STAY: dict[str, tuple[Callable[[Body], object], str]] = {
    "other bytes": (rewritten, "LAID_OUT_CHANGED")
}
WHERE_THE_CACHE_IS_OFF: dict[str, tuple[Callable[[Body], object], str]] = {
    "a file that was read": (lambda body: body["cold"]["files"].update(read=["x/y.json"]), "LAID_OUT_READ"),
    "a file that was read later": (lambda body: body["warm"]["files"].update(read=["x/y.json"]), "LAID_OUT_READ"),
}
WHERE_IT_STARTS_FRESH: dict[str, tuple[Callable[[Body], object], str]] = {
    "a cache where there is none": (found("valid"), "NOT_FRESH"),
}
WHERE_A_FRESH_ONE_IS_KEPT: dict[str, tuple[Callable[[Body], object], str]] = {
    "a cold start that tells of a broken file": (record("why_cold", "TRUNCATED"), "NOT_FRESH"),
    "a cold start that does not say why": (record("why_cold", ""), "NOT_FRESH"),
}
WHERE_OPERATIONS_CAN_BE_SKIPPED: dict[str, tuple[Callable[[Body], object], str]] = {
    "no skip set in the call": (put("passed", None), "SKIP_OPS"),
}
WHERE_A_BROKEN_FILE_LIES: dict[str, tuple[Callable[[Body], object], str]] = {
    "a broken file that is taken for a foreign one": (record("why_cold", "FOREIGN"), "NOT_RECOGNISED"),
    "a broken file that is taken for none": (record("why_cold", "NO_CACHE"), "NOT_RECOGNISED"),
    "a broken file that a rank does not see": (found("absent"), "NOT_RECOGNISED"),
}
WHERE_A_FOREIGN_FILE_LIES: dict[str, tuple[Callable[[Body], object], str]] = {
    "a foreign file that a rank takes for none": (found("absent"), "NOT_RECOGNISED"),
    "a foreign file that a warm start takes for a broken one": (record("why_cold", "TRUNCATED", "warm"), "NOT_RECOGNISED"),
    "a foreign file that a warm start's rank takes for a broken one": (found("miss", "warm"), "NOT_RECOGNISED"),
}  # fmt: skip


def fitting(expected: Expected) -> dict[str, tuple[Callable[[Body], object], str]]:
    """The alterations that apply to a scenario of which that is expected."""
    layout, several = expected.scenario.layout, expected.scenario.ranks > 1
    groups = [
        (WHERE_A_CACHE_IS_KEPT, not expected.diagnosis and expected.warm_hits),
        (WHERE_NONE_IS_KEPT, not expected.diagnosis and not expected.warm_hits),
        (WHERE_RANKS_AGREE, expected.equal_tactics and several),
        (WHERE_A_FILE_MUST_STAY, expected.laid_out == "unchanged"),
        (WHERE_IT_STARTS_FRESH, layout == "none"),
        (WHERE_A_FRESH_ONE_IS_KEPT, layout == "none" and expected.persistent),
        (WHERE_OPERATIONS_CAN_BE_SKIPPED, expected.passed is not None),
        (WHERE_THE_CACHE_IS_OFF, not expected.persistent),
        (WHERE_A_BROKEN_FILE_LIES, layout == "truncated" and expected.persistent),
        (WHERE_A_FOREIGN_FILE_LIES, layout == "foreign" and expected.persistent),
    ]
    return {**ANYWHERE, **{what: one for group, fits in groups if fits for what, one in group.items()}}


def alterations() -> Iterator[tuple[str, str, str, Callable[[Body], object], str]]:
    """Every alteration that applies to a scenario, for all scenarios of the fresh runs."""
    for run in FRESH:
        for outcome in judge(seen_of(run), run).scenarios:
            assert outcome.expected is not None
            for what, (alter, reason) in fitting(outcome.expected).items():
                yield run, outcome.name, what, alter, reason


@pytest.mark.parametrize("run", FRESH)
def test_every_alteration_of_every_scenario_turns_the_verdict_and_is_named(run: str) -> None:
    """Each on its own, on a record that holds that scenario only and passes."""
    tried, quiet = 0, []
    whole = json.loads(text_of(run))["measurements"]
    for release, name, what, alter, reason in alterations():
        if release != run:
            continue
        (scenario,) = [one for one in whole["scenarios"] if one["name"] == name]
        body = {**whole, "scenarios": [deepcopy(scenario)]}
        assert judge(Seen.from_json(body), run).status == "pass"
        alter(body["scenarios"][0])
        found = judge(Seen.from_json(body), run)
        errors = {one.reason for one in found.findings if one.severity is Severity.ERROR}
        tried += 1
        if found.status == "pass" or reason not in errors:
            quiet.append((name, what, reason, found.status, sorted(errors)))
    assert quiet == []
    assert tried > 200


MACHINE: dict[str, tuple[Callable[[Body], object], str]] = {
    "no GPU": (lambda body: body["machine"].update(gpus=[]), "NO_GPU"),
    "another FlashInfer": (lambda body: body["machine"]["packages"].update({"flashinfer-python": "0.6.11"}), "PIN_SKEW"),
    "another torch": (lambda body: body["machine"]["packages"].update(torch="2.10.0"), "PIN_SKEW"),
    "a cubin of another release": (
        lambda body: body["machine"]["packages"].update({"flashinfer-cubin": "0.6.11"}), "PIN_SKEW"
    ),
    "no pins": (lambda body: body.update(pinned={}), "UNPINNED"),
    "a parameter less": (lambda body: body["machine"]["api"]["autotune_parameters"].pop(), "API_DIFFERS"),
    "another kind of tuner": (lambda body: body["machine"]["api"].update(autotuner="none"), "API_DIFFERS"),
    "no answer about the tuner": (lambda body: body["machine"].update(api={}), "API_DIFFERS"),
    "a tuner that cannot be imported": (
        lambda body: body["machine"].update(api={"import_error": "ImportError"}), "FLASHINFER_BROKEN"
    ),
    "a metadata field more": (lambda body: body["machine"]["api"]["metadata_fields"].append("new"), "API_DIFFERS"),
    "kernels of another release": (lambda body: body["jit"].update(flashinfer="0.6.11"), "JIT_CACHE_FOREIGN"),
    "kernels of another GPU": (lambda body: body["jit"].update(arch="sm100"), "JIT_CACHE_FOREIGN"),
    "kernels of nothing": (lambda body: body.update(jit={}), "JIT_CACHE_FOREIGN"),
    "kernels of an unknown architecture": (
        lambda body: body.update(jit={"fresh": False, "cuda": "13.0", "flashinfer": "0.6.13"}), "JIT_CACHE_FOREIGN"
    ),
    "kernels that are a text": (lambda body: body.update(jit="fresh"), "CORRUPT"),
    "metadata that is not there": (lambda body: body["machine"]["api"].update(metadata_fields=[]), "API_DIFFERS"),
    "metadata that nobody looked at": (lambda body: body["machine"]["api"].pop("metadata_fields"), "API_DIFFERS"),
    "an interface that is none": (lambda body: body["machine"].update(api=None), "CORRUPT"),
    "another GPU": (lambda body: body["machine"].update(gpus=["NVIDIA A100"]), "OTHER_MACHINE"),
    "a GPU that is a number": (lambda body: body["machine"].update(gpus=[1]), "CORRUPT"),
    "a pin that is nothing": (lambda body: body["pinned"].update(torch=None), "CORRUPT"),
    "less time than its parts": (lambda body: body.update(took_s=1.0), "CORRUPT"),
    "a time that is a text": (lambda body: body.update(took_s="long"), "CORRUPT"),
    "packages that are no texts": (lambda body: body["machine"]["packages"].update(torch=2), "CORRUPT"),
}  # fmt: skip


@pytest.mark.parametrize("what", MACHINE)
@pytest.mark.parametrize("run", FRESH)
def test_an_altered_machine_turns_the_verdict(run: str, what: str) -> None:
    body = deepcopy(json.loads(text_of(run))["measurements"])
    alter, reason = MACHINE[what]
    alter(body)
    found = judge(Seen.from_json(body), run)
    assert found.status != "pass"
    assert reason in {one.reason for one in found.findings if one.severity is Severity.ERROR}


def test_a_scenario_that_was_asked_for_and_is_gone_is_no_pass() -> None:
    body = {**record_of("0.6.13").measurements}
    body["scenarios"] = body["scenarios"][1:]  # type: ignore[index]
    found = judge_smoke(Seen.from_json(body), row_for("0.6.13"), requested=list(SCENARIOS.values()))
    assert (found.status, found.reason) == ("not-run", "MISSING_SCENARIO")


def test_a_run_judged_by_another_releases_row_fails() -> None:
    for run, other in (("0.6.12", "0.6.13"), ("0.6.13", "0.6.12"), ("0.7.0.post1", "0.6.13")):
        found = judge(seen_of(run), other)
        assert (found.status, found.reason) == ("fail", "WRONG_ROW")
    found = judge_smoke(seen_of("0.6.13"), None, requested=list(SCENARIOS.values()))
    assert (found.status, found.reason) == ("fail", "NO_ROW")


def test_a_known_fault_that_no_longer_shows_says_that_the_table_is_out_of_date() -> None:
    body = deepcopy(json.loads(text_of("0.6.13"))["measurements"])
    for scenario in body["scenarios"]:
        for rank in scenario["cold"]["ranks"]:
            counts = rank["report"]["passes"].get("verify", {}).get("bf16_gemm")
            if counts and counts["misses"]:
                rank["report"]["hits"] += counts["misses"]
                counts.update(hits=counts["lookups"], misses=0, fell_back=0)
    found = judge(Seen.from_json(body), "0.6.13")
    assert found.status == "pass"
    assert [one.severity for one in found.findings if one.reason == "TABLE_OUT_OF_DATE"] == [Severity.WARNING]


def test_a_fault_that_is_not_among_the_rows_fails() -> None:
    """0.6.12's misses, on a row that knows of no fault."""
    body = deepcopy(json.loads(text_of("0.6.12"))["measurements"])
    row = row_for("0.6.12")
    known = {**SCENARIOS, FORCED.name: FORCED}
    seen = Seen.from_json(body)
    found = judge_smoke(seen, replace(row, known_faults=()), requested=[known[one.name] for one in seen.scenarios])
    assert (found.status, found.reason) == ("fail", "MISSES")


@pytest.mark.parametrize("document", ["docs/smoke.md", "README.md"])
def test_what_the_documents_show_is_what_is_said_of_that_record(document: str) -> None:
    """The blocks that speak of a smoke run; lines while it works have times of the orchestrator's own."""
    seen, judgement = seen_of("0.6.13"), judge(seen_of("0.6.13"), "0.6.13")
    said = {*render_story(record_of("0.6.13")), *render_summary(seen, judgement), "pass: evidence/smoke-sm90.json", "…"}
    blocks = (ROOT / document).read_text().split("```")
    shown = [block for block in blocks if "Smoke on NVIDIA H200" in block or "cold s  warm s" in block]
    assert len(shown) == 1
    assert [line for line in shown[0].splitlines()[1:] if line and line not in said] == []


def test_the_measured_tables_hold_what_the_records_do() -> None:
    text = (ROOT / "docs" / "measurements.md").read_text().split("## Smoke")[1]
    for run in FRESH:
        table = text.split(f"\n{run}:\n")[1].strip().split("\n\n")[0]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
        judged = judge(seen_of(run), run).scenarios
        assert [[*row[:3], *row[4:8]] for row in rows] == [list(scenario_cells(one)[:7]) for one in judged]
    for run in RUNS:
        assert f"{seen_of(run).took_s:.0f} s" in text
