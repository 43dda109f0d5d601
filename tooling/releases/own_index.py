"""The library's own index: which it is, which packages it alone serves, and pins that were copied without naming it."""

from __future__ import annotations

from collections.abc import Iterator

from tooling.findings import Finding, Severity
from tooling.pins.readers.requirement_lines import matches as is_requirements_file
from tooling.pins.requirements import parse_requirements
from tooling.pins.scan import Tree
from tooling.pins.settings import FILE
from tooling.pins.texts import SourceText
from tooling.releases.addresses import redact_url, same_address
from tooling.releases.index_options import read_index_options
from tooling.releases.serving import is_own_only


def droppable(tree: Tree) -> list[str]:
    """The packages that the library works without: neither the main one nor one that is built per CUDA."""
    library = tree.library
    return [name for name in library.packages if name != library.main_package and name not in library.cuda_packages]


def own_index(tree: Tree) -> str:
    """Where the library serves what public indexes lack: release.toml's mirror, or its own index."""
    return tree.settings.releases.index or tree.library.own_index


def check_own_index(tree: Tree) -> Iterator[Finding]:
    """`index-missing` for a requirements file with such a pin, if neither it nor any other text names the index.

    A warning: a mirror that builds are configured for may serve the package too.
    """
    own = own_index(tree)
    others = [source for source in tree.texts if source.path != FILE and not is_requirements_file(source.path)]
    if any(own.rstrip("/") in source.text for source in others):
        return
    for source in tree.texts:
        if is_requirements_file(source.path) and not _names(source, own):
            yield from _check_pins(tree, source, own)


def _check_pins(tree: Tree, source: SourceText, own: str) -> Iterator[Finding]:
    for site in tree.pins:
        if site.path != source.path or site.package is None or site.version is None:
            continue
        if is_own_only(site.package, site.version, tree.library.own_index_from):
            yield Finding(
                check="index-missing",
                severity=Severity.WARNING,
                path=site.path,
                line=site.line,
                detail=f"{site.package} {site.version} is on {redact_url(own)} only, and this file does not name it.",
                hint=f"`bump {site.version.public} --add-index` adds it; with a mirror of it nothing is missing",
                reason="INDEX_MISSING",
            )


def _names(source: SourceText, own: str) -> bool:
    options = read_index_options(parse_requirements(source.text))
    named = [*options.extra_index_urls, *options.find_links, *([options.index_url] if options.index_url else [])]
    return any(same_address(url, own) for url in named)
