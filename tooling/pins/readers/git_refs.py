"""Git refs of the library's repository in shell commands: which clone a command works in, and what it checks out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tooling.pins.library import Library
from tooling.pins.patterns import late
from tooling.pins.readers.phrases import HASH, REFERENCE, VERSION, Span, library_names, read_reference
from tooling.pins.shell_syntax import ShellCommand, ShellWord, find_commands
from tooling.pins.sites import Role

_WITH_VALUE = frozenset((
    "-b", "--branch", "--depth", "-c", "--config", "-j", "--jobs", "--filter", "-o", "--origin", "--reference",
    "--shallow-since", "--template", "--server-option", "--separate-git-dir", "-u", "--upload-pack",
))  # fmt: skip
_TAKES_REFS = frozenset(("checkout", "switch", "reset", "fetch", "pull", "worktree", "merge"))
_REF = late(rf"(?:refs/)?(?:tags/|origin/)?(?:(?P<version>{VERSION})|v?(?P<use>{REFERENCE})|(?P<commit>{HASH}))")
_VARIABLE = late(r"\$\{?(\w+)[^}]*\}?")
_FOREIGN_FOLDER = frozenset(("3rdparty", "third_party", "third-party", "thirdparty", "submodules", "extern"))


def find_git_refs(text: str, library: Library, *, folder: str = "") -> Iterator[Span]:
    """Refs that a clone, a checkout or a fetch of the library names; `folder` is where the script starts."""
    walk = _Walk(library)
    walk.enter(folder)
    yield from walk.read(text, 0)


@dataclass(slots=True)
class _Walk:
    """Where the script is: `at_home` in the library's clone; `clones` tells of each folder cloned so far."""

    library: Library
    at_home: bool = False
    clones: dict[str, bool] = field(default_factory=dict)
    outer: list[tuple[int, bool]] = field(default_factory=list)
    pushed: list[bool] = field(default_factory=list)

    def read(self, text: str, offset: int) -> Iterator[Span]:
        for command in find_commands(text):
            self._nest(command.depth)
            yield from (span.moved(offset) for span in self._command(command))
            for word in command.words:
                if word.is_quoted and re.search(r"\bgit\s", word.text):
                    yield from self.read(word.bare, offset + word.inner_start)

    def enter(self, folder: str) -> None:
        """Goes into a folder: by what was cloned there, else by its name."""
        parts = [part for part in folder.strip("/").split("/") if part not in {"", "."}]
        known = self.clones.get(parts[-1]) if parts else None
        self.at_home = self._is_home_name(parts) if known is None else known

    def _nest(self, depth: int) -> None:
        """A bracket that closes leads back to where it opened."""
        while self.outer and self.outer[-1][0] > depth:
            self.at_home = self.outer.pop()[1]
        if depth > (self.outer[-1][0] if self.outer else 0):
            self.outer.append((depth, self.at_home))

    def _command(self, command: ShellCommand) -> Iterator[Span]:
        texts = [word.text for word in command.words]
        for verb in ("cd", "pushd", "popd", "WORKDIR"):
            if verb in texts[:4]:
                rest = command.words[texts.index(verb) + 1 :]
                self._change(verb, next((word.bare for word in rest if not word.text.startswith("-")), ""))
        if "git" in texts:
            yield from self._git(command.words[texts.index("git") + 1 :])
        elif texts[:3] == ["gh", "release", "download"] and any(self._is_home_url(word.bare) for word in command.words):
            yield from _refs(command.words[3:])

    def _change(self, verb: str, folder: str) -> None:
        if verb == "popd":
            self.at_home = self.pushed.pop() if self.pushed else False
            return
        if verb == "pushd":
            self.pushed.append(self.at_home)
        self.enter(folder)

    def _git(self, words: Sequence[ShellWord]) -> Iterator[Span]:
        here, position = self.at_home, 0
        while position < len(words) and words[position].text.startswith("-"):
            if words[position].text == "-C" and position + 1 < len(words):
                before = self.at_home
                self.enter(words[position + 1].bare)
                here, self.at_home = self.at_home, before
            position += 2 if words[position].text in {"-C", "-c"} else 1
        verb = words[position].text if position < len(words) else ""
        arguments = words[position + 1 :]
        if verb == "clone":
            yield from self._clone(arguments)
        elif verb in _TAKES_REFS and here:
            yield from _refs(arguments)

    def _clone(self, words: Sequence[ShellWord]) -> Iterator[Span]:
        branch, places, position = list[ShellWord](), list[str](), 0
        while position < len(words):
            word = words[position]
            if word.text in _WITH_VALUE:
                branch += words[position + 1 : position + 2] if word.text in {"-b", "--branch"} else []
                position += 1
            elif word.text.startswith("--branch="):
                branch.append(ShellWord(word.text[9:], word.start + 9, word.end))
            elif not word.text.startswith("-"):
                places.append(word.bare)
            position += 1
        is_home = bool(places) and self._is_home_url(places[0])
        if places:
            target = places[1] if len(places) > 1 else places[0].removesuffix("/").removesuffix(".git")
            self.clones[re.split(r"[/:]", target.rstrip("/"))[-1]] = is_home
            if target == ".":
                self.at_home = is_home
        if is_home:
            yield from _refs(branch)

    def _is_home_url(self, url: str) -> bool:
        variable = _VARIABLE.fullmatch(url)
        if variable is not None:
            return self.library.mark in variable[1].lower() and "BENCH" not in variable[1].upper()
        pattern = rf"(?:.*[/:])?(?:{library_names(self.library)})(?:\.git)?/?"
        return re.fullmatch(pattern, url, re.IGNORECASE) is not None

    def _is_home_name(self, parts: Sequence[str]) -> bool:
        home = max((index for index, part in enumerate(parts) if self._is_home_url(part)), default=-1)
        return home >= 0 and not _FOREIGN_FOLDER & {part.lower() for part in parts[home:]}


def _refs(words: Sequence[ShellWord]) -> Iterator[Span]:
    for word in words:
        match = _REF.fullmatch(word.bare)
        if match is None or match.lastgroup is None:
            continue
        start, end = (word.inner_start + position for position in match.span(match.lastgroup))
        if match["use"]:
            yield read_reference(match["use"], start, shape="git-ref")
        elif match["commit"]:
            yield Span(start=start, end=end, shape="git-commit", role=Role.USE)
        else:
            yield Span(start=start, end=end, shape="git-ref")
