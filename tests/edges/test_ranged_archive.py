"""A wheel read in byte ranges from a real HTTP server on loopback, honest and not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.version import Version

from tests.edges.local_index import LocalFile, LocalIndex
from tests.edges.test_archives import make_sdist
from tooling.edges import archives, index_http, ranged_archive
from tooling.edges.index import IndexClient
from tooling.edges.pip_config import load_index_settings
from tooling.edges.ranged_archive import open_release_file
from tooling.errors import EdgeError
from tooling.releases.files import ReleaseFile

NOISE = random.Random(1).randbytes(400_000)


@pytest.fixture
def client(local_index: LocalIndex, bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IndexClient]:
    monkeypatch.setenv("PIP_INDEX_URL", local_index.simple)
    with IndexClient(load_index_settings()) as client:
        yield client


def listed(client: IndexClient, version: str = "9.1.0") -> ReleaseFile:
    return client.fetch_project("flashinfer-python")[0].of(Version(version))[0]


def add(index: LocalIndex) -> LocalFile:
    members = {
        "flashinfer/a.py": b"a = 1\n",
        "flashinfer/data/noise_1.bin": NOISE,
        "flashinfer/b.py": b"b = 2\n",
        "flashinfer/c.py": b"c = 3\n",
        "flashinfer/data/noise_2.bin": NOISE[::-1],
    }
    return index.add_wheel("flashinfer-python", "9.1.0", members=members)


def test_only_the_members_that_are_asked_for_are_read(client: IndexClient, local_index: LocalIndex) -> None:
    wheel = add(local_index)
    archive = open_release_file(client.http, listed(client))
    assert archive.size_bytes == len(wheel.data)
    assert archive.read("flashinfer/a.py") == b"a = 1\n"
    assert archive.read("flashinfer/c.py") == b"c = 3\n"
    assert archive.bytes_read() < len(wheel.data) // 5
    assert archive.notes == []


def test_near_members_come_with_one_request(client: IndexClient, local_index: LocalIndex) -> None:
    add(local_index)
    archive = open_release_file(client.http, listed(client))
    before = local_index.asked("/files/")
    archive.prefetch(["flashinfer/a.py", "flashinfer/b.py", "flashinfer/c.py"])
    assert local_index.asked("/files/") == before + 2
    for name in "abc":
        archive.read(f"flashinfer/{name}.py")
    archive.prefetch(["flashinfer/a.py", "flashinfer/b.py"])
    assert local_index.asked("/files/") == before + 2


def test_what_is_read_in_pieces_is_what_the_file_holds(client: IndexClient, local_index: LocalIndex) -> None:
    wheel = add(local_index)
    stream = ranged_archive.RangedFile(client.http, listed(client).url)
    chance = random.Random(7)
    for _ in range(60):
        start = chance.randrange(len(wheel.data))
        end = min(len(wheel.data), start + chance.choice([1, 100, 5_000, 300_000]))
        if chance.random() < 0.4:
            stream.load([(start, end)])
        stream.seek(start)
        assert stream.read(end - start) == wheel.data[start:end]
    assert stream.bytes_read < 12 * len(wheel.data)


def test_a_server_without_ranges_gives_the_whole_file_and_it_is_said(
    client: IndexClient, local_index: LocalIndex
) -> None:
    wheel = add(local_index)
    local_index.ranges = "ignored"
    archive = open_release_file(client.http, listed(client))
    assert archive.read("flashinfer/b.py") == b"b = 2\n"
    assert archive.bytes_read() == len(wheel.data)
    assert "no byte ranges" in archive.notes[0]
    archive.close()


def test_a_whole_file_is_taken_within_a_bound(
    client: IndexClient, local_index: LocalIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(local_index)
    local_index.ranges = "ignored"
    monkeypatch.setattr(ranged_archive, "MAX_FILE_BYTES", 100_000)
    with pytest.raises(EdgeError, match="more than 100,000 bytes") as caught:
        open_release_file(client.http, listed(client))
    assert caught.value.reason == "TOO_LARGE"


def test_a_whole_file_with_another_hash_is_refused(client: IndexClient, local_index: LocalIndex) -> None:
    wheel = add(local_index)
    local_index.ranges = "ignored"
    wheel.claims = {"hashes": {"sha256": "0" * 64}}
    with pytest.raises(EdgeError, match="sha256") as caught:
        open_release_file(client.http, listed(client))
    assert caught.value.reason == "WRONG_HASH"


@pytest.mark.parametrize("ranges", ["wrong-span", "short", "no-header"])
def test_ranges_that_lie_are_refused(client: IndexClient, local_index: LocalIndex, ranges: str) -> None:
    add(local_index)
    local_index.ranges = ranges  # type: ignore[assignment]
    with pytest.raises(EdgeError) as caught:
        open_release_file(client.http, listed(client))
    assert caught.value.reason == "LYING_RANGES"


def test_an_sdist_is_taken_whole(client: IndexClient, local_index: LocalIndex, tmp_path: Path) -> None:
    file = local_index.add_sdist("flashinfer-python", "9.1.0")
    file.data = make_sdist(tmp_path / "s.tar.gz", {"s/PKG-INFO": b"Version: 9.1.0\n"}).read_bytes()
    with open_release_file(client.http, listed(client)) as archive:
        assert archive.read("PKG-INFO") == b"Version: 9.1.0\n"
        assert archive.bytes_read() == len(file.data)


def test_a_file_that_is_listed_and_not_there_is_said(client: IndexClient, local_index: LocalIndex) -> None:
    wheel = add(local_index)
    file = listed(client)
    local_index.files.remove(wheel)
    with pytest.raises(EdgeError, match="not there") as caught:
        open_release_file(client.http, file)
    assert caught.value.reason == "GONE"


def test_a_server_fault_that_passes_is_ridden_out(
    client: IndexClient, local_index: LocalIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(local_index)
    monkeypatch.setattr(index_http, "FIRST_WAIT_S", 0.01)
    monkeypatch.setenv("PIP_RETRIES", "2")
    file = listed(client)
    with IndexClient(load_index_settings()) as patient:
        local_index.failures = [503, 502]
        archive = open_release_file(patient.http, file)
        assert archive.read("flashinfer/a.py") == b"a = 1\n"


def test_a_server_fault_that_stays_is_said(
    client: IndexClient, local_index: LocalIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(local_index)
    monkeypatch.setattr(index_http, "FIRST_WAIT_S", 0.01)
    file = listed(client)
    local_index.failures = [500] * 20
    with pytest.raises(EdgeError, match="500") as caught:
        open_release_file(client.http, file)
    assert caught.value.reason == "SERVER_ERROR"


def test_a_server_that_is_too_slow_is_given_up(
    client: IndexClient, local_index: LocalIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(local_index)
    file = listed(client)
    monkeypatch.setenv("PIP_TIMEOUT", "0.3")
    monkeypatch.setenv("PIP_RETRIES", "0")
    local_index.delay_s = 20.0
    with IndexClient(load_index_settings()) as hasty, pytest.raises(EdgeError, match="within") as caught:
        open_release_file(hasty.http, file)
    assert caught.value.reason == "TIMEOUT"


@pytest.mark.parametrize("data", [b"no zip at all", b"PK\x05\x06" + bytes(18) + b"x"], ids=["text", "cut short"])
def test_a_wheel_that_is_no_zip_is_the_index_s_fault(client: IndexClient, local_index: LocalIndex, data: bytes) -> None:
    add(local_index).data = data
    with pytest.raises(EdgeError) as caught:
        open_release_file(client.http, listed(client))
    assert caught.value.reason == "BAD_ARCHIVE"


def test_names_that_point_outside_are_the_index_s_fault(client: IndexClient, local_index: LocalIndex) -> None:
    local_index.add_wheel("flashinfer-python", "9.1.0", members={"../../evil.py": b""})
    with pytest.raises(EdgeError, match="points out of the archive") as caught:
        open_release_file(client.http, listed(client))
    assert caught.value.reason == "BAD_ARCHIVE"


def test_a_directory_beyond_its_bound_is_not_read(
    client: IndexClient, local_index: LocalIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_index.add_wheel(
        "flashinfer-python", "9.1.0", members={f"flashinfer/m{number}.py": b"" for number in range(2_000)}
    )
    monkeypatch.setattr(ranged_archive, "MAX_DIRECTORY_BYTES", 70_000)
    with pytest.raises(EdgeError, match="directory claims") as caught:
        open_release_file(client.http, listed(client))
    assert caught.value.reason == "BAD_ARCHIVE"


def test_a_member_over_its_bound_is_refused(
    client: IndexClient, local_index: LocalIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(local_index)
    monkeypatch.setattr(archives, "MAX_MEMBER_BYTES", 100_000)
    archive = open_release_file(client.http, listed(client))
    with pytest.raises(archives.BadArchiveError, match="400,000 bytes"):
        archive.read("flashinfer/data/noise_1.bin")
