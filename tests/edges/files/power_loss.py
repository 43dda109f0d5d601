"""What a disk may hold after the power failed: a model of what was flushed and what was not. Not a test itself.

The model is harsher than any one file system: of what a folder has not flushed (names given, taken, moved) any part
may be lost, each change by itself; of a file that is not flushed, its old content, nothing, half or all may be there.
What was flushed is there.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .faults import Fault, Steps

_FOLDER = -1
Disk = dict[str, bytes]
"""A possible state: every file's content by its path below the root."""


@dataclass(slots=True)
class _File:
    """Content on the disk (None: never flushed) and in memory."""

    flushed: bytes | None
    now: bytes

    def possible(self) -> list[bytes]:
        if self.flushed == self.now:
            return [self.now]
        return [*([] if self.flushed is None else [self.flushed]), b"", self.now[: len(self.now) // 2], self.now]


@dataclass(slots=True)
class _Folder:
    """Names on the disk, with the file or folder that each means, and the changes that are not flushed yet."""

    names: dict[str, int]
    pending: list[dict[str, int | None]] = field(default_factory=list)

    def possible(self) -> Iterator[dict[str, int]]:
        for kept in itertools.product((False, True), repeat=len(self.pending)):
            names: dict[str, int | None] = dict(self.names)
            for change in itertools.compress(self.pending, kept):
                names.update(change)
            yield {name: number for name, number in names.items() if number is not None}

    def now(self) -> dict[str, int]:
        *_, last = self.possible()
        return last


class Recorder:
    """Follows steps on a tree and gathers every state that a power loss after any of them may leave."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.states: dict[tuple[tuple[str, bytes], ...], Disk] = {}
        self._files: dict[int, _File] = {}
        self._folders: dict[str, _Folder] = {}
        self._open: dict[int, int | str] = {}
        for folder, folders, files in os.walk(root):
            shown = os.path.relpath(folder, root)
            names = dict.fromkeys(folders, _FOLDER)
            for name in files:
                path = Path(folder, name)
                if not path.is_symlink():
                    content = path.read_bytes()
                    names[name] = self._add(_File(content, content))
            self._folders[shown] = _Folder(names)

    def observe(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        getattr(self, f"_saw_{name}")(args, result)
        for state in self._possible():
            self.states.setdefault(tuple(sorted(state.items())), state)

    def _add(self, file: _File) -> int:
        self._files[len(self._files)] = file
        return len(self._files) - 1

    def _place(self, path: str | Path) -> tuple[_Folder, str]:
        folder, name = os.path.split(os.path.relpath(path, self.root))
        return self._folders[folder or "."], name

    def _saw_open(self, args: tuple[Any, ...], descriptor: int) -> None:
        path, flags = args[0], args[1]
        if flags & os.O_DIRECTORY:
            self._open[descriptor] = os.path.relpath(path, self.root)
            return
        if not flags & (os.O_WRONLY | os.O_RDWR):
            self._open.pop(descriptor, None)
            return
        folder, name = self._place(path)
        number = folder.now().get(name)
        if number is None:
            number = self._add(_File(None, b""))
            folder.pending.append({name: number})
        elif flags & os.O_TRUNC:
            self._files[number].now = b""
        self._open[descriptor] = number

    def _saw_write(self, args: tuple[Any, ...], written: int) -> None:
        number = self._open[args[0]]
        assert isinstance(number, int)
        self._files[number].now += bytes(args[1])[:written]

    def _saw_fsync(self, args: tuple[Any, ...], _: None) -> None:
        opened = self._open[args[0]]
        if isinstance(opened, int):
            self._files[opened].flushed = self._files[opened].now
        else:
            folder = self._folders[opened]
            folder.names, folder.pending = folder.now(), []

    def _saw_replace(self, args: tuple[Any, ...], _: None) -> None:
        (folder, source), (other, target) = self._place(args[0]), self._place(args[1])
        assert folder is other, "a rename between folders is not one step on every disk"
        folder.pending.append({source: None, target: folder.now()[source]})

    def _saw_unlink(self, args: tuple[Any, ...], _: None) -> None:
        folder, name = self._place(args[0])
        folder.pending.append({name: None})

    def _saw_mkdir(self, args: tuple[Any, ...], _: None) -> None:
        folder, name = self._place(args[0])
        folder.pending.append({name: _FOLDER})
        self._folders[os.path.relpath(args[0], self.root)] = _Folder({})

    def _saw_fchmod(self, args: tuple[Any, ...], _: None) -> None:
        """Modes are not modelled."""

    _saw_fchown = _saw_fchmod

    def _possible(self) -> Iterator[Disk]:
        paths = list(self._folders)
        for chosen in itertools.product(*(self._folders[path].possible() for path in paths)):
            named = self._reachable(dict(zip(paths, chosen, strict=True)))
            for contents in itertools.product(*(self._files[number].possible() for number in named.values())):
                yield dict(zip(named, contents, strict=True))

    def _reachable(self, folders: dict[str, dict[str, int]]) -> dict[str, int]:
        """Every file by its path, but for those in a folder that has itself no name."""
        return {
            os.path.normpath(os.path.join(path, name)): number
            for path, names in folders.items()
            if path == "." or os.path.basename(path) in folders[os.path.dirname(path) or "."]
            for name, number in names.items()
            if number != _FOLDER
        }


def states_after_power_loss(
    root: Path, work: Callable[[], object], *, fault: Fault | None = None, at: int = 0, of: str | None = None
) -> list[Disk]:
    """Every state that the disk may hold if the power fails at any moment of the work."""
    recorder = Recorder(root)
    with Steps(fault, at=at, of=of, observe=recorder.observe):
        work()
    return list(recorder.states.values())


def lay(state: Disk, root: Path) -> None:
    """Makes the tree hold that state; folders, links and modes of it stay."""
    for folder, folders, files in os.walk(root):
        for name in files:
            path = Path(folder, name)
            if not path.is_symlink() and str(path.relative_to(root)) not in state:
                path.unlink()
        if Path(folder) == root and ".bump" in folders and not any(path.startswith(".bump/") for path in state):
            for left in (root / ".bump").iterdir():
                left.unlink()
            (root / ".bump").rmdir()
            folders.remove(".bump")
    for path, content in state.items():
        target = root / path
        target.parent.mkdir(exist_ok=True)
        if not target.exists() or target.read_bytes() != content:
            target.write_bytes(content)
