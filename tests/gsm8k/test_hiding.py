"""Secrets in commands, variables, addresses and logs."""

from __future__ import annotations

import pytest

from tooling.gsm8k.hiding import find_secrets, hide_secrets, show_address, show_variables, show_words


def test_secrets_are_blanked() -> None:
    shown = show_variables(
        {"HF_TOKEN": "hf_1", "OPENAI_API_KEY": "sk", "DB_PASSWORD": "p", "TOKENIZERS_PARALLELISM": "0", "MAX_TOKENS": "9",
         "PROXY": "http://user:pw@host"}
    )  # fmt: skip
    assert shown == {
        "HF_TOKEN": "***", "OPENAI_API_KEY": "***", "DB_PASSWORD": "***", "TOKENIZERS_PARALLELISM": "0",
        "MAX_TOKENS": "9", "PROXY": "http://***@host",
    }  # fmt: skip
    words = ["serve", "--api-key", "sk", "--hf-token=hf_1", "a b", "--max-tokens", "9"]
    assert show_words(words) == "serve --api-key *** --hf-token=*** 'a b' --max-tokens 9"


SECRET = ["HF_TOKENS", "HTTP_AUTHORIZATION", "PGPASS", "DB_PASS", "DB_PWD", "MYSQL_PWD", "SENTRY_DSN", "SSH_PASSPHRASE"]
PLAIN = [
    "GIT_AUTHOR_NAME",
    "PWD",
    "OLDPWD",
    "BYPASS",
    "TOKENIZERS_PARALLELISM",
    "NUM_PASSES",
    "XAUTHORITY",
    "VLLM_USE_V1",
]


@pytest.mark.parametrize("name", SECRET)
def test_names_that_tell_a_secret(name: str) -> None:
    assert show_variables({name: "s3cret-value"}) == {name: "***"}
    assert hide_secrets("got s3cret-value!", find_secrets((), {name: "s3cret-value"})) == "got ***!"


@pytest.mark.parametrize("name", PLAIN)
def test_names_that_tell_none(name: str) -> None:
    assert show_variables({name: "some-value"}) == {name: "some-value"}


def test_a_number_of_tokens_is_no_secret() -> None:
    assert show_variables({"MAX_TOKENS": "4096", "HF_TOKENS": "hf_a,hf_b"}) == {
        "MAX_TOKENS": "4096",
        "HF_TOKENS": "***",
    }


def test_secrets_are_taken_out_of_log_lines() -> None:
    secrets = find_secrets((), {"HF_TOKEN": "hf_abcdef", "A_KEY": "args"}, "sk-123456", None)
    assert hide_secrets("args: api_key=sk-123456 token hf_abcdef", secrets) == "args: api_key=*** token ***"


COMMANDS = {
    "with an equals sign": (["serve", "--hf-token=hf_x"], "hf_x", "serve --hf-token=***"),
    "with an underline": (["serve", "--hf_token", "hf_x"], "hf_x", "serve --hf_token ***"),
    "the second of two keys": (["serve", "--api-key", "k1", "k2", "--port", "8000"], "k2", "serve --api-key *** *** --port 8000"),
    "a key file's password": (["serve", "--ssl-keyfile-password", "pw"], "pw", "serve --ssl-keyfile-password ***"),
    "an assignment": (["env", "HF_TOKEN=hf_x", "serve"], "hf_x", "env HF_TOKEN=*** serve"),
    "in a script": (["sh", "-c", "serve --api-key k1"], "k1", "sh -c 'serve --api-key ***'"),
    "an address": (["serve", "http://me:pw@host/x"], "pw", "serve http://***@host/x"),
    "a parameter": (["serve", "http://host/x?a=1&access_token=t0k"], "t0k", "serve 'http://host/x?a=1&access_token=***'"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "secret", "shown"), COMMANDS.values(), ids=COMMANDS.keys())
def test_what_a_command_line_keeps_secret_stands_in_no_log(words: list[str], secret: str, shown: str) -> None:
    assert show_words(words) == shown
    assert hide_secrets(f"args: ['{secret}'] not{secret}ly", find_secrets(words, {})) == f"args: ['***'] not{secret}ly"


def test_addresses_in_variables_are_secret_in_logs_too() -> None:
    secrets = find_secrets(
        (), {"INDEX": "https://me:passw0rd@host/simple", "MIRROR": "http://host/?access_token=t0ken-1"}
    )
    assert hide_secrets("using passw0rd and t0ken-1 of me:passw0rd", secrets) == "using *** and *** of ***"
    assert hide_secrets("https://you:other@host", secrets) == "https://***@host"
    assert show_address("http://me:p@ss@host/a?access_token=x") == "http://***@host/a?access_token=***"


def test_the_credentials_of_a_header_are_secret_without_their_scheme() -> None:
    assert hide_secrets("got abc.def", find_secrets((), {"HTTP_AUTHORIZATION": "Bearer abc.def"})) == "got ***"
