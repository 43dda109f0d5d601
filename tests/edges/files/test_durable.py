"""Writes that are whole or not there at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tooling.edges.files.durable import flush_folder, make_private_folder, replace_file, write_durably

from .faults import Fault, Steps, in_child


def test_a_write_that_the_system_takes_in_bits_arrives_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data)[:3]))
    write_durably(tmp_path / "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    with pytest.raises(OSError, match="symbolic links"):
        write_durably(tmp_path / "link", b"x")
    assert not (tmp_path / "target").exists()


def test_a_folder_that_cannot_be_flushed_is_normal_on_some_file_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "fsync", refuse)
    flush_folder(tmp_path)


def test_a_folder_that_fails_to_flush_is_an_error(tmp_path: Path) -> None:
    with Steps(Fault(kind="EIO"), at=1, of="fsync"), pytest.raises(OSError, match="Input/output"):
        flush_folder(tmp_path)


def test_a_private_folder_keeps_a_gitignore_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / ".gitignore").write_text("!gate.json\n")
    make_private_folder(tmp_path / "evidence")
    assert (tmp_path / "evidence" / ".gitignore").read_text() == "!gate.json\n"
    make_private_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize(
    "fault", [Fault(kind="SIGKILL"), Fault(kind="SIGKILL", when="half"), Fault(kind="ENOSPC")], ids=str
)
def test_a_replaced_file_is_old_or_new_whatever_strikes(tmp_path: Path, fault: Fault) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with Steps() as steps:
        replace_file(path, b"old")
    for at in range(1, len(steps.names) + 1):
        path.write_bytes(b"old")
        with Steps(fault, at=at):
            if fault.is_signal:
                in_child(lambda: replace_file(path, b"new content"))
            else:
                with pytest.raises(OSError, match="No space"):
                    replace_file(path, b"new content")
        assert path.read_bytes() in {b"old", b"new content"}
        if not fault.is_signal:
            assert os.listdir(tmp_path) == ["a"], "what was begun is cleared away"
