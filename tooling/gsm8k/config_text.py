"""Reads one evaluation's configuration from YAML; vLLM's own evaluation files are accepted as they are."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Literal

from tooling.errors import InputError
from tooling.findings import Finding, Severity
from tooling.gsm8k.config import LOOSE_TOLERANCE, Config, config_digest, option_value, second_budget
from tooling.gsm8k.data_location import read_location
from tooling.gsm8k.fields import Fields
from tooling.gsm8k.prompts import STOP
from tooling.gsm8k.yaml_text import parse_yaml

DEFAULT_STARTUP_S = 1200
"""Twice what harnesses used before autotuning; a cold start of a large model tunes for minutes."""
DEFAULT_TOLERANCE = 0.08
"""What vLLM's own harness allows when a file names no tolerance; it is warned about."""

NOT_MEASURED = {
    "min_acceptance_length": "the length of accepted drafts is not measured",
    "rocm_request_timeout_seconds": "it is for ROCm only; request_timeout_seconds counts",
    "max_model_len": "the server's own arguments say it",
    "rtol": "tolerance is absolute",
}
"""Keys of vLLM's files that mean nothing here, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedConfig:
    """The configuration and what is odd about it."""

    config: Config
    findings: tuple[Finding, ...]


def parse_config(text: str, *, path: str, strict: bool = False) -> ParsedConfig:
    """The configuration in a YAML text; `path` gives its name and stands in messages.

    Raises:
        InputError: not YAML, or any number of wrong keys and values, all named at once by their key paths.
    """
    values = parse_yaml(text, path=path)
    fields = Fields(values)
    config = _read(fields, name=_subject(path), sha256=config_digest(text))
    findings = [*_check_unknown(fields, path), *_check_loose(config, path)]
    if strict:
        fields.problems += [finding.detail for finding in findings if finding.reason == "UNKNOWN_KEY"]
    if fields.problems:
        if strict and (second := second_budget(config, config.env, "env")):
            fields.problems.append(second)
        count = len(fields.problems)
        raise InputError(
            f"{path}: {count} problem{'s' if count > 1 else ''}: " + "; ".join(fields.problems),
            hint="docs/gsm8k.md lists every key",
            reason="BAD_CONFIG",
        )
    return ParsedConfig(config=config, findings=tuple(findings))


def _read(fields: Fields, *, name: str, sha256: str) -> Config:
    model_name = fields.required_text("model_name")
    timeout_s = fields.number("request_timeout_seconds", 600, low=0.1, high=86_400)
    num_fewshot = _num_fewshot(fields)
    command, args = _server(fields)
    served = fields.text("served_model_name") or option_value(command or args or (), "--served-model-name")
    return Config(
        name=name,
        sha256=sha256,
        model_name=model_name,
        served_model_name=served or model_name,
        server_command=command,
        server_args=args,
        env=fields.variables("env"),
        port=_port(fields),
        num_questions=fields.integer("num_questions", 1319, low=1, high=1_000_000),
        num_fewshot=num_fewshot,
        accuracy_threshold=fields.number("accuracy_threshold", None, low=0, high=1),
        tolerance=fields.number("tolerance", DEFAULT_TOLERANCE, low=0, high=1),
        max_tokens=fields.integer("max_tokens", 256, low=1, high=1_000_000),
        api=_api(fields),
        answer=_answer(fields),
        stop=fields.texts("stop", STOP),
        temperature=fields.number("temperature", 0.0, low=0, high=10),
        extra_body=_extra_body(fields),
        concurrency=_concurrency(fields),
        request_timeout_s=timeout_s,
        stall_s=fields.number("stall_seconds", timeout_s, low=0.1, high=86_400),
        startup_max_wait_s=fields.number("startup_max_wait_seconds", DEFAULT_STARTUP_S, low=1, high=86_400),
        slice=_slice(fields),
        slice_seed=fields.integer("slice_seed", 0, low=0, high=2**31 - 1),
        data=read_location(fields),
        max_failed_rate=fields.number("max_failed_rate", 0.01, low=0, high=0.2),
        max_unparsable_rate=fields.number("max_unparsable_rate", 0.05, low=0, high=1),
        max_delta=fields.number("max_delta", 0.03, low=0, high=1),
        max_slowdown=fields.number("max_slowdown", 0.2, low=0, high=1),
        api_key_variable=fields.text("api_key_variable"),
        mounts=fields.words("mounts") or (),
    )


def _num_fewshot(fields: Fields) -> int:
    """The number of shots, which must be the one that the threshold was measured with, if that is said."""
    number = fields.integer("num_fewshot", 5, low=0, high=100)
    measured_with = fields.take("threshold_num_fewshot", number)
    if measured_with != number:
        fields.problems.append(
            f"threshold_num_fewshot: accuracy_threshold was measured with {measured_with} shots, "
            f"but num_fewshot is {number}: such accuracies do not compare"
        )
    return number


def _server(fields: Fields) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """The words of `server_command` and of `server_args`, of which there is one at most."""
    command, args = fields.words("server_command"), fields.words("server_args")
    if command is not None and args is not None:
        fields.problems.append("server_command: found beside server_args, expected one of them")
    if command == ():
        fields.complain("server_command", [], "a program and its arguments")
    return command, args


def _api(fields: Fields) -> Literal["completions", "chat"]:
    """`api`, or what vLLM's `use_chat_completions` says."""
    default = "chat" if fields.flag("use_chat_completions", default=False) else "completions"
    return "chat" if fields.choice("api", default, ["completions", "chat"]) == "chat" else "completions"


