"""Which files of an image are opened, by path and size; everything else is only listed. Decides by name alone."""

from __future__ import annotations

import re

from tooling.images.credentials import SECRET_FILES

MAX_TEXT_BYTES = 1_000_000
"""The largest METADATA seen among the pinned packages has 60 kB."""
MAX_PROGRAM_BYTES = 200_000_000
"""nvcc 13.0 has 33 MB."""
_TEXTS = re.compile(
    r"(?:^|/)(?:[^/]+\.dist-info/(?:METADATA|direct_url\.json)|[^/]+\.egg-info(?:/PKG-INFO)?|pyvenv\.cfg)$"
    r"|^etc/(?:passwd|group|os-release|environment|profile|profile\.d/[^/]+)$|^usr/lib/os-release$|^opt/pins/[^/]+$"
)
_PROGRAM = re.compile(r"(?:^|/)bin/nvcc$")


def is_wanted(path: str, size_bytes: int) -> bool:
    """True if a check reads the file's content. `path` has no leading slash."""
    if _PROGRAM.search(path):
        return size_bytes <= MAX_PROGRAM_BYTES
    return size_bytes <= MAX_TEXT_BYTES and bool(_TEXTS.search(path) or SECRET_FILES.search(path))
