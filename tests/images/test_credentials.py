"""Texts that hold credentials are known by their kind; texts that only talk about them are not."""

from __future__ import annotations

import pytest

from tooling.images.credentials import SECRET_FILES, find_credentials, find_file_credentials

HOLD = {
    "address": "pip install --index-url https://me:hunter2@host/simple",
    "git": "git clone https://x-access-token:abcdef@host/x.git",
    "key": "-----BEGIN OPENSSH PRIVATE KEY-----",
    "github": "GH=ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "hugging face": "HF hf_abcdefghijklmnopqrstuvwxyzABCDEF",
    "aws": "AKIAABCDEFGHIJKLMNOP",
    "password": "export DB_PASSWORD=hunter22",
    "token": "|1 INDEX_TOKEN=abcdefgh /bin/sh -c x",
}
HARMLESS = {
    "plain address": "https://host/simple",
    "port": "http://host:8080/simple",
    "hidden": "https://me:****@host/simple",
    "variable": "https://me:${PASSWORD}@host/simple",
    "reference": "PASSWORD=$SECRET",
    "secret mount": "RUN --mount=type=secret,id=ca_bundle sh x",
    "git address": "git@github.com:owner/name.git",
    "image": "nvidia/cuda:13.0.2-devel",
}


@pytest.mark.parametrize("text", HOLD.values(), ids=HOLD.keys())
def test_credentials_are_found(text: str) -> None:
    assert list(find_credentials(text))


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS.keys())
def test_harmless_texts_are_not(text: str) -> None:
    assert list(find_credentials(text)) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("root/.netrc", "machine host\nlogin me\npassword x\n"),
        ("root/.netrc", "machine host login me password x"),
        ("root/.docker/config.json", '{"auths": {"r": {"auth": "bWU6cHc="}}}'),
        ("root/.aws/credentials", "[default]\naws_secret_access_key = x\n"),
        ("root/.cache/huggingface/token", "anything"),
        ("etc/pip.conf", "[global]\nindex-url = https://me:pw1234@host/simple\n"),
    ],
)
def test_files_are_read_by_their_own_format(path: str, text: str) -> None:
    assert SECRET_FILES.search(path)
    assert list(find_file_credentials(path, text))


@pytest.mark.parametrize(
    ("path", "text"),
    [("root/.docker/config.json", '{"credsStore": "pass"}'), ("etc/pip.conf", "[global]\nindex-url = https://host/\n")],
)
def test_files_without_credentials_are_fine(path: str, text: str) -> None:
    assert list(find_file_credentials(path, text)) == []
