"""Configurations: ours, vLLM's, and wrong ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.gsm8k.samples import LEAST, make_config
from tooling.errors import InputError
from tooling.gsm8k.config import option_value
from tooling.gsm8k.config_text import DEFAULT_STARTUP_S, parse_config
from tooling.gsm8k.data_location import PUBLIC_TEST_SHA256

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "tooling/data/schemas/gsm8k-config.schema.json").read_text())

# The shapes of the files in vLLM's tests/evals/gsm8k/configs: every key that stands in any of them, and the ways in
# which server_args is written (one line, a folded block, JSON in quotes, a leading space).
VLLM_FILES = {
    "one line": """
model_name: "Org/Model-7B"
accuracy_threshold: 0.54
num_questions: 1319
num_fewshot: 5
server_args: " --enforce-eager --max-model-len 4096 --tensor-parallel-size 2"
""",
    "folded with JSON": """
model_name: "Org/Model-671B"
accuracy_threshold: 0.95
num_questions: 1319
num_fewshot: 8
startup_max_wait_seconds: 1800
server_args: >-
  --enforce-eager
  --speculative-config '{"method":"mtp",
  "num_speculative_tokens":1}'
env:
  VLLM_USE_FLASHINFER_MOE_FP4: "1"
""",
    "every other key": """
