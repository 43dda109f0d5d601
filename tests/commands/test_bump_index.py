"""`bump` as a user runs it against real indexes on loopback: where packages are, companions, what is written with the pins."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.edges.local_index import LocalIndex, serve_index
from tests.trees import RELEASE_TOML, make_tree, snapshot, versions_json, write
from tooling import cli

COMPANIONS = "apache-tvm-ffi==0.1.9  # why\nnvidia-cutlass-dsl[cu13]==4.5.2 ; python_version >= '3.10'\n"
NEEDS_074 = ["apache-tvm-ffi>=0.1.11,<0.2", "nvidia-cutlass-dsl>=4.8.0", "numpy", "cupy; extra == 'cupy'"]


@pytest.fixture
def public(local_index: LocalIndex, bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> LocalIndex:
    """The main index: python everywhere, cubin up to 0.6.13, companions."""
    monkeypatch.setenv("PIP_INDEX_URL", local_index.simple)
    for version in ("0.6.12", "0.6.13", "0.6.14"):
        local_index.add_wheel("flashinfer-python", version, requires=["apache-tvm-ffi>=0.1.6", "numpy"])
    local_index.add_wheel("flashinfer-python", "0.7.4", requires=NEEDS_074)
    for version in ("0.6.12", "0.6.13"):
        local_index.add_wheel("flashinfer-cubin", version)
    for version in ("0.1.9", "0.1.11", "0.1.12", "0.1.13rc1", "0.2.0"):
        local_index.add_wheel("apache-tvm-ffi", version)
    for version in ("4.5.2", "4.8.0", "4.8.1"):
        local_index.add_wheel("nvidia-cutlass-dsl", version)
    return local_index


@pytest.fixture
def own() -> Iterator[LocalIndex]:
    """The library's own index: cubin from 0.6.14 on."""
    with serve_index() as index:
        for version in ("0.6.14", "0.7.4"):
            index.add_wheel("flashinfer-cubin", version)
        yield index


@pytest.fixture
def tree(tmp_path: Path, public: LocalIndex, own: LocalIndex) -> Path:
    root = make_tree(
        tmp_path / "tree", "0.6.13", release_toml=RELEASE_TOML + f'\n[flashinfer]\nindex = "{own.simple}"  # a mirror\n'
    )
    text = (root / "requirements/cuda.txt").read_text().replace("some-other-lib==0.6.13\n", COMPANIONS)
    write(root, "requirements/cuda.txt", text)
    return root


@pytest.fixture
def bump(tree: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, object]]:
    def run(*words: str, command: str = "bump") -> dict[str, object]:
        capsys.readouterr()
        code = cli.main([command, *words, "--root", str(tree), "--json"])
        report = json.loads(capsys.readouterr().out)
        assert report["exit"] == code
        return report

    return run


def findings(report: dict[str, object], severity: str = "error") -> list[tuple[str, str | None, int | None]]:
    return [
        (item["check"], item["path"], item["line"])
        for item in report["findings"]  # type: ignore[attr-defined]
        if item["severity"] == severity
    ]


def requirements(tree: Path) -> list[str]:
    return (tree / "requirements/cuda.txt").read_text().splitlines()


def kept(tree: Path) -> dict[str, object]:
    return tomllib.loads((tree / "release.toml").read_text())["flashinfer"]


def test_a_release_with_everything_moves_and_its_digests_are_written(tree: Path, bump: Callable[..., dict], public: LocalIndex) -> None:  # fmt: skip
    report = bump("0.6.12")
    assert (report["status"], report["exit"]) == ("moved", 0)
    names = ["flashinfer_cubin-0.6.12-py3-none-any.whl", "flashinfer_python-0.6.12-py3-none-any.whl"]
    assert sorted(kept(tree)["sha256"]) == sorted(report["sha256"]) == names
    record = json.loads((tree / "evidence/bump.json").read_text())
    assert record["measurements"]["sha256"] == kept(tree)["sha256"]
    assert record["measurements"]["packages"]["flashinfer-python"]["published"] == "2026-01-02T03:04:05+00:00"
    text = (tree / "release.toml").read_text()
    assert text.startswith(RELEASE_TOML)
    assert "# a mirror" in text


