"""One release judged: every finding about its packages, from what the indexes answered. Asks nothing itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from packaging.version import Version

from tooling.findings import Finding, Severity
from tooling.pins.scan import Tree
from tooling.releases.addresses import AddressRole, redact_url, same_address
from tooling.releases.availability import check_availability
from tooling.releases.companions import Contradiction
from tooling.releases.files import ProjectFiles, files_of, first_uploaded, released_versions
from tooling.releases.own_index import droppable, own_index
from tooling.releases.serving import check_serving, find_serving, is_own_only
from tooling.releases.targets import Target
from tooling.releases.wheels import check_cooldown, check_hashes, check_wheels, collect_sha256

Place = tuple[str | None, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What the indexes said: `pages` by package; `in_file` are labels of the indexes that the tree's own files name.

    `contradictions` is None if the release's requirements could not be read (it has no wheel).
    """

    places: Mapping[str, Place]
    pages: Mapping[str, Sequence[ProjectFiles]]
    in_file: Sequence[str]
    targets: Sequence[Target]
    contradictions: Sequence[Contradiction] | None = ()
    cuda_findings: Sequence[Finding] = ()
    restorable: Mapping[str, Sequence[ProjectFiles]] = field(default_factory=dict)

    def sha256(self, version: Version) -> dict[str, str]:
        """File name to digest of the wheels of every package, as the indexes show them."""
        return {
            name: digest
            for pages in self.pages.values()
            for name, digest in collect_sha256(version, pages, self.targets).items()
        }


def check_packages(
    tree: Tree, version: Version, answers: Answers, *, now: datetime, index_chosen: bool, fresh_allowed: bool
) -> Iterator[Finding]:
    """Findings about every package at exactly that version, each with the place of its first pin."""
    kept, main = tree.settings.releases, tree.library.main_package
    is_release = bool(files_of(answers.pages.get(main, ()), version))
    for package, pages in answers.pages.items():
        missing = check_availability(package, version, pages)
        findings: Iterable[Finding] = (
            [_elsewhere(tree, item, package, pages) if is_release and not index_chosen else item for item in missing]
            if missing
            else [
                *check_wheels(package, version, pages, answers.targets),
                *check_cooldown(package, version, pages, days=kept.cooldown_days, now=now, allowed=fresh_allowed),
                *check_hashes(package, version, pages),
                *check_serving(
                    find_serving(package, version, pages),
                    stated=kept.expected.get(package),
                    own_index=own_index(tree),
                    own_only=is_own_only(package, version, tree.library.own_index_from),
                    pages=pages,
                ),
                *_check_in_file(package, version, pages, answers.in_file),
            ]
        )
        path, line = answers.places.get(package, (None, None))
        yield from (replace(finding, path=path, line=line) for finding in findings)
    yield from answers.cuda_findings


def check_going_back(tree: Tree, version: Version, answers: Answers) -> Iterator[Finding]:
    """Notes on what an earlier bump took out or moved, and this release would take again. Nothing is restored."""
    for package, pages in answers.restorable.items():
        if any(not file.yanked for file in files_of(pages, version)):
            yield Finding(
                check="may-go-back",
                severity=Severity.NOTE,
                detail=f"{package} was dropped by an earlier bump, and {version} of it can be had.",
                hint="--restore-cubin puts it in again",
            )
    for moved in tree.settings.releases.moved:
        if version < Version(moved.at):
            yield Finding(
                check="may-go-back",
                severity=Severity.NOTE,
                path=moved.path,
                detail=f"{moved.package} was moved from {moved.was} to {moved.now} for {moved.at}, "
                f"and this bump goes back to {version}.",
                hint=f"write {moved.package}{moved.was} again if you want what was tested with it",
            )


def describe_packages(version: Version, answers: Answers) -> dict[str, object]:
    """What evidence keeps about every package: who has it, since when, and who would serve it."""
    found: dict[str, object] = {}
    for package, pages in answers.pages.items():
        files = files_of(pages, version)
        uploaded = first_uploaded(files)
        found[package] = {
            "indexes": [page.index for page in pages if page.of(version)],
            "published": None if uploaded is None else uploaded.isoformat(),
            "yanked": bool(files) and all(file.yanked for file in files),
            "served_by": find_serving(package, version, pages).as_json(),
        }
    return found


def _elsewhere(tree: Tree, finding: Finding, package: str, pages: Sequence[ProjectFiles]) -> Finding:
    """A package that left the indexes that are asked: says where it is, and both ways on."""
    own = own_index(tree)
    asked_own = any(same_address(page.index, redact_url(own)) for page in pages)
    if finding.check != "not-published" or package not in droppable(tree) or asked_own:
        return finding
    newest = max(released_versions(pages), default=None)
    until = f"; the newest there is {newest}" if newest else ""
    return replace(
        finding,
        detail=f"{finding.detail}{until}. The library serves later ones from its own index.",
        hint=f"--add-index adds `--extra-index-url {redact_url(own)}` to the requirements file and asks there; "
        "--drop-cubin takes the pin out (kernels are then downloaded or compiled when first used), "
        "and --restore-cubin puts it in again later",
        reason="ELSEWHERE",
    )


def _check_in_file(
    package: str, version: Version, pages: Sequence[ProjectFiles], in_file: Sequence[str]
) -> Iterator[Finding]:
    """An index that only this machine's pip knows: a build on another machine would not find the package."""
    having = [page for page in pages if page.of(version)]
    portable = [page for page in having if page.role is AddressRole.MAIN or page.index in in_file]
    if having and not portable:
        yield Finding(
            check="index-not-in-file",
            severity=Severity.WARNING,
            detail=f"{package} {version} is only on {', '.join(page.index for page in having)}, "
            "which is in this machine's pip configuration and not in the requirements file.",
            hint="builds elsewhere need that index too",
            reason="INDEX_NOT_IN_FILE",
        )
