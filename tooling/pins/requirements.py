"""Requirements files, pip's format: logical lines with their positions, requirements by PEP 508, options by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from tooling.pins.patterns import late

_COMMENT = late(r"(?:^|(?<=\s))#.*")
_OPTION_AFTER = late(r"\s+--?[A-Za-z]")
_SPACES = late(r"\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementLine:
    """One logical line, a requirement or an option, without comment and options; `offset` is its first character.

    `requirement` is None for an option line (`--extra-index-url …`) and for text that is no PEP 508 requirement;
    `is_hashed` says that `--hash` stood behind it.
    """

    text: str
    offset: int
    requirement: Requirement | None
    is_hashed: bool = False

    @property
    def name(self) -> str | None:
        """The normalised package name."""
        return None if self.requirement is None else canonicalize_name(self.requirement.name)

    @property
    def exact_version(self) -> str | None:
        """X of a single `==X` without a wildcard, as it is written; else None."""
        if self.requirement is None or len(self.requirement.specifier) != 1:
            return None
        (specifier,) = self.requirement.specifier
        exact = specifier.operator in {"==", "==="} and not specifier.version.endswith(".*")
        return specifier.version if exact else None

    def covers(self, offset: int) -> bool:
        """True if that character of the file is the line's."""
        return self.offset <= offset < self.offset + len(self.text)

    @property
    def is_option(self) -> bool:
        return self.text.startswith("-")


def parse_requirements(text: str, *, keeps: Callable[[str], bool] = bool) -> list[RequirementLine]:
    """Every logical line that is not empty, not a comment, and one that `keeps` is true of; parsing is what costs."""
    return [_parse_line(line, offset) for line, offset in _logical_lines(text) if line and keeps(line)]


def _parse_line(line: str, offset: int) -> RequirementLine:
    if line.startswith("-"):
        return RequirementLine(text=line, offset=offset, requirement=None)
    options = _OPTION_AFTER.search(line)
    head = line if options is None else line[: options.start()]
    is_hashed = "--hash" in line
    try:
        return RequirementLine(text=head, offset=offset, requirement=Requirement(head), is_hashed=is_hashed)
    except InvalidRequirement:
        return RequirementLine(text=head, offset=offset, requirement=None, is_hashed=is_hashed)


def _logical_lines(text: str) -> Iterator[tuple[str, int]]:
    """Lines joined over a trailing backslash; breaks and byte order marks become spaces, one for one: offsets hold."""
    offset, pending, start = 0, "", 0
    for physical in text.replace("\ufeff", " ").splitlines(keepends=True):
        body = physical.rstrip("\r\n")
        ending = physical[len(body) :]
        if not pending:
            start = offset
        offset += len(physical)
        if body.endswith("\\") and not _COMMENT.match(body.lstrip()):
            pending += body[:-1] + " " * (1 + len(ending))
            continue
        yield _trim(pending + body, start)
        pending = ""
    if pending:
        yield _trim(pending, start)


def _trim(line: str, start: int) -> tuple[str, int]:
    line = _COMMENT.sub("", line).rstrip()
    lead = _SPACES.match(line)
    skipped = lead.end() if lead else 0
    return line[skipped:], start + skipped
