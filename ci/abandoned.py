"""Tells which images a release run has left in a registry where nobody can publish them any more. Takes nothing away.

Reads the versions of a container package as GitHub's API has them, one JSON object a line (`id`, `created_at`, `tags`),
and prints `ID TAG…` for each. A version without a tag is never among them: it may be a part of another one.

    python ci/abandoned.py --before 2026-05-01 --recent runs.txt < versions.jsonl
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_STAGING = re.compile(r"staging-([0-9]+)")
"""The tag under which release.yml pushes what is not published yet, with the id of its run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of a package: what a digest stands for. `created` is an ISO 8601 time in UTC."""

    id: int
    created: str
    tags: tuple[str, ...]

    @property
    def runs(self) -> tuple[str, ...] | None:
        """The runs that pushed it; None if it has no tag, or one that is not of a run."""
        found = [_STAGING.fullmatch(tag) for tag in self.tags]
        return tuple(match[1] for match in found if match) if found and all(found) else None


def find_abandoned(versions: Iterable[Version], *, before: str, recent: Collection[str]) -> list[Version]:
    """Versions from before that day which only runs name, none of them a recent one; oldest first.

    The newest version with a tag stays where all others go: GitHub refuses to take the last one away.
    """
    tagged = sorted((one for one in versions if one.tags), key=lambda one: (one.created, one.id))
    old = [one for one in tagged if one.runs and one.created < before and set(recent).isdisjoint(one.runs)]
    return old[:-1] if len(old) == len(tagged) else old


def parse_versions(lines: Iterable[str]) -> list[Version]:
    read = [json.loads(line) for line in lines if line.strip()]
    return [Version(id=int(one["id"]), created=str(one["created_at"]), tags=tuple(one["tags"])) for one in read]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--before", required=True, metavar="DAY", help="what is younger stays, such as 2026-05-01")
    parser.add_argument("--recent", required=True, type=Path, metavar="FILE", help="ids of runs whose images stay")
    args = parser.parse_args(words)
    recent = frozenset(args.recent.read_text(encoding="utf-8").split())
    for one in find_abandoned(parse_versions(sys.stdin), before=args.before, recent=recent):
        print(one.id, *one.tags)


if __name__ == "__main__":
    main()
