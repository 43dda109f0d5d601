"""Local archives: what is honest is read, what no honest tool writes is refused."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tooling.edges import archives
from tooling.edges.archives import BadArchiveError, open_local
from tooling.errors import InputError


def make_zip(path: Path, members: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo("placeholder")
            info.filename = name
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return path


def make_sdist(path: Path, members: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def test_a_wheel_gives_its_members(tmp_path: Path) -> None:
    archive = open_local(make_zip(tmp_path / "a.whl", {"flashinfer/a.py": b"x = 1\n"}))
    assert archive.read("flashinfer/a.py") == b"x = 1\n"
    assert archive.size_bytes == (tmp_path / "a.whl").stat().st_size
    assert archive.sha256 is not None
    assert archive.bytes_read() > 0
    archive.close()


def test_an_sdist_gives_its_python_without_the_folder_on_top(tmp_path: Path) -> None:
    members = {"f-1.0/PKG-INFO": b"Version: 1.0\n", "f-1.0/flashinfer/a.py": b"x = 1\n", "f-1.0/csrc/a.cu": b"..."}
    archive = open_local(make_sdist(tmp_path / "f-1.0.tar.gz", members))
    assert sorted(archive.names) == ["PKG-INFO", "flashinfer/a.py"]
    assert archive.read("flashinfer/a.py") == b"x = 1\n"


def test_a_folder_gives_its_files(tmp_path: Path) -> None:
    (tmp_path / "flashinfer" / "__pycache__").mkdir(parents=True)
    (tmp_path / "flashinfer" / "a.py").write_bytes(b"x = 1\n")
    (tmp_path / "flashinfer" / "__pycache__" / "a.pyc").write_bytes(b"")
    archive = open_local(tmp_path)
    assert set(archive.names) == {"flashinfer/a.py"}
    assert archive.read("flashinfer/a.py") == b"x = 1\n"
    assert archive.bytes_read() == 6


@pytest.mark.parametrize(
    "name",
    ["../a.py", "flashinfer/../../a.py", "/etc/a.py", "..\\a.py", "C:/a.py"],
)
def test_names_that_point_out_of_the_archive_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadArchiveError, match="points out of the archive"):
        open_local(make_zip(tmp_path / "a.whl", {name: b""}))
    with pytest.raises(BadArchiveError, match="points out of the archive"):
        open_local(make_sdist(tmp_path / "a.tar.gz", {name: b""}))


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.py", b"1")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a.py", b"2")
    with pytest.raises(BadArchiveError, match="twice"):
        open_local(path)


@pytest.mark.parametrize("data", [b"", b"no zip", b"PK\x03\x04" + b"\0" * 100, b"PK\x05\x06" + b"\xff" * 18])
def test_what_is_no_zip_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.whl"
    path.write_bytes(data)
    with pytest.raises(BadArchiveError):
        open_local(path)


@pytest.mark.parametrize("data", [b"", b"no gzip", gzip.compress(b"no tar at all, but gzipped" * 100)])
def test_what_is_no_sdist_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.tar.gz"
    path.write_bytes(data)
    with pytest.raises(BadArchiveError):
        open_local(path)


def test_a_broken_off_sdist_is_refused(tmp_path: Path) -> None:
    path = make_sdist(tmp_path / "a.tar.gz", {"f/a.py": bytes(range(256)) * 2000})
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(BadArchiveError):
        open_local(path)


def test_a_damaged_member_is_refused(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.whl", {"a.py": bytes(range(256)) * 50})
    data = bytearray(path.read_bytes())
    data[60] ^= 0xFF
    path.write_bytes(bytes(data))
    with open_local(path) as archive, pytest.raises(BadArchiveError, match=r"a\.py cannot be unpacked"):
        archive.read("a.py")


def test_a_member_over_its_bound_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBER_BYTES", 1000)
    wheel = make_zip(tmp_path / "a.whl", {"a.py": bytes(1001)})
    with open_local(wheel) as archive, pytest.raises(BadArchiveError, match="1,001 bytes"):
        archive.read("a.py")
    with pytest.raises(BadArchiveError, match="1,001 bytes"):
        open_local(make_sdist(tmp_path / "a.tar.gz", {"f/a.py": bytes(1001)}))


def test_members_that_are_too_much_together_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_TOTAL_BYTES", 30_000)
    members = {f"f/{name}.py": bytes(10_000) for name in "abcd"}
    with open_local(make_zip(tmp_path / "a.whl", members)) as archive:
        for name in "abc":
            archive.read(f"f/{name}.py")
        with pytest.raises(BadArchiveError, match="unpack to more than"):
            archive.read("f/d.py")
    with pytest.raises(BadArchiveError, match="unpacks to more than"):
        open_local(make_sdist(tmp_path / "a.tar.gz", members))


def test_a_member_that_claims_an_impossible_packing_is_refused(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.whl", {"a.py": bytes(100)})
    data = path.read_bytes()
    path.write_bytes(data.replace((100).to_bytes(4, "little"), (60_000_000).to_bytes(4, "little")))
    with open_local(path) as archive, pytest.raises(BadArchiveError, match=":1"):
        archive.read("a.py")


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)
    with pytest.raises(BadArchiveError, match="more than 3 members"):
        open_local(make_zip(tmp_path / "a.whl", {f"{name}.py": b"" for name in "abcd"}))


def test_nothing_at_the_path_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        open_local(tmp_path / "none.whl")


def test_a_link_in_a_circle_and_a_pipe_in_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "flashinfer").mkdir()
    (tmp_path / "flashinfer" / "circle.py").symlink_to("circle.py")
    os.mkfifo(tmp_path / "flashinfer" / "pipe.py")
    with open_local(tmp_path) as archive:
        with pytest.raises(BadArchiveError, match=r"circle\.py cannot be read"):
            archive.read("flashinfer/circle.py")
        with pytest.raises(BadArchiveError, match=r"pipe\.py is no regular file"):
            archive.read("flashinfer/pipe.py")


def test_a_folder_of_circles_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(InputError, match="symbolic links"):
        open_local(tmp_path / "circle")
