"""versions.json and release.toml: one table of samples through the parser and through the schema."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest
from packaging.version import Version

from tooling.errors import InputError
from tooling.pins.settings import LEAVE_OUT, RequiredSite, parse_settings
from tooling.pins.versions import dump_versions, parse_versions

SCHEMAS = Path(__file__).resolve().parents[2] / "tooling/data/schemas"


def _follows(data: object, name: str) -> bool:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    return jsonschema.Draft202012Validator(schema).is_valid(data)


VERSIONS: dict[str, tuple[object, str | None]] = {
    "one variable": ({"variable": {"A": {"default": "1"}}}, None),
    "no variable at all": ({"variable": {}}, None),
    "a comment beside": ({"_comment": "x", "variable": {"A": {"default": "1"}}}, None),
    "a variable without default": ({"variable": {"A": {}}}, None),
    "a list": ([], "found a list, expected an object"),
    "no key": ({}, "no key `variable`"),
    "variables in a list": ({"variable": []}, "variable: found a list, expected an object"),
    "a bare default": ({"variable": {"A": "1"}}, "variable.A: found text, expected an object with a default"),
    "a number": ({"variable": {"A": {"default": 1}}}, "variable.A.default: found a number, expected text"),
    "null": ({"variable": {"A": {"default": None}}}, "variable.A.default: found null, expected text"),
    "a name with a dash": ({"variable": {"A-B": {"default": "1"}}}, "variable.A-B: not a variable's name"),
}


@pytest.mark.parametrize(("data", "problem"), VERSIONS.values(), ids=VERSIONS)
def test_the_versions_parser_and_its_schema_agree(data: object, problem: str | None) -> None:
    assert _follows(data, "versions") == (problem is None)
    if problem is None:
        parse_versions(json.dumps(data))
    else:
        with pytest.raises(InputError, match="versions") as raised:
            parse_versions(json.dumps(data))
        assert problem in raised.value.message


def test_every_problem_of_a_versions_file_is_named_at_once() -> None:
    with pytest.raises(InputError) as raised:
        parse_versions('{"variable": {"A": {"default": 1}, "B": 2}}')
    assert "variable.A.default" in raised.value.message
    assert "variable.B" in raised.value.message


@pytest.mark.parametrize("text", ['{"variable": {}, "variable": {}}', "{", '{"variable": NaN}', "[" * 100_000])
def test_what_is_no_json_is_an_input_error(text: str) -> None:
    with pytest.raises(InputError):
        parse_versions(text)


def test_dumping_what_was_parsed_gives_the_same_text() -> None:
    text = dump_versions({"FLASHINFER_VERSION": "0.6.13", "CUDA_VERSION": "13.0.2"})
    assert dump_versions(parse_versions(text)) == text


SETTINGS: dict[str, tuple[str, str | None]] = {
    "empty": ("", None),
    "everything": (
        (
            '[pins]\nversions_file = "v.json"\nvariable_aliases = ["FI_VER"]\n[[pins.required]]\npath = "a"\ncount = 2\n'
            'shape = "requirement"\n'
            '[scan]\nleave_out = ["x"]\n[bake.also_used_by]\nA = "who"\n[[blocked]]\nrelease = "0.6.13"\nreason = "r"\nlink = "l"\n'
        ),
        None,
    ),
    "tables of other rooms": ('[channels.release]\nstages = ["check"]\n[flashinfer.sha256]\n', None),
    "an unknown table": ("[pin]\n", "pin: unknown table"),
    "an unknown key": ("[pins]\nrequird = 1\n", "pins.requird: unknown key"),
    "an unknown key in a site": ('[[pins.required]]\npath = "a"\ncuont = 1\n', "pins.required[0].cuont: unknown key"),
    "a site without a path": (
        "[[pins.required]]\ncount = 1\n",
        "pins.required[0].path: expected a path inside the tree",
    ),
    "a count of nothing": ('[[pins.required]]\npath = "a"\ncount = 0\n', "pins.required[0].count"),
    "a count that is true": ('[[pins.required]]\npath = "a"\ncount = true\n', "pins.required[0].count"),
    "a shape that is a number": ('[[pins.required]]\npath = "a"\nshape = 1\n', "pins.required[0].shape"),
    "a table in place of a list": ("[pins.required]\n", "pins.required: expected [[pins.required]] tables"),
    "a text in place of a list": ('[scan]\nleave_out = "x"\n', "scan.leave_out"),
    "a file that is a number": ("[pins]\nversions_file = 1\n", "pins.versions_file"),
    "users that are a list": ("[bake]\nalso_used_by = []\n", "bake.also_used_by"),
    "a blocked release without a reason": ('[[blocked]]\nrelease = "0.6.13"\n', "blocked[0]"),
    "a table that is a text": ('pins = "x"\n', "pins: found 'x', expected a table"),
}


@pytest.mark.parametrize(("text", "problem"), SETTINGS.values(), ids=SETTINGS)
def test_the_settings_parser_and_its_schema_agree(text: str, problem: str | None) -> None:
    assert _follows(tomllib.loads(text), "release") == (problem is None)
    if problem is None:
        parse_settings(text)
    else:
        with pytest.raises(InputError) as raised:
            parse_settings(text)
        assert problem in raised.value.message


def test_a_blocked_release_must_be_a_version() -> None:
    with pytest.raises(InputError, match=r"blocked\[0\].release: found '0.6.x'"):
        parse_settings('[[blocked]]\nrelease = "0.6.x"\nreason = "r"\n')


def test_settings_are_what_the_file_says() -> None:
    settings = parse_settings(SETTINGS["everything"][0])
    assert settings.required == (RequiredSite(path="a", count=2, shape="requirement"),)
    assert settings.leave_out == ("x",)
    assert settings.blocks(Version("0.6.13")) is settings.blocked[0]
    assert settings.blocks(Version("0.6.13.post1")) is None
    assert parse_settings("").leave_out == LEAVE_OUT
