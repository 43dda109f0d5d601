"""A carried cache under attack: what is no file, links, a bundle that changes meanwhile, what is there already, writers."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.warmup.environments import Release, newest_release
from tooling.cli import main
from tooling.commands import cache as command
from tooling.errors import EdgeError
from tooling.warmup import cache_file, locks
from tooling.warmup.bundle import parse_bundle
from tooling.warmup.cache_text import set_digest
from tooling.warmup.carrying import export_cache, import_cache, load_bundle
from tooling.warmup.errors import BundleError

Releases = Callable[[str], Release]
HASH = "0123456789abcdef0123"
HERE = {"flashinfer_version": "0.6.13", "gpu": "NVIDIA H200"}


def text_of(entries: dict[str, Any], **metadata: Any) -> str:
    return json.dumps({"_metadata": {**HERE, **metadata}, **entries})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a cache with a leader's file."""
    found = tmp_path / "root" / "0.6.13" / "sm90" / HASH
    found.mkdir(parents=True)
    (found / "autotune_configs.json").write_text(text_of({"k": ["R", 1]}))
    return found


@pytest.fixture
def bundle(folder: Path, tmp_path: Path) -> Path:
    export_cache(folder, tmp_path / "b.json")
    return tmp_path / "b.json"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["cache", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


NO_FILES: dict[str, Callable[[Path], Any]] = {
    "a pipe": make_pipe,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a folder": Path.mkdir,
    "a link to itself": lambda path: path.symlink_to(path),
    "too large": lambda path: path.write_bytes(b" " * 1001),
    "not UTF-8": lambda path: path.write_bytes(b"\xff"),
}


@pytest.mark.parametrize("case", NO_FILES)
def test_what_is_no_readable_file_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    monkeypatch.setattr(cache_file, "MAX_BYTES", 1000)
    NO_FILES[case](tmp_path / "b.json")
    for action in ("show", "verify", "import"):
        code, body = run(capsys, action, str(tmp_path / "b.json"))
        assert (code, body["error"]["reason"]) == (2, "UNREADABLE")


def test_only_what_a_warm_up_writes_is_carried_and_no_link_is_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"token": 1}')
    (folder / "rank-0-of-1.json").symlink_to(tmp_path / "secret.json")
    (folder / "managed").symlink_to(tmp_path)
    (folder / "notes.json").write_text('{"mine": 1}')
    (folder / ".autotune_configs.json.x.json").write_text("{")
    assert list(export_cache(folder, tmp_path / "b.json").files) == ["autotune_configs.json"]


@pytest.mark.parametrize("case", ["a pipe", "too large"])
def test_what_cannot_be_read_among_the_files_is_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.setattr(cache_file, "MAX_BYTES", 1000)
    NO_FILES[case](folder / "rank-0-of-1.json")
    with pytest.raises(BundleError, match=r"rank-0-of-1\.json: cannot be read"):
        export_cache(folder, tmp_path / "b.json")
    assert not (tmp_path / "b.json").exists()


