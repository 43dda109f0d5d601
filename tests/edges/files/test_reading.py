"""What a file may be to be read: text, bounded, inside the root."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tooling.edges.files.reading import MAX_SIZE_BYTES, check_root, load_bytes, load_text, resolve_inside
from tooling.errors import ExitCode, InputError


def _link_out(root: Path) -> None:
    (root.parent / "outside").write_text("x")
    (root / "a").symlink_to("../outside")


def _folder_link_out(root: Path) -> None:
    (root.parent / "a").write_text("x")
    (root / "up").symlink_to("..")


def _circle(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")


_REFUSED: list[tuple[str, Callable[[Path], object], str, str]] = [
    ("missing", lambda root: None, "a", "MISSING"),
    ("a dangling link", lambda root: (root / "a").symlink_to("nowhere"), "a", "MISSING"),
    ("a directory", lambda root: (root / "a").mkdir(), "a", "NOT_A_FILE"),
    ("the root", lambda root: None, ".", "NOT_A_FILE"),
    ("a named pipe", lambda root: os.mkfifo(root / "a"), "a", "NOT_A_FILE"),
    ("a part of the path is a file", lambda root: (root / "a").touch(), "a/b", "UNREADABLE"),
    ("binary", lambda root: (root / "a").write_bytes(b"a\0b"), "a", "BINARY"),
    ("not UTF-8", lambda root: (root / "a").write_bytes(b"caf\xe9"), "a", "UNDECODABLE"),
    ("UTF-16", lambda root: (root / "a").write_bytes("x".encode("utf-16")), "a", "BINARY"),
    ("too large", lambda root: (root / "a").write_bytes(b"x" * (MAX_SIZE_BYTES + 1)), "a", "TOO_LARGE"),
    ("a link out of the root", _link_out, "a", "OUTSIDE"),
    ("a folder that is a link out of the root", _folder_link_out, "up/a", "OUTSIDE"),
    ("a dangling link out of the root", lambda root: (root / "a").symlink_to("../no/such"), "a", "OUTSIDE"),
    ("an absolute path", lambda root: None, "/etc/hostname", "OUTSIDE"),
    ("a path that climbs", lambda root: None, "../x", "OUTSIDE"),
    ("links in a circle", _circle, "a", "LINK_LOOP"),
    ("a name too long", lambda root: None, "a" * 300, "UNREADABLE"),
    ("a name with a NUL", lambda root: None, "a\0b", "BAD_NAME"),
]


@pytest.mark.parametrize(
    ("make", "path", "reason"), [case[1:] for case in _REFUSED], ids=[case[0] for case in _REFUSED]
)
def test_what_is_no_text_of_the_tree_is_refused(
    tmp_path: Path, make: Callable[[Path], object], path: str, reason: str
) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    make(root)
    with pytest.raises(InputError) as refused:
        load_text(root, path)
    assert refused.value.reason == reason
    assert refused.value.exit_code is ExitCode.INPUT
    assert refused.value.message.replace("\\x00", "\0").strip("'").startswith(path)


@pytest.mark.parametrize(
    "raw",
    [b"", b"a\n", b"a\r\nb", b"\xef\xbb\xbfa\r\n", "caf\u00e9\u2028".encode(), b"x" * MAX_SIZE_BYTES],
    ids=["empty", "plain", "mixed, no final newline", "BOM and CRLF", "not ASCII", "as large as may be"],
)
def test_a_text_is_read_without_loss(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "a").write_bytes(raw)
    assert load_text(tmp_path, "a").raw == raw
    assert load_bytes(tmp_path, "a") == raw


def test_a_link_inside_the_root_is_followed_to_the_real_path(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "root-link").symlink_to(tmp_path)
    assert resolve_inside(tmp_path / "root-link", "link") == tmp_path.resolve() / "real"
    assert load_text(tmp_path, "link").path == "link"


def test_a_sibling_whose_name_begins_like_the_root_is_outside(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree2").mkdir()
    (tmp_path / "tree2" / "a").write_text("x")
    with pytest.raises(InputError, match="leads out of the root"):
        load_bytes(tmp_path / "tree", "../tree2/a")


def test_the_system_root_holds_everything(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert load_bytes(Path("/"), str((tmp_path / "a").resolve())) == b"x"


def test_a_disk_that_fails_while_reading_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("x")

    def broken(descriptor: int) -> os.stat_result:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", broken)
        with pytest.raises(InputError) as refused:
            load_bytes(tmp_path, "a")
    assert refused.value.message == "a: cannot be read: Input/output error"


def test_no_descriptor_is_left_open_by_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted by the calls themselves: the rest of this process opens and closes files as well."""
    (tmp_path / "folder").mkdir()
    opened, closed, really_open, really_close = list[int](), list[int](), os.open, os.close

    def open_and_note(path: str, flags: int) -> int:
        opened.append(really_open(path, flags))
        return opened[-1]

    def close_and_note(descriptor: int) -> None:
        closed.append(descriptor)
        really_close(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", open_and_note)
        patch.setattr(os, "close", close_and_note)
        with pytest.raises(InputError):
            load_bytes(tmp_path, "folder")
    assert len(opened) == 1
    assert closed == opened


@pytest.mark.parametrize("found", ["nothing", "a file"])
def test_a_root_that_is_no_directory_is_refused(tmp_path: Path, found: str) -> None:
    root = tmp_path / "root"
    if found == "a file":
        root.touch()
    with pytest.raises(InputError, match=f"found {found}, expected a directory") as refused:
        check_root(root)
    assert refused.value.reason == "NO_ROOT"


def test_a_root_is_made_absolute_and_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert check_root(tmp_path / "link") == tmp_path.resolve()
    monkeypatch.chdir(tmp_path)
    assert check_root(Path()) == tmp_path.resolve()
