"""`matrix`: what CI builds and where it runs, from release.toml and the bake file."""

from __future__ import annotations

import json
import os
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.trees import RELEASE_TOML, make_tree, write
from tooling import cli
from tooling.smoke.scenarios import SCENARIOS

SCHEMA = json.loads((files("tooling") / "data" / "schemas" / "release.schema.json").read_text())
BAKE = """
group "default" {
  targets = ["release", "nightly", "debug"]
}
target "release" {
  dockerfile = "docker/Dockerfile"
  tags       = ["localhost:5000/flashinfer:${FLASHINFER_VERSION}"]
}
target "nightly" {
  inherits = ["release"]
}
target "debug" {
  inherits = ["release"]
}
target "elsewhere" {
  inherits = ["release"]
}
"""
CHANNELS = """
[releases]
platforms = ["linux/amd64", "linux/arm64"]

[gate]
channel = "release"

[channels.pr]
stages = ["check"]

[channels.release]
stages = ["check", "image", "smoke", "gsm8k"]
informs = ["image nightly"]

[channels.release.image]
targets = ["release"]

[channels.release.smoke]
architectures = ["sm90", "sm100"]

[channels.release.gsm8k]
configs = ["configs/gsm8k/small.yaml"]
"""
RUNNERS = """
[image.runners]
"linux/arm64" = ["self-hosted", "arm"]

[smoke.runners]
sm90 = ["h200-pool"]
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("GITHUB_OUTPUT", raising=False)
    root = make_tree(tmp_path / "tree", release_toml=RELEASE_TOML + CHANNELS)
    write(root, "docker/docker-bake.hcl", BAKE)
    return root


def ask(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    code = cli.main(["--root", str(root), "matrix", *words])
    out = capsys.readouterr().out
    assert code == 0, out
    return json.loads(out)


def fail(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, str]:
    code = cli.main(["--root", str(root), "--json", "matrix", *words])
    answer = json.loads(capsys.readouterr().out)
    assert code == answer["exit"]
    return {"exit": code, **answer["error"]}


def test_images_are_the_channel_s_targets_on_every_platform(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = ask(tree, capsys, "--kind", "build")["include"]
    assert [(job["name"], job["runner"], job["required"], job["tested"]) for job in jobs] == [
        ("release-linux-amd64", ["ubuntu-24.04"], True, True),
        ("release-linux-arm64", ["ubuntu-24.04-arm"], True, True),
        ("nightly-linux-amd64", ["ubuntu-24.04"], False, False),
        ("nightly-linux-arm64", ["ubuntu-24.04-arm"], False, False),
    ]
    assert (jobs[1]["target"], jobs[1]["platform"]) == ("release", "linux/arm64")


def test_one_platform_can_be_asked_for(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = ask(tree, capsys, "--kind", "build", "--platform", "linux/arm64")["include"]
    assert [job["name"] for job in jobs] == ["release-linux-arm64", "nightly-linux-arm64"]


def test_gpus_are_the_channel_s_architectures(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = ask(tree, capsys, "--kind", "gpu")["include"]
    assert [(job["name"], job["architecture"], job["runner"]) for job in jobs] == [
        ("smoke-sm90", "sm90", ["self-hosted", "linux", "gpu", "sm90"]),
        ("smoke-sm100", "sm100", ["self-hosted", "linux", "gpu", "sm100"]),
    ]
    assert jobs[0]["scenarios"] == list(SCENARIOS)
    assert (jobs[0]["ranks"], jobs[0]["image"]) == (2, "release")


def test_scenarios_that_the_channel_leaves_out_are_left_out(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    smoke = 'architectures = ["sm90", "sm100"]\nmulti_rank = false\ndeepep = false'
    write(tree, "release.toml", RELEASE_TOML + CHANNELS.replace('architectures = ["sm90", "sm100"]', smoke))
    job = ask(tree, capsys, "--kind", "gpu")["include"][0]
    assert job["ranks"] == 1
    assert all(SCENARIOS[name].ranks == 1 for name in job["scenarios"])


def test_evaluations_run_where_the_first_architecture_does(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(tree, capsys, "--kind", "gsm8k")["include"] == [
        {
            "name": "gsm8k-small",
            "config": "configs/gsm8k/small.yaml",
            "image": "release",
            "runner": ["self-hosted", "linux", "gpu", "sm90"],
        }
    ]


def test_what_is_asked_for_is_published_under_the_bake_file_s_tag_and_what_informs_is_not(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tree, "release.toml", RELEASE_TOML + CHANNELS.replace(', "linux/arm64"]', "]"))
    jobs = ask(tree, capsys, "--kind", "publish")["include"]
    assert jobs == [{"name": "release-linux-amd64", "target": "release", "platform": "linux/amd64", "tag": "0.6.12"}]


@pytest.mark.parametrize(
    ("platforms", "tags"),
    [
        ([], ["0.6.12-amd64", "0.6.12-arm64"]),
        (["linux/amd64"], ["0.6.12-amd64"]),
        (["linux/arm64"], ["0.6.12-arm64"]),
        (["linux/arm64", "linux/arm64"], ["0.6.12-arm64"]),
    ],
    ids=["all", "one", "the other", "one twice"],
)
def test_runs_of_two_platforms_never_publish_under_one_name(
    tree: Path, capsys: pytest.CaptureFixture[str], platforms: list[str], tags: list[str]
) -> None:
    words = [word for platform in platforms for word in ("--platform", platform)]
    assert [job["tag"] for job in ask(tree, capsys, "--kind", "publish", *words)["include"]] == tags


@pytest.mark.parametrize(
    ("tags", "tag"),
    [("[]", "latest"), ('["localhost:5000/flashinfer"]', "latest"), ('["flashinfer:a", "flashinfer:b"]', "a")],
    ids=["no tag", "a port is no tag", "the first of two"],
)
def test_the_tag_is_what_stands_behind_the_name(
    tree: Path, capsys: pytest.CaptureFixture[str], tags: str, tag: str
) -> None:
    write(tree, "docker/docker-bake.hcl", BAKE.replace('["localhost:5000/flashinfer:${FLASHINFER_VERSION}"]', tags))
    (job,) = ask(tree, capsys, "--kind", "publish", "--platform", "linux/amd64")["include"]
    assert job["tag"] == f"{tag}-amd64"


def test_runners_are_release_toml_s_own_where_it_names_them(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tree, "release.toml", RELEASE_TOML + CHANNELS + RUNNERS)
    asked = ask(tree, capsys)
    runners = {job["name"]: job["runner"] for kind in asked for job in asked[kind]["include"] if "runner" in job}
    assert runners["release-linux-arm64"] == ["self-hosted", "arm"]
    assert runners["release-linux-amd64"] == ["ubuntu-24.04"]
    assert runners["smoke-sm90"] == runners["gsm8k-small"] == ["h200-pool"]


def test_a_channel_that_asks_for_no_image_needs_no_bake_file(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "docker/docker-bake.hcl").unlink()
    asked = ask(tree, capsys, "--channel", "pr")
    assert asked == {
        "build": {"include": []},
        "gpu": {"include": []},
        "gsm8k": {"include": []},
        "publish": {"include": []},
    }


def test_the_object_has_every_matrix_by_name(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(tree, capsys, "--json")
    assert (answer["command"], answer["status"], answer["channel"]) == ("matrix", "shown", "release")
    assert {kind: len(answer[kind]["include"]) for kind in ("build", "gpu", "gsm8k", "publish")} == {
        "build": 4, "gpu": 2, "gsm8k": 1, "publish": 2,
    }  # fmt: skip


def test_outputs_for_github_are_one_line_each_behind_what_is_there(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = write(tmp_path, "outputs", "before=1\n")
    monkeypatch.setenv("GITHUB_OUTPUT", str(outputs))
    write(tree, "release.toml", RELEASE_TOML + CHANNELS + '[smoke.runners]\nsm90 = ["a\\nb=c"]\n')
    asked = ask(tree, capsys, "--github")
    lines = outputs.read_text().splitlines()
    assert lines[0] == "before=1"
    assert {name: json.loads(value) for name, value in (line.split("=", 1) for line in lines[1:])} == asked


def test_an_environment_variable_does_not_change_the_matrix(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ask(tree, capsys)
    monkeypatch.setenv("FLASHINFER_VERSION", "9.9.9")
    assert ask(tree, capsys) == before


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (["--channel", "nope"], 2, "UNKNOWN_CHANNEL"),
        (["--channel", ""], 2, "UNKNOWN_CHANNEL"),
        (["--kind", "cpu"], 2, "BAD_ARGUMENTS"),
        (["--platform", "windows/amd64"], 2, "NO_PLATFORM"),
        (["--platform", ""], 2, "NO_PLATFORM"),
        (["--bake-file", "nowhere.hcl"], 2, "MISSING"),
        (["--bake-file", "docker"], 2, "NOT_A_FILE"),
        (["--bake-file", "../bake.hcl"], 2, "OUTSIDE"),
        (["--github"], 2, "NO_GITHUB_OUTPUT"),
    ],
    ids=[
        "channel",
        "channel unset",
        "kind",
        "platform",
        "platform unset",
        "no file",
        "folder",
        "elsewhere",
        "no output",
    ],
)
def test_bad_arguments_end_with_a_reason(
    tree: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, reason: str
) -> None:
    failed = fail(tree, capsys, *words)
    assert (failed["exit"], failed["reason"]) == (code, reason)


def test_a_tree_without_settings_is_refused_and_nothing_but_the_object_is_on_stdout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = fail(make_tree(tmp_path / "foreign", release_toml=None), capsys)  # reads stdout as one JSON object
    assert (failed["exit"], failed["reason"]) == (2, "MISSING")
    assert failed["message"].startswith("release.toml: ")


def test_an_output_file_that_cannot_be_written_is_the_world_s_answer(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_OUTPUT", os.fspath(tree))
    assert fail(tree, capsys, "--github")["reason"] == "OUTPUT_FAILED"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('[smoke.runners]\nsm90 = "gpu"\n', "smoke.runners.sm90: found 'gpu', expected a list of labels"),
        ("[smoke.runners]\nsm90 = []\n", "smoke.runners.sm90: found [], expected a list of labels"),
        ('[image.runners]\n"linux/riscv" = ["a"]\n', "image.runners.linux/riscv: expected one of"),
        ("[smoke]\nrunner = 1\n", "smoke.runner: unknown key"),
        ("[smoke]\nrunners = 1\n", "smoke.runners: expected a table"),
    ],
    ids=["no list", "empty", "platform", "another key", "no table"],
)
def test_wrong_runners_are_named_by_their_key_path(
    tree: Path, capsys: pytest.CaptureFixture[str], more: str, told: str
) -> None:
    write(tree, "release.toml", RELEASE_TOML + CHANNELS + more)
    failed = fail(tree, capsys)
    assert (failed["exit"], failed["reason"]) == (2, "BAD_SETTINGS")
    assert told in failed["message"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(RELEASE_TOML + CHANNELS + more), SCHEMA)


def test_the_schema_takes_the_runners_that_the_command_takes() -> None:
    jsonschema.validate(tomllib.loads(RELEASE_TOML + CHANNELS + RUNNERS), SCHEMA)


def test_a_target_that_the_bake_file_does_not_have_is_refused(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tree, "release.toml", RELEASE_TOML + CHANNELS.replace('targets = ["release"]', 'targets = ["releese"]'))
    failed = fail(tree, capsys)
    assert (failed["exit"], failed["reason"]) == (2, "NO_TARGET")
    assert "channels.release.image.targets: releese is no target" in failed["message"]
    assert "release, nightly, debug" in failed["message"]
