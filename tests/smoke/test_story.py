"""The table of scenarios and the story of a record, whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.smoke.samples import altered, judge, seen_for
from tooling.errors import InputError
from tooling.evidence import Record, parse_record, render_record
from tooling.findings import Finding
from tooling.smoke.judgement import measurements
from tooling.smoke.observations import INTERRUPTED, ScenarioSeen, Seen
from tooling.smoke.story import render_story
from tooling.smoke.summary import render_summary, scenario_cells

THEN = datetime(2026, 1, 1, tzinfo=UTC)


def record_of(seen: Seen, release: str, names: Sequence[str], *, judged: bool = True) -> Record:
    """The record of that run, written and read back."""
    judgement = judge(seen, release, names=names)
    record = Record(
        stage="smoke",
        subject="sm90",
        status=judgement.status,
        reason=judgement.reason,
        pins_sha256=None,
        flashinfer_version=release,
        commit=None,
        dirty=None,
        started=THEN,
        ended=THEN,
        tool_version="0",
        findings=judgement.findings if judged else (),
        measurements=measurements(seen, judgement) if judged else seen.as_json(),
    )
    return parse_record(render_record(record))


def failing() -> Seen:
    """One rank's warm run hangs, a foreign file is left alone, and the cache-off scenario is missing."""
    seen = seen_for("0.6.13", names=("one-rank", "two-ranks", "foreign"))
    seen = altered(seen, "scenarios", 0, "warm", "ranks", 0, "end", to="hung")
    seen = altered(seen, "scenarios", 0, "warm", "ranks", 0, "step", to="verify")
    return altered(seen, "scenarios", 0, "warm", "ranks", 0, "exit_status", to=-9)


FAILING = ("one-rank", "two-ranks", "foreign", "cache-off")


def test_the_summary_has_a_row_for_each_scenario_and_the_first_cause() -> None:
    lines = render_summary(failing(), judge(failing(), "0.6.13", names=FAILING))
    assert "\n".join(lines) == SUMMARY.strip("\n")


def test_a_scenario_that_is_under_way_has_as_many_cells_as_one_that_ended() -> None:
    judgement = judge(failing(), "0.6.13", names=FAILING)
    assert {len(scenario_cells(scenario)) for scenario in judgement.scenarios} == {8}


def test_the_story_of_a_failed_run_has_the_known_cause_first() -> None:
    assert "\n".join(render_story(record_of(failing(), "0.6.13", FAILING))) == FAILED.strip("\n")


def test_the_story_of_the_diagnosis_tells_what_was_lost() -> None:
    names = ("force-persistent",)
    story = render_story(record_of(seen_for("0.6.12", names=names), "0.6.12", names))
    assert "\n".join(story) == DIAGNOSIS.strip("\n")


def test_the_story_of_a_run_that_was_broken_off_tells_what_was_seen_until_then() -> None:
    seen = seen_for("0.6.13", names=("one-rank",))
    scenario = replace(seen.scenarios[0], warm=None, not_run=INTERRUPTED)
    seen = replace(seen, scenarios=(scenario, ScenarioSeen(name="two-ranks", not_run=INTERRUPTED)))
    record = record_of(seen, "0.6.13", ("one-rank", "two-ranks"), judged=False)
    assert "\n".join(render_story(record)) == BROKEN_OFF.strip("\n")


def test_the_story_of_a_machine_without_a_gpu_says_so() -> None:
    seen = seen_for("0.6.13", names=())
    seen = replace(seen, machine=replace(seen.machine, gpus=(), arch="", driver=None, nvcc=None), not_covered=())
    assert "\n".join(render_story(record_of(seen, "0.6.13", ("one-rank",)))) == NO_GPU.strip("\n")


def test_a_record_of_another_stage_has_no_such_story() -> None:
    record = replace(record_of(failing(), "0.6.13", FAILING), stage="image")
    with pytest.raises(InputError, match="a record of image, not of smoke"):
        render_story(record)


