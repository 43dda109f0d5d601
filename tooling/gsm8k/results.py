"""The stage's results as values and as JSON: the record's measurements and one line for each question."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from tooling.gsm8k.comparison import Comparison
from tooling.gsm8k.config import Config
from tooling.gsm8k.items import Problem, parse_problems, select_questions, select_shots
from tooling.gsm8k.judgement import measure_precision
from tooling.gsm8k.prompts import render_prompt
from tooling.gsm8k.score import Answered, Counts, Verdict, count, measure_speed
from tooling.gsm8k.watchdog import Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class RawData:
    """The texts of the two files, as they were read, and where from."""

    source: str
    test: str
    train: str
    test_sha256: str
    train_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """The problems of an evaluation: which are asked, which are shown, and where they came from."""

    source: str
    test_sha256: str
    train_sha256: str
    available: int
    questions: tuple[Problem, ...]
    shots: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """Which server answered. `flashinfer_known_by` says how its version is known; both are None if it is not."""

    kind: Literal["process", "image", "url"]
    url: str
    model: str
    command: str | None
    env: Mapping[str, str]
    image: str | None = None
    image_id: str | None = None
    manifest_digest: str | None = None
    flashinfer_version: str | None = None
    flashinfer_known_by: str | None = None
    log: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One start and one evaluation. `stop` None: every question was asked; `startup_s` None: we did not start it."""

    cache: Literal["cold", "warm", "unknown"]
    startup_s: float | None
    answers: tuple[Answered, ...]
    seconds: float
    stop: Stop | None = None
    cause: str | None = None
    progress: tuple[str, ...] = ()
    log_tail: tuple[str, ...] = ()

    def counts(self, rule: Literal["flexible", "strict"]) -> Counts:
        return count(self.answers, rule)

    def verdicts(self, rule: Literal["flexible", "strict"]) -> dict[str, Verdict]:
        return {answer.problem.id: answer.verdict(rule) for answer in self.answers}


def plan_data(config: Config, raw: RawData) -> DataSet:
    """The questions and shots of a configuration. Raises InputError as `items` does."""
    test = parse_problems(raw.test, path=f"{raw.source}: test.jsonl")
    questions = select_questions(test, config.num_questions, order=config.slice, seed=config.slice_seed)
    train = parse_problems(raw.train, path=f"{raw.source}: train.jsonl")
    return DataSet(
        source=raw.source,
        test_sha256=raw.test_sha256,
        train_sha256=raw.train_sha256,
        available=len(test),
        questions=questions,
        shots=select_shots(train, config.num_fewshot, asked=questions),
    )


def conditions(config: Config, data: DataSet) -> dict[str, object]:
    """What must be equal for two accuracies to compare, as JSON values."""
    return {
        "model": config.served_model_name,
        "api": config.api,
        "answer": config.answer,
        "num_fewshot": config.num_fewshot,
        "shots_sha256": hashlib.sha256(render_prompt("", data.shots).encode()).hexdigest(),
        "max_tokens": config.max_tokens,
        "temperature": config.temperature,
        "extra_body": dict(config.extra_body),
        "stop": list(config.stop),
    }


def render_measurements(
    config: Config,
    *,
    data: DataSet,
    server: ServerFacts,
    runs: Sequence[Run],
    baseline: Comparison | None,
    warm: Comparison | None,
    baseline_source: str | None,
    baseline_of: Mapping[str, object] | None = None,
    data_overridden: bool = False,
    files: Mapping[str, object],
) -> dict[str, object]:
    """The record's `measurements`, which `data/schemas/gsm8k-measurements.schema.json` describes.

    `baseline_source` is the name of the baseline's file, `baseline_of` says which release's record it is.
    """
    return {
        "config": _config(config),
        "conditions": conditions(config, data),
        "data": {**_data(config, data), "overridden": data_overridden},
        "server": {**asdict(server), "env": dict(server.env)},
        "runs": [_run(run, config) for run in runs],
        "verdicts": {key: str(value) for key, value in runs[0].verdicts(config.answer).items()} if runs else {},
        "baseline": _comparison(baseline, baseline_source, of=baseline_of),
        "warm_against_cold": _comparison(warm, None),
        "files": dict(files),
    }


