"""What a worker asks of the network and of the cache root, seen by Python's audit hook (PEP 578). Never by C code.

Loopback and Unix sockets, by which ranks meet, are not downloads.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from pathlib import Path
from typing import Any

DOWNLOADERS = frozenset({"curl", "wget", "aria2c", "git", "pip", "pip3", "uv"})
MOST = 50


class Audit:
    """Addresses that were asked for, and files below the cache root that were opened for reading, relative to it."""

    def __init__(self, cache_root: str) -> None:
        self._root = os.path.join(os.path.abspath(cache_root), "")
        self._own = {socket.gethostname().lower(), "localhost", ""}
        self.downloads: list[str] = []
        self.opened: set[str] = set()

    def install(self) -> None:
        """For the rest of the process; a hook cannot be taken out again."""
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            self._open(args[0], args[2])
        elif event == "socket.connect":
            self._connect(args[1])
        elif event == "socket.getaddrinfo":
            self._ask(args[0])
        elif event == "urllib.Request":
            self._note(str(args[0]))
        elif event == "subprocess.Popen":
            self._run(args[1])

    def _open(self, path: object, flags: object) -> None:
        if isinstance(path, int) or not isinstance(flags, int) or flags & os.O_ACCMODE != os.O_RDONLY:
            return
        if isinstance(path, str | bytes | os.PathLike):
            name = os.path.abspath(os.fsdecode(path))
            if name.startswith(self._root):
                self.opened.add(Path(name).relative_to(self._root).as_posix())

    def _connect(self, address: object) -> None:
        if isinstance(address, tuple) and address and not _is_local(str(address[0])):
            self._note(":".join(str(part) for part in address[:2]))

    def _ask(self, host: object) -> None:
        name = os.fsdecode(host).lower() if isinstance(host, str | bytes) else ""
        if name not in self._own and not _is_local(name):
            self._note(name)

    def _run(self, words: object) -> None:
        if isinstance(words, list | tuple) and words and os.path.basename(os.fsdecode(words[0])) in DOWNLOADERS:
            self._note(" ".join(os.fsdecode(word) for word in words[:4]))

    def _note(self, text: str) -> None:
        if text not in self.downloads and len(self.downloads) < MOST:
            self.downloads.append(text)


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.split("%", 1)[0]).is_loopback
    except ValueError:
        return host in {"localhost", ""}