def test_settings_that_name_the_library_are_edited_once_and_are_no_file_of_pins(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (tree / "release.toml").read_text()
    write(tree, "release.toml", f'{text}\n[[channels.release.known_faults]]\nid = "flashinfer#3868"\n')
    assert cli.main(["bump", "0.6.12", "--root", str(tree)]) == 0
    said = capsys.readouterr().out
    assert said.count("+++ b/release.toml") == 1
    assert "moved 5 pins in 4 files to 0.6.12" in said
    assert len(kept(tree)["sha256"]) == 2


def test_digests_of_another_release_are_never_left_standing(tree: Path, bump: Callable[..., dict]) -> None:
    bump("0.6.12")
    report = bump("0.6.13", "--offline")
    assert report["exit"] == 0
    assert "sha256" not in kept(tree)


def test_a_release_whose_cubin_left_is_refused_with_both_ways_on(tree: Path, bump: Callable[..., dict], own: LocalIndex) -> None:  # fmt: skip
    before = snapshot(tree)
    report = bump("0.6.14")
    assert (report["status"], report["exit"]) == ("refused", 4)
    (problem,) = report["findings"]
    assert (problem["check"], problem["reason"]) == ("not-published", "ELSEWHERE")
    assert (problem["path"], problem["line"]) == ("requirements/cuda.txt", 3)
    assert "the newest there is 0.6.13" in problem["detail"]
    assert f"--extra-index-url {own.simple}" in problem["hint"]
    assert "--drop-cubin" in problem["hint"]
    assert snapshot(tree) == before
    assert own.log == []


@pytest.mark.parametrize(
    "words", [["bump", "0.6.14"], ["bump", "0.6.12", "--offline"], ["bump", "--latest"], ["outdated"]]
)
def test_drop_cubin_without_a_release_toml_is_refused(tree: Path, words: list[str], bump: Callable[..., dict]) -> None:
    (tree / "release.toml").unlink()
    before = snapshot(tree)
    report = bump(*words[1:], "--drop-cubin", command=words[0])
    assert (report["exit"], findings(report)) == (4, [("choice", "requirements/cuda.txt", 3)])
    assert "`init`" in report["findings"][0]["hint"]
    assert snapshot(tree) == before


def test_drop_cubin_takes_the_pin_out_and_release_toml_remembers(tree: Path, bump: Callable[..., dict]) -> None:
    report = bump("0.6.14", "--drop-cubin")
    assert (report["status"], report["dropped"]) == ("moved", ["flashinfer-cubin"])
    assert requirements(tree) == ["# kernels", "flashinfer-python==0.6.14", *COMPANIONS.splitlines()]
    assert kept(tree)["dropped"] == [
        {"package": "flashinfer-cubin", "path": "requirements/cuda.txt", "line": "flashinfer-cubin=={version}",
         "after": "flashinfer-python", "at": "0.6.14"}
    ]  # fmt: skip
    gone = [site for site in report["sites"] if site["package"] == "flashinfer-cubin"]
    assert [(site["before"], site["after"]) for site in gone] == [("0.6.13", None)]
    assert list(kept(tree)["sha256"]) == ["flashinfer_python-0.6.14-py3-none-any.whl"]
    assert bump(command="check")["exit"] == 0


def test_going_back_restores_nothing_silently_and_restore_cubin_does(tree: Path, bump: Callable[..., dict]) -> None:
    before = snapshot(tree)
    bump("0.6.14", "--drop-cubin")
    report = bump("0.6.13")
    assert report["exit"] == 0
    assert findings(report, "note") == [("may-go-back", None, None)]
    assert "flashinfer-cubin==0.6.13" not in requirements(tree)
    report = bump("0.6.13", "--restore-cubin")
    assert (report["status"], report["restored"]) == ("moved", ["flashinfer-cubin"])
    assert "dropped" not in kept(tree)
    assert snapshot(tree)["requirements/cuda.txt"] == before["requirements/cuda.txt"]


def test_restoring_what_is_not_to_be_had_is_refused(tree: Path, bump: Callable[..., dict]) -> None:
    bump("0.6.14", "--drop-cubin")
    before = snapshot(tree)
    assert findings(bump("0.6.14", "--restore-cubin")) == [("not-published", "requirements/cuda.txt", None)]
    assert snapshot(tree) == before


def test_restoring_where_nothing_was_dropped_is_refused(bump: Callable[..., dict]) -> None:
    assert findings(bump("0.6.12", "--restore-cubin")) == [("choice", "release.toml", None)]


def test_add_index_adds_the_own_index_exactly_once(tree: Path, bump: Callable[..., dict], own: LocalIndex) -> None:
    report = bump("0.6.14", "--add-index")
    assert (report["status"], report["index_added"]) == ("moved", ["requirements/cuda.txt"])
    line = f"--extra-index-url {own.simple}"
    assert requirements(tree)[:4] == ["# kernels", line, "flashinfer-python==0.6.14", "flashinfer-cubin==0.6.14"]
    assert report["packages"]["flashinfer-cubin"]["served_by"]["pip"] == [own.simple]
    assert sorted(kept(tree)["sha256"]) == [
        "flashinfer_cubin-0.6.14-py3-none-any.whl", "flashinfer_python-0.6.14-py3-none-any.whl",
    ]  # fmt: skip
    again = bump("0.6.14", "--add-index")
    assert (again["status"], again["exit"]) == ("already", 0)
    later = bump("0.7.4", "--add-index", "--with-companions")
    assert (later["status"], later["index_added"]) == ("moved", [])
    assert requirements(tree).count(line) == 1


def test_a_file_that_names_the_index_needs_no_flag(tree: Path, bump: Callable[..., dict], own: LocalIndex) -> None:
    text = (tree / "requirements/cuda.txt").read_text()
    write(tree, "requirements/cuda.txt", f"--extra-index-url={own.simple.rstrip('/')}\n{text}")
    assert bump("0.6.14")["status"] == "moved"


def test_a_package_that_neither_index_has_is_named_with_both(tree: Path, bump: Callable[..., dict], own: LocalIndex, public: LocalIndex) -> None:  # fmt: skip
    own.files.clear()
    (problem,) = bump("0.6.14", "--add-index")["findings"]
    assert problem["reason"] == "NOT_PUBLISHED"
    assert own.simple in problem["detail"]
    assert public.simple in problem["detail"]


def test_contradicted_companions_refuse_with_the_lowest_that_would_do(tree: Path, bump: Callable[..., dict]) -> None:
    report = bump("0.7.4", "--drop-cubin")
    assert (report["status"], report["exit"]) == ("refused", 4)
    assert findings(report) == [("companion", "requirements/cuda.txt", 4), ("companion", "requirements/cuda.txt", 5)]
    found = {item["package"]: (item["pinned"], item["needed"], item["lowest"]) for item in report["companions"]}
    assert found == {
        "apache-tvm-ffi": ("==0.1.9", "<0.2,>=0.1.11", "0.1.11"),
        "nvidia-cutlass-dsl": ("==4.5.2", ">=4.8.0", "4.8.0"),
    }
    assert "--with-companions" in report["findings"][0]["hint"]


def test_with_companions_moves_them_in_the_same_transaction(tree: Path, bump: Callable[..., dict]) -> None:
    report = bump("0.7.4", "--drop-cubin", "--with-companions")
    assert (report["status"], report["exit"]) == ("moved", 0)
    assert requirements(tree)[2:] == [
        "apache-tvm-ffi==0.1.11  # why", "nvidia-cutlass-dsl[cu13]==4.8.0 ; python_version >= '3.10'",
    ]  # fmt: skip
    assert [(item["package"], item["was"], item["now"], item["at"]) for item in kept(tree)["moved"]] == [
        ("apache-tvm-ffi", "==0.1.9", "==0.1.11", "0.7.4"), ("nvidia-cutlass-dsl", "==4.5.2", "==4.8.0", "0.7.4"),
    ]  # fmt: skip
    back = bump("0.6.13", "--restore-cubin")
    assert findings(back, "note") == [("may-go-back", "requirements/cuda.txt", None)] * 2
    assert "apache-tvm-ffi==0.1.11  # why" in requirements(tree)
    assert "write apache-tvm-ffi==0.1.9 again" in back["findings"][0]["hint"]


def test_a_companion_that_was_put_back_by_hand_is_forgotten(tree: Path, bump: Callable[..., dict]) -> None:
    bump("0.7.4", "--drop-cubin", "--with-companions")
    text = (tree / "requirements/cuda.txt").read_text()
    write(tree, "requirements/cuda.txt", text.replace("ffi==0.1.11", "ffi==0.1.9").replace("==4.8.0", "==4.5.2"))
    bump("0.6.13")
    assert "moved" not in kept(tree)


def test_keep_companions_leaves_them_and_warns(tree: Path, bump: Callable[..., dict]) -> None:
    report = bump("0.7.4", "--drop-cubin", "--keep-companions")
    assert (report["status"], report["exit"]) == ("moved", 0)
    assert len(findings(report, "warning")) == 2
    assert requirements(tree)[2:] == COMPANIONS.splitlines()


def test_a_leftover_cap_is_a_contradiction_and_an_open_range_is_none(tree: Path, bump: Callable[..., dict]) -> None:
    text = (
        "flashinfer-python==0.6.13\nflashinfer-cubin==0.6.13\napache-tvm-ffi>=0.1.6,<0.1.10\nnvidia-cutlass-dsl>=4.5\n"
    )
    write(tree, "requirements/cuda.txt", text)
    report = bump("0.7.4", "--drop-cubin")
    assert findings(report) == [("companion", "requirements/cuda.txt", 3)]
    assert bump("0.7.4", "--drop-cubin", "--with-companions")["exit"] == 0
    assert requirements(tree)[1] == "apache-tvm-ffi<0.2,>=0.1.11"


def test_a_companion_with_a_variable_of_its_own_is_left_to_people(tree: Path, bump: Callable[..., dict]) -> None:
    write(tree, "versions.json", versions_json(FLASHINFER_VERSION="0.6.13", CUDA_VERSION="13.0.2", APACHE_TVM_FFI_VERSION="0.1.9"))  # fmt: skip
    report = bump("0.7.4", "--drop-cubin", "--with-companions")
    assert report["status"] == "refused"
    assert "versions.json (APACHE_TVM_FFI_VERSION)" in report["findings"][0]["hint"]


def test_a_yanked_release_is_refused_with_its_reason(bump: Callable[..., dict], public: LocalIndex) -> None:
    for file in public.files:
        if "-0.6.12-" in file.filename:
            file.yanked = "broken on sm90"
    report = bump("0.6.12")
    assert {item["reason"] for item in report["findings"]} == {"YANKED"}
    assert "broken on sm90" in report["findings"][0]["detail"]


def test_a_release_younger_than_the_cooldown_waits(tree: Path, bump: Callable[..., dict], public: LocalIndex) -> None:
    text = (tree / "release.toml").read_text()
    write(tree, "release.toml", f"{text}\n[releases]\ncooldown_days = 7\n")
    fresh = (datetime.now(UTC) - timedelta(days=2)).isoformat()
    for file in public.files:
        file.uploaded = fresh if file.filename.startswith("flashinfer_python-0.6.12") else file.uploaded
    assert findings(bump("0.6.12")) == [("cooldown", "requirements/cuda.txt", 2)]
    report = bump("0.6.12", "--allow-fresh")
    assert report["status"] == "moved"
    assert findings(report, "warning") == [("cooldown", "requirements/cuda.txt", 2)]


def test_a_platform_without_a_wheel_is_named(tree: Path, bump: Callable[..., dict], public: LocalIndex) -> None:
    text = (tree / "release.toml").read_text()
    write(tree, "release.toml", f'{text}\n[releases]\nplatforms = ["linux/amd64", "linux/arm64"]\n')
    public.files = [file for file in public.files if not file.filename.startswith("flashinfer_cubin-0.6.12")]
    public.add_wheel("flashinfer-cubin", "0.6.12", tag="py3-none-manylinux_2_28_x86_64")
    report = bump("0.6.12")
    assert findings(report) == [("no-wheel", "requirements/cuda.txt", 3)]
    assert "linux/arm64" in report["findings"][0]["detail"]


def test_a_pre_release_with_an_sdist_only_is_refused_even_when_allowed(bump: Callable[..., dict], public: LocalIndex) -> None:  # fmt: skip
    public.add_sdist("flashinfer-python", "0.6.19rc1")
    public.add_wheel("flashinfer-cubin", "0.6.19rc1")
    assert ("prerelease", None, None) in findings(bump("0.6.19rc1", "--allow-unknown"))
    report = bump("0.6.19rc1", "--allow-prerelease", "--allow-unknown")
    assert findings(report) == [("no-wheel", "requirements/cuda.txt", 2)]


def test_different_bytes_under_one_name_refuse(bump: Callable[..., dict], own: LocalIndex, tree: Path) -> None:
    own.add_wheel("flashinfer-python", "0.6.12", members={"evil.py": b"1"})
    text = (tree / "requirements/cuda.txt").read_text()
    write(tree, "requirements/cuda.txt", f"--extra-index-url {own.simple}\n{text}")
    assert findings(bump("0.6.12")) == [("hash-conflict", "requirements/cuda.txt", 3)]


def test_a_stated_index_is_held_to(tree: Path, bump: Callable[..., dict], own: LocalIndex, public: LocalIndex) -> None:
    text = (tree / "release.toml").read_text()
    write(tree, "release.toml", f'{text}\n[releases.indexes]\nflashinfer-cubin = "{own.simple}"\n')
    report = bump("0.6.12")
    assert findings(report) == [("other-index", "requirements/cuda.txt", 3)]
    assert public.simple in report["findings"][0]["detail"]
    assert bump("0.6.14", "--add-index")["status"] == "moved"


def test_an_index_of_this_machine_alone_is_warned_about(bump: Callable[..., dict], own: LocalIndex, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", own.simple)
    report = bump("0.6.14")
    assert report["status"] == "moved"
    assert findings(report, "warning") == [("index-not-in-file", "requirements/cuda.txt", 3)]


def test_where_uv_would_stop_is_said_aloud(tree: Path, own: LocalIndex, capsys: pytest.CaptureFixture[str]) -> None:
    text = (tree / "requirements/cuda.txt").read_text()
    write(tree, "requirements/cuda.txt", f"--extra-index-url {own.simple}\n{text}")
    assert cli.main(["bump", "0.6.12", "--root", str(tree)]) == 0
    out = capsys.readouterr().out
    assert f"uv stops at {own.simple}, which has up to 0.7.4" in out


def test_credentials_are_in_no_output_record_or_cache(tree: Path, own: LocalIndex, bare_machine: Path, capfd: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    own.credentials = ("me", "hunter2")
    text = (tree / "requirements/cuda.txt").read_text()
    write(tree, "requirements/cuda.txt", f"--extra-index-url {own.with_credentials('me', 'hunter2')}\n{text}")
    assert cli.main(["bump", "0.6.14", "--root", str(tree)]) == 0
    assert cli.main(["bump", "0.7.4", "--root", str(tree), "--json"]) == 4
    own.credentials = ("me", "other")
    assert cli.main(["bump", "0.7.4", "--root", str(tree)]) == 3
    captured = capfd.readouterr()
    assert "hunter2" not in captured.out + captured.err
    assert "://****@" in captured.out
    for path in [*(tree / "evidence").rglob("*"), *(bare_machine / ".cache").rglob("*")]:
        assert not path.is_file() or b"hunter2" not in path.read_bytes()


def test_an_index_that_does_not_answer_is_exit_3_with_the_tree_untouched(tree: Path, bump: Callable[..., dict], public: LocalIndex) -> None:  # fmt: skip
    before = snapshot(tree)
    public.failures = [503]
    report = bump("0.6.12")
    assert (report["exit"], report["error"]["reason"]) == (3, "SERVER_ERROR")
    assert snapshot(tree) == before


def test_metadata_with_another_digest_than_promised_is_exit_3(bump: Callable[..., dict], public: LocalIndex) -> None:
    for file in public.files:
        if file.filename.startswith("flashinfer_python-0.6.12"):
            file.claims = {"core-metadata": {"sha256": "0" * 64}}
    assert bump("0.6.12")["error"]["reason"] == "WRONG_HASH"


@pytest.mark.parametrize("ranges", ["honest", "wrong-span", "ignored"])
def test_requirements_come_out_of_the_wheel_where_the_index_has_no_copy(
    ranges: str, bump: Callable[..., dict], public: LocalIndex
) -> None:
    public.ranges = ranges  # type: ignore[assignment]
    for file in public.files:
        file.metadata = None
    report = bump("0.7.4", "--drop-cubin")
    reasons = {"honest": None, "wrong-span": "LYING_RANGES", "ignored": "NO_RANGES"}
    if reasons[ranges] is None:
        assert len(report["companions"]) == 2
    else:
        assert (report["exit"], report["error"]["reason"]) == (3, reasons[ranges])


def test_a_part_of_the_pins_moves_without_the_others_digests(tree: Path, bump: Callable[..., dict]) -> None:
    report = bump("0.6.12", "--only", "requirements/cuda.txt")
    assert (report["status"], report["exit"]) == ("moved", 0)
    assert requirements(tree)[1] == "flashinfer-python==0.6.12"
    assert "sha256" not in kept(tree)


def test_a_cubin_pin_outside_of_requirements_is_not_dropped(tree: Path, bump: Callable[..., dict]) -> None:
    text = (tree / "docker/Dockerfile").read_text()
    write(tree, "docker/Dockerfile", f"{text}RUN pip install flashinfer-cubin==0.6.13\n")
    settings = (tree / "release.toml").read_text()
    write(
        tree,
        "release.toml",
        settings.replace('path = "docker/Dockerfile"\n', 'path = "docker/Dockerfile"\ncount = 2\n'),
    )
    before = snapshot(tree)
    report = bump("0.6.14", "--drop-cubin")
    assert findings(report) == [("choice", "docker/Dockerfile", 5)]
    assert snapshot(tree) == before


class TestJitCache:
    RUN = "RUN pip install flashinfer-jit-cache==${FLASHINFER_VERSION} --index-url https://x.invalid/whl/cu130\n"

    @pytest.fixture
    def tree(self, tree: Path) -> Path:
        text = (tree / "docker/Dockerfile").read_text()
        write(tree, "docker/Dockerfile", text + self.RUN)
        return tree

    def test_the_build_for_this_cuda_is_looked_up_in_its_folder(self, bump: Callable[..., dict], own: LocalIndex) -> None:  # fmt: skip
        link = '<html><a href="/f/flashinfer_jit_cache-0.6.12%2Bcu130-py3-none-any.whl">x</a></html>'
        own.pages["/simple/cu130/flashinfer-jit-cache/"] = (200, "text/html", link.encode())
        assert bump("0.6.12")["status"] == "moved"

    def test_a_missing_build_lists_those_that_exist(self, bump: Callable[..., dict], own: LocalIndex) -> None:
        own.pages["/simple/"] = (
            200,
            "text/html",
            b'<html><a href="cu128/">a</a><a href="cu129/">b</a><a href="x/">c</a></html>',
        )
        link = '<html><a href="/f/flashinfer_jit_cache-0.6.12%2Bcu129-py3-none-any.whl">x</a></html>'
        own.pages["/simple/cu129/flashinfer-jit-cache/"] = (200, "text/html", link.encode())
        report = bump("0.6.12")
        assert findings(report) == [("no-cuda-build", "docker/Dockerfile", 5)]
        assert "(cu130); there is: cu129." in report["findings"][0]["detail"]
        skipped = bump("0.6.12", "--skip-jit-cache")
        assert (skipped["status"], findings(skipped, "warning")) == ("moved", [("no-cuda-build", "docker/Dockerfile", 5)])  # fmt: skip

    def test_a_comment_installs_nothing(self, tree: Path, bump: Callable[..., dict], own: LocalIndex) -> None:
        text = (tree / "docker/Dockerfile").read_text().replace("RUN pip install flashinfer-jit", "# pip install flashinfer-jit")  # fmt: skip
        write(tree, "docker/Dockerfile", text)
        assert bump("0.6.12")["status"] == "moved"
        assert own.log == []


class TestLatest:
    def test_the_newest_that_can_be_installed_is_taken_and_the_others_explained(self, tree: Path, bump: Callable[..., dict]) -> None:  # fmt: skip
        bump("0.6.12")
        report = bump("--latest")
        assert (report["status"], report["to"], report["newest"]) == ("moved", "0.6.13", "0.7.4")
        assert [item["release"] for item in report["passed_over"]] == ["0.7.4", "0.6.14"]
        assert (bump("--latest")["status"]) == "already"

    def test_choices_widen_the_reach(self, bump: Callable[..., dict]) -> None:
        assert bump("--latest", "--drop-cubin", "--dry-run")["to"] == "0.6.14"
        report = bump("--latest", "--add-index", "--with-companions")
        assert (report["status"], report["to"]) == ("moved", "0.7.4")

    def test_blocked_yanked_fresh_and_pre_releases_are_passed_over(self, tree: Path, bump: Callable[..., dict], public: LocalIndex) -> None:  # fmt: skip
        text = (tree / "release.toml").read_text()
        write(tree, "release.toml", f'{text}\n[releases]\ncooldown_days = 3\n\n[[blocked]]\nrelease = "0.6.17"\nreason = "wrong answers"\n')  # fmt: skip
        fresh = datetime.now(UTC).isoformat()
        for version, facts in {"0.6.15": {}, "0.6.16": {"yanked": True}, "0.6.17": {}, "0.6.18": {"uploaded": fresh}, "0.7.5rc1": {}}.items():  # fmt: skip
            for package in ("flashinfer-python", "flashinfer-cubin"):
                public.add_wheel(package, version, **facts)  # type: ignore[arg-type]
        report = bump("--latest")
        assert report["to"] == "0.6.15"
        assert [item["release"] for item in report["passed_over"]] == ["0.7.4", "0.6.18"]

    def test_it_never_goes_back(self, bump: Callable[..., dict], public: LocalIndex) -> None:
        public.files = [file for file in public.files if "-0.6.13-" not in file.filename]
        report = bump("--latest")
        assert report["exit"] == 2
        assert report["error"]["reason"] == "NO_RELEASE"

    @pytest.mark.parametrize("words", [["--latest", "0.6.13"], [], ["--latest", "--offline"],
                                       ["0.6.12", "--offline", "--with-companions"], ["0.6.12", "--drop-cubin", "--add-index"]])  # fmt: skip
    def test_arguments_that_exclude_each_other_are_refused(self, words: list[str], bump: Callable[..., dict]) -> None:
        assert bump(*words)["exit"] == 2


class TestOutdated:
    def test_the_newest_in_reach_is_current(self, tree: Path, bump: Callable[..., dict]) -> None:
        before = snapshot(tree)
        report = bump(command="outdated")
        assert (report["status"], report["exit"], report["reachable"]) == ("current", 0, "0.6.13")
        assert report["newest"] == "0.7.4"
        assert snapshot(tree) == before

    def test_a_newer_one_in_reach_is_exit_4(self, bump: Callable[..., dict]) -> None:
        report = bump("--drop-cubin", command="outdated")
        assert (report["status"], report["exit"], report["reachable"]) == ("outdated", 4, "0.6.14")
        assert findings(report) == [("outdated", "versions.json", None)]

    def test_the_hint_is_the_bump_that_was_asked_about(self, bump: Callable[..., dict]) -> None:
        report = bump("--drop-cubin", "--with-companions", command="outdated")
        assert report["findings"][0]["hint"] == "bump 0.7.4 --drop-cubin --with-companions"

    @pytest.mark.parametrize(
        "text", ["", "flashinfer-python==0.6.12\nflashinfer-cubin==0.6.13\n"], ids=["none", "drift"]
    )
    def test_pins_that_do_not_agree_are_exit_4_with_what_check_says(self, tree: Path, text: str, bump: Callable[..., dict]) -> None:  # fmt: skip
        write(tree, "requirements/cuda.txt", text)
        report, checked = bump(command="outdated"), bump(command="check")
        assert (report["status"], report["exit"]) == ("refused", 4)
        assert [item for item in checked["findings"] if item in report["findings"]] == report["findings"]

    def test_a_tree_without_pins_is_exit_4(self, tree: Path, bump: Callable[..., dict]) -> None:
        for path in (
            "release.toml",
            "versions.json",
            "requirements/cuda.txt",
            "docker/Dockerfile",
            "docker/Dockerfile.nightly_torch",
        ):
            (tree / path).unlink()
        report = bump(command="outdated")
        assert (report["exit"], findings(report)) == (4, [("no-pins", None, None)])

    def test_a_pin_that_was_withdrawn_is_exit_4(self, bump: Callable[..., dict], public: LocalIndex) -> None:
        for file in public.files:
            if file.filename.startswith("flashinfer_python-0.6.13"):
                file.yanked = True
        public.add_wheel("flashinfer-cubin", "0.6.14")
        report = bump(command="outdated")
        assert [check for check, _, _ in findings(report)] == ["yanked", "outdated"]
