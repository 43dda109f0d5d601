"""uv, asked whether a requirements file resolves for a machine. Resolves only: installs, builds and runs nothing.

uv does not read pip's configuration, so pip's settings are handed to it in variables (never as arguments, which every
user of the machine can read).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote, urlsplit

from tooling.edges.environment import load_environment
from tooling.edges.pip_config import IndexSettings
from tooling.errors import EdgeError
from tooling.redaction import redact_text
from tooling.releases.addresses import IndexAddress
from tooling.releases.resolution import Resolution, parse_conflict, parse_resolved
from tooling.releases.targets import Target

TIMEOUT_S = 900
"""A cold cache and pages with thousands of files took 14 s; a slow index many times that."""
_NOT_REACHED = (
    "Failed to fetch",
    "error sending request",
    "dns error",
    "certificate",
    "timed out",
    "Could not connect",
)


def resolve(root: Path, path: str, target: Target, settings: IndexSettings) -> Resolution:
    """What uv says about that file on that machine.

    Raises:
        EdgeError: uv is missing, does not end, or an index does not answer it.
    """
    command = [
        *(_uv(), "pip", "compile", path, "--no-config", "--no-progress", "--color", "never", "--no-header"),
        *("--annotation-style", "line", "--emit-index-annotation", "--no-build", "--no-python-downloads"),
        *("--python", sys.executable, "--python-version", target.python, "--python-platform", target.uv_platform),
    ]
    environ = {**_without_uv(load_environment()), **uv_environment(settings)}
    try:
        done = subprocess.run(
            command, cwd=root, env=environ, capture_output=True, text=True, check=False, timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired as cause:
        raise EdgeError(f"uv found no answer for {target} within {TIMEOUT_S} s", reason="TIMEOUT") from cause
    except OSError as cause:
        raise EdgeError(f"uv cannot be started: {cause.strerror}", hint="install the package uv") from cause
    if done.returncode == 0:
        return Resolution(target=str(target), packages=parse_resolved(done.stdout))
    conflict = parse_conflict(done.stderr)
    if conflict is None:
        raise _failed(done.stderr, target)
    return Resolution(target=str(target), conflict=conflict)


def uv_environment(settings: IndexSettings) -> dict[str, str]:
    """The settings of pip as uv's variables (uv's documentation, "Environment variables"). Holds credentials."""
    environ = {
        "UV_DEFAULT_INDEX": _with_credentials(settings.main) if settings.main and not settings.no_index else "",
        "UV_EXTRA_INDEX_URL": "" if settings.no_index else " ".join(map(_with_credentials, settings.extra)),
        "UV_FIND_LINKS": ",".join(_with_credentials(link) for link in settings.find_links if _exists(link)),
        "UV_NO_INDEX": "1" if settings.no_index else "",
        "UV_CONSTRAINT": " ".join(settings.constraints),
        "UV_INSECURE_HOST": " ".join(settings.trusted_hosts),
        "UV_INDEX_STRATEGY": "unsafe-best-match" if needs_best_match(settings) else "",
        "UV_HTTP_TIMEOUT": str(max(30, round(settings.timeout_s))),
        "UV_HTTP_RETRIES": "" if settings.retries is None else str(settings.retries),
        "SSL_CERT_FILE": str(settings.cert or ""),
        "SSL_CLIENT_CERT": str(settings.client_cert or ""),
        "ALL_PROXY": settings.proxy or "",
    }
    return {name: value for name, value in environ.items() if value}


def needs_best_match(settings: IndexSettings) -> bool:
    """True with several indexes: pip weighs them all, uv by itself stops at the first that has a package."""
    return not settings.no_index and bool(settings.extra)


def _uv() -> str:
    try:
        from uv import find_uv_bin  # noqa: PLC0415 - only where it is asked

        return os.fspath(find_uv_bin())
    except (ImportError, FileNotFoundError) as cause:
        raise EdgeError("uv is not installed beside this tool", hint="`pip install uv`", reason="NO_UV") from cause


def _without_uv(environ: dict[str, str]) -> dict[str, str]:
    """The environment without settings of uv's own: the question is what pip's settings give."""
    keep = {"UV_CACHE_DIR", "UV_CONCURRENT_DOWNLOADS"}
    return {name: value for name, value in environ.items() if not name.startswith("UV_") or name in keep}


def _with_credentials(address: IndexAddress) -> str:
    if address.auth is None:
        return address.url
    user, password = (quote(part, safe="") for part in address.auth)
    parts = urlsplit(address.url)
    return parts._replace(netloc=f"{user}:{password}@{parts.netloc}").geturl()


def _exists(link: IndexAddress) -> bool:
    return link.is_remote or link.url.startswith("file:") or Path(link.url).expanduser().exists()


def _failed(stderr: str, target: Target) -> EdgeError:
    first = next((line.strip() for line in stderr.splitlines() if line.startswith("error")), "no words of its own")
    if any(sign in stderr for sign in _NOT_REACHED):
        cause = next((line.strip() for line in stderr.splitlines() if "cause:" in line or "Caused by" in line), "")
        return EdgeError(
            f"uv could not reach an index for {target}: {redact_text(f'{first} {cause}'.strip())}",
            hint="is it reachable from here, and its certificate known (`pip config get global.cert`)?",
            reason="UNREACHABLE",
        )
    return EdgeError(f"uv failed for {target}: {redact_text(first)}", reason="UV_FAILED")
