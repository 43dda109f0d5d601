"""pip's configuration as pip itself sees it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tooling.edges.pip_config import load_index_settings, load_pip_options
from tooling.errors import InputError
from tooling.pins.requirements import parse_requirements
from tooling.releases.index_options import read_index_options


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def arrange(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the machines that people have."""
    monkeypatch.delenv("PIP_CONFIG_FILE")
    monkeypatch.delenv("PIP_RETRIES")
    monkeypatch.setenv("XDG_CONFIG_DIRS", f"{home}/xdg-a:{home}/xdg-b")
    if name == "global, user and legacy user":
        write(home / "xdg-a/pip/pip.conf", "[global]\nindex-url = https://a.invalid/simple\ntimeout = 3\n")
        write(home / "xdg-b/pip/pip.conf", "[global]\nretries = 1\n")
        write(home / ".pip/pip.conf", "[global]\nindex_url = https://legacy.invalid/simple\n")
        write(
            home / ".config/pip/pip.conf",
            "[global]\nextra-index-url =\n  https://one.invalid/simple\n  https://two.invalid/simple\n[list]\nformat = columns\n",
        )
    elif name == "install beats global, an empty value counts for nothing":
        write(
            home / ".config/pip/pip.conf",
            "[global]\nindex-url = https://a.invalid/\nproxy = http://p.invalid:1\n[install]\nindex-url = https://b.invalid/\nproxy =\n",
        )
    elif name == "the named file replaces the user's":
        write(home / ".config/pip/pip.conf", "[global]\nindex-url = https://user.invalid/\n")
        monkeypatch.setenv("PIP_CONFIG_FILE", str(write(home / "named.ini", "[global]\nno-index = yes\n")))
    elif name == "a named file that is missing leaves the user's":
        write(home / ".config/pip/pip.conf", "[global]\nindex-url = https://user.invalid/\n")
        monkeypatch.setenv("PIP_CONFIG_FILE", str(home / "missing.ini"))
    elif name == "no files at all":
        write(home / ".config/pip/pip.conf", "[global]\nindex-url = https://user.invalid/\n")
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    elif name == "variables beat files":
        write(home / ".config/pip/pip.conf", "[install]\nfind-links = /a /b\ncert = /files.pem\n")
        monkeypatch.setenv("PIP_FIND_LINKS", "/c")
        monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "7")
        monkeypatch.setenv("PIP_TRUSTED_HOST", "a.invalid b.invalid:8080")
        monkeypatch.setenv("PIP_CONSTRAINT", "/constraints.txt")
    elif name == "the user's folder moved":
        monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "elsewhere"))
        write(home / "elsewhere/pip/pip.conf", "[global]\nclient-cert = ~/client.pem\n")


MACHINES = [
    "global, user and legacy user",
    "install beats global, an empty value counts for nothing",
    "the named file replaces the user's",
    "a named file that is missing leaves the user's",
    "no files at all",
    "variables beat files",
    "the user's folder moved",
]


def what_pip_says() -> dict[str, str]:
    """`pip config list`, reduced to what `pip install` would take from it."""
    found: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in pip_config("list").splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.partition(".")
        if section in found and ast.literal_eval(value):
            name = {"default-timeout": "timeout"}.get(name, name)
            if (
                name in found[section] and section != ":env:"
            ):  # newer pips list every file's value, the strongest or not
                value = repr(pip_config("get", key).strip())
            found[section][name] = ast.literal_eval(value)
    return found["global"] | found["install"] | found[":env:"]


def pip_config(*words: str) -> str:
    command = [sys.executable, "-m", "pip", "config", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.parametrize("machine", MACHINES)
def test_settings_are_those_of_pip_config_list(
    machine: str, bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrange(machine, bare_machine, monkeypatch)
    ours = load_pip_options(dict(os.environ))
    ours.pop("config-file", None)
    pips = what_pip_says()
    pips.pop("config-file", None)
    assert ours == pips
    assert machine == "no files at all" or ours


def test_lists_are_split_and_lie_in_the_order_of_pip(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrange(MACHINES[0], bare_machine, monkeypatch)
    settings = load_index_settings(["https://three.invalid/simple"])
    assert [address.url for address in settings.extra] == [
        "https://one.invalid/simple", "https://two.invalid/simple", "https://three.invalid/simple",
    ]  # fmt: skip
    assert settings.main is not None
    assert settings.main.url == "https://legacy.invalid/simple"
    assert (settings.timeout_s, settings.retries) == (3.0, 1)


def test_every_setting_arrives(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrange("variables beat files", bare_machine, monkeypatch)
    monkeypatch.setenv("PIP_CLIENT_CERT", "~/client.pem")
    monkeypatch.setenv("PIP_PROXY", "http://user:secret@proxy.invalid:3128")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    settings = load_index_settings()
    assert settings.cert == Path("/files.pem")
    assert settings.client_cert == bare_machine / "client.pem"
    assert settings.proxy == "http://user:secret@proxy.invalid:3128"
    assert settings.no_index
    assert settings.timeout_s == 7
    assert settings.trusted_hosts == ("a.invalid", "b.invalid:8080")
    assert settings.constraints == ("/constraints.txt",)
    assert [address.url for address in settings.find_links] == ["/c"]
    assert "secret" not in repr(settings)


def test_a_machine_without_settings_has_the_public_index(bare_machine: Path) -> None:
    settings = load_index_settings()
    assert (settings.main, settings.extra, settings.no_index) == (None, (), False)


def test_a_requirements_file_adds_indexes_with_credentials_from_variables(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INDEX_TOKEN", "p%40ss")
    text = "--index-url=https://main.invalid/simple\n--extra-index-url https://me:${INDEX_TOKEN}@x.invalid/s # why\n-f /wheels\n--trusted-host x.invalid\n"
    settings = load_index_settings(options=read_index_options(parse_requirements(text)))
    assert settings.main is not None
    assert settings.main.url == "https://main.invalid/simple"
    (extra,) = settings.extra
    assert (extra.url, extra.auth, extra.label) == ("https://x.invalid/s", ("me", "p@ss"), "https://x.invalid/s")
    assert "p@ss" not in repr(settings)
    assert "p%40ss" not in repr(settings)
    assert settings.trusted_hosts == ("x.invalid",)


def test_one_address_given_twice_is_asked_once(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://x.invalid/s/")
    assert len(load_index_settings(["https://x.invalid/s"]).extra) == 1


@pytest.mark.parametrize(
    ("variable", "value"),
    [("PIP_TIMEOUT", "soon"), ("PIP_RETRIES", "many"), ("PIP_NO_INDEX", "perhaps")],
)
def test_a_setting_of_another_kind_is_refused(
    variable: str, value: str, bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(InputError, match=f"found '{value}', expected"):
        load_index_settings()


@pytest.mark.parametrize(
    "text", ["index-url = https://no-section.invalid\n", "[global]\na = 1\na = 2\n", "[global\n"],
    ids=["no section", "twice", "broken section"],
)  # fmt: skip
def test_a_file_that_pip_cannot_read_is_named(text: str, bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(bare_machine / "broken.ini", text)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(path))
    with pytest.raises(InputError, match=str(path)):
        load_index_settings()
