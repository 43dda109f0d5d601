"""BuildKit's plain progress as values: its steps, and why a build failed, the first cause on top. Reads no file.

The lines are those of `--progress plain`: `#13 [torch 2/2] RUN …`, `#13 CACHED`, `#13 DONE 71.2s`, `#13 2.65 text`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["world", "finding"]
_STEP = re.compile(r"^#(\d+) (\[(?!internal\]|auth\])[^\]]*\d+/\d+\] .*)$")
_CACHED = re.compile(r"^#(\d+) CACHED$")
_DONE = re.compile(r"^#(\d+) DONE (\d+(?:\.\d+)?)s$")
_PREFIX = re.compile(r"^#\d+ (?:\d+(?:\.\d+)? )?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a build failed. `kind` `world`: not the release's fault, try again; `finding`: a fact about the release.

    `line` is the first line of the log that says so.
    """

    reason: str
    kind: Kind
    sentence: str
    line: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What a build did: steps taken from the cache, steps run, and seconds of those run by their title."""

    cached: int
    run: int
    seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Rule:
    reason: str
    kind: Kind
    sentence: str
    hint: str
    pattern: re.Pattern[str]


def _rule(reason: str, kind: Kind, sentence: str, hint: str, pattern: str) -> _Rule:
    return _Rule(reason, kind, sentence, hint, re.compile(pattern, re.IGNORECASE))


_RULES = (
    _rule("INFRA_DISK", "world", "the disk is full", "free space, then build again; `--doctor` says how much is needed",
          r"no space left on device|ENOSPC|\[Errno 28\]|disk quota exceeded"),
    _rule("ENGINE_LOST", "world", "the engine or builder went away during the build",
          "start it again, then build again",
          r"error reading from server: EOF|cannot connect to the docker daemon|connection reset by peer.*docker"
          r"|transport is closing|rpc error: code = Unavailable|closing transport|no active session"
          r"|error during connect|http2: client connection lost"),
    _rule("OUT_OF_MEMORY", "world", "the builder ran out of memory", "give it more, or build fewer things at once",
          r"exit code: 137|\bKilled signal terminated program|out of memory|Cannot allocate memory"),
    _rule("BASE_IMAGE_MISSING", "world", "the base image is not to be had", "name another with --base-image",
          r"manifest unknown|failed to resolve source metadata|pull access denied|(?:manifest|image).*: not found"),
    _rule("PACKAGE_MISSING", "finding", "the index has no such package or version",
          "give the index that has it with --index-config FILE",
          r"was not found in the (?:package registry|provided)"
          r"|there is no version of (\S+) and you require \1(?:[\s,]|$)"
          r"|No matching distribution found|Could not find a version that satisfies"
          r"|404 Client Error|HTTP status client error \(404"),
    _rule("VERSION_CONFLICT", "finding", "the pins contradict each other", "`nox -s bump` says which companions fit",
          r"No solution found when resolving|(?:^|cause: |─▶ )Because |ResolutionImpossible"
          r"|conflicting dependencies|are incompatible"
          r"|requirements are unsatisfiable|Cannot install .* because these package versions"),
    _rule("WHEEL_HASH", "finding", "a wheel has another hash than the one that the bump recorded",
          "find out who changed it before anything else; `nox -s bump` records hashes",
          r"Hash mismatch for|HASHES FROM THE REQUIREMENTS|hash mismatch"),
    _rule("TAG_MISSING", "finding", "FlashInfer's repository has no such tag", "is the release tagged yet?",
          r"Remote branch \S+ not found"),
    _rule("BUILD_TOOLCHAIN", "finding", "the compiler of the base image is too old, or missing",
          "take a newer base image; trying again does not help",
          r"requires? (?:GCC|G\+\+|Clang|CUDA) ?(?:version )?\d+|unsupported GNU version|unsupported compiler"
          r"|#error .*(?:GCC|compiler|C\+\+(?:17|20)).*|unrecognized command[- ]line option .?-std="
          r"|command 'g(?:cc|\+\+)' failed|\b(?:gcc|g\+\+|nvcc): (?:command )?not found"
          r"|No such file or directory: '(?:g\+\+|gcc|nvcc)'"),
    _rule("NETWORK", "world", "an index or mirror did not answer",
          "`--doctor` asks it; --ca-bundle and --apt-mirror may help",
          r"Temporary failure (?:in name resolution|resolving)|Could not resolve host"
          r"|Connection (?:refused|timed out|reset)|dns error|error sending request for url"
          r"|operation timed out|Network is unreachable|i/o timeout"
          r"|certificate verify failed|invalid peer certificate|SSL certificate problem"
          r"|status (?:server )?error \(5\d\d|Failed to fetch|unable to access '"
          r"|Max retries exceeded|TLS handshake timeout"),
)  # fmt: skip
_HEADLINE = re.compile(r"No solution found when resolving|ResolutionImpossible", re.IGNORECASE)
"""Resolvers say this first, for a package that is missing too; what follows says why."""
_ORDER = {rule.reason: number for number, rule in enumerate(_RULES)}
_FAILED_STEP = re.compile(r"^(?:ERROR: )?(?:failed to solve|process \"|executor failed|error: failed).*", re.IGNORECASE)


def classify_failure(lines: Iterable[str]) -> Cause:
    """The cause that the log tells of. A full disk, a lost engine or lack of memory explain what follows them, so
    they win over any other cause; among the rest, the first line wins, and one line is judged in the rules' order.
    """
    found: list[tuple[_Rule, str]] = []
    last = ""
    for raw in lines:
        line = _PREFIX.sub("", raw.rstrip())
        if line:
            last = line if _FAILED_STEP.match(line) or not last else last
        rule = next((rule for rule in _RULES if rule.pattern.search(line)), None)
        if rule is not None and not _is_echo(raw):
            found.append((rule, line.strip()))
    if not found:
        return Cause(reason="BUILD_FAILED", kind="finding", sentence="a step of the build failed", line=last.strip(),
                     hint="the whole log is beside the record")  # fmt: skip
    world = [item for item in found if _ORDER[item[0].reason] < 3]
    rule, line = world[0] if world else _first_reason(found)
    return Cause(reason=rule.reason, kind=rule.kind, sentence=rule.sentence, line=line, hint=rule.hint)


def _first_reason(found: list[tuple[_Rule, str]]) -> tuple[_Rule, str]:
    """The first cause; after a resolver's headline, the first line that explains it."""
    if _HEADLINE.search(found[0][1]):
        return next((item for item in found[1:] if item[0].reason in {"PACKAGE_MISSING", "VERSION_CONFLICT"}), found[0])
    return found[0]


def parse_steps(lines: Iterable[str]) -> Steps:
    """How many steps were cached and run, and how long the latter took; those of bake and its frontend do not count."""
    titles: dict[str, str] = {}
    cached: set[str] = set()
    seconds: dict[str, float] = {}
    for line in lines:
        if found := _STEP.match(line.rstrip()):
            titles[found[1]] = " ".join(found[2].split())
        elif found := _CACHED.match(line.rstrip()):
            cached.add(found[1])
        elif (found := _DONE.match(line.rstrip())) and found[1] in titles:
            seconds[found[1]] = float(found[2])
    run = {
        number: value for number, value in seconds.items() if number not in cached and " FROM " not in titles[number]
    }
    return Steps(
        cached=len([number for number in cached if " FROM " not in titles.get(number, " FROM ")]),
        run=len(run),
        seconds={titles[number][:100]: value for number, value in run.items()},
    )


def _is_echo(line: str) -> bool:
    """True for lines that repeat a Dockerfile's text, where words such as `not found` are no symptoms."""
    return bool(_STEP.match(line) or re.match(r"^\s*\d+ \|", line) or re.match(r"^ > \[", line))
