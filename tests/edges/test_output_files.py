"""Files of the user's choice: whole or not at all; a pipe or device is written to, never replaced."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tooling.edges.output_files import write_output
from tooling.errors import EdgeError


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out.md"
    for text in ("one \U0001f600\n", "two \udc80\n"):
        write_output(path, text)
        assert path.read_bytes() == text.encode("utf-8", "backslashreplace")
    assert os.listdir(tmp_path) == ["out.md"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_output(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "text"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_output(tmp_path / "pipe", "text")
    reader.join(30)
    assert got == ["text"]


@pytest.mark.parametrize("name", ["missing/out.md", ""])
def test_what_cannot_be_written_is_an_error_that_names_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(EdgeError, match="cannot be written") as raised:
        write_output(tmp_path / name, "text")
    assert raised.value.reason == "UNWRITABLE"
