"""Verdicts of realistic shape, built from values as the stages write them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from packaging.version import Version

from tooling.capabilities.comparing import compare
from tooling.capabilities.gating import World, gate
from tooling.capabilities.table import Row, lookup
from tooling.capabilities.table_text import parse
from tooling.evidence import Record
from tooling.findings import Finding, Severity
from tooling.gate.values import BumpChange, EvidenceFile, Outcome, Reason, Requirement, Verdict
from tooling.smoke.observations import MachineSeen, RankSeen, RunSeen, ScenarioSeen, Seen
from tooling.smoke.scenarios import SCENARIOS

ROOT = Path(__file__).resolve().parents[3]
AS_OF = datetime(2026, 5, 8, 2, 4, tzinfo=UTC)
PINS = "5d1c" * 16
COMMIT = "9f3b2c7d5e1a4f60b8c2d3e4f5a6b7c8d9e0f1a2"
IMAGE = "sha256:" + "4be1" * 16
POLICY = "77aa" * 16
GPUS = {"sm90": "NVIDIA H200", "sm100": "NVIDIA B200"}
COLD_S = {"one-rank": 61.2, "two-ranks": 84.4, "deepep-high-throughput": 118.7, "deepep-low-latency": 116.1,
          "deepep-v2": 121.9, "skip-given": 42.6, "skip-empty": 60.8, "skip-automatic": 58.3, "cache-off": 62.0,
          "truncated": 60.1, "foreign": 61.7}  # fmt: skip
_TABLE = parse((ROOT / "tooling" / "data" / "capabilities.json").read_text())


def row(release: str) -> Row:
    found = lookup(_TABLE, Version(release))
    assert found is not None
    return found


def smoke(arch: str, *, release: str = "0.6.13", factor: float = 1.0, wrong: tuple[str, ...] = ()) -> dict[str, object]:
    """The measurements of a smoke run; in `wrong` scenarios the warm-up kept a cache that it must not keep."""
    return Seen(
        machine=MachineSeen(gpus=(GPUS[arch], GPUS[arch]), arch=arch, driver="580.95.05", cuda="13.0", python="3.12.3"),
        scenarios=tuple(_scenario(name, release, factor, wrong=name in wrong) for name in SCENARIOS),
        pinned={"flashinfer-python": release},
        jit={"fresh": True},
        not_covered=("deep_ep is not installed",),
        took_s=1431.0,
    ).as_json()


def _scenario(name: str, release: str, factor: float, *, wrong: bool) -> ScenarioSeen:
    if name == "deepep-v2":
        return ScenarioSeen(name=name, not_run="deep_ep 2 is not installed")
    scenario = SCENARIOS[name]
    world = World(ranks=scenario.ranks, backend=scenario.backend, cache_off=scenario.cache_off)
    expected = gate(row(release).facts, world)
    record: dict[str, Any] = {
        "strategy": "leader_broadcast" if wrong else str(expected.strategy),
        "persistent": True if wrong else expected.persistent,
    }
    cold_s = round(COLD_S[name] * factor, 1)
    warm_s = round(0.6 * factor + 0.05 * scenario.ranks, 2) if record["persistent"] else round(cold_s * 0.55, 1)
    ranks = tuple(RankSeen(rank=rank, end="ended") for rank in range(scenario.ranks))
    return ScenarioSeen(
        name=name,
        cold=RunSeen(ranks=ranks, seconds=cold_s, record={**record, "warm": False}),
        warm=RunSeen(ranks=ranks, seconds=warm_s, record={**record, "warm": bool(record["persistent"])}),
    )


def evaluation(*, accuracy: float = 0.684, lost: int = 21, gained: int = 14) -> dict[str, object]:
    """The measurements of a gsm8k run over the cold and the warm cache, against a baseline."""
    flips = [{"id": f"test-{17 * number % 1319}", "before": "correct", "after": "wrong"} for number in range(lost)]
    flips += [{"id": f"test-{29 * number % 1319}", "before": "wrong", "after": "correct"} for number in range(gained)]
    comparison = {"paired": 1319, "unpaired": 0, "accuracy_before": accuracy - (gained - lost) / 1319,
                  "accuracy_after": accuracy, "lost": lost, "gained": gained, "p_value": 0.31,
                  "delta": (gained - lost) / 1319, "flips": flips}  # fmt: skip
    warm = {**comparison, "source": None, "accuracy_before": accuracy, "accuracy_after": accuracy, "lost": 1, "gained": 1,
            "p_value": 1.0, "delta": 0.0, "flips": [{"id": "test-4", "before": "wrong", "after": "correct"},
                                                    {"id": "test-91", "before": "correct", "after": "wrong"}]}  # fmt: skip
    return {
        "config": {"name": "qwen3-0.6b-vllm", "sha256": "1" * 64, "accuracy_threshold": 0.68, "tolerance": 0.03,
                   "startup_max_wait_seconds": 1200, "request_timeout_seconds": 600, "concurrency": 32,
                   "max_failed_rate": 0.01, "max_unparsable_rate": 0.05},
        "conditions": {"model": "Qwen/Qwen3-0.6B", "api": "completions", "answer": "flexible", "num_fewshot": 5,
                       "shots_sha256": "2" * 64, "max_tokens": 256, "temperature": 0.0, "extra_body": {}, "stop": []},
        "data": {"source": "shipped", "test_sha256": "3" * 64, "train_sha256": "4" * 64, "available": 1319, "asked": 1319,
                 "slice": "first", "slice_seed": None},
        "server": {"kind": "image", "url": "http://127.0.0.1:8000", "model": "Qwen/Qwen3-0.6B", "command": "vllm serve",
                   "env": {}, "image": "flashinfer-release:0.6.13", "image_id": IMAGE, "manifest_digest": None,
                   "flashinfer_version": "0.6.13", "flashinfer_known_by": "the image", "log": None},
        "runs": [_run("cold", accuracy, 148.2), _run("warm", accuracy, 61.4)],
        "verdicts": {},
        "baseline": {"source": "baselines/gsm8k-qwen3-0.6b-vllm.json", **comparison},
        "warm_against_cold": warm,
        "files": {"questions": {"name": "gsm8k.questions.jsonl", "sha256": "5" * 64},
                  "report": {"name": "gsm8k.report.md", "sha256": "6" * 64}},
    }  # fmt: skip


def _run(cache: str, accuracy: float, startup_s: float) -> dict[str, object]:
    counts = {"correct": round(accuracy * 1319), "wrong": 1319 - round(accuracy * 1319), "unparsable": 0, "empty": 0,
              "failed": 0, "timeout": 0, "not_asked": 0, "accuracy": accuracy}  # fmt: skip
    return {
        "cache": cache, "startup_seconds": startup_s, "reason": None, "detail": None, "cause": None, "progress": [],
        "log_tail": [], "accuracy": accuracy, "strict": counts, "flexible": counts,
        "interval": [accuracy - 0.025, accuracy + 0.025], "detectable_drop": 0.033, "gate_detectable_drop": 0.05,
        "sigmas_above_floor": 2.1,
        "speed": {"seconds": 212.0, "questions_per_second": 6.2, "output_tokens": 150000,
                  "output_tokens_per_second": 707.0, "latency_median_s": 3.1, "latency_p95_s": 8.4},
    }  # fmt: skip


def record(stage: str, subject: str | None = None, *, hours: float = 2, **changes: Any) -> Record:
    """A record that ended that many hours before the verdict."""
    ended = AS_OF - timedelta(hours=hours)
    plain: dict[str, Any] = {
        "status": "pass", "pins_sha256": PINS, "flashinfer_version": "0.6.13", "commit": COMMIT, "dirty": False,
        "image_id": None if stage in {"check", "bump"} else IMAGE, "started": ended - timedelta(minutes=4),
        "ended": ended, "tool_version": "0.1.0",
    }  # fmt: skip
    return Record(stage=stage, subject=subject, **{**plain, **changes})


def evidence(body: Record, *, folder: str = "evidence") -> EvidenceFile:
    path = f"{folder}/{body.file_name}"
    return EvidenceFile(path=path, sha256=hashlib.sha256(path.encode()).hexdigest(), record=body)


def met(file: EvidenceFile) -> Requirement:
    assert file.record is not None
    return Requirement(stage=file.record.stage, subject=file.record.subject, outcome=Outcome.PASS, file=file)


def bump_change() -> BumpChange:
    before, after = row("0.6.12"), row("0.6.13")
    return BumpChange(
        before="0.6.12",
        after="0.6.13",
        row_before=before,
        row_after=after,
        changes=tuple(change.as_json() for change in compare(before, after)),
        companions={"apache-tvm-ffi": ("0.1.8", "0.1.9"), "nvidia-cudnn-frontend": ("1.19.1", "1.19.1"),
                    "nvidia-ml-py": (None, "13.580.82"), "tabulate": ("0.9.0", None)},
    )  # fmt: skip


def files(*, sm90: Mapping[str, Any] | None = None, gsm8k: Mapping[str, Any] | None = None) -> dict[str, EvidenceFile]:
    """One record a stage, and smoke on two architectures."""
    return {
        "check": evidence(record("check", hours=2.5)),
        "image release": evidence(record("image", "release", hours=1.8, manifest_digest="sha256:" + "c0de" * 16)),
        "smoke sm90": evidence(record("smoke", "sm90", hours=1, gpu={"name": GPUS["sm90"], "arch": "sm90"},
                                      **{"measurements": smoke("sm90"), **(sm90 or {})}), folder="h200/evidence"),
        "smoke sm100": evidence(record("smoke", "sm100", hours=0.6, gpu={"name": GPUS["sm100"], "arch": "sm100"},
                                       measurements=smoke("sm100", factor=0.8)), folder="b200/evidence"),
        "gsm8k qwen3-0.6b-vllm": evidence(record("gsm8k", "qwen3-0.6b-vllm",
                                                 **{"hours": 0.4, "measurements": evaluation(), **(gsm8k or {})})),
    }  # fmt: skip


def earlier() -> tuple[EvidenceFile, ...]:
    older = {"flashinfer_version": "0.6.12", "hours": 24 * 9, "commit": "0" * 40, "pins_sha256": "0" * 64}
    return (
        evidence(
            record("smoke", "sm90", measurements=smoke("sm90", release="0.6.12", factor=1.12), **older), folder="before"
        ),
        evidence(record("gsm8k", "qwen3-0.6b-vllm", measurements=evaluation(accuracy=0.689), **older), folder="before"),
    )


def verdict(outcome: Outcome, **changes: Any) -> Verdict:
    plain: dict[str, Any] = {
        "channel": "release", "as_of": AS_OF, "policy_sha256": POLICY, "flashinfer_version": "0.6.13", "pins_sha256": PINS,
        "commit": COMMIT, "images": {"release": IMAGE}, "bump": bump_change(), "earlier": earlier(), "row": row("0.6.13"),
    }  # fmt: skip
    return Verdict(outcome=outcome, **{**plain, **changes})


def passing() -> Verdict:
    found = files()
    return verdict(
        Outcome.PASS,
        requirements=tuple(map(met, found.values())),
        files=tuple(found.values()),
        reasons=(
            Reason(outcome=Outcome.PASS, word="KNOWN_FAULT", stage="smoke", subject="sm90",
                   detail="flashinfer#3868 was seen; release.toml allows it until 2026-06-30: bf16 GEMM falls back"),
        ),
    )  # fmt: skip


def failing() -> Verdict:
    """Smoke on sm90 kept a cache under DeepEP; a thin accuracy; everything else holds."""
    findings = (
        Finding(check="smoke-gating", reason="WRONG_STRATEGY", path="tooling/warmup/planning.py", line=88,
                detail="deepep-low-latency: the warm-up chose leader_broadcast, persistent; expected all_ranks, not persistent "
                       "(rule 4: DeepEP's ranks wait for each other)", hint="a rank that tunes alone makes the others wait"),
        Finding(check="smoke-round-trip", severity=Severity.WARNING, reason="KNOWN_FAULT",
                detail="one-rank: 1 of 42 bf16_gemm lookups fell back to tactic -1 on the second pass (flashinfer#3868)"),
        Finding(check="smoke-coverage", severity=Severity.NOTE, detail="deepep-v2 did not run: deep_ep 2 is not installed"),
    )  # fmt: skip
    found = files(sm90={"status": "fail", "reason": "WRONG_STRATEGY", "findings": findings,
                        "measurements": smoke("sm90", wrong=("deepep-low-latency",))})  # fmt: skip
    cause = Reason(
        outcome=Outcome.FAIL, word="WRONG_STRATEGY", stage="smoke", subject="sm90", path="h200/evidence/smoke-sm90.json",
        detail="deepep-low-latency: the warm-up chose leader_broadcast, persistent; expected all_ranks, not persistent",
        command="nox -s smoke -- --scenario deepep-low-latency", machine="a machine with two sm90 GPUs",
    )  # fmt: skip
    broken = Requirement(
        stage="smoke", subject="sm90", outcome=Outcome.FAIL, file=found["smoke sm90"], reasons=(cause,)
    )
    rest = [met(file) for name, file in found.items() if name != "smoke sm90"]
    return verdict(
        Outcome.FAIL, requirements=(*rest[:2], broken, *rest[2:]), reasons=(cause,), files=tuple(found.values())
    )


def incomplete() -> Verdict:
    """Smoke on sm100 is missing, gsm8k is stale, and a file was edited by hand."""
    found = files(gsm8k={"hours": 24 * 20})
    del found["smoke sm100"]
    missing = Reason(outcome=Outcome.INCOMPLETE, word="MISSING", stage="smoke", subject="sm100",
                     detail="no record; the channel requires one for sm100 that is younger than 7 days",
                     command="nox -s smoke", machine="a machine with an sm100 GPU")  # fmt: skip
    stale = Reason(outcome=Outcome.INCOMPLETE, word="STALE", stage="gsm8k", subject="qwen3-0.6b-vllm",
                   detail="the record is 20 days old; the channel takes 7 days",
                   path="evidence/gsm8k-qwen3-0.6b-vllm.json",
                   command="nox -s gsm8k -- configs/gsm8k/qwen3-0.6b-vllm.yaml --image flashinfer-release:0.6.13-cu13.0.2",
                   machine="a machine with a GPU")  # fmt: skip
    edited = Reason(outcome=Outcome.INCOMPLETE, word="HAND_EDITED", path="evidence/smoke-sm103.json",
                    detail="the record does not match its own digest; it was changed after it was written")  # fmt: skip
    gsm8k = found["gsm8k qwen3-0.6b-vllm"]
    requirements = [met(file) for file in found.values() if file is not gsm8k]
    requirements += [
        Requirement(stage="smoke", subject="sm100", outcome=Outcome.INCOMPLETE, reasons=(missing,)),
        Requirement(stage="gsm8k", subject="qwen3-0.6b-vllm", outcome=Outcome.INCOMPLETE, file=gsm8k, reasons=(stale,)),
    ]
    bad = EvidenceFile(path="evidence/smoke-sm103.json", sha256="e" * 64, reason="HAND_EDITED", problem=edited.detail)
    return verdict(Outcome.INCOMPLETE, requirements=tuple(requirements), reasons=(missing, stale, edited),
                   files=(*found.values(), bad))  # fmt: skip


def empty() -> Verdict:
    """Nothing is there: no record, no pin, no bump."""
    reason = Reason(
        outcome=Outcome.INCOMPLETE, word="NO_EVIDENCE", detail="no folder holds a record", command="nox -s check"
    )
    return Verdict(outcome=Outcome.INCOMPLETE, channel="pr", as_of=AS_OF, policy_sha256=POLICY, flashinfer_version=None,
                   pins_sha256=None, commit=None, reasons=(reason,))  # fmt: skip


SAMPLES = {"pass": passing, "fail": failing, "incomplete": incomplete, "empty": empty}
