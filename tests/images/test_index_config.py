"""A closed network's index settings, for both installers, without what a build cannot reach."""

from __future__ import annotations

import configparser
import tomllib

import pytest

from tooling.errors import InputError
from tooling.images.index_config import parse_index_config, render_pip_config, render_uv_config

PIP = """
[global]
index-url = https://me:pw@one/simple
extra-index-url = https://two/simple
    file:///opt/simple
[install]
find_links = https://three/wheels /opt/wheels
trusted-host = one
"""
UV = """
index-url = "https://me:pw@one/simple"
extra-index-url = ["https://two/simple", "file:///opt/simple"]
find-links = ["https://three/wheels", "/opt/wheels"]
allow-insecure-host = ["one"]
"""


@pytest.mark.parametrize(("text", "path"), [(PIP, "pip.conf"), (UV, "uv.toml"), ("[pip]" + UV, "uv.toml")])
def test_one_meaning_in_both_files(text: str, path: str) -> None:
    config = parse_index_config(text, path=path)
    assert config.index_url == "https://me:pw@one/simple"
    assert config.extra_index_urls == ("https://two/simple",)
    assert config.find_links == ("https://three/wheels",)
    assert config.trusted_hosts == ("one",)
    assert set(config.left_out) == {"file:///opt/simple", "/opt/wheels"}
    assert config.needs_best_match
    assert "pw" not in repr(config)


def test_uvs_named_indexes_are_understood() -> None:
    text = '[[index]]\nurl = "https://one/simple"\ndefault = true\n[[index]]\nname = "b"\nurl = "https://two/simple"\n'
    config = parse_index_config(text, path="uv.toml")
    assert (config.index_url, config.extra_index_urls) == ("https://one/simple", ("https://two/simple",))


def test_what_is_rendered_is_read_back_as_the_same() -> None:
    config = parse_index_config(PIP, path="pip.conf")
    again = parse_index_config(render_pip_config(config), path="pip.conf")
    other = parse_index_config(render_uv_config(config), path="uv.toml")
    assert again == other
    assert again.index_url == config.index_url
    assert again.left_out == ()


def test_uv_is_told_to_choose_among_indexes_as_pip_does() -> None:
    config = parse_index_config(PIP, path="pip.conf")
    assert tomllib.loads(render_uv_config(config))["index-strategy"] == "unsafe-best-match"
    parser = configparser.RawConfigParser()
    parser.read_string(render_pip_config(config))
    assert parser.get("global", "index-url") == "https://me:pw@one/simple"


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("", "pip.conf", "names no index"),
        ("[global]\nindex-url = file:///opt/simple\n", "pip.conf", "names no index that a build can reach"),
        ("index-url", "pip.conf", "not a pip.conf"),
        ("[global]\nindex-url = https://a/ https://b/\n", "pip.conf", "2 addresses, expected one"),
        ("a = ", "uv.toml", "not TOML"),
    ],
)
def test_a_file_that_is_none_of_both_is_refused(text: str, path: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_index_config(text, path=path)
