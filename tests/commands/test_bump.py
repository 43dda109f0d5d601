"""`bump` as a user runs it, without an index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.trees import FILES, make_tree, snapshot, versions_json, write
from tooling import cli


def bump(root: Path, *words: str, offline: bool = True) -> int:
    return cli.main(["bump", *words, "--root", str(root), *(["--offline"] if offline else [])])


def bump_json(capsys: pytest.CaptureFixture[str], root: Path, *words: str) -> dict[str, object]:
    bump(root, *words, "--json")
    return json.loads(capsys.readouterr().out)


def test_all_four_files_move_together_and_nothing_else_does(tmp_path: Path) -> None:
    root = make_tree(tmp_path, "0.6.12")
    before = snapshot(root)
    assert bump(root, "0.6.13") == 0
    after = snapshot(root)
    assert {path for path in after if after[path] != before.get(path)} == set(FILES)
    assert after["requirements/cuda.txt"] == (
        b"# kernels\nflashinfer-python==0.6.13\nflashinfer-cubin==0.6.13\nsome-other-lib==0.6.12\n"
    )
    assert b'ARG FLASHINFER_VERSION="0.6.13"' in after["docker/Dockerfile.nightly_torch"]


def test_a_dry_run_shows_the_diff_that_the_real_run_applies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_tree(tmp_path, "0.6.12")
    before = snapshot(root)
    assert bump(root, "0.6.13", "--dry-run") == 0
    dry = capsys.readouterr().out
    assert snapshot(root) == before
    assert bump(root, "0.6.13") == 0
    real = capsys.readouterr().out
    diff = [line for line in dry.splitlines() if line.startswith(("+", "-", "@"))]
    assert diff == [line for line in real.splitlines() if line.startswith(("+", "-", "@"))]
    assert "+flashinfer-python==0.6.13" in diff


def test_a_bump_to_where_the_tree_is_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_tree(tmp_path, "0.6.13")
    before = snapshot(root)
    assert bump_json(capsys, root, "0.6.13")["status"] == "already"
    assert snapshot(root) == before


def test_a_downgrade_is_normal_and_labelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_tree(tmp_path, "0.6.16.post3")
    assert bump(root, "0.6.13") == 0
    assert "(downgrade)" in capsys.readouterr().out


def test_offline_says_not_checked_and_never_ok(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_tree(tmp_path)
    report = bump_json(capsys, root, "0.6.99", "--allow-unknown")
    assert report["unchecked"] == [
        "whether 0.6.99 is published and not yanked",
        "whether its companions fit, and the sha256 of its wheels",
    ]
    assert report["status"] == "moved"


@pytest.mark.parametrize("steps", [["0.6.11rc1", "0.6.11", "0.6.11.post1", "0.6.11.post2"]])
def test_many_steps_end_where_one_bump_ends(tmp_path: Path, steps: list[str]) -> None:
    (many := tmp_path / "many").mkdir(), (one := tmp_path / "one").mkdir()
    make_tree(many, "0.6.8.post1"), make_tree(one, "0.6.8.post1")
    for step in steps:
        assert bump(many, step, "--allow-prerelease", "--allow-unknown") == 0
        versions = {line for data in snapshot(many).values() for line in data.decode().splitlines() if "rc1" in line}
        assert bool(versions) == ("rc1" in step)
    assert bump(one, steps[-1]) == 0
    assert snapshot(many) == snapshot(one)


@pytest.mark.parametrize(
    ("held", "to"),
    [("0.6.16.post3", "0.6.18"), ("0.6.18rc1", "0.6.18"), ("0.6.18.dev20260819", "0.6.18"), ("0.6.1", "0.6.18"),
     ("0.6.18", "0.6.1"), ("0.6.16post3", "0.6.18"), ("0.6.13", "0.6.13.post1"), ("0.6.14rc1", "0.6.14")],
)  # fmt: skip
def test_versions_are_never_glued_or_cut(tmp_path: Path, held: str, to: str) -> None:
    root = make_tree(tmp_path, held)
    assert bump(root, to, "--allow-unknown") == 0
    text = snapshot(root)["requirements/cuda.txt"].decode()
    assert text.splitlines()[1:3] == [f"flashinfer-python=={to}", f"flashinfer-cubin=={to}"]
    assert text.splitlines()[3] == f"some-other-lib=={held}"


def test_a_comment_that_names_the_target_does_not_count_as_moved(tmp_path: Path) -> None:
    root = make_tree(tmp_path, "0.6.16.post3")
    write(
        root,
        "docker/Dockerfile",
        "# tested with flashinfer 0.6.18\nFROM scratch\nARG FLASHINFER_VERSION=0.6.16.post3\n",
    )
    assert bump(root, "0.6.18") == 0
    assert snapshot(root)["docker/Dockerfile"].decode().splitlines() == [
        "# tested with flashinfer 0.6.18", "FROM scratch", "ARG FLASHINFER_VERSION=0.6.18",
    ]  # fmt: skip


BAD_TARGETS = {
    "not PEP 440": ("0.6.x", 2),
    "empty": ("", 2),
    "a local version": ("0.6.13+cu130", 2),
    "a pre-release without the flag": ("0.6.19rc1", 4),
    "a dev release without the flag": ("0.6.19.dev1", 4),
}


@pytest.mark.parametrize(("target", "code"), BAD_TARGETS.values(), ids=BAD_TARGETS)
def test_a_bad_target_is_refused_with_the_tree_untouched(tmp_path: Path, target: str, code: int) -> None:
    root = make_tree(tmp_path)
    before = snapshot(root)
    assert bump(root, target) == code
    assert snapshot(root) == before


def test_a_blocked_release_is_refused_with_reason_and_link_unless_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_tree(tmp_path)
    with (root / "release.toml").open("a") as file:
        file.write('[[blocked]]\nrelease = "0.6.13"\nreason = "wrong tactics"\nlink = "https://example.invalid/1"\n')
    before = snapshot(root)
    assert bump(root, "0.6.13") == 4
    assert "0.6.13 is blocked: wrong tactics (https://example.invalid/1)." in capsys.readouterr().out
    assert snapshot(root) == before
    assert bump(root, "0.6.13", "--allow-blocked") == 0


BAD_FILES: dict[str, tuple[str, bytes | None, int]] = {
    "a managed file is missing": ("docker/Dockerfile.nightly_torch", None, 2),
    "a managed file has no pin": ("docker/Dockerfile", b"FROM scratch\n", 4),
    "a managed file is binary": ("docker/Dockerfile", b"ARG FLASHINFER_VERSION=0.6.12\n\0", 2),
    "a managed file is not UTF-8": ("requirements/cuda.txt", b"# caf\xe9\nflashinfer-python==0.6.12\n", 2),
    "a managed file is over 5 MB": ("requirements/cuda.txt", b"#" * 5_000_001, 2),
    "the ARG has spaces": ("docker/Dockerfile", b"FROM scratch\nARG  FLASHINFER_VERSION = 0.6.12\n", 4),
    "the versions file is not JSON": ("versions.json", b"{", 2),
    "the versions file is a list": ("versions.json", b"[]", 2),
    "the versions file has a top-level key": ("versions.json", b'{"FLASHINFER_VERSION": "0.6.12"}', 2),
    "the versions file lacks the variable": ("versions.json", versions_json(CUDA_VERSION="13.0.2").encode(), 2),
    "the default is a number": ("versions.json", b'{"variable": {"FLASHINFER_VERSION": {"default": 6}}}', 2),
    "the default is no version": ("versions.json", versions_json(FLASHINFER_VERSION="latest").encode(), 2),
    "a key stands twice": ("versions.json", b'{"variable": {}, "variable": {}}', 2),
    "release.toml has an unknown key": ("release.toml", b"[pins]\nrequried = []\n", 2),
    "release.toml is not TOML": ("release.toml", b"[pins\n", 2),
    "the pins disagree": ("requirements/cuda.txt", b"flashinfer-python==0.6.11\nflashinfer-cubin==0.6.12\n", 4),
    "a pin is a range": ("requirements/cuda.txt", b"flashinfer-python>=0.6.2\nflashinfer-cubin==0.6.12\n", 4),
    "one of two pins carries hashes": (
        "requirements/cuda.txt", b"flashinfer-python==0.6.12\nflashinfer-cubin==0.6.12 --hash=sha256:00\n", 4),
    "a fifth file holds a pin": ("other/requirements.txt", b"flashinfer-python==0.6.12\n", 4),
}  # fmt: skip


@pytest.mark.parametrize(("path", "content", "code"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_refused_and_named_with_the_tree_untouched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str, content: bytes | None, code: int
) -> None:
    root = make_tree(tmp_path)
    if content is None:
        (root / path).unlink()
    else:
        write(root, path, content)
    before = snapshot(root)
    assert bump(root, "0.6.13") == code
    captured = capsys.readouterr()
    assert path in captured.out + captured.err
    assert snapshot(root) == before


def test_a_directory_in_a_files_place_is_refused(tmp_path: Path) -> None:
    root = make_tree(tmp_path)
    (root / "docker/Dockerfile").unlink()
    (root / "docker/Dockerfile").mkdir()
    assert bump(root, "0.6.13") == 2


def test_a_link_out_of_the_root_is_refused(tmp_path: Path) -> None:
    (root := tmp_path / "tree").mkdir()
    make_tree(root)
    outside = write(tmp_path, "Dockerfile", "ARG FLASHINFER_VERSION=0.6.12\n")
    (root / "docker/Dockerfile").unlink()
    (root / "docker/Dockerfile").symlink_to(outside)
    assert bump(root, "0.6.13") == 2
    assert outside.read_text() == "ARG FLASHINFER_VERSION=0.6.12\n"


def test_a_link_inside_the_root_is_kept_and_what_it_names_is_bumped(tmp_path: Path) -> None:
    root = make_tree(tmp_path)
    (root / "config").mkdir()
    (root / "versions.json").rename(root / "config/pins.json")
    (root / "versions.json").symlink_to("config/pins.json")
    assert bump(root, "0.6.13") == 0
    assert (root / "versions.json").is_symlink()
    assert '"0.6.13"' in (root / "config/pins.json").read_text()


@pytest.mark.parametrize(
    "text",
    [b"flashinfer-python==0.6.12\r\nflashinfer-cubin==0.6.12\r\n",
     b"\xef\xbb\xbfflashinfer-python==0.6.12\nflashinfer-cubin==0.6.12\n",
     b"flashinfer-python==0.6.12\nflashinfer-cubin==0.6.12"],
    ids=["CRLF", "BOM", "no final newline"],
)  # fmt: skip
def test_what_the_edit_does_not_own_is_kept(tmp_path: Path, text: bytes) -> None:
    root = make_tree(tmp_path)
    path = write(root, "requirements/cuda.txt", text)
    path.chmod(0o640)
    assert bump(root, "0.6.13") == 0
    assert path.read_bytes() == text.replace(b"0.6.12", b"0.6.13")
    assert path.stat().st_mode & 0o777 == 0o640


def test_drift_is_reconciled_only_when_asked(tmp_path: Path) -> None:
    root = make_tree(tmp_path, "0.6.12")
    write(root, "requirements/cuda.txt", "flashinfer-python==0.6.11\nflashinfer-cubin==0.6.10+cu130\n")
    assert bump(root, "0.6.13") == 4
    assert bump(root, "0.6.13", "--from-any") == 0
    assert (root / "requirements/cuda.txt").read_text() == "flashinfer-python==0.6.13\nflashinfer-cubin==0.6.13+cu130\n"


def test_json_is_one_object_with_every_site_before_and_after(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_tree(tmp_path)
    assert bump(root, "0.6.13", "--json") == 0
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert (report["command"], report["status"], report["exit"], report["error"]) == ("bump", "moved", 0, None)
    assert (report["from"], report["to"], report["healed"]) == ("0.6.12", "0.6.13", None)
    assert {(site["path"], site["before"], site["after"]) for site in report["sites"]} >= {
        ("docker/Dockerfile.nightly_torch", '"0.6.12"', '"0.6.13"'), ("versions.json", '"0.6.12"', '"0.6.13"'),
    }  # fmt: skip
    assert "moved 5 pins in 4 files" in captured.err


def test_a_bad_argument_is_one_json_object_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bump", "--json", "--root", str(tmp_path)]) == 2
    report = json.loads(capsys.readouterr().out)
    assert (report["exit"], report["error"]["kind"], report["error"]["reason"]) == (2, "input", "BAD_ARGUMENTS")


def test_a_bump_records_what_it_did(tmp_path: Path) -> None:
    root = make_tree(tmp_path, git=True)
    assert bump(root, "0.6.13") == 0
    record = json.loads((root / "evidence/bump.json").read_text())
    assert (record["stage"], record["status"], record["flashinfer_version"]) == ("bump", "pass", "0.6.13")
    assert (record["dirty"], len(record["commit"])) == (True, 40)
    assert (root / "evidence/.gitignore").read_text() == "*\n"


def test_a_tree_without_git_is_served(tmp_path: Path) -> None:
    root = make_tree(tmp_path)
    assert bump(root, "0.6.13") == 0
    record = json.loads((root / "evidence/bump.json").read_text())
    assert (record["commit"], record["dirty"]) == (None, None)


@pytest.mark.parametrize(("asked", "released"), [("0.6.12.0", "0.6.12"), ("0.6", "0.6.0"), ("v0.6.12", "0.6.12")])
def test_a_release_is_spelled_as_it_was_published(tmp_path: Path, asked: str, released: str) -> None:
    root = make_tree(tmp_path, "0.6.13")
    assert bump(root, asked) == 0
    assert f"ARG FLASHINFER_VERSION={released}\n".encode() in snapshot(root)["docker/Dockerfile"]


def test_a_part_of_a_configured_tree_is_no_root(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_tree(tmp_path)
    before = snapshot(root)
    assert bump(root / "docker", "0.6.13") == 2
    assert f"--root {root}" in capsys.readouterr().err
    assert snapshot(root) == before


def test_an_empty_root_is_a_bad_argument(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(make_tree(tmp_path))
    assert cli.main(["bump", "0.6.13", "--offline", "--root", ""]) == 2


def test_an_error_has_the_fields_of_a_bump_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_tree(tmp_path)
    (root / "docker/Dockerfile").unlink()
    report = bump_json(capsys, root, "0.6.13")
    assert (report["status"], report["exit"], report["error"]["reason"]) == ("refused", 2, "MISSING")
    assert {"from", "to", "healed", "sites", "unchecked"} <= set(report)


def test_a_bump_that_could_not_be_recorded_moves_nothing(tmp_path: Path) -> None:
    root = make_tree(tmp_path)
    before = snapshot(root)
    write(tmp_path, "evidence", "a file in the folder's place")
    assert bump(root, "0.6.13") == 3
    assert snapshot(root) == before


def test_a_blocked_release_that_the_tree_holds_already_is_no_refusal(tmp_path: Path) -> None:
    root = make_tree(tmp_path, "0.6.13")
    with (root / "release.toml").open("a") as file:
        file.write('[[blocked]]\nrelease = "0.6.13"\nreason = "wrong tactics"\n')
    assert bump(root, "0.6.13") == 0
