"""`probe` as a user runs it: against an index on loopback, a local wheel, a folder; with a table of its own."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.capabilities.releases import whole_release
from tests.edges.local_index import LocalIndex
from tests.edges.test_archives import make_zip
from tooling import cli
from tooling.capabilities.facts import FACTS
from tooling.edges import clock
from tooling.edges.capability_table import load_table

EMPTY = '{\n "format": 1,\n "rows": [],\n "calendar": {\n  "as_of": "1970-01-01",\n  "releases": {}\n }\n}\n'


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.json"
    path.write_text(EMPTY)
    return path


@pytest.fixture
def index(local_index: LocalIndex, bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> LocalIndex:
    monkeypatch.setenv("PIP_INDEX_URL", local_index.simple)
    return local_index


def add(index: LocalIndex, version: str, members: dict[str, str] | None = None) -> None:
    texts = whole_release(version) if members is None else members
    inside = {name: text.encode() for name, text in texts.items() if not name.endswith("METADATA")}
    index.add_wheel("flashinfer-python", version, members=inside, requires=["torch"])


def probe(*words: str) -> int:
    return cli.main(["probe", *words])


def probe_json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    probe(*words, "--json")
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_every_fact_comes_with_evidence(index: LocalIndex, table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(index, "9.1.0")
    index.add_wheel("flashinfer-cubin", "9.1.0")
    answer = probe_json(capsys, "9.1.0", "--table", str(table))
    assert (answer["exit"], answer["status"]) == (0, "read")
    (release,) = answer["releases"]
    assert list(release["facts"]) == list(FACTS)
    assert all(fact["value"] is not None and fact["evidence"] for fact in release["facts"].values())
    assert release["facts"]["cubin_on_index"]["value"] is True
    assert release["facts"]["operations"]["value"] == ["mm"]
    assert release["bytes_read"]["tuner"] > 0
    assert [finding["reason"] for finding in answer["findings"]] == ["NOT_LISTED"]


def test_without_operations_only_the_tuner_is_told(
    index: LocalIndex, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(index, "9.1.0")
    answer = probe_json(capsys, "9.1.0", "--without-operations", "--table", str(table))
    facts = answer["releases"][0]["facts"]
    assert answer["exit"] == 0
    assert facts["operations"] == {"value": None, "evidence": [], "reason": "operations were not read"}
    assert facts["autotuner"]["value"] == "module"


def test_adding_writes_a_row_that_is_read_back_and_changes_nothing_again(
    index: LocalIndex, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the same day, whose date the table holds."""
    monkeypatch.setattr(clock, "now", lambda: datetime(2026, 6, 1, tzinfo=UTC))
    add(index, "9.1.0")
    add(index, "9.1.0.post1")
    assert probe("9.1.0", "--add", "--table", str(table)) == 0
    assert probe("9.1.0.post1", "--add", "--table", str(table)) == 0
    assert [row.label for row in load_table(table).rows] == ["9.1.0 … 9.1.0.post1"]
    before = table.read_bytes()
    assert probe("9.1.0", "--add", "--table", str(table)) == 0
    assert table.read_bytes() == before


