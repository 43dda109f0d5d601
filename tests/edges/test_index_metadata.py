"""METADATA of a file on an index: never the whole wheel, never other bytes than promised, nothing executed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.edges.local_index import LocalFile, LocalIndex
from tooling.edges.index import IndexClient
from tooling.edges.index_metadata import fetch_metadata
from tooling.edges.pip_config import load_index_settings
from tooling.edges.ranged_archive import RangedFile
from tooling.errors import EdgeError

NAME = "flashinfer-python"


@pytest.fixture
def client(local_index: LocalIndex, bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IndexClient]:
    monkeypatch.setenv("PIP_INDEX_URL", local_index.simple)
    with IndexClient(load_index_settings()) as client:
        yield client


def metadata(client: IndexClient) -> str:
    (page,) = client.fetch_project(NAME)
    return fetch_metadata(client, page.files[0])


def fails(client: IndexClient) -> str:
    with pytest.raises(EdgeError) as caught:
        metadata(client)
    return caught.value.reason


def big_wheel(index: LocalIndex) -> LocalFile:
    """A wheel of 3 MB with 2000 members."""
    members = {f"flashinfer/data/{number:04}.bin": os.urandom(1500) for number in range(2000)}
    return index.add_wheel(NAME, "0.7.4", requires=["numpy"], members=members, serves_metadata=False)


def test_the_indexes_own_copy_is_taken(local_index: LocalIndex, client: IndexClient) -> None:
    local_index.add_wheel(NAME, "0.7.4", requires=["numpy"])
    assert "Requires-Dist: numpy" in metadata(client)
    assert local_index.asked(".whl.metadata") == 1
    assert local_index.asked(".whl") == 1


def test_out_of_a_large_wheel_only_small_parts_are_read(local_index: LocalIndex, client: IndexClient) -> None:
    file = big_wheel(local_index)
    assert "Requires-Dist: numpy" in metadata(client)
    ranges = [headers["range"] for path, headers in local_index.log if path.endswith(".whl")]
    assert len(ranges) == local_index.asked(".whl") <= 5
    read = 0
    for text in ranges:
        first, _, last = text.removeprefix("bytes=").rpartition("-")
        read += int(last) if not first else int(last) - int(first) + 1
    assert read < len(file.data) / 5


def test_a_copy_that_is_announced_and_missing_is_read_from_the_wheel(local_index: LocalIndex, client: IndexClient) -> None:  # fmt: skip
    file = local_index.add_wheel(NAME, "0.7.4", requires=["numpy"], serves_metadata=False)
    file.claims = {"core-metadata": True}
    assert "Requires-Dist: numpy" in metadata(client)


def test_a_copy_with_another_digest_is_refused(local_index: LocalIndex, client: IndexClient) -> None:
    local_index.add_wheel(NAME, "0.7.4").claims = {"core-metadata": {"sha256": "0" * 64}}
    assert fails(client) == "WRONG_HASH"


@pytest.mark.parametrize(
    ("ranges", "reason"), [("ignored", "NO_RANGES"), ("wrong-span", "LYING_RANGES"), ("short", "LYING_RANGES")]
)
def test_a_server_without_honest_ranges_is_never_asked_for_the_whole(ranges: str, reason: str, local_index: LocalIndex, client: IndexClient) -> None:  # fmt: skip
    big_wheel(local_index)
    local_index.ranges = ranges  # type: ignore[assignment]
    assert fails(client) == reason
    assert all("range" in headers for path, headers in local_index.log if path.endswith(".whl"))


@pytest.mark.parametrize("data", [b"no zip at all", b""], ids=["no archive", "empty"])
def test_a_file_that_is_no_wheel_is_named(data: bytes, local_index: LocalIndex, client: IndexClient) -> None:
    local_index.add_wheel(NAME, "0.7.4", serves_metadata=False).data = data
    assert fails(client) in {"BAD_WHEEL", "LYING_RANGES"}


def test_a_wheel_without_metadata_is_named(local_index: LocalIndex, client: IndexClient) -> None:
    file = local_index.add_wheel(NAME, "0.7.4", serves_metadata=False)
    file.data = file.data.replace(b"METADATA", b"METADOTO")
    assert fails(client) == "BAD_WHEEL"


def test_a_wheel_in_a_folder_is_read_from_there(local_index: LocalIndex, bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    file = local_index.add_wheel(NAME, "0.7.4", requires=["numpy"])
    (bare_machine / file.filename).write_bytes(file.data)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(bare_machine))
    assert "Requires-Dist: numpy" in metadata(IndexClient(load_index_settings()))


def test_a_file_that_changes_while_it_is_read_is_noticed(local_index: LocalIndex, client: IndexClient) -> None:
    file = big_wheel(local_index)
    url = f"{local_index.url}/files/{file.filename}"
    ranged = RangedFile(client.http, url)
    file.data += b"more"
    ranged.seek(0)
    with pytest.raises(EdgeError) as caught:
        ranged.read(10)
    assert caught.value.reason in {"CHANGED", "LYING_RANGES"}
