"""One evaluation's configuration as a value. `config_text` reads it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from tooling.gsm8k.data_location import DataLocation

READY_TIMEOUT = "VLLM_ENGINE_READY_TIMEOUT_S"
"""The engine's own start-up budget, which is always set to ours."""
LOOSE_TOLERANCE = 0.05
"""From here on a drop of 5 points passes."""


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


def config_digest(text: str) -> str:
    """The SHA-256 of a configuration's text, in hexadecimal digits: records name their configuration by it."""
    return hashlib.sha256(text.encode()).hexdigest()


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
