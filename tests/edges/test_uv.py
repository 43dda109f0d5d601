"""uv itself against indexes on loopback: pip's settings reach it, and its answers come back as values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.edges.local_index import LocalIndex, serve_index
from tests.trees import RELEASE_TOML, make_tree, write
from tooling import cli
from tooling.edges.pip_config import load_index_settings
from tooling.edges.uv import needs_best_match, resolve, uv_environment
from tooling.errors import EdgeError
from tooling.releases.resolution import Resolution
from tooling.releases.targets import Target

AMD64, ARM64 = Target(platform="linux/amd64"), Target(platform="linux/arm64")


@pytest.fixture
def machine(bare_machine: Path, local_index: LocalIndex, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pip on the local index; uv with a cache of its own."""
    monkeypatch.setenv("PIP_INDEX_URL", local_index.simple)
    monkeypatch.setenv("UV_CACHE_DIR", str(bare_machine / "uv-cache"))
    return bare_machine


@pytest.fixture
def second() -> Iterator[LocalIndex]:
    with serve_index() as index:
        yield index


def ask(folder: Path, text: str, target: Target = AMD64) -> Resolution:
    write(folder, "requirements/cuda.txt", text)
    return resolve(folder, "requirements/cuda.txt", target, load_index_settings())


def test_what_resolves_comes_with_versions_and_indexes(machine: Path, local_index: LocalIndex, tmp_path: Path) -> None:
    local_index.add_wheel("flashinfer-python", "0.6.13", requires=["apache-tvm-ffi>=0.1.6"])
    local_index.add_wheel("apache-tvm-ffi", "0.1.9")
    answer = ask(tmp_path, "flashinfer-python==0.6.13\n")
    assert answer.conflict is None
    assert {name: found[0] for name, found in answer.packages.items()} == {"flashinfer-python": "0.6.13", "apache-tvm-ffi": "0.1.9"}  # fmt: skip
    assert answer.packages["flashinfer-python"][1] == local_index.simple


def test_a_conflict_has_its_innermost_reason_first(machine: Path, local_index: LocalIndex, tmp_path: Path) -> None:
    local_index.add_wheel("flashinfer-python", "0.7.4", requires=["middle"])
    local_index.add_wheel("middle", "1.0", requires=["apache-tvm-ffi>=0.1.11"])
    local_index.add_wheel("apache-tvm-ffi", "0.1.9")
    conflict = ask(tmp_path, "flashinfer-python==0.7.4\napache-tvm-ffi==0.1.9\n").conflict
    assert conflict is not None
    assert conflict.steps[0].startswith("Because ")
    assert "middle" in conflict.steps[0]
    assert "apache-tvm-ffi" in conflict.steps[0]
    assert "unsatisfiable" in conflict.steps[-1]


def test_a_need_that_only_a_beta_would_meet_names_who_needs_it(machine: Path, local_index: LocalIndex, tmp_path: Path) -> None:  # fmt: skip
    local_index.add_wheel("flashinfer-python", "0.6.13", requires=["apache-tvm-ffi>=0.1"])
    for version in ("0.1.0b15", "0.0.9"):
        local_index.add_wheel("apache-tvm-ffi", version)
    conflict = ask(tmp_path, "flashinfer-python==0.6.13\n").conflict
    assert conflict is not None
    assert "flashinfer-python" in conflict.steps[0]
    assert "apache-tvm-ffi>=0.1," in conflict.steps[0]


def test_one_machine_that_fails_leaves_the_other_as_it_is(machine: Path, local_index: LocalIndex, tmp_path: Path) -> None:  # fmt: skip
    local_index.add_wheel("flashinfer-python", "0.6.13", requires=["native"])
    local_index.add_wheel("native", "1.0", tag="cp312-cp312-manylinux_2_28_x86_64")
    assert ask(tmp_path, "flashinfer-python==0.6.13\n", AMD64).conflict is None
    conflict = ask(tmp_path, "flashinfer-python==0.6.13\n", ARM64).conflict
    assert conflict is not None
    assert "native" in conflict.steps[0]