def _answer(fields: Fields) -> Literal["flexible", "strict"]:
    return "strict" if fields.choice("answer", "flexible", ["flexible", "strict"]) == "strict" else "flexible"


def _slice(fields: Fields) -> Literal["first", "seeded"]:
    return "seeded" if fields.choice("slice", "first", ["first", "seeded"]) == "seeded" else "first"


def _concurrency(fields: Fields) -> int:
    """`concurrency`, or `max_concurrency` as vLLM spells it."""
    fields.known |= {"concurrency", "max_concurrency"}
    key = "concurrency" if "concurrency" in fields.values else "max_concurrency"
    return fields.integer(key if key in fields.values else "concurrency", 32, low=1, high=4096)


def _extra_body(fields: Fields) -> dict[str, object]:
    template = fields.mapping("chat_template_kwargs")
    return {**fields.mapping("extra_body"), **({"chat_template_kwargs": template} if template else {})}


def _port(fields: Fields) -> int | None:
    return fields.integer("port", 8000, low=1, high=65_535) if fields.take("port") is not None else None


def _check_unknown(fields: Fields, path: str) -> list[Finding]:
    """A key close to a known one is taken for a slip and is a problem; another one is only not used."""
    found = []
    for key in fields.unknown:
        close = difflib.get_close_matches(str(key), fields.known, n=1, cutoff=0.8)
        if close and key not in NOT_MEASURED:
            fields.problems.append(f"{key}: is not known; did you mean {close[0]}?")
        elif key in NOT_MEASURED:
            detail = f"{key}: is not used here: {NOT_MEASURED[key]}"
            found.append(_finding(path, detail, reason="NOT_USED", severity=Severity.NOTE))
        else:
            found.append(_finding(path, f"{key}: is not known and not used", reason="UNKNOWN_KEY"))
    return found


def _check_loose(config: Config, path: str) -> list[Finding]:
    if config.tolerance < LOOSE_TOLERANCE:
        return []
    detail = f"tolerance {config.tolerance:g} would pass a 5-point drop below accuracy_threshold"
    return [_finding(path, detail, reason="LOOSE_TOLERANCE", hint="set tolerance below 0.05, and ask enough questions")]


def _finding(path: str, detail: str, *, reason: str, severity: Severity = Severity.WARNING, hint: str = "") -> Finding:
    return Finding(check="gsm8k-config", detail=detail, severity=severity, path=path, reason=reason, hint=hint)


def _subject(path: str) -> str:
    stem = re.sub(r"\.ya?ml$", "", path.replace("\\", "/").rsplit("/", 1)[-1])
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-.") or "config"
