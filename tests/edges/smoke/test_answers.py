"""A worker's answer is taken whole and as its own, or not at all; nothing that it leaves stops the run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tooling.edges.smoke.answers import MOST_BYTES, TAIL_BYTES, load_answer, load_tail
from tooling.edges.smoke.cache_root import lay_out, list_files
from tooling.smoke.observations import RankSeen

WHOLE = {
    "seen": RankSeen(rank=1, end="ended").as_json(),
    "opened": ["a.json"],
    "seconds": 1.5,
    "record": {"strategy": "none"},
    "path": "0.6.13/sm90",
}

ALTERED: dict[str, Callable[[dict[str, Any]], object]] = {
    "no list of opened files": lambda body: body.pop("opened"),
    "opened files that are no names": lambda body: body.update(opened=[{"x": 1}]),
    "seconds in words": lambda body: body.update(seconds="long"),
    "negative seconds": lambda body: body.update(seconds=-1.0),
    "a record that is a list": lambda body: body.update(record=[]),
    "a path that is a number": lambda body: body.update(path=3),
    "another rank's": lambda body: body["seen"].update(rank=0),
    "a report that is a list": lambda body: body["seen"].update(report=[1]),
    "a report without its counts": lambda body: body["seen"].update(report={"tuned": 1}),
    "an end of another kind": lambda body: body["seen"].update(end="fine"),
    "no end": lambda body: body["seen"].pop("end"),
    "errors that are a number": lambda body: body["seen"].update(errors=5),
    "seen that is a text": lambda body: body.update(seen="all well"),
    "a step that is a list": lambda body: body["seen"].update(step=[]),
    "an infinite time": lambda body: body["seen"].update(jit_s=float("inf")),
    "no number": lambda body: body["seen"].update(tuning_s=float("nan")),
}


def test_a_whole_answer_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(WHOLE))
    assert load_answer(path, 1) == WHOLE


@pytest.mark.parametrize("name", ALTERED)
def test_an_answer_that_no_worker_of_ours_writes_is_none(tmp_path: Path, name: str) -> None:
    body = json.loads(json.dumps(WHOLE))
    ALTERED[name](body)
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(body))
    assert load_answer(path, 1) == {}


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\0", b"[]", b"null", b'{"seen": ', b"[" * 100_000, b"Traceback"])
def test_bytes_that_are_no_answer_are_none(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "answer.json"
    path.write_bytes(data)
    assert load_answer(path, 1) == {}


def test_no_answer_and_a_folder_in_its_place_are_none(tmp_path: Path) -> None:
    assert load_answer(tmp_path / "nowhere.json", 1) == {}
    assert load_answer(tmp_path, 1) == {}


def test_a_huge_answer_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(WHOLE))
    os.truncate(path, MOST_BYTES + 1)
    assert load_answer(path, 1) == {}


def test_of_a_huge_log_only_the_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"first")
    os.truncate(path, 10 * 1024**3)
    with path.open("ab") as log:
        log.write(b"last line\xff")
    tail = load_tail(path)
    assert tail.endswith("last line\N{REPLACEMENT CHARACTER}")
    assert len(tail) == TAIL_BYTES
    assert load_tail(tmp_path / "none") == ""


def test_what_is_no_cache_file_is_not_made_foreign(tmp_path: Path) -> None:
    """A broken worker leaves such files in the cache that the layouts are made from."""
    source, root = tmp_path / "source", tmp_path / "root"
    source.mkdir()
    for name, text in (("cut.json", '{"_meta'), ("list.json", "[]"), ("bare.json", '{"_metadata": {"n": 1}}')):
        (source / name).write_text(text)
    (source / "good.json").write_text('{"_metadata": {"cuda_version": "13.0"}}')
    assert lay_out("foreign", source, root) == 1
    assert [file.path for file in list_files(root)] == ["good.json"]


def test_a_pipe_below_the_cache_root_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert list_files(tmp_path) == ()