@pytest.mark.parametrize("broken", ["machine", "scenarios", "judged"])
def test_measurements_of_another_shape_are_an_error_of_the_input(broken: str) -> None:
    record = record_of(failing(), "0.6.13", FAILING)
    body = json.loads(json.dumps(record.measurements))
    body[broken] = ["nothing"]
    with pytest.raises(InputError, match="are not those of a smoke run"):
        render_story(replace(record, measurements=body))


def test_findings_that_somebody_added_to_the_record_are_told() -> None:
    record = record_of(seen_for("0.6.13", names=("one-rank",)), "0.6.13", ("one-rank",))
    added = Finding(check="smoke-machine", detail="the clock is wrong", reason="CLOCK")
    story = render_story(replace(record, findings=(added, *record.findings)))
    assert "First cause: CLOCK: the clock is wrong" in story


SUMMARY = """
smoke on NVIDIA H200 (sm90, driver 580.159.04, CUDA 13.0, nvcc 13.0.88), FlashInfer 0.6.13
scenario   strategy          cold s  warm s  ratio  hits  misses  verdict
one-rank   leader_broadcast    6.90    0.40           31       1  fail: HUNG
two-ranks  leader_broadcast    6.90    0.40   15.0   118       2  known: flashinfer#3868
foreign    leader_broadcast    6.90    6.10           62       2  known: flashinfer#3868
cache-off  all_ranks                                   0       0  not run: MISSING_SCENARIO
flashinfer#3868: seen
flashinfer#3868/cublaslt: not looked at
fail (HUNG): one-rank, warm run, rank 0: made no progress and was killed at step 'verify' (exit status -9)
"""

FAILED = """
Smoke on NVIDIA H200 (sm90, driver 580.159.04, CUDA 13.0, nvcc 13.0.88), FlashInfer 0.6.13: fail (HUNG), in 295 s.
Known fault flashinfer#3868: the cuDNN workspace grows while tuning, its size is in the key: later look-ups miss, tactic -1; seen in one-rank (cold), two-ranks (cold), foreign (cold), foreign (warm).
First cause: HUNG: one-rank, warm run, rank 0: made no progress and was killed at step 'verify' (exit status -9)
1 more error follows below.
Not looked at: flashinfer#3868/cublaslt; to see it: tune mm_bf16(backend='cublaslt'), then look up at a token count between two buckets.

Machine and record
  note: NOT_COVERED: not covered: flashinfer-cubin is not installed
  note: NOT_COVERED: not covered: flashinfer-jit-cache is not installed

one-rank: fail
  expected: leader_broadcast, a cache that persists (rule 7: the leader tunes and every rank loads its file)
  cold: 6.90 s, 0.9 s of them compiling; tuned 21 of bf16_gemm, 14 of fp8_gemm (NO_CACHE); wrote 1 file; largest error 0.0029 (fp8_cublas_bf16)
  warm, rank 0: made no progress and was killed at step 'verify', exit status -9
  look-ups after the warm-up: 32, 31 hit, 1 miss
  known: cold run: 1 of 2 look-ups of bf16_gemm miss and 1 fall back on rank 0 (verify), then tuned by the second round: flashinfer#3868
  error: HUNG: one-rank, warm run, rank 0: made no progress and was killed at step 'verify' (exit status -9)

two-ranks: known
  expected: leader_broadcast, a cache that persists (rule 7: the leader tunes and every rank loads its file)
  cold: 6.90 s, 0.9 s of them compiling; tuned 28 of bf16_gemm, 14 of fp8_gemm (NO_CACHE); wrote 1 file; largest error 0.0029 (fp8_cublas_bf16); ranks 1.1 ms apart at the barrier
  warm: 0.40 s; loaded 35 entries, tuned nothing; 15.0 times faster than cold, compiling left out; largest error 0.0029 (fp8_cublas_bf16); ranks 1.1 ms apart at the barrier
  look-ups after the warm-up: 120, 118 hit, 2 miss
  known: cold run: 2 of 4 look-ups of bf16_gemm miss and 2 fall back on ranks 0, 1 (verify), then tuned by the second round: flashinfer#3868

foreign: known
  expected: leader_broadcast, a cache that persists (rule 7: the leader tunes and every rank loads its file)
  cold: 6.90 s, 0.9 s of them compiling; tuned 21 of bf16_gemm, 14 of fp8_gemm (FOREIGN); largest error 0.0029 (fp8_cublas_bf16)
  warm: 6.10 s; tuned 21 of bf16_gemm, 14 of fp8_gemm (FOREIGN); largest error 0.0029 (fp8_cublas_bf16)
  look-ups after the warm-up: 64, 62 hit, 2 miss
  known: cold run: 1 of 2 look-ups of bf16_gemm miss and 1 fall back on rank 0 (verify), then tuned by the second round: flashinfer#3868
  known: warm run: 1 of 2 look-ups of bf16_gemm miss and 1 fall back on rank 0 (verify), then tuned by the second round: flashinfer#3868

cache-off: asked for, and not in the record
"""

