"""A real OpenAI-compatible server (`transformers serve`) and a tiny model for it, made once and kept in `.cache/`."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tooling.gsm8k.items import Problem, parse_problems, select_shots
from tooling.gsm8k.prompts import render_prompt

ROOT = Path(__file__).resolve().parents[3]
CACHE = ROOT / ".cache"
TRAIN_SCRIPT = Path(__file__).with_name("train_tiny_model.py")
REQUIREMENTS = ("torch==2.13.0", "transformers[serving]==5.24.0")
QUESTIONS, SHOTS = 16, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RealServer:
    """How to start it: its program, the model's folder, and the data that the model knows by heart."""

    program: Path
    model: Path
    data: Path

    def config(self, **values: object) -> dict[str, object]:
        """A configuration whose server takes some 6 s and half a gigabyte."""
        options = ["--device", "cpu", "--continuous-batching", "--cb-num-blocks", "128", "--cb-max-batch-tokens", "512"]
        return {
            "model_name": str(self.model),
            "server_command": [str(self.program), "serve", "{model}", "--host", "{host}", "--port", "{port}", *options],
            "env": {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(self.model / "hub")},
            "num_questions": QUESTIONS,
            "num_fewshot": SHOTS,
            "accuracy_threshold": 0.9,
            "tolerance": 0.04,
            "concurrency": 8,
            "max_tokens": 120,
            "startup_max_wait_seconds": 300,
            "data": str(self.data),
            **values,
        }


@pytest.fixture(scope="session")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> RealServer:
    folder = CACHE / "model-server"
    _make_environment(folder)
    data = tmp_path_factory.mktemp("data")
    asked, shots = _write_data(data)
    pairs = [{"prompt": render_prompt(each.question, shots), "solution": each.answer} for each in asked]
    return RealServer(program=folder / "bin/transformers", model=_train_once(folder, pairs), data=data)


def _make_environment(folder: Path) -> None:
    """A virtual environment with the server, 1.2 GB; made again when its requirements change."""
    stamp = folder / "installed-for"
    wanted = "\n".join((*REQUIREMENTS, sys.version))
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    subprocess.run([str(folder / "bin/pip"), "install", "--quiet", *REQUIREMENTS], check=True)
    stamp.write_text(wanted)


def _write_data(folder: Path) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """The shortest of the shipped problems: short prompts make the training quick."""
    shipped = ROOT / "tooling/data/gsm8k"
    for name, count in (("test", QUESTIONS), ("train", SHOTS)):
        lines = sorted((shipped / f"{name}.jsonl").read_text().splitlines(), key=len)
        (folder / f"{name}.jsonl").write_text("\n".join(lines[:count]) + "\n")
    test = parse_problems((folder / "test.jsonl").read_text(), path="test.jsonl")
    train = parse_problems((folder / "train.jsonl").read_text(), path="train.jsonl")
    return test, select_shots(train, SHOTS, asked=test)


def _train_once(folder: Path, pairs: list[dict[str, str]]) -> Path:
    text = json.dumps(pairs, sort_keys=True)
    key = hashlib.sha256(text.encode() + TRAIN_SCRIPT.read_bytes()).hexdigest()[:12]
    model = CACHE / f"tiny-model-{key}"
    if not (model / "trained").is_file():
        model.mkdir(parents=True, exist_ok=True)
        (model / "pairs.json").write_text(text)
        command = [str(folder / "bin/python"), str(TRAIN_SCRIPT), str(model / "pairs.json"), str(model)]
        subprocess.run(command, check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
        (model / "trained").touch()
    return model
