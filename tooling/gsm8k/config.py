"""One evaluation's configuration, read from YAML; vLLM's own evaluation files are accepted as they are."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from tooling.errors import InputError
from tooling.findings import Finding, Severity
from tooling.gsm8k.fields import Fields
from tooling.gsm8k.prompts import STOP
from tooling.gsm8k.yaml_text import parse_yaml

READY_TIMEOUT = "VLLM_ENGINE_READY_TIMEOUT_S"
"""The engine's own start-up budget, which is always set to ours."""
DEFAULT_STARTUP_MAX_WAIT_SECONDS = 1200
"""Twice what harnesses used before autotuning; a cold start of a large model tunes for minutes."""
DEFAULT_TOLERANCE = 0.08
"""What vLLM's own harness allows when a file names no tolerance; it is warned about."""
LOOSE_TOLERANCE = 0.05

PUBLIC_TEST_SHA256 = "3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14"
PUBLIC_TRAIN_SHA256 = "17f347dc51477c50d4efb83959dbb7c56297aba886e5544ee2aaed3024813465"
"""The published GSM8K files (1,319 and 7,473 problems), which a URL without a pin of its own must have."""

NOT_MEASURED = {
    "min_acceptance_length": "the length of accepted drafts is not measured",
    "rocm_request_timeout_seconds": "it is for ROCm only; request_timeout_seconds counts",
    "max_model_len": "the server's own arguments say it",
    "rtol": "tolerance is absolute",
}
"""Keys of vLLM's files that mean nothing here, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataLocation:
    """A folder or a URL that holds `train.jsonl` and `test.jsonl`; neither: the problems that the project ships."""

    folder: str | None = None
    url: str | None = None
    test_sha256: str | None = None
    train_sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What is asked of which server and what must come back. Rates and accuracies are fractions of 1.

    `name` is the record's subject; `served_model_name` is the id that `/v1/models` must list; `port` None: a free one
    where the command leaves it open; `max_delta` bounds the difference of two runs over the same questions.
    """

    name: str
    sha256: str
    model_name: str
    served_model_name: str
    server_command: tuple[str, ...] | None
    server_args: tuple[str, ...] | None
    env: Mapping[str, str]
    port: int | None
    num_questions: int
    num_fewshot: int
    accuracy_threshold: float
    tolerance: float
    max_tokens: int
    api: Literal["completions", "chat"]
    answer: Literal["flexible", "strict"]
    stop: tuple[str, ...]
    temperature: float
    extra_body: Mapping[str, object]
    concurrency: int
    request_timeout_s: float
    stall_s: float
    startup_max_wait_s: float
    slice: Literal["first", "seeded"]
    slice_seed: int
    data: DataLocation
    max_failed_rate: float
    max_unparsable_rate: float
    max_delta: float
    max_slowdown: float
    api_key_variable: str | None
    mounts: tuple[str, ...]

    @property
    def floor(self) -> float:
        """The accuracy below which the evaluation fails."""
        return self.accuracy_threshold - self.tolerance


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
    config = _read(fields, name=_subject(path), sha256=hashlib.sha256(text.encode()).hexdigest())
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


def second_budget(config: Config, variables: Mapping[str, str], source: str) -> str | None:
    """A sentence on another start-up budget than ours in those variables, or None."""
    theirs, ours = variables.get(READY_TIMEOUT), str(round(config.startup_max_wait_s))
    if theirs is None or theirs == ours:
        return None
    return f"{READY_TIMEOUT} is {theirs} in {source}, but startup_max_wait_seconds is {ours}, which wins"


def option_value(words: Sequence[str], option: str) -> str | None:
    """The first value that a command line gives to an option, as `--option value` or `--option=value`."""
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        if word == option:
            return following or None
        if word.startswith(option + "="):
            return word.removeprefix(option + "=")
    return None


