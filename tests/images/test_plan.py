"""The effective build: bake's JSON, our own reading of the bake file, base images, and what is refused before a build."""

from __future__ import annotations

import json

import pytest

from tests.images.conftest import ROOT
from tooling.errors import InputError
from tooling.images.bake_command import BuildOptions, build_command, settings
from tooling.images.bake_static import evaluate_bake
from tooling.images.plan import BuildTarget, base_images, check_plan, parse_bake_print, shadowing_variables
from tooling.pins.versions import parse_versions

VARIABLES = {"FLASHINFER_VERSION": "0.6.13", "CUDA_VERSION": "13.0.2"}
HCL = """
variable "REPOSITORY" { default = "images" }
group "default" { targets = ["one"] }
target "base" { args = { FLASHINFER_VERSION = FLASHINFER_VERSION, "CUDA_VERSION" = "${CUDA_VERSION}" } }
target "one" {
  inherits = ["base"]
  dockerfile = "docker/Dockerfile"
  target = "final"
  args = { EXTRA = "x" }
  tags = ["${REPOSITORY}:${FLASHINFER_VERSION}-cu${CUDA_VERSION}"]
}
"""


def _target(**args: str) -> BuildTarget:
    return BuildTarget(name="one", context=".", dockerfile="Dockerfile", stage=None, args=args, tags=())


def test_bakes_own_json_becomes_targets_with_its_defaults() -> None:
    text = json.dumps({"target": {"one": {"args": {"A": "1"}, "tags": ["x:1"]}}})
    (target,) = parse_bake_print(text)
    assert target.as_json() == {
        "name": "one", "context": ".", "dockerfile": "Dockerfile", "target": None, "args": {"A": "1"}, "tags": ["x:1"],
    }  # fmt: skip


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"target": []}', '{"target": {"a": {"tags": "x"}}}'])
def test_anything_else_than_bakes_json_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="bake --print wrote something else"):
        parse_bake_print(text)


def test_our_own_reading_merges_inherited_arguments_and_fills_in_variables() -> None:
    (target,) = evaluate_bake(HCL, VARIABLES, path="b.hcl", environ={})
    assert target.args == {"FLASHINFER_VERSION": "0.6.13", "CUDA_VERSION": "13.0.2", "EXTRA": "x"}
    assert target.tags == ("images:0.6.13-cu13.0.2",)
    assert (target.stage, target.dockerfile) == ("final", "docker/Dockerfile")


