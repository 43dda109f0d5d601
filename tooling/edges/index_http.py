"""HTTP as indexes need it: pip's proxy, certificates and timeouts, credentials per host, retries, byte ranges.

Every failure becomes an `EdgeError` that names the address by its printable label.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tooling import __version__
from tooling.edges.pip_config import IndexSettings
from tooling.errors import EdgeError, InputError
from tooling.releases.addresses import find_auth, redact_url, split_credentials

if TYPE_CHECKING:
    import requests

DEFAULT_RETRIES = 2
"""pip tries five times; a person waits here, and 5xx answers that pass do so within seconds."""
FIRST_WAIT_S = 0.3
MAX_WAIT_S = 5.0
MAX_PAGE_BYTES = 100_000_000
"""The largest project pages seen have 30 MB (JSON, ten thousands of files)."""
SLOW_FACTOR = 8
"""A body may take so many times pip's timeout; a server that drips a byte a second would hold us for ever."""
_RETRIED = {429, 500, 502, 503, 504, 520, 522, 524}
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_CERTIFICATE_HINT = (
    "name the CA bundle that signed it in pip's configuration: `pip config set global.cert /path/ca.pem`, or PIP_CERT"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole answer: `url` is where redirects ended, header names are lower-case."""

    status: int
    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RangePart:
    """Exactly the bytes that were asked for; `total_bytes` is the whole file's size, `etag` names its state."""

    data: bytes
    total_bytes: int | None
    etag: str | None


class HttpReader:
    """Requests to indexes and file hosts. Safe to use from several threads; close it when done."""

    def __init__(self, settings: IndexSettings) -> None:
        import requests  # noqa: PLC0415 - 200 ms that a command without an index does not pay

        for option, path in (("cert", settings.cert), ("client-cert", settings.client_cert)):
            if path is not None and not path.exists():
                raise InputError(
                    f"pip's setting {option} names {path}, and there is no such file",
                    hint="`pip config debug` tells where it is set",
                    reason="NO_CERTIFICATE",
                )
        self._session = requests.Session()
        self._session.headers["User-Agent"] = f"flashinfer-pin-pipeline/{__version__}"
        self._settings = settings
        self._timeout_s = settings.timeout_s
        self._attempts = 1 + (DEFAULT_RETRIES if settings.retries is None else max(0, settings.retries))
        self._places = [*([settings.main] if settings.main else []), *settings.extra, *settings.find_links]
        if settings.trusted_hosts:
            import urllib3  # noqa: PLC0415

            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)

    def close(self) -> None:
        self._session.close()

    def fetch(self, url: str, headers: Mapping[str, str] | None = None) -> Answer:
        """The whole answer to a GET, whatever its status below 500 but 401 and a 403 to credentials.

        Raises:
            EdgeError: no answer, a server's fault after retries, a certificate that fails, credentials refused, an
                answer that takes too long or is too large.
        """
        with self.open(url, headers) as response:
            body = self._read(response, MAX_PAGE_BYTES)
            return Answer(
                status=response.status_code,
                url=split_credentials(response.url)[0],
                headers={name.lower(): value for name, value in response.headers.items()},
                body=body,
            )

    def fetch_range(self, url: str, start: int, end: int) -> RangePart:
        """Bytes `start` to before `end`; a negative `start` with `end` 0 asks for the last ones, fewer if it is short.

        Raises:
            EdgeError: as `fetch`; `NO_RANGES` if the server sends whole files only (nothing is downloaded then);
                `LYING_RANGES` if what it sends is not what it was asked for or what it says.
        """
        asked = f"bytes={start}" if start < 0 else f"bytes={start}-{end - 1}"
        with self.open(url, {"Range": asked, "Accept-Encoding": "identity"}) as response:
            if response.status_code != 206:
                raise _no_ranges(url, response.status_code)
            found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", "").strip())
            if found is None:
                raise _lying(url, f"it sends no Content-Range for {asked}")
            first, last = int(found[1]), int(found[2])
            total = None if found[3] == "*" else int(found[3])
            if not _is_honest((first, last), total, start, end):
                raise _lying(url, f"asked for {asked}, it sends bytes {first}-{last} of {found[3]}")
            data = self._read(response, last - first + 2)
            if len(data) != last - first + 1:
                raise _lying(url, f"it says {last - first + 1} bytes and sends {len(data)}")
            return RangePart(data=data, total_bytes=total, etag=response.headers.get("ETag"))

    @contextmanager
    def open(self, url: str, headers: Mapping[str, str] | None = None) -> Iterator[requests.Response]:
        """A response whose body is not read yet, after retries; it is closed when the block ends."""
        bare, auth = split_credentials(url)
        response = self._retried(bare, headers or {}, auth or find_auth(self._places, bare))
        try:
            yield response
        finally:
            response.close()

    def _retried(self, url: str, headers: Mapping[str, str], auth: tuple[str, str] | None) -> requests.Response:
        import requests  # noqa: PLC0415

        wait_s, left = FIRST_WAIT_S, self._attempts
        while True:
            left -= 1
            try:
                response = self._send(url, headers, auth)
            except requests.exceptions.SSLError as cause:
                raise _certificate(url, cause) from cause
            except (requests.ConnectionError, requests.Timeout) as cause:
                if left == 0:
                    raise self._unreached(url, cause) from cause
            except requests.RequestException as cause:
                raise EdgeError(
                    f"{redact_url(url)}: cannot be asked: {type(cause).__name__}", hint="is the address right?"
                ) from cause
            else:
                if response.status_code not in _RETRIED or left == 0:
                    return _checked(response, url, had_credentials=auth is not None)
                wait_s = max(wait_s, _retry_after_s(response))
                response.close()
            time.sleep(min(wait_s, MAX_WAIT_S))
            wait_s *= 2

    def _send(self, url: str, headers: Mapping[str, str], auth: tuple[str, str] | None) -> requests.Response:
        settings = self._settings
        proxies = {"http": settings.proxy, "https": settings.proxy} if settings.proxy else None
        return self._session.get(
            url,
            headers=dict(headers),
            auth=auth,
            stream=True,
            timeout=self._timeout_s,
            proxies=proxies,
            verify=self._verify(url),
            cert=str(settings.client_cert) if settings.client_cert else None,
        )

    def _verify(self, url: str) -> bool | str | None:
        parts = urlsplit(url)
        if {parts.hostname, parts.netloc} & set(self._settings.trusted_hosts):
            return False
        return str(self._settings.cert) if self._settings.cert else None

    def _read(self, response: requests.Response, max_bytes: int) -> bytes:
        """The body as it comes in, so that a server that drips is noticed."""
        import urllib3  # noqa: PLC0415

        deadline = time.monotonic() + SLOW_FACTOR * self._timeout_s
        label = redact_url(response.url)
        parts, size = [], 0
        try:
            while part := response.raw.read1(64 * 1024, decode_content=True):
                parts.append(part)
                size += len(part)
                if size > max_bytes:
                    raise EdgeError(f"{label}: sends more than {max_bytes:,} bytes", reason="TOO_LARGE")
                if time.monotonic() > deadline:
                    raise EdgeError(
                        f"{label}: is still sending after {SLOW_FACTOR * self._timeout_s:.0f} s",
                        hint="raise pip's timeout (PIP_TIMEOUT) or take another index",
                        reason="TIMEOUT",
                    )
        except (urllib3.exceptions.HTTPError, OSError) as cause:
            raise self._unreached(response.url, cause) from cause
        return b"".join(parts)

    def _unreached(self, url: str, cause: BaseException) -> EdgeError:
        import requests  # noqa: PLC0415

        label = redact_url(url)
        if isinstance(cause, requests.Timeout) or "timed out" in str(cause):
            return EdgeError(
                f"{label}: did not answer within {self._timeout_s:g} s",
                hint="try again, raise pip's timeout (PIP_TIMEOUT), or leave the index out with --offline",
                reason="TIMEOUT",
            )
        why = "the proxy does not answer" if isinstance(cause, requests.exceptions.ProxyError) else _innermost(cause)
        return EdgeError(
            f"{label}: cannot be reached: {why}",
            hint="is the address right (`pip config debug`), and the network up? `bump --offline` asks nobody",
            reason="UNREACHABLE",
        )


