"""Whether a text can name an image. Whether there is one of that name, the engine or its registry says.

The form is the grammar of the distribution project's `reference` package: [REGISTRY[:PORT]/]PATH[:TAG][@DIGEST].
"""

from __future__ import annotations

import re

_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,}"
_NAME = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::{_TAG})?(?:@{_DIGEST})?")


def is_image_name(text: str) -> bool:
    """True for names and for image ids (`sha256:HEX`, or a part of the digits)."""
    return _NAME.fullmatch(text) is not None