def test_a_second_probe_reads_nothing(index: LocalIndex, table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(index, "9.1.0")
    probe("9.1.0", "--table", str(table))
    asked = index.asked("/files/")
    capsys.readouterr()
    answer = probe_json(capsys, "9.1.0", "--table", str(table))
    assert answer["releases"][0]["from_cache"] is True
    assert index.asked("/files/") == asked


def test_all_reads_finals_and_posts_and_warns_of_those_without_a_row(
    index: LocalIndex, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for version in ("9.1.0", "9.1.0.post1", "9.2.0rc1", "9.2.0.dev3"):
        add(index, version)
    answer = probe_json(capsys, "all", "--table", str(table))
    assert [release["release"] for release in answer["releases"]] == ["9.1.0", "9.1.0.post1"]
    assert answer["exit"] == 0
    assert [(finding["severity"], finding["hint"]) for finding in answer["findings"]] == [
        ("warning", "nox -s probe -- 9.1.0 --add"),
        ("warning", "nox -s probe -- 9.1.0.post1 --add"),
    ]


def test_all_goes_on_past_a_release_that_cannot_be_read(
    index: LocalIndex, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(index, "9.1.0")
    add(index, "9.1.1")
    index.files[0].data = b"no zip"
    answer = probe_json(capsys, "all", "--table", str(table), "--add")
    assert answer["exit"] == 4
    assert [finding["check"] for finding in answer["findings"] if finding["severity"] == "error"] == ["unread"]
    assert table.read_text() == EMPTY


def test_a_tuner_never_seen_is_exit_four_and_leaves_the_table_untouched(
    index: LocalIndex, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    members = whole_release("9.1.0")
    members["flashinfer/autotuner.py"] = "class Tuner:\n    pass\n"
    add(index, "9.1.0", members)
    answer = probe_json(capsys, "9.1.0", "--add", "--table", str(table))
    assert answer["exit"] == 4
    assert answer["findings"][0]["reason"] == "NOT_UNDERSTOOD"
    fact = answer["releases"][0]["facts"]["disk_key_has_runner_extras"]
    assert fact["value"] is None
    assert "AutoTuner" in fact["reason"]
    assert table.read_text() == EMPTY


def test_a_row_that_differs_from_the_source_is_exit_four(
    index: LocalIndex, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(index, "9.1.0")
    probe("9.1.0", "--add", "--table", str(table))
    table.write_text(table.read_text().replace('"value": "module"', '"value": "package"'))
    capsys.readouterr()
    answer = probe_json(capsys, "9.1.0", "--table", str(table))
    assert answer["exit"] == 4
    (finding,) = answer["findings"]
    assert finding["detail"].endswith("autotuner is not what its source shows: found module, listed package")
    assert probe("9.1.0", "--add", "--table", str(table)) == 0
    assert '"value": "module"' in table.read_text()


@pytest.mark.parametrize("where", ["wheel", "folder of wheels", "unpacked"])
def test_a_local_release_needs_no_index(
    tmp_path: Path, table: Path, where: str, capsys: pytest.CaptureFixture[str], bare_machine: Path
) -> None:
    folder = tmp_path / "dist"
    folder.mkdir()
    members = {name: text.encode() for name, text in whole_release("9.1.0").items()}
    path = folder / "flashinfer_python-9.1.0-py3-none-any.whl"
    if where == "unpacked":
        for name, data in members.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    else:
        make_zip(path, members)
    source = path if where == "wheel" else folder
    answer = probe_json(capsys, "9.1.0", "--from", str(source), "--table", str(table))
    assert answer["exit"] == 0
    assert answer["releases"][0]["facts"]["autotuner"]["value"] == "module"
    assert answer["releases"][0]["facts"]["cubin_on_index"]["value"] is None


@pytest.mark.parametrize(
    ("words", "exit_code", "part"),
    [
        (["latest"], 2, "no version"),
        (["9.9.9"], 4, "no index has flashinfer-python 9.9.9"),
        (["9.1.0rc1", "--add"], 2, "gets no row"),
        (["9.1.0", "--add", "--without-operations"], 2, "--add needs all facts"),
        (["all", "--behaviour"], 2, "neither --from nor --behaviour"),
        (["9.1.0", "--from", "nowhere.whl"], 2, "No such file"),
        (["9.1.0", "--table", "nowhere.json"], 2, "cannot be read"),
    ],
)
def test_bad_arguments_are_said(  # three fixtures and three columns
    index: LocalIndex, table: Path, capsys: pytest.CaptureFixture[str], words: list[str], exit_code: int, part: str
) -> None:
    add(index, "9.1.0")
    extra = [] if "--table" in words else ["--table", str(table)]
    assert probe(*words, *extra) == exit_code
    assert part in capsys.readouterr().err
    assert table.read_text() == EMPTY


def test_a_wheel_that_says_it_is_another_release_is_refused(
    tmp_path: Path, table: Path, capsys: pytest.CaptureFixture[str], bare_machine: Path
) -> None:
    path = make_zip(tmp_path / "a.whl", {name: text.encode() for name, text in whole_release("9.2.0").items()})
    assert probe("9.1.0", "--from", str(path), "--table", str(table)) == 2
    assert "9.2.0, not 9.1.0" in capsys.readouterr().err


def test_a_folder_with_a_link_in_a_circle_is_an_input_error(
    tmp_path: Path, table: Path, capsys: pytest.CaptureFixture[str], bare_machine: Path
) -> None:
    (tmp_path / "f" / "flashinfer").mkdir(parents=True)
    (tmp_path / "f" / "flashinfer" / "__init__.py").symlink_to("__init__.py")
    answer = probe_json(capsys, "9.1.0", "--from", str(tmp_path / "f"), "--table", str(table))
    assert (answer["exit"], answer["error"]["reason"]) == (2, "BAD_ARCHIVE")


DEEP = {
    "memory": "x = " + "-" * 100_000 + "1",
    "recursion": "x = " + "a" + ".b" * 100_000,
    "deep but parsed": "x = " + "a" + ".b" * 900,
    "sums": "x = " + "+".join("1" * 20_000),
}


@pytest.mark.parametrize("where", ["autotuner", "gemm", "jit/env"])
@pytest.mark.parametrize("case", DEEP)
def test_a_module_too_deep_to_read_leaves_facts_untold_with_a_reason(
    tmp_path: Path, table: Path, capsys: pytest.CaptureFixture[str], bare_machine: Path, case: str, where: str
) -> None:
    members = whole_release("9.1.0")
    members[f"flashinfer/{where}.py"] += "\n" + DEEP[case] + "\n"
    path = make_zip(tmp_path / "a.whl", {name: text.encode() for name, text in members.items()})
    answer = probe_json(capsys, "9.1.0", "--from", str(path), "--table", str(table))
    facts = answer["releases"][0]["facts"]
    untold = [fact for fact in facts.values() if fact["value"] is None]
    assert all(fact["reason"] for fact in untold)
    assert answer["exit"] in {0, 4}
    assert untold or case == "deep but parsed", (case, where)
    if where == "jit/env" and case != "deep but parsed":
        assert "cannot be parsed" in facts["mismatch_policy"]["reason"]


def test_source_too_deep_to_be_followed_leaves_all_facts_untold(
    tmp_path: Path, table: Path, capsys: pytest.CaptureFixture[str], bare_machine: Path
) -> None:
    members = whole_release("9.1.0")
    members["flashinfer/jit/env.py"] += f"import flashinfer_jit_cache\nget_jit_cache_dir(a{'.b' * 600})\n"
    path = make_zip(tmp_path / "a.whl", {name: text.encode() for name, text in members.items()})
    answer = probe_json(capsys, "9.1.0", "--from", str(path), "--add", "--table", str(table))
    assert answer["exit"] == 4
    facts = answer["releases"][0]["facts"]
    assert all("nested too deep" in fact["reason"] for name, fact in facts.items() if name != "cubin_on_index")
    assert table.read_text() == EMPTY


def add_as(index: LocalIndex, name: str, says: str) -> None:
    """A wheel that the index lists as one release and whose METADATA names another."""
    add(index, says)
    file = index.files[-1]
    file.filename = file.filename.replace(says, name)
    file.metadata = None


@pytest.mark.parametrize("version", ["9.1.0", "all"])
def test_a_wheel_on_the_index_that_says_it_is_another_release_gets_no_row(
    index: LocalIndex, table: Path, capsys: pytest.CaptureFixture[str], version: str
) -> None:
    add_as(index, "9.1.0", "8.0.0")
    assert probe(version, "--add", "--table", str(table)) == (4 if version == "all" else 2)
    assert "8.0.0, not 9.1.0" in "".join(capsys.readouterr())
    assert table.read_text() == EMPTY


@pytest.mark.parametrize(("asked", "listed"), [("9.1.0+cu130", "9.1.0"), ("9.1.0", "9.1.0+cu130")])
def test_a_local_label_makes_no_other_release(index: LocalIndex, table: Path, asked: str, listed: str) -> None:
    add(index, listed)
    assert probe(asked, "--table", str(table)) == 0


def test_what_was_kept_of_a_wheel_as_one_release_is_not_taken_for_another(
    index: LocalIndex, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_as(index, "9.1.0", "8.0.0")
    path = tmp_path / "a.whl"
    path.write_bytes(index.files[0].data)
    assert probe("8.0.0", "--from", str(path), "--table", str(table)) == 0
    assert probe("9.1.0", "--add", "--table", str(table)) == 2
    assert table.read_text() == EMPTY


def test_metadata_without_a_real_version_is_refused_with_the_reason(
    tmp_path: Path, table: Path, capsys: pytest.CaptureFixture[str], bare_machine: Path
) -> None:
    members = whole_release("9.1.0")
    members["flashinfer_python-9.1.0.dist-info/METADATA"] = "Metadata-Version: 2.1\nVersion: not.a.version\n\n"
    path = make_zip(tmp_path / "a.whl", {name: text.encode() for name, text in members.items()})
    answer = probe_json(capsys, "9.1.0", "--from", str(path), "--table", str(table))
    assert (answer["exit"], answer["error"]["reason"]) == (2, "BAD_METADATA")
