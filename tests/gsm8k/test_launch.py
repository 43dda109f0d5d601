"""Commands and environments for servers, and how they are shown."""

from __future__ import annotations

import pytest

from tests.gsm8k.samples import make_config
from tooling.errors import InputError
from tooling.gsm8k.launch import Launch, plan_launch


def plan(*, strict: bool = False, environ: dict[str, str] | None = None, **values: object) -> Launch:
    return plan_launch(make_config(**values), free_port=4242, environ=environ or {}, path="c.yaml", strict=strict)


def test_vllms_arguments_become_vllms_command_as_its_own_harness_has_it() -> None:
    launch = plan(server_command=None, server_args="--max-model-len 4096")
    assert launch.argv == (
        "vllm", "serve", "tiny", "--max-model-len", "4096", "--trust-remote-code", "--disable-uvicorn-access-log",
        "--host", "127.0.0.1", "--port", "4242",
    )  # fmt: skip
    assert launch.url == "http://127.0.0.1:4242"


def test_a_configuration_without_any_server_is_vllm_with_the_model() -> None:
    assert plan(server_command=None).argv[:3] == ("vllm", "serve", "tiny")


PORTS = {
    "left open": ({"server_command": ["serve", "--port", "{port}"]}, 4242),
    "in one word": ({"server_command": ["serve", "--port={port}"]}, 4242),
    "fixed in the command": ({"server_command": ["serve", "--port", "8123"]}, 8123),
    "fixed by vLLM's arguments": ({"server_command": None, "server_args": "--port=8124"}, 8124),
    "fixed by the configuration": ({"server_command": ["serve", "{port}"], "port": 8125}, 8125),
    "never said": ({"server_command": ["serve"]}, 8000),
}


@pytest.mark.parametrize(("values", "port"), PORTS.values(), ids=PORTS.keys())
def test_the_port_is_what_the_server_will_use(values: dict[str, object], port: int) -> None:
    launch = plan(**values)
    assert launch.port == port
    assert "{port}" not in " ".join(launch.argv)


def test_two_ports_are_refused() -> None:
    with pytest.raises(InputError, match="port is 1, but the server is told --port 2"):
        plan(server_command=["serve", "--port", "2"], port=1)
    with pytest.raises(InputError, match="found 'x'"):
        plan(server_command=["serve", "--port", "x"])


def test_the_engine_gets_the_same_budget() -> None:
    assert plan().env == {"VLLM_ENGINE_READY_TIMEOUT_S": "1200"}
    assert plan(startup_max_wait_seconds=90).env["VLLM_ENGINE_READY_TIMEOUT_S"] == "90"


def test_another_budget_in_env_loses_with_a_warning_and_is_an_error_under_strict() -> None:
    env = {"VLLM_ENGINE_READY_TIMEOUT_S": "600"}
    launch = plan(env=env)
    assert launch.env["VLLM_ENGINE_READY_TIMEOUT_S"] == "1200"
    assert [finding.reason for finding in launch.findings] == ["TWO_BUDGETS"]
    with pytest.raises(InputError) as caught:
        plan(env=env, strict=True)
    assert caught.value.reason == "TWO_BUDGETS"
    assert plan(env={"VLLM_ENGINE_READY_TIMEOUT_S": "1200"}, strict=True).findings == ()


def test_a_budget_in_the_callers_environment_loses_too() -> None:
    launch = plan(environ={"VLLM_ENGINE_READY_TIMEOUT_S": "600"}, strict=True)
    assert launch.env["VLLM_ENGINE_READY_TIMEOUT_S"] == "1200"
    assert [finding.reason for finding in launch.findings] == ["TWO_BUDGETS"]


def test_a_silenced_version_check_is_warned_about() -> None:
    assert plan(env={"FLASHINFER_DISABLE_VERSION_CHECK": "1"}).findings[0].reason == "VERSION_CHECK_OFF"
    assert plan(env={"FLASHINFER_DISABLE_VERSION_CHECK": "0"}).findings == ()


def test_the_servers_key_is_known_to_the_client() -> None:
    assert plan(server_command=["serve", "--api-key", "k3y"]).api_key == "k3y"
    assert plan(env={"VLLM_API_KEY": "k3y"}).api_key == "k3y"
    assert plan().api_key is None