def test_several_indexes_are_weighed_as_pip_does(machine: Path, local_index: LocalIndex, second: LocalIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    local_index.add_wheel("flashinfer-cubin", "0.6.14")
    second.add_wheel("flashinfer-cubin", "0.6.13")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", second.simple)
    assert needs_best_match(load_index_settings())
    answer = ask(tmp_path, "flashinfer-cubin==0.6.14\n")
    assert answer.packages["flashinfer-cubin"] == ("0.6.14", local_index.simple)


def test_credentials_reach_the_index_and_no_argument_or_answer(machine: Path, local_index: LocalIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    local_index.credentials = ("me", "hunter2@/")
    local_index.add_wheel("flashinfer-cubin", "0.6.14")
    monkeypatch.setenv("PIP_INDEX_URL", local_index.with_credentials("me", "hunter2%40%2F"))
    answer = ask(tmp_path, "flashinfer-cubin==0.6.14\n")
    assert answer.packages["flashinfer-cubin"] == ("0.6.14", local_index.simple)
    assert "hunter2" not in repr(ask(tmp_path, "flashinfer-cubin==9\n"))


def test_constraints_find_links_and_no_index_arrive(machine: Path, local_index: LocalIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    (folder := tmp_path / "wheels").mkdir()
    for version in ("1.0", "2.0"):
        file = local_index.add_wheel("native", version)
        (folder / file.filename).write_bytes(file.data)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", f"{folder} {tmp_path / 'missing'}")
    monkeypatch.setenv("PIP_CONSTRAINT", str(write(tmp_path, "c.txt", "native<2\n")))
    assert ask(tmp_path, "native\n").packages["native"][0] == "1.0"
    assert local_index.log == []


def test_a_missing_folder_of_a_file_index_means_no_such_project(machine: Path, local_index: LocalIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    local_index.add_wheel("native", "1.0")
    (tmp_path / "simple").mkdir()
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", (tmp_path / "simple").as_uri())
    assert ask(tmp_path, "native\n").packages["native"][0] == "1.0"


def test_an_index_that_is_not_there_is_no_conflict(machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    with serve_index() as gone:
        url = gone.simple
    monkeypatch.setenv("PIP_INDEX_URL", url)
    with pytest.raises(EdgeError) as caught:
        ask(tmp_path, "native\n")
    assert caught.value.reason == "UNREACHABLE"


def test_a_requirements_file_that_uv_cannot_read_is_no_conflict(machine: Path, tmp_path: Path) -> None:
    with pytest.raises(EdgeError, match="uv failed"):
        ask(tmp_path, "-r missing.txt\n")


def test_every_setting_has_its_variable(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "INDEX_URL": "https://me:p%40w@a.invalid/simple", "EXTRA_INDEX_URL": "https://b.invalid/s https://c.invalid/s",
        "CERT": "/ca.pem", "CLIENT_CERT": "/client.pem", "PROXY": "http://p.invalid:1", "TIMEOUT": "77",
        "TRUSTED_HOST": "b.invalid",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"PIP_{name}", value)
    assert uv_environment(load_index_settings()) == {
        "UV_DEFAULT_INDEX": "https://me:p%40w@a.invalid/simple",
        "UV_EXTRA_INDEX_URL": "https://b.invalid/s https://c.invalid/s",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_INSECURE_HOST": "b.invalid",
        "UV_HTTP_TIMEOUT": "77",
        "UV_HTTP_RETRIES": "0",
        "SSL_CERT_FILE": "/ca.pem",
        "SSL_CLIENT_CERT": "/client.pem",
        "ALL_PROXY": "http://p.invalid:1",
    }


def test_check_resolve_reports_each_machine(machine: Path, local_index: LocalIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    local_index.add_wheel("flashinfer-python", "0.6.13", requires=["native"])
    local_index.add_wheel("native", "1.0", tag="cp312-cp312-manylinux_2_28_x86_64")
    local_index.add_wheel("flashinfer-cubin", "0.6.13")
    local_index.add_wheel("some-other-lib", "0.6.13")
    platforms = '\n[releases]\nplatforms = ["linux/amd64", "linux/arm64"]\n'
    root = make_tree(tmp_path / "tree", "0.6.13", release_toml=RELEASE_TOML + platforms)
    assert cli.main(["check", "--resolve", "--root", str(root), "--json"]) == 4
    report = json.loads(capsys.readouterr().out)
    assert [(item["target"], item["resolves"]) for item in report["resolve"]] == [
        ("linux/amd64, Python 3.12", True), ("linux/arm64, Python 3.12", False),
    ]  # fmt: skip
    (finding,) = report["findings"]
    assert (finding["check"], finding["reason"], finding["path"]) == ("resolve", "RESOLUTION", "requirements/cuda.txt")
    assert finding["detail"].startswith("linux/arm64, Python 3.12: no solution. Because ")
    write(root, "release.toml", RELEASE_TOML)
    assert cli.main(["check", "--resolve", "--root", str(root)]) == 0
    assert "flashinfer-python 0.6.13 from" in capsys.readouterr().out
