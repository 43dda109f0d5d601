"""Texts that look like credentials: in an image's history, environment, labels and files. The finds are never shown."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LOGIN_IN_ADDRESS = r"[a-z][a-z0-9+.-]*://[^\s/:@'\"$]*:(?!\*+@)[^\s/@'\"$]+@"
_PATTERNS = (
    ("a user and password in an address", re.compile(_LOGIN_IN_ADDRESS, re.IGNORECASE)),
    ("a token in an address", re.compile(r"https?://(?!git@)[A-Za-z0-9_\-.]{20,}@", re.IGNORECASE)),
    ("a private key", re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----")),
    ("an access token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{40,}|glpat-[\w-]{20,}"
                                   r"|hf_[A-Za-z0-9]{30,}|pypi-AgE[\w-]{50,}|xox[abprs]-[\w-]{20,}|AKIA[0-9A-Z]{16}|nvapi-[\w-]{40,})")),
    ("a password", re.compile(r"(?im)\b(?:[a-z_]*(?:password|passwd|secret|api_?key|auth_?token|access_?token|_token))"
                              r"\s*[=:]\s*[\"']?(?!\$|\*|<|\{|%)[^\s\"'$]{6,}")),
)  # fmt: skip
_NETRC = re.compile(r"(?m)^\s*(?:machine\s+\S+|default)(?:\s+\S+\s+\S+)*?\s+password\s+\S+")
_DOCKER_AUTH = re.compile(r'"(?:auth|identitytoken)"\s*:\s*"[^"]{4,}"')
_AWS = re.compile(r"(?m)^\s*aws_secret_access_key\s*=\s*\S+")
SECRET_FILES = re.compile(
    r"(?:^|/)(?:\.netrc|_netrc|\.pypirc|pip\.conf|pip\.ini|uv\.toml|\.git-credentials|\.npmrc|\.condarc"
    r"|\.docker/config\.json|\.dockercfg|\.aws/credentials|id_(?:rsa|dsa|ecdsa|ed25519)|\.env|\.config/gh/hosts\.yml"
    r"|\.cache/huggingface/token|auth\.conf(?:\.d/[^/]+)?|sources\.list(?:\.d/[^/]+)?)$"
)
"""Files that hold credentials where somebody forgot them; others are not opened."""


def find_credentials(text: str) -> Iterator[str]:
    """What kinds of credentials the text holds, in words; the text itself is never repeated."""
    for kind, pattern in _PATTERNS:
        if pattern.search(text):
            yield kind


def find_file_credentials(path: str, text: str) -> Iterator[str]:
    """The same for a file that may hold them, by its own format as well."""
    yield from find_credentials(text)
    if path.endswith("netrc") and _NETRC.search(text):
        yield "a password for a machine"
    if "docker" in path and _DOCKER_AUTH.search(text):
        yield "a registry's credentials"
    if path.endswith(".aws/credentials") and _AWS.search(text):
        yield "a cloud's secret key"
    if path.endswith("huggingface/token") and text.strip():
        yield "an access token"
