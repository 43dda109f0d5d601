"""The data's three homes: shipped, a folder, a URL with pinned digests."""

from __future__ import annotations

import functools
import hashlib
import http.server
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http_servers import serving
from tooling.edges.gsm8k_data import load_data
from tooling.errors import EdgeError, InputError
from tooling.gsm8k.data_location import DataLocation
from tooling.gsm8k.items import parse_problems

LINE = '{"question": "q", "answer": "#### 1"}\n'


class Quiet(http.server.SimpleHTTPRequestHandler):
    asked: list[str]

    def log_message(self, *args: object) -> None: ...


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "served"
    home.mkdir()
    (home / "test.jsonl").write_text(LINE)
    (home / "train.jsonl").write_text(LINE.replace('"q"', '"t"'))
    return home


@pytest.fixture
def url(folder: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pinned(url: str, folder: Path) -> DataLocation:
    return DataLocation(url=url, test_sha256=sha256(folder / "test.jsonl"), train_sha256=sha256(folder / "train.jsonl"))


def test_the_shipped_problems_are_the_default(tmp_path: Path) -> None:
    raw = load_data(DataLocation(), base=tmp_path, cache=tmp_path)
    assert raw.source == "shipped"
    assert len(parse_problems(raw.test, path="test")) >= 40


def test_a_folder_is_relative_to_the_configuration(tmp_path: Path, folder: Path) -> None:
    raw = load_data(DataLocation(folder="served"), base=tmp_path, cache=tmp_path)
    assert (raw.test, raw.test_sha256) == (LINE, sha256(folder / "test.jsonl"))


def test_a_url_is_fetched_once_and_kept(tmp_path: Path, folder: Path, url: str) -> None:
    location, cache = pinned(url, folder), tmp_path / "cache"
    first = load_data(location, base=tmp_path, cache=cache)
    (folder / "test.jsonl").unlink()
    (folder / "train.jsonl").unlink()
    assert load_data(location, base=tmp_path, cache=cache) == first
    assert (cache / ".gitignore").read_text() == "*\n"


def test_a_cache_that_was_damaged_is_fetched_again(tmp_path: Path, folder: Path, url: str) -> None:
    location, cache = pinned(url, folder), tmp_path / "cache"
    first = load_data(location, base=tmp_path, cache=cache)
    for kept in cache.glob("*.jsonl"):
        kept.write_text("damaged")
    assert load_data(location, base=tmp_path, cache=cache) == first


def test_another_digest_is_refused_and_not_kept(tmp_path: Path, folder: Path, url: str) -> None:
    location = DataLocation(url=url, test_sha256="0" * 64, train_sha256="0" * 64)
    with pytest.raises(InputError) as caught:
        load_data(location, base=tmp_path, cache=tmp_path / "cache")
    assert caught.value.reason == "WRONG_DIGEST"
    assert not (tmp_path / "cache").exists()
    with pytest.raises(InputError, match="expected 0000"):
        load_data(DataLocation(folder="served", test_sha256="0" * 64), base=tmp_path, cache=tmp_path)


def test_what_is_missing_is_named(tmp_path: Path, folder: Path, url: str) -> None:
    with pytest.raises(InputError, match=r"nowhere/test\.jsonl: cannot be read"):
        load_data(DataLocation(folder="nowhere"), base=tmp_path, cache=tmp_path)
    location = DataLocation(url=url + "/nowhere", test_sha256="0" * 64, train_sha256="0" * 64)
    with pytest.raises(EdgeError, match="cannot be fetched") as caught:
        load_data(location, base=tmp_path, cache=tmp_path)
    assert caught.value.reason == "NO_DATA"


def test_bytes_that_are_no_text_are_refused(tmp_path: Path, folder: Path) -> None:
    (folder / "test.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="byte 0 is not UTF-8"):
        load_data(DataLocation(folder="served"), base=tmp_path, cache=tmp_path)