def render_questions(runs: Sequence[Run]) -> str:
    """One JSON object a line and question: prompt hash, reply, answers, verdicts, latency."""
    lines = []
    for number, run in enumerate(runs):
        for answer in run.answers:
            line = json.dumps(_question(answer, number, run.cache), ensure_ascii=False)
            # These end a line for some readers of JSONL, though not by JSON's own rules.
            lines.append(line.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085"))
    return "".join(f"{line}\n" for line in lines)


def _config(config: Config) -> dict[str, object]:
    return {
        "name": config.name,
        "sha256": config.sha256,
        "accuracy_threshold": config.accuracy_threshold,
        "tolerance": config.tolerance,
        "startup_max_wait_seconds": config.startup_max_wait_s,
        "request_timeout_seconds": config.request_timeout_s,
        "concurrency": config.concurrency,
        "max_failed_rate": config.max_failed_rate,
        "max_unparsable_rate": config.max_unparsable_rate,
    }


def _data(config: Config, data: DataSet) -> dict[str, object]:
    return {
        "source": data.source,
        "test_sha256": data.test_sha256,
        "train_sha256": data.train_sha256,
        "available": data.available,
        "asked": len(data.questions),
        "slice": config.slice,
        "slice_seed": config.slice_seed if config.slice == "seeded" else None,
    }


def _run(run: Run, config: Config) -> dict[str, object]:
    counts = run.counts(config.answer)
    precision = measure_precision(counts, config)
    valid = run.stop is None
    return {
        "cache": run.cache,
        "startup_seconds": _round(run.startup_s),
        "reason": run.stop.reason if run.stop else None,
        "detail": run.stop.detail if run.stop else None,
        "cause": run.cause,
        "progress": list(run.progress),
        "log_tail": list(run.log_tail),
        "accuracy": counts.accuracy if valid else None,
        "strict": _score(run.counts("strict"), valid=valid),
        "flexible": _score(run.counts("flexible"), valid=valid),
        "interval": [precision.interval.low, precision.interval.high] if precision and valid else None,
        "detectable_drop": precision.detectable_drop if precision and valid else None,
        "gate_detectable_drop": precision.gate_detectable_drop if precision and valid else None,
        "sigmas_above_floor": precision.sigmas_above_floor if precision and valid else None,
        "speed": {key: _round(value) for key, value in asdict(measure_speed(run.answers, seconds=run.seconds)).items()},
    }


def _score(counts: Counts, *, valid: bool) -> dict[str, object]:
    return {**asdict(counts), "accuracy": counts.accuracy if valid else None}


def _comparison(
    comparison: Comparison | None, source: str | None, *, of: Mapping[str, object] | None = None
) -> dict[str, object] | None:
    if comparison is None:
        return None
    return {
        "source": source,
        **({} if of is None else {"of": dict(of)}),
        **asdict(comparison),
        "delta": comparison.delta,
        "flips": [{"id": flip.id, "before": str(flip.before), "after": str(flip.after)} for flip in comparison.flips],
    }


def _question(answer: Answered, run: int, cache: str) -> dict[str, object]:
    exchange = answer.exchange
    reply = exchange.reply if exchange else None
    return {
        "run": run,
        "cache": cache,
        "id": answer.problem.id,
        "prompt_sha256": answer.prompt_sha256,
        "question": answer.problem.question,
        "expected": str(answer.problem.value),
        "reply": reply.text if reply else None,
        "finish_reason": reply.finish_reason if reply else None,
        "tokens": reply.tokens if reply else None,
        "strict": {"verdict": str(answer.strict), "value": _text(answer.strict_value)},
        "flexible": {"verdict": str(answer.flexible), "value": _text(answer.flexible_value)},
        "error": (exchange.error or None) if exchange else None,
        "latency_seconds": _round(exchange.latency_s) if exchange else None,
        "tries": exchange.tries if exchange else 0,
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _round(value: float | None) -> float | int | None:
    return round(value, 4) if isinstance(value, float) else value