def _read(fields: Fields, *, name: str, sha256: str) -> Config:
    model_name = fields.required_text("model_name")
    timeout_s = fields.number("request_timeout_seconds", 600, low=0.1, high=86_400)
    num_fewshot = fields.integer("num_fewshot", 5, low=0, high=100)
    command, args = fields.words("server_command"), fields.words("server_args")
    if command is not None and args is not None:
        fields.problems.append("server_command: found beside server_args, expected one of them")
    if command == ():
        fields.complain("server_command", [], "a program and its arguments")
    measured_with = fields.take("threshold_num_fewshot", num_fewshot)
    if measured_with != num_fewshot:
        fields.problems.append(
            f"threshold_num_fewshot: accuracy_threshold was measured with {measured_with} shots, "
            f"but num_fewshot is {num_fewshot}: such accuracies do not compare"
        )
    return Config(
        name=name,
        sha256=sha256,
        model_name=model_name,
        served_model_name=fields.text("served_model_name")
        or option_value(command or args or (), "--served-model-name")
        or model_name,
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
        answer="strict" if fields.choice("answer", "flexible", ["flexible", "strict"]) == "strict" else "flexible",
        stop=fields.texts("stop", STOP),
        temperature=fields.number("temperature", 0.0, low=0, high=10),
        extra_body=_extra_body(fields),
        concurrency=_concurrency(fields),
        request_timeout_s=timeout_s,
        stall_s=fields.number("stall_seconds", timeout_s, low=0.1, high=86_400),
        startup_max_wait_s=fields.number(
            "startup_max_wait_seconds", DEFAULT_STARTUP_MAX_WAIT_SECONDS, low=1, high=86_400
        ),
        slice="seeded" if fields.choice("slice", "first", ["first", "seeded"]) == "seeded" else "first",
        slice_seed=fields.integer("slice_seed", 0, low=0, high=2**31 - 1),
        data=_data(fields),
        max_failed_rate=fields.number("max_failed_rate", 0.01, low=0, high=0.2),
        max_unparsable_rate=fields.number("max_unparsable_rate", 0.05, low=0, high=1),
        max_delta=fields.number("max_delta", 0.03, low=0, high=1),
        max_slowdown=fields.number("max_slowdown", 0.2, low=0, high=1),
        api_key_variable=fields.text("api_key_variable"),
        mounts=fields.words("mounts") or (),
    )


def _api(fields: Fields) -> Literal["completions", "chat"]:
    chat = fields.flag("use_chat_completions", default=False)
    return (
        "chat"
        if fields.choice("api", "chat" if chat else "completions", ["completions", "chat"]) == "chat"
        else "completions"
    )


def _concurrency(fields: Fields) -> int:
    """`concurrency`, or `max_concurrency` as vLLM spells it."""
    key = (
        "max_concurrency"
        if "max_concurrency" in fields.values and "concurrency" not in fields.values
        else "concurrency"
    )
    fields.known |= {"concurrency", "max_concurrency"}
    return fields.integer(key, 32, low=1, high=4096)


def _extra_body(fields: Fields) -> dict[str, object]:
    template = fields.mapping("chat_template_kwargs")
    return {**fields.mapping("extra_body"), **({"chat_template_kwargs": template} if template else {})}


def _port(fields: Fields) -> int | None:
    return fields.integer("port", 8000, low=1, high=65_535) if fields.take("port") is not None else None


def _data(fields: Fields) -> DataLocation:
    value = fields.take("data", {})
    inner = Fields(value if isinstance(value, dict) else {}, prefix="data.", problems=fields.problems)
    if isinstance(value, str) and value:
        return parse_location(value)
    if not isinstance(value, dict):
        fields.complain("data", value, "a folder, a URL, or folder/url with test_sha256 and train_sha256")
    location = DataLocation(
        folder=inner.text("folder"),
        url=inner.text("url"),
        test_sha256=_sha256(inner, "test_sha256"),
        train_sha256=_sha256(inner, "train_sha256"),
    )
    if location.folder and location.url:
        fields.problems.append("data: found folder and url, expected one of them")
    if location.url and not re.match(r"https?://[^/\s]", location.url):
        inner.complain("url", location.url, "an http or https address")
    fields.problems += [f"data.{key}: is not known" for key in inner.unknown]
    return _pinned(location)


def parse_location(text: str) -> DataLocation:
    """A folder or a URL, as the command line takes it; a URL must then hold the published files."""
    if re.match(r"https?://", text):
        return _pinned(DataLocation(url=text))
    return DataLocation(folder=text)


def _pinned(location: DataLocation) -> DataLocation:
    if location.url is None:
        return location
    return DataLocation(
        url=location.url,
        test_sha256=location.test_sha256 or PUBLIC_TEST_SHA256,
        train_sha256=location.train_sha256 or PUBLIC_TRAIN_SHA256,
    )


def _sha256(fields: Fields, key: str) -> str | None:
    value = fields.text(key)
    if value is not None and not re.fullmatch(r"[0-9a-f]{64}", value):
        fields.complain(key, value, "64 lower-case hexadecimal digits")
    return value


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
