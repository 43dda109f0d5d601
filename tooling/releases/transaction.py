"""What a bump writes besides the pins, in the same transaction: index, dropped pin, companions, release.toml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tooling.findings import Finding, Severity
from tooling.pins.drift import check_pins
from tooling.pins.plan import BumpPlan
from tooling.pins.readers.requirement_lines import matches as is_requirements_file
from tooling.pins.release_settings import DroppedPin, MovedCompanion, ReleaseSettings
from tooling.pins.requirements import parse_requirements
from tooling.pins.scan import Tree, scan
from tooling.pins.settings import FILE, parse_settings
from tooling.pins.sites import same_release
from tooling.pins.texts import FileEdit, SourceText
from tooling.releases.companions import Contradiction, move_companions, specifier_text
from tooling.releases.own_index import droppable, own_index
from tooling.releases.requirement_edits import add_index, drop_line, restore_line
from tooling.releases.settings_edits import write_kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the caller chose about packages that are elsewhere, and about companions."""

    add_index: bool = False
    drop: bool = False
    restore: bool = False
    with_companions: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """The plan with every further edit in it, what these did, and what forbids them."""

    plan: BumpPlan
    dropped: tuple[DroppedPin, ...] = ()
    restored: tuple[DroppedPin, ...] = ()
    index_added: tuple[str, ...] = ()
    companions: tuple[MovedCompanion, ...] = ()
    refusals: tuple[Finding, ...] = ()


def plan_transaction(
    tree: Tree,
    plan: BumpPlan,
    choices: Choices,
    *,
    settings_text: SourceText | None,
    contradictions: Iterable[Contradiction] = (),
    sha256: Mapping[str, str] | None = None,
) -> Transaction:
    """The plan with the choices carried out; `sha256` None means that no index was asked.

    The result is read again as a tree: it must have no drift, and every pin at the target. Where the tree is only a
    part of its pins (`--only`), the others may stand elsewhere, and the digests stay those of the whole.
    """
    kept, is_part = tree.settings.releases, _is_part(tree)
    work = _Work(tree, plan, kept)
    if choices.drop:
        work.drop(droppable(tree))
    if choices.restore:
        work.restore()
    if choices.add_index:
        work.add_index(own_index(tree))
    if choices.with_companions:
        work.move([item for item in contradictions if item.lowest is not None and item.tied_to is None])
    if settings_text is not None:
        work.keep(settings_text, kept.sha256 if is_part else sha256)
    edits = work.edits(settings_text)
    return Transaction(
        plan=replace(plan, edits=edits),
        dropped=tuple(work.dropped),
        restored=tuple(work.restored),
        index_added=tuple(work.index_added),
        companions=tuple(work.companions),
        refusals=(*work.refusals, *(_check_result(tree, plan, work.texts) if edits and not is_part else ())),
    )