def test_a_folder_that_cannot_be_listed_ends_the_export(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a cache would pass for the whole."""
    (folder / "managed").mkdir()
    scandir = os.scandir

    def refused(path: Any) -> Any:
        if str(path).endswith("managed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(BundleError, match=r"Errno 13.*managed") as caught:
        export_cache(folder, tmp_path / "b.json")
    assert caught.value.reason == "UNREADABLE"


def test_a_path_that_may_not_be_looked_at_is_told_without_a_crash(
    folder: Path, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stat = Path.stat

    def refused(path: Path, **kwargs: Any) -> Any:
        if folder in (path, *path.parents):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **kwargs)

    entry = folder / "managed" / "v2" / "a" / "entries" / "e.json"
    entry.parent.mkdir(parents=True)
    entry.write_text('{"key": "k", "runner": "R", "tactic": 1}')
    export_cache(folder, bundle)
    monkeypatch.setattr(Path, "stat", refused)
    code, body = run(capsys, "export", str(tmp_path / "c.json"), "--from", str(folder))
    assert (code, body["error"]["reason"]) == (2, "UNREADABLE")
    code, body = run(capsys, "import", str(bundle), "--to", str(folder.parents[2]), "--unchecked")
    assert (code, body["error"]["reason"]) == (3, "UNWRITABLE")


def test_a_pipe_is_written_to_and_not_replaced(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        export_cache(folder, tmp_path / "pipe")
        assert parse_bundle(os.read(reader, 60_000).decode(), path="pipe").entries == 1
    finally:
        os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


def test_a_link_as_the_target_stays_one(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    export_cache(folder, tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert load_bundle(tmp_path / "real.json").entries == 1


def test_a_link_to_itself_as_the_target_is_replaced(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    export_cache(folder, tmp_path / "loop.json")
    assert load_bundle(tmp_path / "loop.json").entries == 1


def test_an_export_never_replaces_what_it_carries(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (folder / "autotune_configs.json").read_bytes()
    code, body = run(capsys, "export", str(folder / "autotune_configs.json"), "--from", str(folder))
    assert (code, body["error"]["reason"]) == (2, "BAD_PATH")
    assert (folder / "autotune_configs.json").read_bytes() == before


@pytest.mark.parametrize(
    ("environment", "said"),
    [({"VLLM_CACHE_ROOT": "~you"}, "another user's home"), ({"HOME": ""}, "none of VLLM_FLASHINFER")],
)
def test_why_there_is_no_cache_root_is_said(
    bundle: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    said: str,
) -> None:
    for name in ("VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR", "VLLM_CACHE_ROOT", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for words in (("export", str(bundle)), ("import", str(bundle), "--unchecked")):
        assert main(["cache", *words]) == 2
        told = capsys.readouterr()
        assert said in told.out + told.err
        assert "there is no cache root here" in told.err


def test_a_truncated_cache_is_not_carried(folder: Path, tmp_path: Path) -> None:
    (folder / "rank-0-of-1.json").write_text(text_of({"k": ["R", 1]})[:40])
    with pytest.raises(BundleError, match=r"rank-0-of-1\.json: not JSON"):
        export_cache(folder, tmp_path / "b.json")


def test_a_truncated_bundle_is_refused(bundle: Path) -> None:
    bundle.write_bytes(bundle.read_bytes()[:-20])
    with pytest.raises(BundleError, match="not JSON"):
        load_bundle(bundle)


def test_an_import_keeps_what_this_machine_has_tuned_since(folder: Path, bundle: Path) -> None:
    file = folder / "autotune_configs.json"
    file.write_text(text_of({"k": ["R", 7], "own": ["R", 9]}))
    import_cache(bundle, folder.parents[2], unchecked=True)
    assert json.loads(file.read_text()) == json.loads(text_of({"k": ["R", 7], "own": ["R", 9]}))


def test_an_import_replaces_a_cache_that_is_broken(folder: Path, bundle: Path) -> None:
    (folder / "autotune_configs.json").write_text("{")
    import_cache(bundle, folder.parents[2], unchecked=True)
    assert json.loads((folder / "autotune_configs.json").read_text())["k"] == ["R", 1]


def test_a_link_in_the_files_place_is_replaced_and_not_written_through(
    folder: Path, bundle: Path, tmp_path: Path
) -> None:
    (folder / "autotune_configs.json").unlink()
    (folder / "autotune_configs.json").symlink_to(tmp_path / "elsewhere")
    import_cache(bundle, folder.parents[2], unchecked=True)
    assert not (tmp_path / "elsewhere").exists()
    assert not (folder / "autotune_configs.json").is_symlink()


def test_a_foreign_file_in_the_way_is_left_as_it_is_and_said(
    folder: Path, bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = text_of({"k": ["R", 7]}, gpu="NVIDIA B200")
    (folder / "autotune_configs.json").write_text(foreign)
    code, body = run(capsys, "import", str(bundle), "--to", str(folder.parents[2]), "--unchecked")
    assert (code, body["status"], body["placed"]) == (4, "refused", [])
    assert body["kept"][0]["path"] == str(folder / "autotune_configs.json")
    assert "gpu" in body["findings"][0]["detail"]
    assert (folder / "autotune_configs.json").read_text() == foreign


def test_what_was_judged_is_what_goes_in_though_the_file_changes_meanwhile(
    folder: Path, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def swapped(_: Any) -> tuple[()]:
        (folder / "autotune_configs.json").write_text(text_of({"k": ["R", 666]}))
        export_cache(folder, bundle)
        return ()

    monkeypatch.setattr(command, "foreign_fields", swapped)
    assert run(capsys, "import", str(bundle), "--to", str(tmp_path / "other"))[0] == 0
    placed = tmp_path / "other" / "0.6.13" / "sm90" / HASH / "autotune_configs.json"
    assert json.loads(placed.read_text())["k"] == ["R", 1]


def write_set(folder: Path, tactic: int) -> None:
    """The files of two ranks that were written together."""
    from tooling.warmup.cache_text import digest_entries

    entries: dict[str, Any] = {"k": ["R", tactic]}
    mark = set_digest([digest_entries(entries)] * 2)
    for rank in (0, 1):
        (folder / f"rank-{rank}-of-2.json").write_text(text_of(entries, warmup_set=mark))


def tactics(folder: Path) -> list[int]:
    return [json.loads((folder / f"rank-{rank}-of-2.json").read_text())["k"][1] for rank in (0, 1)]


def test_a_set_of_ranks_goes_in_whole_or_not_at_all(folder: Path, tmp_path: Path) -> None:
    write_set(folder, 1)
    export_cache(folder, tmp_path / "b.json")
    write_set(folder, 2)
    placed = import_cache(tmp_path / "b.json", folder.parents[2], unchecked=True)
    assert tactics(folder) == [2, 2], "a whole set of this environment is there"
    assert [file.kept for file in placed if file.path.name.startswith("rank")] == ["a whole set is there already"] * 2
    (folder / "rank-1-of-2.json").unlink()
    import_cache(tmp_path / "b.json", folder.parents[2], unchecked=True)
    assert tactics(folder) == [1, 1]


def test_a_set_is_not_written_while_an_engine_holds_its_lock(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "LOCK_PATIENCE_S", 0.1)
    write_set(folder, 1)
    export_cache(folder, tmp_path / "b.json")
    other = tmp_path / "other" / "0.6.13" / "sm90" / HASH
    other.mkdir(parents=True)
    with (other / ".ranks.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(EdgeError, match="an engine is writing there"):
            import_cache(tmp_path / "b.json", tmp_path / "other", unchecked=True)
    assert not list(other.glob("rank-*.json"))


REAL = {"leader_broadcast": ("0.6.13", 2), "synchronized": ("0.6.16", 2), "managed": (newest_release(), 1)}


@pytest.mark.online
@pytest.mark.parametrize("kind", REAL)
def test_another_machine_takes_a_carried_cache_instead_of_tuning(releases: Releases, tmp_path: Path, kind: str) -> None:
    version, ranks = REAL[kind]
    release = releases(version)
    tuned = release.run(tmp_path / "here", ranks=ranks).record
    assert (tuned["strategy"], tuned["warm"]) == (kind, False)
    export_cache(Path(tuned["file"]), tmp_path / "b.json")
    import_cache(tmp_path / "b.json", tmp_path / "there", unchecked=True)
    record = release.run(tmp_path / "there", ranks=ranks).record
    assert (record["warm"], record["tuned"]) == (True, 0)
    assert [rank["digest"] for rank in record["ranks"]] == [rank["digest"] for rank in tuned["ranks"]]


@pytest.mark.online
@pytest.mark.parametrize("kind", REAL)
def test_an_engine_that_starts_while_a_cache_is_imported_starts_and_the_next_one_is_warm(
    releases: Releases, tmp_path: Path, kind: str
) -> None:
    version, ranks = REAL[kind]
    release = releases(version)
    export_cache(Path(release.run(tmp_path / "here", ranks=ranks).record["file"]), tmp_path / "b.json")
    done = Event()

    def import_again_and_again() -> None:
        while not done.wait(0.01):
            import_cache(tmp_path / "b.json", tmp_path / "there", unchecked=True)

    importer = Thread(target=import_again_and_again)
    importer.start()
    try:
        record = release.run(tmp_path / "there", ranks=ranks, shift=1).record
    finally:
        done.set()
        importer.join()
    assert all(rank["passes"]["check 2"]["host_gemm"]["hits"] == 2 for rank in record["ranks"])
    again = release.run(tmp_path / "there", ranks=ranks).record
    assert (again["warm"], again["tuned"]) == (True, 0)
