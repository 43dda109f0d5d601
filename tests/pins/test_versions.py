"""versions.json is read strictly and written in one spelling."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooling.errors import ExitCode, InputError
from tooling.pins.versions import dump_versions, parse_versions

GOOD = [
    ("two", '{"variable": {"A": {"default": "1"}, "B": {"default": ""}}}', {"A": "1", "B": ""}),
    ("none", '{"variable": {}}', {}),
    ("a comment", '{"_comment": ["x"], "variable": {"A": {"default": "1", "description": "d"}}}', {"A": "1"}),
    ("no default", '{"variable": {"A": {}}}', {}),
    ("BOM", '\ufeff{"variable": {"_a9": {"default": "0.6.13"}}}', {"_a9": "0.6.13"}),
]
BAD = [
    ("empty", "", ["Expecting value"]),
    ("cut short", '{"variable": {"A"', ["Expecting"]),
    ("nested too deep", "[" * 100_000, ["nested too deeply"]),
    ("a list", "[]", ["found a list, expected an object"]),
    ("text", '"x"', ["found text, expected an object"]),
    ("null", "null", ["found null"]),
    ("true", "true", ["found true or false"]),
    ("a number", "5", ["found a number"]),
    ("no variable", '{"FLASHINFER_VERSION": "0.6.13"}', ["no key `variable`"]),
    ("variable is a list", '{"variable": []}', ["variable: found a list"]),
    ("the short form", '{"variable": {"A": "1"}}', ["variable.A: found text, expected an object with a default"]),
    ("a number as default", '{"variable": {"A": {"default": 12.4}}}', ["variable.A.default: found a number"]),
    ("null as default", '{"variable": {"A": {"default": null}}}', ["variable.A.default: found null"]),
    ("a name with a dash", '{"variable": {"A-B": {"default": "1"}}}', ["variable.A-B: not a variable's name"]),
    ("all problems at once", '{"variable": {"A": 1, "B": {"default": {}}}}', ["variable.A: ", "variable.B.default: "]),
    ("a key twice", '{"variable": {"A": {"default": "1"}, "A": {"default": "2"}}}', ["the key 'A' stands twice"]),
    ("not a number", '{"variable": {}, "x": NaN}', ["NaN is no JSON value"]),
]


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in GOOD], ids=[case[0] for case in GOOD])
def test_defaults_are_read_in_order(text: str, expected: dict[str, str]) -> None:
    assert list(parse_versions(text).items()) == list(expected.items())


@pytest.mark.parametrize(("text", "said"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_what_is_no_variable_file_is_refused(text: str, said: list[str]) -> None:
    with pytest.raises(InputError) as refused:
        parse_versions(text, path="docker/versions.json")
    assert refused.value.message.startswith("docker/versions.json: ")
    assert [words for words in said if words not in refused.value.message] == []
    assert refused.value.reason == "BAD_VERSIONS"
    assert refused.value.exit_code is ExitCode.INPUT


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True)


@given(st.dictionaries(names, st.text(st.characters(codec="utf-8"))))
def test_what_is_dumped_parses_to_the_same_in_one_spelling(variables: dict[str, str]) -> None:
    text = dump_versions(variables)
    assert list(parse_versions(text).items()) == list(variables.items())
    assert dump_versions(parse_versions(text)) == text
    assert text.endswith("}\n")
    assert json.loads(text) == {"variable": {name: {"default": value} for name, value in variables.items()}}
