"""Where an evaluation's problems lie: in a folder, at a URL with pinned digests, or in the project itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tooling.gsm8k.fields import Fields

PUBLIC_TEST_SHA256 = "3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14"
PUBLIC_TRAIN_SHA256 = "17f347dc51477c50d4efb83959dbb7c56297aba886e5544ee2aaed3024813465"
"""The published GSM8K files (1,319 and 7,473 problems), which a URL without a pin of its own must have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataLocation:
    """A folder or a URL that holds `train.jsonl` and `test.jsonl`; neither: the problems that the project ships."""

    folder: str | None = None
    url: str | None = None
    test_sha256: str | None = None
    train_sha256: str | None = None


def parse_location(text: str) -> DataLocation:
    """A folder or a URL, as the command line takes it; a URL must then hold the published files."""
    if re.match(r"https?://", text):
        return _pinned(DataLocation(url=text))
    return DataLocation(folder=text)


def read_location(fields: Fields) -> DataLocation:
    """What the key `data` says: a text as the command line takes it, or a mapping; its problems are the fields'."""
    value = fields.take("data", {})
    inner = Fields(value if isinstance(value, dict) else {}, prefix="data.", problems=fields.problems)
    if isinstance(value, str) and value:
        return parse_location(value)
    if not isinstance(value, dict):
        fields.complain("data", value, "a folder, a URL, or folder/url with test_sha256 and train_sha256")
    location = DataLocation(
        folder=inner.text("folder"),
        url=inner.text("url"),
        test_sha256=_sha256(inner, "test_sha256"),
        train_sha256=_sha256(inner, "train_sha256"),
    )
    if location.folder and location.url:
        fields.problems.append("data: found folder and url, expected one of them")
    if location.url and not re.match(r"https?://[^/\s]", location.url):
        inner.complain("url", location.url, "an http or https address")
    fields.problems += [f"data.{key}: is not known" for key in inner.unknown]
    return _pinned(location)


def _pinned(location: DataLocation) -> DataLocation:
    if location.url is None:
        return location
    return DataLocation(
        url=location.url,
        test_sha256=location.test_sha256 or PUBLIC_TEST_SHA256,
        train_sha256=location.train_sha256 or PUBLIC_TRAIN_SHA256,
    )


def _sha256(fields: Fields, key: str) -> str | None:
    value = fields.text(key)
    if value is not None and not re.fullmatch(r"[0-9a-f]{64}", value):
        fields.complain(key, value, "64 lower-case hexadecimal digits")
    return value
