"""Secrets of addresses taken out of any text that is shown or recorded. What an index's address is, `releases` says."""

from __future__ import annotations

import re

HIDDEN = "****"
_USERINFO = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#@]*(?:@[^\s/?#@]*)*@")
_QUERY = re.compile(r"(?P<address>[A-Za-z][A-Za-z0-9+.-]*://[^\s?#\"'`<>]*\?)(?P<query>[^\s#\"'`<>]+)")
_VERSION = re.compile(r"[vV]?\d+(?:\.\d+)+(?:\.?[a-z]{1,4}\d{1,4})?")


def redact_text(text: str) -> str:
    """The text with users, passwords and queries of the addresses in it hidden; a version in a query stays."""
    if "://" not in text:
        return text
    return _QUERY.sub(_redact_query, _USERINFO.sub(rf"\g<scheme>{HIDDEN}@", text))


def _redact_query(match: re.Match[str]) -> str:
    return match["address"] + "&".join(_redact_parameter(item) for item in match["query"].split("&"))


def _redact_parameter(parameter: str) -> str:
    name, equals, value = parameter.partition("=")
    if not equals:
        return HIDDEN
    return parameter if _VERSION.fullmatch(value) else f"{name}={HIDDEN}"
