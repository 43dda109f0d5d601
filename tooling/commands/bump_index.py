"""Asks the indexes what a bump has to know: pages, the release's own requirements, pages of what they contradict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tooling.edges.index import IndexClient
from tooling.edges.index_metadata import fetch_metadata
from tooling.edges.pip_config import load_index_settings
from tooling.errors import EdgeError
from tooling.findings import Finding, Severity
from tooling.pins.readers.requirement_lines import matches as is_requirements_file
from tooling.pins.requirements import RequirementLine, parse_requirements
from tooling.pins.scan import Tree
from tooling.pins.texts import SourceText
from tooling.releases.addresses import redact_url
from tooling.releases.assessment import Answers, Place
from tooling.releases.availability import check_availability
from tooling.releases.companions import Contradiction, find_contradictions, needs_of, parse_requires, suspects
from tooling.releases.files import ProjectFiles
from tooling.releases.index_options import read_index_options
from tooling.releases.jit_cache import builds_of, check_cuda_build, cuda_folders, cuda_tag, find_install
from tooling.releases.own_index import droppable, own_index
from tooling.releases.targets import Target, make_targets
from tooling.releases.transaction import Choices
from tooling.releases.wheels import best_wheel


def make_client(tree: Tree, choices: Choices) -> IndexClient:
    """A client for pip's own indexes and those of the tree's requirements files, with the library's own if chosen."""
    options = read_index_options(line for _, lines in requirement_lines(tree) for line in lines)
    return IndexClient(load_index_settings([own_index(tree)] if choices.add_index else [], options=options))


def ask(
    client: IndexClient, tree: Tree, version: Version, choices: Choices, *, skip_cuda: bool, briefly: bool
) -> Answers:
    """Every answer about one release; with `briefly`, a release that lacks a package is not asked about further.

    Raises:
        EdgeError: an index does not answer, or sends what cannot be used.
    """
    places, main = _places(tree, choices), tree.library.main_package
    pages = client.fetch_projects(places)
    targets = make_targets(tree.settings.releases.platforms, tree.variables)
    lacking = [package for package in places if check_availability(package, version, pages[package])]
    dropped = [pin.package for pin in tree.settings.releases.dropped if pin.package not in places]
    return Answers(
        places=places,
        pages={package: pages[package] for package in places},
        in_file=_labels_in_files(tree, choices),
        targets=targets,
        contradictions=()
        if main in lacking or (briefly and lacking)
        else _contradictions(client, tree, version, pages[main], targets),
        cuda_findings=list(_ask_cuda(client, tree, version, skipping=skip_cuda)),
        restorable=client.fetch_projects(dropped),
    )


def requirement_lines(tree: Tree) -> Iterator[tuple[SourceText, list[RequirementLine]]]:
    """Every requirements file of the tree with its lines."""
    for source in tree.texts:
        if is_requirements_file(source.path):
            yield source, parse_requirements(source.text)


def _places(tree: Tree, choices: Choices) -> dict[str, Place]:
    """Every package that will be pinned, with the place of its first pin; the main one always."""
    gone = droppable(tree) if choices.drop else []
    places: dict[str, Place] = {}
    for site in tree.pins:
        if site.package is not None and site.package not in (*gone, *tree.library.cuda_packages):
            places.setdefault(site.package, (site.path, site.line))
    for pin in tree.settings.releases.dropped if choices.restore else ():
        places.setdefault(pin.package, (pin.path, None))
    places.setdefault(tree.library.main_package, (None, None))
    return places


def _labels_in_files(tree: Tree, choices: Choices) -> list[str]:
    options = read_index_options(line for _, lines in requirement_lines(tree) for line in lines)
    own = [own_index(tree)] if choices.add_index else []
    main = [options.index_url] if options.index_url else []
    return [redact_url(url) for url in (*options.extra_index_urls, *options.find_links, *main, *own)]


def _contradictions(
    client: IndexClient, tree: Tree, version: Version, pages: Sequence[ProjectFiles], targets: Sequence[Target]
) -> list[Contradiction] | None:
    """What the release's own metadata contradicts; None if there is no wheel to read it from."""
    wheel = best_wheel(version, pages, targets)
    if wheel is None:
        return None
    requires = parse_requires(fetch_metadata(client, wheel))
    found: list[Contradiction] = []
    for source, lines in requirement_lines(tree):
        needs = _without_own(tree, needs_of(requires, targets, _extras(tree, lines)))
        doubtful = [line.name for line in suspects(lines, needs) if line.name is not None]
        found += find_contradictions(source, lines, needs, client.fetch_projects(doubtful), targets)
    return [replace(item, tied_to=_variable_of(tree, item.package)) for item in found]


def _without_own(tree: Tree, needs: Mapping[str, SpecifierSet]) -> dict[str, SpecifierSet]:
    return {name: needed for name, needed in needs.items() if name not in tree.library.packages}


def _extras(tree: Tree, lines: Sequence[RequirementLine]) -> list[str]:
    """The extras with which the tree asks for the main package."""
    main = tree.library.main_package
    return [extra for line in lines if line.name == main and line.requirement for extra in line.requirement.extras]


def _variable_of(tree: Tree, package: str) -> str | None:
    name = package.upper().replace("-", "_") + "_VERSION"
    return f"{tree.versions_file} ({name})" if name in tree.variables else None


def _ask_cuda(client: IndexClient, tree: Tree, version: Version, *, skipping: bool) -> Iterator[Finding]:
    """Packages built per CUDA, where the tree installs them: looked up in the library's own folder for that CUDA."""
    for package in tree.library.cuda_packages:
        place = find_install(package, tree.texts)
        if place is None:
            continue
        path, line = place
        cuda = tree.variables.get("CUDA_VERSION")
        if cuda is None:
            yield Finding(
                check="no-cuda-build",
                severity=Severity.WARNING,
                path=path,
                line=line,
                detail=f"{package} is installed here, and no CUDA_VERSION says for which CUDA: not checked.",
            )
            continue
        pages = client.fetch_project(package)
        tag, own = cuda_tag(cuda), own_index(tree).rstrip("/")
        if tag is not None and not builds_of(version, tag, pages):
            pages = [*pages, client.fetch_from(f"{own}/{tag}/", package)]
        others = {} if tag and builds_of(version, tag, pages) else _other_builds(client, own, package, version)
        for finding in check_cuda_build(package, version, cuda, pages, others, skipping=skipping):
            yield replace(finding, path=path, line=line)


def _other_builds(client: IndexClient, own: str, package: str, version: Version) -> dict[str, bool]:
    """For which CUDA versions the library's own index has the package; empty if it does not list its folders."""
    try:
        folders = cuda_folders(client.list_names(f"{own}/"))
        return {tag: bool(builds_of(version, tag, [client.fetch_from(f"{own}/{tag}/", package)])) for tag in folders}
    except EdgeError:
        return {}