class _Work:
    """The texts as they become, and what was done to them."""

    def __init__(self, tree: Tree, plan: BumpPlan, kept: ReleaseSettings) -> None:
        self._tree, self._plan, self._kept = tree, plan, kept
        self.texts = {source.path: source.text for source in tree.texts}
        self.texts |= {edit.path: edit.after.decode() for edit in plan.edits}
        self.dropped: list[DroppedPin] = []
        self.restored: list[DroppedPin] = []
        self.index_added: list[str] = []
        self.companions: list[MovedCompanion] = []
        self.refusals: list[Finding] = []

    def drop(self, packages: Sequence[str]) -> None:
        for path in self._requirements_files():
            for package in packages:
                self.texts[path], pin = drop_line(self.texts[path], package, path=path, at=str(self._plan.to))
                self.dropped += [pin] if pin is not None else []
        lines = {pin.path for pin in self.dropped}
        for site in self._tree.pins:
            if site.package in packages and site.path not in lines:
                self._refuse(
                    f"{site.package} is pinned here, where --drop-cubin cannot take it out.", site.path, site.line
                )

    def restore(self) -> None:
        for pin in self._kept.dropped:
            if pin.path not in self.texts:
                self._refuse(f"{pin.package} stood in {pin.path}, which is not there any more.", FILE, None)
                continue
            self.texts[pin.path] = restore_line(self.texts[pin.path], pin, str(self._plan.to))
            self.restored.append(pin)
        if not self._kept.dropped:
            self._refuse("no dropped pin is written down here, so there is nothing to restore.", FILE, None)

    def add_index(self, url: str) -> None:
        wanting = [*droppable(self._tree), *self._tree.library.cuda_packages]
        for path in self._requirements_files():
            if any(line.name in wanting for line in parse_requirements(self.texts[path])):
                before, self.texts[path] = self.texts[path], add_index(self.texts[path], url)
                self.index_added += [path] if self.texts[path] != before else []

    def move(self, contradictions: Sequence[Contradiction]) -> None:
        for path in dict.fromkeys(item.path for item in contradictions):
            here = [item for item in contradictions if item.path == path]
            self.texts[path] = move_companions(self.texts[path], here)
            self.companions += [self._moved(item) for item in here]

    def keep(self, settings: SourceText, sha256: Mapping[str, str] | None) -> None:
        """release.toml as it becomes. Digests of another release are never left standing."""
        same = self._plan.from_version is not None and same_release(self._plan.from_version, self._plan.to)
        if sha256 is None:
            sha256 = self._kept.sha256 if same else {}
        gone = {(pin.package, pin.path) for pin in self.restored}
        left = [pin for pin in self._kept.dropped if (pin.package, pin.path) not in gone]
        renewed = {(item.package, item.path) for item in self.companions}
        holding = [item for item in self._kept.moved if (item.package, item.path) not in renewed and self._holds(item)]
        self.texts[FILE] = write_kept(
            settings.text, sha256=sha256, dropped=[*left, *self.dropped], moved=[*holding, *self.companions]
        )

    def edits(self, settings: SourceText | None) -> tuple[FileEdit, ...]:
        """One edit a file: release.toml is among the tree's texts too where it names the library."""
        sources = [*self._tree.texts]
        if settings is not None and self._tree.text(settings.path) is None:
            sources.append(settings)
        changed = [source for source in sources if self.texts[source.path] != source.text]
        return tuple(
            FileEdit(path=source.path, before=source.raw, after=self.texts[source.path].encode()) for source in changed
        )

    def _requirements_files(self) -> list[str]:
        return [source.path for source in self._tree.texts if is_requirements_file(source.path)]

    def _moved(self, item: Contradiction) -> MovedCompanion:
        """Moved a second time, it still says where it came from."""
        earlier = next((old for old in self._kept.moved if (old.package, old.path) == (item.package, item.path)), None)
        was = earlier.was if earlier is not None and self._holds(earlier) else str(item.pinned)
        return MovedCompanion(
            package=item.package, path=item.path, was=was, now=item.new_specifier, at=str(self._plan.to)
        )

    def _holds(self, item: MovedCompanion) -> bool:
        source = self._tree.text(item.path)
        lines = parse_requirements(source.text) if source is not None else []
        return any(line.name == item.package and specifier_text(line) == item.now for line in lines)

    def _refuse(self, detail: str, path: str | None, line: int | None) -> None:
        self.refusals.append(
            Finding(check="choice", path=path, line=line, detail=detail, hint="edit it by hand", reason="NO_EFFECT")
        )


def _is_part(tree: Tree) -> bool:
    """True if the tree was restricted to some of the pins that its texts hold."""
    whole = scan(tree.texts, library=tree.library, settings=tree.settings, versions_file=tree.versions_file)
    return len(whole.pins) != len(tree.pins)


def _check_result(tree: Tree, plan: BumpPlan, texts: Mapping[str, str]) -> list[Finding]:
    """Reads the texts as they become: what a check would refuse, or a pin elsewhere, refuses the whole bump."""
    settings = parse_settings(texts[FILE]) if FILE in texts else tree.settings
    after = scan(
        [SourceText(path, text) for path, text in texts.items() if path != FILE],
        library=tree.library,
        settings=settings,
        versions_file=tree.versions_file,
    )
    left = [site for site in after.pins if not same_release(site.version, plan.to)]
    findings = [finding for finding in check_pins(after) if finding.severity is Severity.ERROR]
    known = {(finding.check, finding.path) for finding in plan.refusals}
    if left:
        findings.append(
            Finding(
                check="no-effect",
                path=left[0].path,
                line=left[0].line,
                detail=f"{left[0].spelling} would still stand here.",
                reason="NO_EFFECT",
            )
        )
    return [finding for finding in findings if (finding.check, finding.path) not in known]
