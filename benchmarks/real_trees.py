"""Lists pins in published source trees, bumps each to the next one's FlashInfer version, and compares.

    python -m benchmarks.real_trees vllm==0.12.0 vllm==0.13.0 sglang==0.5.8 sglang==0.5.9
    python -m benchmarks.real_trees 'vllm>=0.25,<0.34' --cache ~/.cache/real-trees

Archives come from pip's configured index, by version, and stay in the cache. Nothing of them is run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from benchmarks.tree_comparison import Place, Verdict, compare, release_of
from tooling.edges.files.tree import load_tree
from tooling.edges.index import IndexClient
from tooling.edges.packaged_data import load_library
from tooling.edges.pip_config import load_index_settings
from tooling.pins.drift import groups_by_version
from tooling.pins.scan import Tree
from tooling.releases.files import ReleaseFile, all_files

_SHOWN = (Verdict.STALE, Verdict.MENTION, Verdict.MISSED, Verdict.WRONG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One published tree as `sites` sees it, and how long that took; `files` is how many files lie in it."""

    name: str
    version: Version
    tree: Tree
    seconds: float
    files: int


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "requirements", nargs="+", metavar="NAME==VERSION", help="or NAME>=A,<B for every release in it"
    )
    parser.add_argument("--cache", type=Path, default=Path("build/real-trees"), metavar="DIR")
    parser.add_argument("--places", action="store_true", help="list every line that is not exact")
    args = parser.parse_args()
    args.cache.mkdir(parents=True, exist_ok=True)
    readings: dict[str, list[Reading]] = {}
    with IndexClient(load_index_settings()) as client:
        for file in _wanted(client, args.requirements):
            print(f"{file.filename} …", file=sys.stderr, flush=True)
            root = _unpacked(client, file, args.cache)
            readings.setdefault(file.project, []).append(_read(file, root))
    for group in readings.values():
        _print_sites(group)
    rows = [(older, newer) for group in readings.values() for older, newer in pairwise(group)]
    return _print_comparisons(rows, places=args.places)


def _wanted(client: IndexClient, texts: list[str]) -> Iterator[ReleaseFile]:
    """The source archive of every release asked for, oldest first, each once."""
    found: dict[tuple[str, Version], ReleaseFile] = {}
    for text in texts:
        requirement = Requirement(text)
        for file in all_files(client.fetch_project(requirement.name)):
            if file.kind == "sdist" and file.filename.endswith(".tar.gz") and file.version in requirement.specifier:
                found.setdefault((file.project, file.version), file)
    yield from (file for _, file in sorted(found.items()))


def _unpacked(client: IndexClient, file: ReleaseFile, cache: Path) -> Path:
    target = cache / f"{file.project}-{file.version}"
    if not target.is_dir():
        archive = cache / file.filename
        if not archive.is_file():
            with client.http.open(file.url) as response, (cache / f"{file.filename}.part").open("wb") as part:
                for block in response.iter_content(1 << 20):
                    part.write(block)
            os.replace(cache / f"{file.filename}.part", archive)
        shutil.rmtree(unpacking := cache / f"{target.name}.part", ignore_errors=True)
        with tarfile.open(archive) as tar:
            tar.extractall(unpacking, filter="data")
        os.replace(unpacking, target)
    (inner,) = target.iterdir()
    return inner


def _read(file: ReleaseFile, root: Path) -> Reading:
    started = time.perf_counter()
    tree = load_tree(root, load_library())
    seconds = time.perf_counter() - started
    files = sum(len(names) for _, _, names in os.walk(root))
    return Reading(name=file.project, version=file.version, tree=tree, seconds=seconds, files=files)


def _print_sites(group: list[Reading]) -> None:
    print("\n| tree | files | seconds | pins | versions | shapes |\n|---|---|---|---|---|---|")
    for item in group:
        groups = groups_by_version(item.tree.pins)
        versions = "; ".join(f"{version}: {len(sites)}" for version, sites in groups.items()) or "-"
        shapes = ", ".join(f"{name} {n}" for name, n in sorted(Counter(pin.shape for pin in item.tree.pins).items()))
        figures = f"{item.files} | {item.seconds:.2f} | {len(item.tree.pins)}"
        print(f"| {item.name} {item.version} | {figures} | {versions} | {shapes} |")


def _print_comparisons(rows: list[tuple[Reading, Reading]], *, places: bool) -> int:
    """Prints the table; 1 if something was missed or moved wrongly."""
    print("\n| from | to | FlashInfer | exact | stale | changed | mention | missed | wrong |\n" + "|---" * 9 + "|")
    total, shown = Counter[Verdict](), list[tuple[str, Place]]()
    for older, newer in rows:
        before, to = release_of(older.tree), release_of(newer.tree)
        if before is None or to is None:
            continue
        found = compare(older.tree, newer.tree, to) if before != to else []
        counted = Counter(place.verdict for place in found)
        total += counted
        cells = " | ".join(str(counted[verdict]) for verdict in Verdict)
        print(f"| {older.name} {older.version} | {newer.version} | {before} → {to} | {cells} |")
        shown += [(f"{older.name} {older.version}", place) for place in found if place.verdict in _SHOWN]
    print(f"| all | | | {' | '.join(str(total[verdict]) for verdict in Verdict)} |")
    for name, place in shown if places else ():
        print(f"{place.verdict:<8} {name} {place.path}:{place.line}: {place.text[:140]}")
    return int(bool(total[Verdict.MISSED] or total[Verdict.WRONG]))


if __name__ == "__main__":
    sys.exit(main())
