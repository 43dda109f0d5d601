"""What a table of samples is: a path, its text, and every site in it as `spelling role package`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from textwrap import dedent

import pytest
from packaging.version import Version

from tooling.edges.packaged_data import load_library
from tooling.pins.library import Library
from tooling.pins.plan import plan_bump
from tooling.pins.readers import read_sites
from tooling.pins.scan import scan
from tooling.pins.settings import Settings
from tooling.pins.sites import PinSite, Role
from tooling.pins.texts import SourceText

TARGET = Version("9.8.7.post6")


@dataclass(frozen=True)
class Sample:
    """`sites` lists what must be found, in order; uses and prose count too, unless `sites` names none of them."""

    path: str
    text: str
    sites: tuple[str, ...]


@cache
def library() -> Library:
    return load_library()


def sample(name: str, path: str, text: str, *sites: str) -> object:
    """One row of a table."""
    return pytest.param(Sample(path, dedent(text), sites), id=name)


def read(path: str, text: str, *aliases: str) -> list[PinSite]:
    return read_sites(SourceText(path, text), library().with_aliases(aliases))


def shown(site: PinSite) -> str:
    package = "" if site.package is None else f" {site.package.removeprefix('flashinfer-')}"
    return f"{site.spelling} {site.role}{package}"


def check_sample(item: Sample) -> None:
    """The sites are as the table says, and a bump moves the pins among them, all of them and nothing else."""
    source = SourceText(item.path, item.text)
    found = read_sites(source, library())
    assert [shown(site) for site in found] == list(item.sites)
    pins = [site for site in found if site.role is Role.PIN]
    tree = scan([source], library=library(), settings=Settings(), versions_file=None)
    plan = plan_bump(tree, TARGET, from_any=True)
    assert len(plan.moves) == len(pins)
    if not pins:
        assert plan.edits == ()
        return
    assert [item for item in plan.refusals if item.check == "no-effect"] == []
    (edit,) = plan.edits
    assert without_spans(edit.after.decode(), read(item.path, edit.after.decode())) == without_spans(item.text, found)


def without_spans(text: str, sites: list[PinSite]) -> str:
    """The text with every pin cut out: what no bump may change."""
    parts, done = [], 0
    for site in sites:
        if site.role is Role.PIN:
            parts.append(text[done : site.start])
            done = site.end
    return "|".join([*parts, text[done:]])