def test_the_environment_wins_over_the_bake_files_own_variables_only() -> None:
    environ = {"REPOSITORY": "mine", "FLASHINFER_VERSION": "9.9"}
    (target,) = evaluate_bake(HCL, VARIABLES, path="b.hcl", environ=environ)
    assert target.tags == ("mine:0.6.13-cu13.0.2",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("target {", "not HCL"),
        ('target "a" { tags = ["${upper(CUDA_VERSION)}"] }', "can only be evaluated by bake"),
        ('target "a" { tags = [MISSING] }', "no variable MISSING"),
        ('target "a" { inherits = ["b"] }', "is not defined"),
        ('target "a" { inherits = ["a"] }', "inherits from itself"),
        ('group "default" { targets = ["b"] }', "is not defined"),
    ],
)
def test_what_only_bake_can_evaluate_is_refused_and_not_guessed(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate_bake(text, VARIABLES, path="b.hcl", environ={})


def test_this_checkouts_bake_file_passes_every_pin_to_both_targets() -> None:
    variables = parse_versions((ROOT / "versions.json").read_text())
    text = (ROOT / "docker" / "docker-bake.hcl").read_text()
    targets = evaluate_bake(text, variables, path="docker-bake.hcl", environ={})
    assert [target.name for target in targets] == ["release", "nightly"]
    assert all(target.args == variables for target in targets)
    assert check_plan(targets, variables) == []


def test_a_variable_that_reaches_no_target_is_a_finding_unless_somebody_else_uses_it() -> None:
    (finding,) = check_plan([_target(CUDA_VERSION="13.0.2")], VARIABLES)
    assert finding.reason == "INERT_VARIABLE"
    assert check_plan([_target(CUDA_VERSION="13.0.2")], VARIABLES, also_used_by=["FLASHINFER_VERSION"]) == []


def test_an_argument_that_differs_from_its_pin_is_a_finding() -> None:
    (finding,) = check_plan([_target(**{**VARIABLES, "FLASHINFER_VERSION": "0.6.14"})], VARIABLES)
    assert (finding.reason, "0.6.14" in finding.detail, "0.6.13" in finding.detail) == ("PLAN_DRIFT", True, True)


def test_credentials_in_an_argument_are_a_finding_that_does_not_repeat_them() -> None:
    (finding,) = check_plan([_target(**VARIABLES, URL="https://me:hunter2@host/x.git")], VARIABLES)
    assert finding.reason == "CREDENTIALS"
    assert "hunter2" not in finding.detail


def test_variables_of_the_environment_that_would_win_are_named() -> None:
    assert shadowing_variables(VARIABLES, {"CUDA_VERSION": "12", "HOME": "/"}) == ["CUDA_VERSION"]


@pytest.mark.parametrize(
    ("dockerfile", "expected"),
    [
        ("FROM a:1\nFROM a:1 AS x\nFROM x\n", ["a:1"]),
        ("ARG V=1\nARG B=img:${V}\nFROM --platform=linux/amd64 ${B}\n", ["img:1"]),
        ("ARG V=1\nFROM img:$V\n", ["img:2"]),
        ("FROM scratch\nFROM other AS o\n", []),
        ("ARG B\nFROM ${B:-img:3}\n", ["img:3"]),
    ],
    ids=["stages", "default", "argument", "context", "fallback"],
)
def test_base_images_are_found_with_arguments_put_in(dockerfile: str, expected: list[str]) -> None:
    args = {"V": "2"} if "$V" in dockerfile else {}
    assert base_images(dockerfile, _target(**args), contexts=["other"]) == expected


def test_the_real_dockerfiles_stand_on_the_cuda_base() -> None:
    variables = parse_versions((ROOT / "versions.json").read_text())
    for name in ("Dockerfile", "Dockerfile.nightly_torch"):
        text = (ROOT / "docker" / name).read_text()
        assert base_images(text, _target(**variables)) == ["nvidia/cuda:13.0.2-devel-ubuntu24.04"]
        assert base_images(text, _target(**variables, BASE_IMAGE="mine:1")) == ["mine:1"]


def test_the_callers_options_go_through_to_bake(tmp_path) -> None:
    options = BuildOptions(
        base_image="base:1", build_contexts=("src=/src",), apt_mirror="http://mirror/ubuntu", builder="kube",
        platforms=("linux/amd64", "linux/arm64"), cache_to=("type=registry,ref=c",), cache_from=("type=local,src=d",),
        provenance="mode=max", sbom="true", overrides=("one.args.X=1",), secrets={"ca_bundle": tmp_path / "ca"},
    )  # fmt: skip
    words = build_command(
        _target(), options, files=["b.hcl", "v.json"], variables={"A": "1"}, labels={"l.x": "y"},
        metadata_file=tmp_path / "m", push=True, platforms=options.platforms,
    )  # fmt: skip
    assert words[:2] == ["buildx", "bake"]
    assert words[-1] == "one"
    text = " ".join(words)
    for expected in (
        "--builder kube", "--push", "--provenance=mode=max", "--sbom=true", "one.args.A=1", "one.args.BASE_IMAGE=base:1",
        "one.args.APT_MIRROR=http://mirror/ubuntu", "one.contexts.src=/src", "one.args.X=1", "one.labels.l.x=y",
        f"one.secrets=id=ca_bundle,src={tmp_path}/ca", "one.platform=linux/amd64,linux/arm64",
        "one.cache-to=type=registry,ref=c", "one.cache-from=type=local,src=d",
    ):  # fmt: skip
        assert expected in text
    assert "--load" not in words


def test_without_options_nothing_but_the_pins_is_set() -> None:
    assert settings(BuildOptions(), "one", {"A": "1"}) == ["--set", "one.args.A=1"]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("apt_mirror", "http://me:secret@mirror/ubuntu", "holds credentials"),
        ("build_contexts", ("src",), "expected NAME=PATH"),
        ("overrides", ("X=1",), "expected TARGET.KEY=VALUE"),
        ("overrides", ("a.b",), "expected TARGET.KEY=VALUE"),
    ],
)
def test_options_that_bake_would_misread_are_refused(field: str, value: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        BuildOptions(**{field: value})  # type: ignore[arg-type]
