"""Index pages kept on disk between runs; the index is asked each time whether they still hold (ETag, RFC 9110).

A cache that cannot be read or written is no cache, never an error. Only the user can enter its folder.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tooling.edges.environment import load_environment
from tooling.edges.files.durable import replace_file
from tooling.edges.index_http import Answer
from tooling.releases.addresses import redact_url


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCache:
    """Answers by URL, in one folder."""

    folder: Path

    def load(self, url: str) -> Answer | None:
        """The kept answer to that URL, or None."""
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            head, _, body = self._path(url).read_bytes().partition(b"\n")
            facts = json.loads(head)
            if facts["sha256"] == hashlib.sha256(body).hexdigest():
                headers = {str(name): str(value) for name, value in facts["headers"].items()}
                return Answer(status=200, url=str(facts["url"]), headers=headers, body=body)
        return None

    def save(self, url: str, answer: Answer) -> None:
        """Keeps a full answer that can be asked about later; forgets others."""
        headers = {
            name: value for name, value in answer.headers.items() if name in {"etag", "last-modified", "content-type"}
        }
        if answer.status != 200 or not headers.keys() & {"etag", "last-modified"} or redact_url(url) != url:
            return
        facts = {"url": answer.url, "headers": headers, "sha256": hashlib.sha256(answer.body).hexdigest()}
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._path(url), json.dumps(facts).encode() + b"\n" + answer.body)

    def _path(self, url: str) -> Path:
        return self.folder / hashlib.sha256(url.encode()).hexdigest()


def conditions(kept: Answer | None) -> dict[str, str]:
    """Headers that make the index answer 304 if the kept page still holds."""
    if kept is None:
        return {}
    names = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
    return {names[name]: value for name, value in kept.headers.items() if name in names}


def default_cache() -> PageCache:
    """The user's own, in `$XDG_CACHE_HOME` or `~/.cache`."""
    environ = load_environment()
    base = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME") or str(Path.home()), ".cache")
    return PageCache(folder=Path(base) / "flashinfer-pin-pipeline" / "pages")
