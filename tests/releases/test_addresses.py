"""Addresses: credentials come out of the URL, and nothing that may be shown holds them."""

from __future__ import annotations

import pytest

from tooling.errors import InputError
from tooling.redaction import redact_text
from tooling.releases.addresses import (
    AddressRole,
    find_auth,
    parse_address,
    redact_url,
    same_address,
    url_origin,
)

URLS = {
    "plain": ("https://a.invalid/simple/", "https://a.invalid/simple/", None),
    "user and password": ("https://me:pw@a.invalid/s", "https://a.invalid/s", ("me", "pw")),
    "percent-encoded": ("https://me:p%40%2F@a.invalid/s", "https://a.invalid/s", ("me", "p@/")),
    "a raw @ in the password": ("https://me:p@w@a.invalid/s", "https://a.invalid/s", ("me", "p@w")),
    "a token alone": ("https://tok3n@a.invalid/s", "https://a.invalid/s", ("tok3n", "")),
    "a file": ("file:///opt/simple", "file:///opt/simple", None),
    "a path": ("/opt/wheels", "/opt/wheels", None),
}


@pytest.mark.parametrize(("text", "url", "auth"), URLS.values(), ids=URLS)
def test_credentials_are_taken_out(text: str, url: str, auth: tuple[str, str] | None) -> None:
    address = parse_address(text, AddressRole.EXTRA)
    assert (address.url, address.auth) == (url, auth)
    assert auth is None or auth[0] not in repr(address)


LABELS = {
    "a query": ("https://a.invalid/s?token=abc#frag", "https://a.invalid/s?****"),
    "a token in the path": (
        "https://dl.invalid/Ab3dEf6hIj9kLmNo2qRs/org/simple/", "https://dl.invalid/****/org/simple/",
    ),
    "an ordinary long word": ("https://a.invalid/nvidia-cutlass-dsl-libs-base/", "https://a.invalid/nvidia-cutlass-dsl-libs-base/"),
    "userinfo": ("http://me:pw@a.invalid:8080/x", "http://a.invalid:8080/x"),
    "no URL": ("wheels/here", "wheels/here"),
}  # fmt: skip


@pytest.mark.parametrize(("url", "label"), LABELS.values(), ids=LABELS)
def test_a_label_holds_no_secret(url: str, label: str) -> None:
    assert redact_url(url) == label


def test_text_is_freed_of_credentials_and_otherwise_kept() -> None:
    text = "-x https://me:pw@a.invalid/s and git+ssh://git@b.invalid, mail me@c.invalid"
    assert redact_text(text) == "-x https://****@a.invalid/s and git+ssh://****@b.invalid, mail me@c.invalid"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://A.invalid/whl", "https://a.invalid/whl/", True),
        ("https://me:x@a.invalid/whl", "https://a.invalid/whl", True),
        ("https://a.invalid/whl", "http://a.invalid/whl", False),
        ("https://a.invalid/whl", "https://a.invalid/whl/cu130", False),
    ],
)
def test_when_two_addresses_are_one_index(one: str, other: str, same: bool) -> None:
    assert same_address(one, other) is same


def test_an_origin_has_its_schemes_port() -> None:
    assert url_origin("https://A.invalid/x") == url_origin("https://a.invalid:443/y") == ("https", "a.invalid", 443)


@pytest.mark.parametrize("text", ["http://", "https://[::1", "ftp://a.invalid/", "https://a.invalid:port/"])
def test_what_is_no_address_is_refused_without_its_credentials(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_address(text.replace("://", "://me:hunter2@"), AddressRole.MAIN)
    assert "hunter2" not in caught.value.message


def test_credentials_go_to_the_address_nearest_above_on_the_same_host() -> None:
    places = [
        parse_address(url, AddressRole.EXTRA)
        for url in ("https://one:1@a.invalid/one/simple/", "https://two:2@a.invalid/two/simple/", "https://b.invalid/")
    ]
    assert find_auth(places, "https://a.invalid/two/simple/x/") == ("two", "2")
    assert find_auth(places, "https://a.invalid/one/simple/x/") == ("one", "1")
    assert find_auth(places, "https://a.invalid/files/x.whl") == ("one", "1")
    for url in (
        "https://b.invalid/x",
        "http://a.invalid/one/simple/x/",
        "https://a.invalid:8443/one/",
        "https://c.invalid/",
    ):
        assert find_auth(places, url) is None


@pytest.mark.parametrize("url", ["user:s3cret@127.0.0.1:9/simple", "http://user:s3cr@et/s3cret@127.0.0.1:9/simple"])
def test_a_broken_address_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_address(url, AddressRole.MAIN)
    assert "****@127.0.0.1:9/simple" in raised.value.message
    assert "s3c" not in raised.value.message
