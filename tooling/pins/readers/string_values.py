"""Versions in one string value of a data format (TOML, YAML, JSON, Python): what kind of text it is, what it pins."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tooling.pins.library import Library
from tooling.pins.patterns import late
from tooling.pins.readers.phrases import COMMIT, HASH, VERSION, Span, find_addresses, find_images, find_phrases
from tooling.pins.readers.shell_text import find_shell
from tooling.pins.shell_syntax import blank_comments
from tooling.pins.sites import Role

_EXACT = late(rf"\s*(?:===?)?\s*(?P<version>{VERSION})\s*")
_BOUND = late(rf"\s*(?:[~^<>!]=?|~=)\s*(?P<version>{VERSION})")
_COMMIT = late(COMMIT)
_DEFAULT = late(
    rf"\s*\$\{{(?:\w+:?[-=][\"']?(?P<shell>{VERSION})[\"']?|\{{[^{{}}]*\|\|\s*[\"'](?P<expression>{VERSION})[\"']\s*\}})\}}\s*"
)
_HASH = late(HASH)
_SCRIPT = late(r"\b(?:pip3?|uv|conda|mamba|git|gh|curl|wget|export|docker|python3?|make|bash|sh|cd)\s+[-\w./\"'$]")
_SETTING = late(r"\s*(?:--?)?[\w.*-]+=\S+\s*")
_SENTENCE = late(r"[A-Za-z]{2,}\s+[A-Za-z]{2,}")


def find_in_value(value: str, library: Library, *, is_script: bool = False) -> Iterator[Span]:
    """A requirement, an address, an image, a setting or shell; in any other text a version is prose."""
    if is_script or "\n" in value.strip() or _SCRIPT.search(value) or _SETTING.fullmatch(value):
        yield from find_shell(blank_comments(value), library)
        return
    is_requirement = _is_requirement(value, library)
    for span in find_phrases(value, library):
        keeps = is_requirement or span.shape in {"variable-default", "image-tag"} or span.role is not Role.PIN
        yield span if keeps else span.with_role(Role.PROSE)
    if not _SENTENCE.search(value):
        yield from find_images(value, library)


def find_bound(value: str, *, shape: str, package: str | None = None) -> Iterator[Span]:
    """The version of a value that is nothing but one, as it stands under a key that names the library."""
    exact = _EXACT.fullmatch(value)
    match = exact or _BOUND.match(value)
    if match is not None:
        role = Role.PIN if exact else Role.MINIMUM
        yield Span(start=match.start("version"), end=match.end("version"), shape=shape, role=role, package=package)
    elif default := _DEFAULT.fullmatch(value):
        group = "shell" if default["shell"] else "expression"
        yield Span(start=default.start(group), end=default.end(group), shape="variable-default", package=package)
    elif (_HASH if shape == "git-ref" else _COMMIT).fullmatch(value):
        yield Span(start=0, end=len(value), shape="git-commit", role=Role.USE)


def names_home(url: str, library: Library) -> bool:
    """True if that is the address of the library's repository, or `owner/name` of it or of a fork."""
    address = url if "://" in url or url.startswith("git@") else f"https://host/{url}"
    return any(span.shape == "git-address" for span in find_addresses(f"{address.rstrip('/')}@v0.0", library))


def _is_requirement(value: str, library: Library) -> bool:
    """True if the value is a requirement, an address or a file's name, and nothing else."""
    text = value.strip()
    if re.match(r"(?:git\+)?\w+://\S+$", text) or re.fullmatch(r"\S+\.(?:whl|tar\.gz|tgz|zip)", text):
        return True
    first = re.match(r"[A-Za-z0-9._-]+", text)
    if first is None or library.package_of(first.group()) is None:
        return False
    return _SENTENCE.search(text.partition(";")[0]) is None
