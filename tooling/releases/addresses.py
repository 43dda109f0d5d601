"""Addresses of indexes as values: credentials taken out of the URL, and labels that may be printed. Opens nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from tooling.errors import InputError
from tooling.redaction import HIDDEN, redact_text

_SECRET_SEGMENT = re.compile(r"(?=[^/]*[0-9])(?=[^/]*[A-Za-z])[A-Za-z0-9_-]{20,}")


class AddressRole(StrEnum):
    """What pip calls the address."""

    MAIN = "index"
    EXTRA = "extra index"
    FIND_LINKS = "find-links"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexAddress:
    """One place where packages are looked up.

    `url` has no credentials in it; `auth` (user, password) goes with requests to its host; `label` may be printed and
    recorded. For find-links `url` may be a folder's path.
    """

    url: str
    role: AddressRole
    auth: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        return redact_url(self.url)

    @property
    def is_remote(self) -> bool:
        return self.url.lower().startswith(("http://", "https://"))

    @property
    def origin(self) -> tuple[str, str, int | None]:
        return url_origin(self.url)


def parse_address(text: str, role: AddressRole) -> IndexAddress:
    """The address that a setting, an option or an argument gives.

    Raises:
        InputError: neither an http, https or file URL with a host, nor a path.
    """
    try:
        url, auth = split_credentials(text.strip())
        scheme, host, _ = url_origin(url)
    except ValueError:
        raise _no_address(text, role) from None
    if "://" in url and (scheme not in {"http", "https", "file"} or not (host or scheme == "file")):
        raise _no_address(text, role)
    if "@" in (url.partition("://")[2].partition("/")[2] if "://" in url else url):
        raise _no_address(text, role)  # a password with a / in it, or a URL without its scheme: no place would hide it
    return IndexAddress(url=url, role=role, auth=auth)


def split_credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    """The URL without user and password, and those two, percent-decoded."""
    if "://" not in url:
        return url, None
    parts = urlsplit(url)
    userinfo, found, host = parts.netloc.rpartition("@")
    if not found:
        return url, None
    user, _, password = userinfo.partition(":")
    bare = urlunsplit(parts._replace(netloc=host))
    return bare, (unquote(user), unquote(password))


def url_origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port (the scheme's own if none is given): who gets to see credentials."""
    parts = urlsplit(url)
    return parts.scheme.lower(), (parts.hostname or "").lower(), _port(parts)


def find_auth(addresses: Iterable[IndexAddress], url: str) -> tuple[str, str] | None:
    """User and password for a URL: of the address nearest above it on the same host, else of any address there."""
    here = [address for address in addresses if address.auth is not None and address.origin == url_origin(url)]
    path = urlsplit(url).path
    above = [address for address in here if path.startswith(urlsplit(address.url).path)]
    best = max(above, key=lambda address: len(address.url), default=here[0] if here else None)
    return best.auth if best is not None else None


def file_path(url: str) -> Path | None:
    """The path that a `file:` address names, None of any other address."""
    return Path(unquote(urlsplit(url).path)) if url.lower().startswith("file:") else None


def redact_url(url: str) -> str:
    """The URL as it may be shown: no user, no query, no fragment, no path segment that looks like a token."""
    if "://" not in url:
        return url.rpartition("@")[2]
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    path = "/".join(HIDDEN if _SECRET_SEGMENT.fullmatch(segment) else segment for segment in parts.path.split("/"))
    if parts.scheme == "file":
        path = parts.path
    return urlunsplit((parts.scheme, host, path, HIDDEN if parts.query else "", ""))


def same_address(one: str, other: str) -> bool:
    """True if both lead to the same index: user, a final slash and the case of the host do not count."""
    return _comparable(one) == _comparable(other)


def _no_address(text: str, role: AddressRole) -> InputError:
    return InputError(
        f"the {role} {_shown(text)!r} is no address, expected an http, https or file URL",
        hint="see `pip config debug` and the requirements file for where it stands",
        reason="BAD_ADDRESS",
    )


def _shown(text: str) -> str:
    """A wrong address without all that stands before its last @: nobody can tell where a password ends in it."""
    _, found, rest = text.rpartition("@")
    return f"{HIDDEN}@{rest}" if found else redact_text(text)


def _comparable(url: str) -> str:
    parts = urlsplit(split_credentials(url.strip())[0])
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), parts.path.rstrip("/"), parts.query, ""))


def _port(parts: SplitResult) -> int | None:
    return parts.port or {"http": 80, "https": 443}.get(parts.scheme.lower())
