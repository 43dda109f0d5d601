"""Folders of evidence: every file is a record or a value that says why not; nothing in a folder stops or hangs a gate."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from tests.gate.samples import evidence, make_record
from tooling.edges import evidence_files
from tooling.edges.evidence_files import load_evidence, write_record
from tooling.errors import InputError
from tooling.evidence import digest, render_record, seal
from tooling.gate.values import EvidenceFile


def only(folder: Path) -> EvidenceFile:
    (file,) = load_evidence([folder])
    return file


def test_records_come_back_from_several_folders_in_the_order_of_their_paths(tmp_path: Path) -> None:
    records = evidence()
    write_record(tmp_path / "b", records["check"])
    write_record(tmp_path / "a", records["smoke sm90"])
    write_record(tmp_path / "a", records["image release"])
    files = load_evidence([tmp_path / "b", tmp_path / "a"])
    assert [Path(file.path).relative_to(tmp_path).as_posix() for file in files] == [
        "a/image-release.json", "a/smoke-sm90.json", "b/check.json",
    ]  # fmt: skip
    assert [file.record for file in files] == [records["image release"], records["smoke sm90"], records["check"]]
    assert files[2].sha256 == hashlib.sha256((tmp_path / "b/check.json").read_bytes()).hexdigest()


def test_the_same_bytes_in_two_folders_count_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_record(tmp_path / name, make_record("check"))
    assert len(load_evidence([tmp_path / "a", tmp_path / "b", tmp_path / "a"])) == 1


def test_logs_reports_and_hidden_files_are_passed_by(tmp_path: Path) -> None:
    for name in (
        "gsm8k-q.report.md",
        "image-release.log",
        "q.questions.jsonl",
        ".gitignore",
        ".check.json.7.new",
        ".x.json",
    ):
        (tmp_path / name).write_text("x")
    assert load_evidence([tmp_path]) == ()


@pytest.mark.parametrize("kind", ["nothing", "a file"])
def test_a_folder_that_is_none_is_refused(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "evidence"
    if kind == "a file":
        folder.write_text("")
    with pytest.raises(InputError, match=r"--evidence .*found no folder that can be listed") as raised:
        load_evidence([folder])
    assert raised.value.reason == "NO_EVIDENCE"


def _sealed(**changes: object) -> bytes:
    body = {**seal(make_record("check")), **changes}
    return json.dumps({**body, "digest": digest(body)}).encode()


TEXTS = {
    "empty": (b"", "UNPARSABLE"),
    "cut off": (render_record(make_record("check")).encode()[:100], "UNPARSABLE"),
    "another object": (b'{"a": 1}', "UNPARSABLE"),
    "not UTF-8": (b'{"a": "\xff"}', "UNDECODABLE"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "UNDECODABLE"),
    "far too deep": (b"[" * 200_000, "UNPARSABLE"),
    "deep inside": (
        b'{"format": 1, "digest": "x", "measurements": ' + b'{"a":' * 900 + b"1" + b"}" * 901,
        "UNPARSABLE HAND_EDITED",
    ),
    "a number of 10,000 digits": (b'{"format": ' + b"1" * 10_000 + b"}", "UNPARSABLE"),
    "a number beyond all numbers": (b'{"format": 1, "digest": "x", "measurements": {"a": 1e999}}', "UNPARSABLE"),
    "no number": (b'{"format": 1, "digest": "x", "measurements": {"a": NaN}}', "UNPARSABLE"),
    "a key that stands twice": (
        render_record(make_record("check")).replace('"dirty": false,', '"dirty": true, "dirty": false,').encode(),
        "UNPARSABLE",
    ),
    "a format that is true": (b'{"format": true, "digest": "x"}', "UNPARSABLE"),
    "a time beyond all calendars": (_sealed(started="9999-12-31T23:59:59-14:00"), "UNPARSABLE"),
    "a time before all calendars": (_sealed(ended="0001-01-01T00:00:00+14:00"), "UNPARSABLE"),
    "a time without its zone": (_sealed(ended="2026-06-01T12:00:00"), "UNPARSABLE"),
    "binary": (bytes(range(256)), "UNDECODABLE"),
}


@pytest.mark.parametrize(("raw", "reason"), TEXTS.values(), ids=TEXTS)
def test_what_is_no_record_is_a_value_with_a_reason(tmp_path: Path, raw: bytes, reason: str) -> None:
    (tmp_path / "check.json").write_bytes(raw)
    file = only(tmp_path)
    assert file.record is None
    assert file.reason in reason.split()
    assert file.problem


def test_nesting_at_every_depth_around_the_interpreters_limit_is_survived(tmp_path: Path) -> None:
    for depth in range(200, 1400, 100):
        deep = '{"a":' * depth + "1" + "}" * depth
        (tmp_path / "check.json").write_text(f'{{"format": 1, "digest": "x", "measurements": {deep}}}')
        assert only(tmp_path).record is None


def test_a_record_changed_by_hand_is_told_from_one_that_is_broken(tmp_path: Path) -> None:
    body = {**seal(make_record("check")), "status": "fail"}
    (tmp_path / "check.json").write_text(json.dumps(body))
    assert only(tmp_path).reason == "HAND_EDITED"
    body = {**body, "status": "passed"}
    (tmp_path / "check.json").write_text(json.dumps({**body, "digest": digest(body)}))
    assert only(tmp_path).reason == "UNPARSABLE"


def test_a_record_of_100_mb_is_refused_by_its_size_without_reading_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> bytes:
        raise AssertionError("it was read")

    monkeypatch.setattr(evidence_files, "load_bytes", never)
    with open(tmp_path / "smoke-sm90.json", "wb") as file:
        file.truncate(100_000_000)
    found = only(tmp_path)
    assert (found.reason, found.sha256) == ("TOO_BIG", "")
    assert "100,000,000 bytes" in found.problem


def test_a_file_that_grows_while_it_is_read_is_too_big(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_files, "MAX_SIZE_BYTES", 10)
    monkeypatch.setattr(evidence_files, "_check_size", lambda *_: None)
    (tmp_path / "check.json").write_text(" " * 11)
    assert only(tmp_path).reason == "TOO_BIG"


def test_pipes_folders_and_links_that_lead_out_or_nowhere_are_values(tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    write_record(tmp_path / "elsewhere", make_record("check"))
    folder.mkdir()
    os.mkfifo(folder / "a.json")
    (folder / "b.json").mkdir()
    (folder / "c.json").symlink_to(tmp_path / "elsewhere" / "check.json")
    (folder / "d.json").symlink_to(folder / "nothing")
    (folder / "e.json").symlink_to(folder / "e.json")
    (folder / "f.json").symlink_to("/dev/zero")
    found = {Path(file.path).name: file.reason for file in load_evidence([folder])}
    assert found == {
        "a.json": "NOT_A_FILE", "b.json": "NOT_A_FILE", "c.json": "OUTSIDE", "d.json": "MISSING", "e.json": "LINK_LOOP",
        "f.json": "OUTSIDE",
    }  # fmt: skip


def test_a_link_to_a_folder_and_links_inside_of_it_are_followed(tmp_path: Path) -> None:
    write_record(tmp_path / "real", make_record("check"))
    (tmp_path / "real" / "again.json").symlink_to("check.json")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert only(tmp_path / "link").record == make_record("check")


def test_names_in_any_script_and_of_no_encoding_are_shown(tmp_path: Path) -> None:
    (tmp_path / "größe \U0001f600.json").write_text("{")
    (tmp_path / os.fsdecode(b"x\xff.json")).write_text("[")
    paths = [file.path for file in load_evidence([tmp_path])]
    assert any("größe \U0001f600.json" in path for path in paths)
    assert any("\\udcff" in path for path in paths)
    for path in paths:
        path.encode()


def test_artifacts_that_ci_unpacked_into_folders_of_their_own_are_read(tmp_path: Path) -> None:
    records = evidence()
    write_record(tmp_path, records["check"])
    write_record(tmp_path / "evidence-image-release", records["image release"])
    write_record(tmp_path / "evidence-sm90", records["smoke sm90"])
    for name in ("package.json", "notes.json", "image-release.log", ".check.json", "report-check.json"):
        (tmp_path / "evidence-sm90" / name).write_text("{")
    (tmp_path / "evidence-sm90" / "deeper").mkdir()
    write_record(tmp_path / "evidence-sm90/deeper", records["gsm8k qwen"])
    write_record(tmp_path / ".bump", records["gsm8k qwen"])
    assert [Path(file.path).relative_to(tmp_path).as_posix() for file in load_evidence([tmp_path])] == [
        "check.json", "evidence-image-release/image-release.json", "evidence-sm90/smoke-sm90.json",
    ]  # fmt: skip


def test_what_is_wrong_one_folder_below_is_told_of_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_record(tmp_path / "elsewhere", make_record("check"))
    folder = tmp_path / "evidence"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "smoke-sm90.json").write_text("{")
    (folder / "b").symlink_to(tmp_path / "elsewhere")
    (folder / "c").mkdir()
    real = os.listdir

    def listdir(path: str | Path) -> list[str]:
        if Path(path).name == "c":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "listdir", listdir)
    found = {Path(file.path).relative_to(folder).as_posix(): file.reason for file in load_evidence([folder])}
    assert found == {"a/smoke-sm90.json": "UNPARSABLE", "b/check.json": "OUTSIDE", "c": "NOT_A_FILE"}


def test_a_folder_that_is_named_for_itself_is_not_read_as_a_part_of_another(tmp_path: Path) -> None:
    write_record(tmp_path, make_record("check"))
    write_record(tmp_path / "before", make_record("image", "release"))
    assert [file.path for file in load_evidence([tmp_path], leave_out=[tmp_path / "before"])] == [
        str(tmp_path / "check.json")
    ]
    assert len(load_evidence([tmp_path, tmp_path / "before"])) == 2


def test_a_folder_of_thousands_of_folders_is_no_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_files, "MAX_FOLDERS", 3)
    for number in range(4):
        (tmp_path / str(number)).mkdir()
    with pytest.raises(InputError, match="found 4 folders in it, expected 3 at most") as raised:
        load_evidence([tmp_path])
    assert raised.value.reason == "TOO_MANY_FOLDERS"


def test_the_order_in_which_folders_are_given_changes_nothing(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("b", "a", "c")]
    for folder in folders:
        write_record(folder, make_record("check"))
    assert load_evidence(folders) == load_evidence(folders[::-1])
    assert only(tmp_path).path == str(tmp_path / "a/check.json")
