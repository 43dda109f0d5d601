"""What a release requires (core metadata, PEP 566) against what a requirements file pins, and the ways out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from tooling.findings import Finding, Severity
from tooling.pins.requirements import RequirementLine, parse_requirements
from tooling.pins.texts import Replacement, SourceText, replace_spans
from tooling.releases.files import ProjectFiles, all_files, released_versions
from tooling.releases.targets import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """A line of a requirements file that a release does not allow.

    `pinned` is the file's specifier, `needed` the release's; `lowest` is the lowest published version that would do,
    None if there is none; `tied_to` names the variable of the versions file that holds the same pin.
    """

    package: str
    path: str
    line: int
    text: str
    pinned: SpecifierSet
    needed: SpecifierSet
    lowest: Version | None
    tied_to: str | None = None

    def as_json(self) -> dict[str, object]:
        return {
            "package": self.package,
            "path": self.path,
            "line": self.line,
            "pinned": str(self.pinned),
            "needed": str(self.needed),
            "lowest": None if self.lowest is None else str(self.lowest),
        }

    @property
    def new_specifier(self) -> str:
        """What takes the place of the file's specifier: an exact pin stays one, a range becomes the release's own."""
        return f"=={self.lowest}" if _is_exact(self.pinned) else str(self.needed)


def parse_requires(metadata: str) -> list[Requirement]:
    """Every `Requires-Dist` of a METADATA file that is a valid requirement (PEP 508)."""
    found: list[Requirement] = []
    for text in HeaderParser().parsestr(metadata).get_all("Requires-Dist") or []:
        try:
            found.append(Requirement(str(text)))
        except InvalidRequirement:
            continue
    return found


def needs_of(
    requires: Iterable[Requirement], targets: Sequence[Target], extras: Iterable[str] = ()
) -> dict[str, SpecifierSet]:
    """Normalised name to specifier, for the requirements that hold on at least one of the machines."""
    wanted = ["", *extras]
    needs: dict[str, SpecifierSet] = {}
    for requirement in requires:
        marker = requirement.marker
        if marker is None or any(marker.evaluate(target.environment(extra)) for target in targets for extra in wanted):
            name = canonicalize_name(requirement.name)
            needs[name] = needs.get(name, SpecifierSet()) & requirement.specifier
    return needs


def suspects(lines: Iterable[RequirementLine], needs: Mapping[str, SpecifierSet]) -> list[RequirementLine]:
    """Lines whose package the release needs in some range: their published versions decide, or an exact pin does."""
    return [line for line in lines if line.name in needs and line.requirement is not None and _may_clash(line, needs)]


def find_contradictions(
    source: SourceText,
    lines: Iterable[RequirementLine],
    needs: Mapping[str, SpecifierSet],
    pages: Mapping[str, Sequence[ProjectFiles]],
    targets: Sequence[Target],
) -> list[Contradiction]:
    """Every pin of the file that the needs contradict; `pages` are those of the suspects."""
    found = []
    for line in suspects(lines, needs):
        if line.requirement is None or line.name is None:
            continue
        pinned, needed = line.requirement.specifier, needs[line.name]
        published = released_versions(pages.get(line.name, []))
        if not _is_exact(pinned) and any(
            (pinned & needed).contains(version, prereleases=True) for version in published
        ):
            continue
        found.append(
            Contradiction(
                package=line.name,
                path=source.path,
                line=source.line_and_column(line.offset)[0],
                text=line.text,
                pinned=pinned,
                needed=needed,
                lowest=lowest_version(needed, pages.get(line.name, []), targets),
            )
        )
    return found


def lowest_version(needed: SpecifierSet, pages: Sequence[ProjectFiles], targets: Sequence[Target]) -> Version | None:
    """The lowest published version that satisfies the specifier and has a wheel for every machine; finals first."""
    fitting: dict[Version, set[str]] = {}
    for file in all_files(pages):
        if not file.yanked and needed.contains(file.version, prereleases=True):
            places = {str(target) for target in targets if target.takes(file)}
            fitting.setdefault(Version(file.version.public), set()).update(places)
    usable = [version for version, places in fitting.items() if len(places) == len(targets)]
    finals = [version for version in usable if not version.is_prerelease]
    return min(finals or usable, default=None)


def check_companions(
    release: str, contradictions: Iterable[Contradiction], *, moving: bool, keeping: bool
) -> Iterator[Finding]:
    """`companion` for each: an error, unless they are moved along (a note) or kept on purpose (a warning)."""
    for item in contradictions:
        movable = item.lowest is not None and item.tied_to is None
        severity = Severity.NOTE if moving and movable else Severity.WARNING if keeping else Severity.ERROR
        yield Finding(
            check="companion",
            severity=severity,
            path=item.path,
            line=item.line,
            detail=f"{release} needs {item.package}{item.needed}, and {item.package}{item.pinned} stands here"
            + (f"; the lowest that would do is {item.lowest}." if item.lowest else "; no published version would do."),
            hint=_way_out(item, moving=moving and movable, keeping=keeping),
            reason="COMPANION",
        )


def move_companions(text: str, contradictions: Iterable[Contradiction]) -> str:
    """A requirements file's text with the new specifiers in place; markers, extras, options and comments stay."""
    by_line = {(item.package, item.text): item for item in contradictions}
    edits = []
    for line in parse_requirements(text):
        if line.name is not None and (item := by_line.get((line.name, line.text))) is not None:
            start, end = _specifier_span(line.text)
            edits.append(Replacement(start=line.offset + start, end=line.offset + end, new=item.new_specifier))
    return replace_spans(text, edits)


def specifier_text(line: RequirementLine) -> str:
    """The specifier as the line spells it."""
    start, end = _specifier_span(line.text)
    return line.text[start:end]


def _way_out(item: Contradiction, *, moving: bool, keeping: bool) -> str:
    if moving:
        return f"moved to {item.package}{item.new_specifier}"
    if item.tied_to is not None:
        return f"it is also in {item.tied_to}: move both by hand" if not keeping else ""
    if keeping:
        return ""
    return "--with-companions moves it in the same transaction, --keep-companions leaves it"


def _specifier_span(text: str) -> tuple[int, int]:
    """From the first comparison to the marker, in the text of one requirement."""
    end = len(text.partition(";")[0].rstrip())
    starts = [position for sign in "=<>!~" if (position := text.find(sign, 0, end)) >= 0]
    start = min(starts, default=end)
    if start > 0 and text[start - 1] == "(" and text[end - 1 : end] == ")":
        end -= 1
    return start, end


def _may_clash(line: RequirementLine, needs: Mapping[str, SpecifierSet]) -> bool:
    if line.requirement is None or line.name is None or line.requirement.url or not line.requirement.specifier:
        return False
    if line.exact_version is None:
        return True
    return not needs[line.name].contains(line.exact_version, prereleases=True)


def _is_exact(specifier: SpecifierSet) -> bool:
    return any(item.operator in {"==", "==="} and not item.version.endswith(".*") for item in specifier)