model_name: "Org/Model"
accuracy_threshold: 0.90
tolerance: 0.0
min_acceptance_length: 4.8
num_questions: 1319
num_fewshot: 5
max_tokens: 256
max_concurrency: 32
request_timeout_seconds: 1800
rocm_request_timeout_seconds: 2400
use_chat_completions: true
max_model_len: 4096
""",
}

GOOD: dict[str, dict[str, Any]] = {
    "the least": {},
    "a data folder": {"data": "../gsm8k"},
    "a data mapping": {"data": {"folder": "x", "test_sha256": "0" * 64}},
    "a URL": {"data": {"url": "https://example.invalid/gsm8k"}},
    "chat": {"api": "chat", "chat_template_kwargs": {"enable_thinking": False}},
    "everything": {
        "num_questions": 10,
        "num_fewshot": 0,
        "tolerance": 0.0,
        "slice": "seeded",
        "slice_seed": 7,
        "port": 8001,
        "answer": "strict",
        "stop": ["Q:"],
        "concurrency": 1,
        "stall_seconds": 5,
        "extra_body": {"top_k": 1},
        "max_failed_rate": 0,
        "mounts": ["/a:/b:ro"],
        "env": {"A": 1, "B": "x"},
        "api_key_variable": "MY_KEY",
        "temperature": 0.6,
        "served_model_name": "m",
        "threshold_num_fewshot": 0,
        "max_unparsable_rate": 0.1,
        "max_delta": 0.02,
        "max_slowdown": 0.1,
        "request_timeout_seconds": 10,
        "startup_max_wait_seconds": 5,
        "max_tokens": 8,
    },
}

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no model": ({"model_name": None}, "model_name: found nothing, expected text"),
    "no threshold": ({"accuracy_threshold": None}, "accuracy_threshold: found nothing"),
    "threshold in per cent": (
        {"accuracy_threshold": 54},
        "accuracy_threshold: found 54, expected a number from 0 to 1",
    ),
    "threshold no number": ({"accuracy_threshold": float("nan")}, "accuracy_threshold: found nan"),
    "threshold as text": ({"accuracy_threshold": "0.5"}, "accuracy_threshold: found '0.5'"),
    "no questions": ({"num_questions": 0}, "num_questions: found 0, expected a whole number from 1"),
    "half a question": ({"num_questions": 1.5}, "num_questions: found 1.5"),
    "true is no number": ({"num_fewshot": True}, "num_fewshot: found True"),
    "other shots": ({"threshold_num_fewshot": 8}, "accuracy_threshold was measured with 8 shots, but num_fewshot is 5"),
    "two servers": ({"server_args": "--a"}, "server_command: found beside server_args"),
    "an empty command": ({"server_command": []}, "server_command: found []"),
    "a command that is no list": ({"server_command": 7}, "server_command: found 7"),
    "open quotes": ({"server_command": None, "server_args": "--a 'b"}, "server_args: cannot be split"),
    "a true variable": ({"env": {"A": True}}, 'env.A: found True, expected text; write "1"'),
    "a variable's name": ({"env": {"A=B": "1"}}, "env: found 'A=B', expected a variable's name"),
    "env as a list": ({"env": ["A=1"]}, "env: found ['A=1']"),
    "api": ({"api": "legacy"}, "api: found 'legacy', expected completions or chat"),
    "slice": ({"slice": "last"}, "slice: found 'last', expected first or seeded"),
    "a slip": ({"num_question": 3}, "num_question: is not known; did you mean num_questions?"),
    "folder and URL": ({"data": {"folder": "a", "url": "https://e.invalid"}}, "data: found folder and url"),
    "a digest": ({"data": {"folder": "a", "test_sha256": "12"}}, "data.test_sha256: found '12'"),
    "a data key": ({"data": {"dir": "a"}}, "data.dir: is not known"),
    "a file address": ({"data": {"url": "file:///x"}}, "data.url: found 'file:///x'"),
    "concurrency": ({"max_concurrency": 0}, "max_concurrency: found 0"),
    "stop": ({"stop": "Q"}, "stop: found 'Q', expected a list of texts"),
    "port": ({"port": 70000}, "port: found 70000"),
}


def _text(values: dict[str, Any]) -> str:
    return yaml.safe_dump({key: value for key, value in {**LEAST, **values}.items() if value is not None})


@pytest.mark.parametrize("text", VLLM_FILES.values(), ids=VLLM_FILES.keys())
def test_vllms_own_files_are_accepted_as_they_are(text: str) -> None:
    parsed = parse_config(text, path="configs/Model.yaml")
    jsonschema.validate(yaml.safe_load(text), SCHEMA)
    assert parsed.config.model_name.startswith("Org/")
    assert {finding.reason for finding in parsed.findings} <= {"LOOSE_TOLERANCE", "NOT_USED"}


def test_vllms_keys_mean_here_what_they_mean_there() -> None:
    config = parse_config(VLLM_FILES["every other key"], path="x.yaml").config
    assert (config.api, config.concurrency, config.request_timeout_s, config.floor) == ("chat", 32, 1800, 0.90)
    folded = parse_config(VLLM_FILES["folded with JSON"], path="x.yaml").config
    assert folded.server_args is not None
    assert json.loads(folded.server_args[-1]) == {"method": "mtp", "num_speculative_tokens": 1}
    assert folded.tolerance == 0.08
    assert folded.startup_max_wait_s == 1800


def test_the_default_budget_is_1200_seconds() -> None:
    assert make_config().startup_max_wait_s == DEFAULT_STARTUP_S == 1200


@pytest.mark.parametrize("values", GOOD.values(), ids=GOOD.keys())
def test_a_good_configuration_passes_the_parser_and_the_schema(values: dict[str, Any]) -> None:
    jsonschema.validate(yaml.safe_load(_text(values)), SCHEMA)
    parse_config(_text(values), path="c.yaml", strict=True)


@pytest.mark.parametrize(("values", "message"), BAD.values(), ids=BAD.keys())
def test_a_wrong_value_is_named_by_its_key_path(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_config(_text(values), path="c.yaml")
    assert message in caught.value.message
    assert caught.value.reason == "BAD_CONFIG"


IN_SCHEMA = ("no model", "no threshold", "threshold in per cent", "no questions", "api", "slice", "a data key", "stop")


@pytest.mark.parametrize("name", IN_SCHEMA)
def test_the_schema_refuses_it_too(name: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(_text(BAD[name][0])), SCHEMA)


def test_all_problems_are_said_at_once() -> None:
    with pytest.raises(InputError) as caught:
        parse_config(_text({"num_questions": 0, "slice": "last", "env": {"A": True}}), path="c.yaml")
    assert "3 problems" in caught.value.message
    for key in ("num_questions", "slice", "env.A"):
        assert key in caught.value.message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [", "UNPARSABLE"),
        ("- a\n", "BAD_CONFIG"),
        ("", "BAD_CONFIG"),
        ("a: 1\na: 2\n", "UNPARSABLE"),
        ("1: 2", "BAD_CONFIG"),
    ],
    ids=["broken", "a list", "nothing", "a key twice", "a key that is a number"],
)
def test_what_is_no_mapping_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_config(text, path="c.yaml")
    assert caught.value.reason == reason


def test_a_tolerance_that_passes_a_five_point_drop_is_a_warning() -> None:
    def reasons(tolerance: float) -> list[str]:
        return [finding.reason for finding in parse_config(_text({"tolerance": tolerance}), path="c").findings]

    assert reasons(0.049) == []
    assert reasons(0.05) == ["LOOSE_TOLERANCE"]


def test_an_unknown_key_is_a_warning_and_strict_makes_it_an_error() -> None:
    parsed = parse_config(_text({"owner": "me"}), path="c.yaml")
    assert "UNKNOWN_KEY" in [finding.reason for finding in parsed.findings]
    with pytest.raises(InputError, match="owner"):
        parse_config(_text({"owner": "me"}), path="c.yaml", strict=True)


def test_a_url_without_a_pin_must_hold_the_published_files() -> None:
    assert make_config(data="https://example.invalid/d").data.test_sha256 == PUBLIC_TEST_SHA256


def test_the_files_name_is_the_subject() -> None:
    assert parse_config(_text({}), path="configs/Qwen3 0.6B (fp8).yaml").config.name == "Qwen3-0.6B-fp8"
    assert parse_config(_text({}), path="a/b.yml").config.name == "b"


def test_a_served_name_is_expected_where_the_server_is_told_one() -> None:
    config = make_config(server_command=None, server_args=["--served-model-name", "short"])
    assert config.served_model_name == "short"
    assert option_value(["--port=1", "--port", "2"], "--port") == "1"
    assert option_value(["--port"], "--port") is None


@pytest.mark.parametrize("path", sorted((ROOT / "configs/gsm8k").glob("*.yaml")), ids=lambda path: path.name)
def test_every_example_is_a_configuration(path: Path) -> None:
    jsonschema.validate(yaml.safe_load(path.read_text()), SCHEMA)
    parse_config(path.read_text(), path=str(path), strict=True)


def test_under_strict_every_oddity_is_said_at_once() -> None:
    values = {"colour": "red", "env": {"VLLM_ENGINE_READY_TIMEOUT_S": "600"}}
    text = yaml.safe_dump({"model_name": "tiny", "accuracy_threshold": 0.5, **values})
    with pytest.raises(InputError, match=r"2 problems: colour.*VLLM_ENGINE_READY_TIMEOUT_S is 600 in env"):
        parse_config(text, path="c.yaml", strict=True)