DIAGNOSIS = """
Smoke on NVIDIA H200 (sm90, driver 580.159.04, CUDA 13.0, nvcc 13.0.88), FlashInfer 0.6.12: pass, in 295 s.
Not looked at: flashinfer#3436; to see it: tune bmm_fp8(backend='cublas'), then look up at a token count between two buckets.
Not looked at: flashinfer#3868; to see it: tune mm_bf16(backend='cudnn'), bf16 and fp16 output at one shape; the next pass misses one.
Not looked at: flashinfer#3868/cublaslt; to see it: tune mm_bf16(backend='cublaslt'), then look up at a token count between two buckets.

Machine and record
  note: NOT_COVERED: not covered: flashinfer-cubin is not installed
  note: NOT_COVERED: not covered: flashinfer-jit-cache is not installed

force-persistent: pass
  expected: leader_broadcast, forced as a diagnosis, a cache that persists (rule 3: the key on disk does not carry the runner's parameters and the scale-factor layout)
  cold: 6.90 s, 0.9 s of them compiling; tuned 14 of bf16_gemm, 14 of fp8_gemm (NO_CACHE); wrote 1 file; largest error 0.0029 (fp8_cublas_bf16)
  warm: 0.40 s; loaded 21 entries, tuned nothing; 15.0 times faster than cold, compiling left out; largest error 0.0029 (fp8_cublas_bf16)
  look-ups after the warm-up: 56, 56 hit, 0 miss
  note: EXPECTED_LOSS: force-persistent, cold run, rank 0: 28 entries in memory, 21 on disk: 7 lost to equal keys, 1 come back with another tactic, such as ('fp8_gemm', 'CublasFp8GemmRunner', ((1, 1, 1024), (1, 1024, 1024))); ('fp8_gemm', 'CublasFp8GemmRunner', ((1, 1, 1024), (1, 1024, 1024))); ('fp8_gemm', 'CublasFp8GemmRunner', ((1, 1, 1024), (1, 1024, 1024))); this is why the rule keeps no cache here
"""

BROKEN_OFF = """
Smoke on NVIDIA H200 (sm90, driver 580.159.04, CUDA 13.0, nvcc 13.0.88), FlashInfer 0.6.13: not-run (INTERRUPTED), in 295 s.

one-rank
  not run: interrupted
  cold: 6.90 s, 0.9 s of them compiling; tuned 21 of bf16_gemm, 14 of fp8_gemm (NO_CACHE); wrote 1 file; largest error 0.0029 (fp8_cublas_bf16)

two-ranks
  not run: interrupted
"""

NO_GPU = """
Smoke on no GPU (CUDA 13.0), FlashInfer 0.6.13: not-run (NO_GPU), in 295 s.
First cause: NO_GPU: there is no GPU here (run it where torch sees a CUDA device)
1 more error follows below.
Not looked at: flashinfer#3868; to see it: tune mm_bf16(backend='cudnn'), bf16 and fp16 output at one shape; the next pass misses one.
Not looked at: flashinfer#3868/cublaslt; to see it: tune mm_bf16(backend='cublaslt'), then look up at a token count between two buckets.

Machine and record
  note: NOT_COVERED: not covered: flashinfer-cubin is not installed
  note: NOT_COVERED: not covered: flashinfer-jit-cache is not installed

one-rank: asked for, and not in the record
"""
