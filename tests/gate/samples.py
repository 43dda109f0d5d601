"""A release's evidence that passes, made of values, and ways to alter it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from tests.smoke.samples import judged_for, seen_for
from tooling.capabilities.table import Table
from tooling.edges.capability_table import load_table
from tooling.evidence import Record, render_record
from tooling.gate.candidate import Given
from tooling.gate.policy import Channel
from tooling.gate.policy_text import parse_policy
from tooling.gate.values import EvidenceFile, Outcome, Reason, Verdict
from tooling.gate.verdict import judge
from tooling.smoke.judgement import measurements

VERSION = "0.6.13"
PINS, OTHER_PINS = "ab" * 32, "cd" * 32
COMMIT, OTHER_COMMIT = "c" * 40, "d" * 40
CONFIG, OTHER_CONFIG = "9" * 64, "8" * 64
IMAGE, OTHER_IMAGE = "sha256:" + "1" * 64, "sha256:" + "2" * 64
EARLIER_IMAGE = "sha256:" + "3" * 64
LAYERS = ["sha256:" + "a" * 64, "sha256:" + "b" * 64]
AS_OF = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
START = AS_OF - timedelta(hours=5)

POLICY = """\
[channels.release]
stages = ["check", "image", "smoke", "gsm8k"]
informs = ["image nightly"]
[channels.release.image]
targets = ["release"]
[channels.release.smoke]
architectures = ["sm90"]
not_covered = ["flashinfer-cubin", "flashinfer-jit-cache"]
min_speedup = 2
[channels.release.gsm8k]
configs = ["configs/gsm8k/qwen.yaml"]
baseline = true
min_questions = 100
[[channels.release.known_faults]]
id = "flashinfer#3868"
reason = "falls back to the default tactic"
expires = 2026-12-31
"""


def make_channel(old: str = "", new: str = "", *, text: str = POLICY) -> Channel:
    """The release channel, with one piece of its text exchanged."""
    assert old in text
    return parse_policy(text.replace(old, new, 1) if old else text, path="release.toml").channel("release", path="x")


def make_record(stage: str, subject: str | None = None, **changes: Any) -> Record:
    """A passing record of that stage, with fields replaced."""
    makers = {"check": _check, "image": _image, "smoke": _smoke, "gsm8k": _gsm8k}
    minute = list(makers).index(stage) * 20 if stage in makers else 0
    fields: dict[str, Any] = {
        "stage": stage,
        "subject": subject,
        "status": "pass",
        "pins_sha256": PINS,
        "flashinfer_version": VERSION,
        "commit": COMMIT,
        "dirty": False,
        "gpu": {"arch": subject, "names": ["NVIDIA H200"], "driver": "580.159.04"} if stage == "smoke" else None,
        "image_id": None if stage in {"check", "bump"} else IMAGE,
        "started": START + timedelta(minutes=minute),
        "ended": START + timedelta(minutes=minute + 10),
        "tool_version": "0.1.0",
        "measurements": makers[stage]() if stage in makers else {},
    }
    return Record(**{**fields, **changes})


def evidence() -> dict[str, Record]:
    """The four records that the release channel wants, by title."""
    return {
        "check": make_record("check"),
        "image release": make_record("image", "release"),
        "smoke sm90": make_record("smoke", "sm90"),
        "gsm8k qwen": make_record("gsm8k", "qwen"),
    }


def failing(record: Record, reason: str = "BROKEN", **changes: Any) -> Record:
    """The record as a failing one, with an error among its findings."""
    from tooling.findings import Finding

    found = (Finding(check="c", detail="it broke", path="docker/Dockerfile", line=3, reason=reason),)
    return replace(record, **{"status": "fail", "reason": reason, "findings": found, **changes})


def measured(record: Record, *path: str | int, to: Any) -> Record:
    """The record with one value of its measurements replaced; a function gets the old value."""
    import json

    body = json.loads(json.dumps(dict(record.measurements)))
    place = body
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to(place[path[-1]]) if callable(to) else to
    return replace(record, measurements=body)


def as_file(record: Record, folder: str = "evidence") -> EvidenceFile:
    """The file that the record would be, whatever folder it lies in."""
    sha256 = hashlib.sha256(render_record(record).encode()).hexdigest()
    return EvidenceFile(path=f"{folder}/{record.file_name}", sha256=sha256, record=record)


def verdict_of(
    records: Mapping[str, Record] | Sequence[Record],
    channel: Channel | None = None,
    *,
    as_of: datetime = AS_OF,
    given: Given | None = None,
    more: Sequence[EvidenceFile] = (),
) -> Verdict:
    """The verdict over those records, each in a folder of its own."""
    listed = list(records.values()) if isinstance(records, Mapping) else list(records)
    files = [as_file(record, f"folder{number:04}") for number, record in enumerate(listed)]
    return judge([*files, *more], channel or make_channel(), as_of=as_of, table=table(), given=given)


@cache
def table() -> Table:
    return load_table()


def words(verdict: Verdict, outcome: Outcome | None = None) -> list[str]:
    """Each reason as `WORD title`, those that are only shown left out."""
    wanted = [item for item in verdict.reasons if (item.outcome is outcome if outcome else item.outcome != "PASS")]
    return [_worded(item) for item in wanted]


def _worded(reason: Reason) -> str:
    return " ".join(part for part in (reason.word, reason.stage, reason.subject) if part)


def _check() -> dict[str, Any]:
    return {"sites": [{"path": "versions.json", "line": 4, "version": VERSION}]}


def _image() -> dict[str, Any]:
    return {
        "layers": list(LAYERS),
        "versions": {"flashinfer-python": VERSION, "flashinfer-cubin": VERSION, "torch": "2.11.0"},
        "overrides": [],
    }


@cache
def _smoked() -> dict[str, object]:
    return measurements(seen_for(VERSION), judged_for(VERSION))


def _smoke() -> dict[str, Any]:
    return dict(_smoked())


def _gsm8k() -> dict[str, Any]:
    verdicts = {f"{number:04}": "correct" if number % 4 else "wrong" for number in range(200)}
    score = {
        "correct": 150, "wrong": 50, "unparsable": 0, "empty": 0, "failed": 0, "timeout": 0, "not_asked": 0,
        "accuracy": 0.75,
    }  # fmt: skip
    run = {
        "cache": "cold", "startup_seconds": 60.5, "reason": None, "detail": None, "cause": None, "progress": [],
        "log_tail": [], "accuracy": 0.75, "strict": score, "flexible": score, "interval": [0.68, 0.81],
        "detectable_drop": 0.1, "gate_detectable_drop": 0.05, "sigmas_above_floor": 3.0,
        "speed": {
            "seconds": 30.0, "questions_per_second": 6.6, "output_tokens": 3000, "output_tokens_per_second": 100.0, "latency_median_s": 1.0,
            "latency_p95_s": 2.0,
        },
    }  # fmt: skip
    return {
        "config": {
            "name": "qwen", "sha256": CONFIG, "accuracy_threshold": 0.7, "tolerance": 0.03,
            "startup_max_wait_seconds": 600.0, "max_failed_rate": 0.01, "max_unparsable_rate": 0.05,
        },
        "conditions": {
            "model": "q", "api": "completions", "answer": "flexible", "num_fewshot": 5, "shots_sha256": "8" * 64,
            "max_tokens": 256, "temperature": 0.0, "extra_body": {}, "stop": [],
        },
        "data": {
            "source": "--data", "test_sha256": "7" * 64, "train_sha256": "6" * 64, "available": 1319, "asked": 200,
            "slice": "first", "slice_seed": None,
        },
        "server": {
            "kind": "image", "url": "http://127.0.0.1:8000", "model": "q", "command": "serve", "env": {}, "image": "a:b",
            "image_id": IMAGE, "manifest_digest": None, "flashinfer_version": VERSION, "flashinfer_known_by": "image",
            "log": None,
        },
        "runs": [run],
        "verdicts": verdicts,
        "baseline": {
            "source": "b.json",
            "of": {"flashinfer_version": "0.6.12", "pins_sha256": OTHER_PINS, "commit": OTHER_COMMIT, "image_id": EARLIER_IMAGE},
            "paired": 200, "unpaired": 0, "accuracy_before": 0.755, "accuracy_after": 0.75, "lost": 3,
            "gained": 2, "p_value": 1.0, "delta": -0.005, "flips": [],
        },
        "warm_against_cold": None,
        "files": {
            "questions": {"name": "q.jsonl", "sha256": "5" * 64}, "report": {"name": "r.md", "sha256": "4" * 64},
        },
    }  # fmt: skip
