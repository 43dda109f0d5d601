"""The stage end to end against `transformers serve` on the CPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.gsm8k.programmable_server import Behaviour, running
from tests.gsm8k.real_server.conftest import ROOT, RealServer
from tests.waiting import wait_for
from tooling import cli
from tooling.edges.serving.client import Client
from tooling.evidence import parse_record
from tooling.gsm8k.score import Exchange

pytestmark = [pytest.mark.server, pytest.mark.timeout(1800)]
SCHEMA = json.loads((ROOT / "tooling/data/schemas/gsm8k-measurements.schema.json").read_text())


def stage(tmp_path: Path, config: dict[str, object], *words: str) -> int:
    path = tmp_path / "real.yaml"
    path.write_text(yaml.safe_dump(config))
    return cli.main(["gsm8k", str(path), "--root", str(tmp_path), "--evidence", str(tmp_path / "evidence"), *words])


def load(tmp_path: Path) -> dict[str, Any]:
    text = (tmp_path / "evidence/gsm8k-real.json").read_text()
    parse_record(text)
    record = json.loads(text)
    jsonschema.validate(record["measurements"], SCHEMA)
    return record


def _list_processes() -> list[str]:
    done = subprocess.run(["ps", "-ww", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def processes_of(model: Path) -> list[str]:
    return [line for line in _list_processes() if f"serve {model}" in line]


def test_a_tiny_model_scores_what_it_learnt_and_a_restart_changes_nothing(
    tmp_path: Path, real_server: RealServer
) -> None:
    code = stage(tmp_path, real_server.config(), "--restarts", "1")
    record = load(tmp_path)
    assert code == 0, record
    cold, warm = record["measurements"]["runs"]
    assert (cold["cache"], warm["cache"]) == ("cold", "warm")
    assert cold["accuracy"] >= 15 / 16
    assert cold["strict"]["accuracy"] == cold["flexible"]["accuracy"]
    assert 0 < cold["startup_seconds"] < 300
    assert warm["startup_seconds"] > 0
    assert record["measurements"]["warm_against_cold"]["flips"] == []
    assert processes_of(real_server.model) == []


def test_the_chat_endpoint_scores_the_same(tmp_path: Path, real_server: RealServer) -> None:
    assert stage(tmp_path, real_server.config(api="chat")) == 0
    assert load(tmp_path)["measurements"]["runs"][0]["accuracy"] >= 15 / 16


def test_a_model_that_knows_nothing_of_it_is_wrong_not_broken(tmp_path: Path, real_server: RealServer) -> None:
    """Another number of shots is another prompt: the model babbles, the server is well, the score is low."""
    assert stage(tmp_path, real_server.config(num_fewshot=0, max_unparsable_rate=1.0)) == 4
    record = load(tmp_path)
    assert record["reason"] == "BELOW_THRESHOLD"
    assert record["measurements"]["runs"][0]["flexible"]["failed"] == 0


def test_a_server_killed_in_mid_run_is_not_wrong_answers(
    tmp_path: Path, real_server: RealServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    ask = Client.ask

    async def ask_and_kill(client: Client, prompt: str) -> Exchange:
        asked.append(prompt)
        if len(asked) == 4:
            for line in processes_of(real_server.model):
                os.kill(int(line.split()[0]), signal.SIGKILL)
        return await ask(client, prompt)

    monkeypatch.setattr(Client, "ask", ask_and_kill)
    code = stage(tmp_path, real_server.config(concurrency=1))
    record = load(tmp_path)
    run = record["measurements"]["runs"][0]
    assert code == 4
    assert record["reason"] == "SERVER_DIED"
    assert run["accuracy"] is None
    assert "SIGKILL" in run["detail"]
    assert run["flexible"]["correct"] > 0
    assert run["flexible"]["not_asked"] > 0
    assert processes_of(real_server.model) == []


def test_a_wrong_model_path_is_a_crash_with_its_cause_on_top(
    tmp_path: Path, real_server: RealServer, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = time.monotonic()
    assert stage(tmp_path, real_server.config(model_name=str(tmp_path / "no-such-model"))) == 4
    record = load(tmp_path)
    run = record["measurements"]["runs"][0]
    assert record["reason"] == "SERVER_CRASHED"
    assert time.monotonic() - begun < 200
    assert "code 1" in run["detail"]
    assert "no-such-model" in run["cause"]
    shown = capsys.readouterr().out
    assert shown.index(run["cause"]) < shown.index("the last")


def test_a_port_in_use_is_seen_before_the_model_is_loaded(
    tmp_path: Path, real_server: RealServer, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(Behaviour(model="old-model")) as url:
        port = int(url.rsplit(":", 1)[1])
        assert stage(tmp_path, real_server.config(port=port)) == 3
    assert load(tmp_path)["reason"] == "PORT_IN_USE"
    captured = capsys.readouterr()
    assert "by a server that lists old-model" in captured.out + captured.err


def test_nothing_survives_a_stage_that_is_killed(tmp_path: Path, real_server: RealServer) -> None:
    path = tmp_path / "real.yaml"
    path.write_text(yaml.safe_dump(real_server.config()))
    stage_process = subprocess.Popen(
        [sys.executable, "-m", "tooling", "gsm8k", str(path), "--root", str(tmp_path)],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_for(lambda: processes_of(real_server.model))
    time.sleep(2)
    stage_process.kill()
    stage_process.wait()
    wait_for(lambda: processes_of(real_server.model) == [])