def _checked(response: requests.Response, url: str, *, had_credentials: bool) -> requests.Response:
    status, label = response.status_code, redact_url(url)
    if status == 401 or (status == 403 and had_credentials):
        response.close()
        raise EdgeError(
            f"{label}: refuses {'these' if had_credentials else 'to answer without'} credentials ({status})",
            hint="give user and password in pip's index URL, or in ~/.netrc",
            reason="CREDENTIALS",
        )
    if status >= 500 or status == 429:
        response.close()
        raise EdgeError(f"{label}: the server answers {status}", hint="try again later", reason="SERVER_ERROR")
    return response


def _is_honest(sent: tuple[int, int], total: int | None, start: int, end: int) -> bool:
    if start < 0:
        return total is not None and sent == (max(0, total + start), total - 1)
    return sent == (start, (end if total is None else min(end, total)) - 1)


def _no_ranges(url: str, status: int) -> EdgeError:
    label = redact_url(url)
    if status in {404, 410}:
        return EdgeError(f"{label}: the index lists this file, but it is not there ({status})", reason="GONE")
    if status == 416:
        return _lying(url, "it says that those bytes are past the end")
    return EdgeError(
        f"{label}: the server sends no parts of files (answered {status} to a range request)",
        hint="ask an index that does, or download the wheel and name its folder with find-links",
        reason="NO_RANGES",
    )


def _lying(url: str, how: str) -> EdgeError:
    return EdgeError(
        f"{redact_url(url)}: the server's byte ranges cannot be trusted: {how}",
        hint="ask another index, or download the wheel and name its folder with find-links",
        reason="LYING_RANGES",
    )


def _certificate(url: str, cause: Exception) -> EdgeError:
    found = re.search(r"certificate verify failed: ([^(\"']*)", str(cause))
    why = found[1].strip() if found else "the TLS handshake failed"
    return EdgeError(
        f"{redact_url(url)}: its certificate is not trusted here: {why}", hint=_CERTIFICATE_HINT, reason="CERTIFICATE"
    )


def _retry_after_s(response: requests.Response) -> float:
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isdigit() else 0.0


def _innermost(cause: BaseException) -> str:
    """The operating system's own words where there are some, at the bottom of the chain of wrapped errors."""
    seen, words = cause, type(cause).__name__
    for _ in range(10):
        text = getattr(seen, "strerror", None)
        words = text if isinstance(text, str) and text else words
        inner = seen.__cause__ or seen.__context__ or getattr(seen, "reason", None)
        if not isinstance(inner, BaseException):
            break
        seen = inner
    return words
