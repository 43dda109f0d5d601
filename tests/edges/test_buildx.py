"""Questions to docker's command line, put to a script of that name: answers, refusals, and a client that hangs."""

from __future__ import annotations

import os
import select
from pathlib import Path

import pytest

from tooling.edges import buildx


def _client(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "docker").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def _ask(folder: Path, *, timeout_s: float = 60) -> buildx.Answer:
    return buildx.ask(["buildx", "version"], root=folder, environ=os.environ, timeout_s=timeout_s)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('echo "$*"', buildx.Answer(text="buildx version\n", complaint="buildx version")),
        ("echo no; exit 1", buildx.Answer(text=None, complaint="no")),
        ("echo no >&2; exit 1", buildx.Answer(text=None, complaint="no")),
    ],
    ids=["answer", "refusal on stdout", "refusal on stderr"],
)
def test_an_answer_is_text_and_a_refusal_a_complaint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, expected: buildx.Answer
) -> None:
    _client(tmp_path, script, monkeypatch)
    assert _ask(tmp_path) == expected


def test_a_client_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that the client starts holds the pipe's other end open."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        _client(tmp_path, f"exec 9>{tmp_path}/pipe; echo begun >&9; sleep 1000; true", monkeypatch)
        answer = _ask(tmp_path, timeout_s=3)
        assert (answer.text, answer.is_late) == (None, True)
        assert answer.complaint == "`docker buildx version` did not answer within 3 s"
        assert os.read(reader, 100) == b"begun\n"
        select.select([reader], [], [], 60)
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)
