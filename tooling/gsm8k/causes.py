"""The innermost cause in a server's log, and how far a start had come. Logs are read, never trusted to be whole."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

LAST_LINES = 50
LINE_CHARS = 2_000
TAIL_BYTES = 40_000
"""What is quoted of a log: a record must stay readable whatever a server prints."""

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_PREFIX = re.compile(
    r"""^(?:\([A-Za-z][\w\-. ]*(?:\s?pid=\d+)?\)\s*)*                          # (EngineCore_DP0 pid=123)
        (?:(?:ERROR|WARNING|INFO|CRITICAL|DEBUG)[ :]\s*(?:\d[\d\-:., T]*)?(?:\[[^\]]*\])?:?\s?)?""",
    re.VERBOSE,
)
_EXCEPTION = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]*(?:Error|Exception|Exit|Interrupt|Warning|Failure)\b(?::\s*\S.*)?$"
)
_SYMPTOM = re.compile(
    r"see (?:the )?root cause above|engine core initialization failed|failed core proc|worker failed", re.IGNORECASE
)
_LINKS = ("During handling of the above exception", "The above exception was the direct cause")
_FATAL = re.compile(
    r"\b(?:error|fatal|failed|cannot|killed|not found|no such|unrecognized|segmentation fault)\b", re.IGNORECASE
)
_PROGRESS = re.compile(
    r"autotun|\bwarm(?:ing|-?up)|loading (?:weights|safetensors|model)|captur|compil|\d+%\||initializ", re.IGNORECASE
)
_AUTOTUNE = re.compile(r"autotun", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """How a process ended: `signal_name` is None for an exit code."""

    code: int
    signal_name: str | None
    out_of_memory: bool = False

    @property
    def sentence(self) -> str:
        if self.signal_name is None:
            return f"exited with code {self.code}"
        likely = " (likely out of memory)" if self.signal_name == "SIGKILL" else ""
        return f"was ended by {self.signal_name}" + (" (out of memory)" if self.out_of_memory else likely)


def read_death(code: int, *, container: bool = False, out_of_memory: bool = False) -> Death:
    """The end behind a return code: negative is a signal, as `subprocess` has it; a container adds 128 to one."""
    number = -code if code < 0 else code - 128 if container and code > 128 else 0
    try:
        name = signal.Signals(number).name if number else None
    except ValueError:
        name = None
    return Death(code=code, signal_name=name, out_of_memory=out_of_memory)


def clean_line(line: str) -> str:
    """A log line without colours, without what a progress bar had overwritten, and without spaces at its end."""
    return _ANSI.sub("", line.rstrip("\r\n").rsplit("\r", 1)[-1]).rstrip()


def cut_line(line: str, limit: int = LINE_CHARS) -> str:
    """The line, or its start with the number of characters that are left out."""
    return line if len(line) <= limit else f"{line[:limit]}… ({len(line) - limit:,} characters more)"


def find_tail(lines: Sequence[str]) -> tuple[str, ...]:
    """The last lines, at most `LAST_LINES` of them and at most `TAIL_BYTES` together."""
    kept: list[str] = []
    left = TAIL_BYTES
    for line in reversed(lines[-LAST_LINES:]):
        left -= len(line.encode("utf-8", "replace")) + 1
        if left < 0:
            break
        kept.append(line)
    return tuple(reversed(kept))


def find_cause(lines: Sequence[str]) -> str | None:
    """The innermost exception of the last chain of tracebacks that is not only the symptom of another process.

    Python prints a chain's innermost exception first; an engine's front end says only that its core failed. Without a
    traceback: the last line that looks like an error, else the last line with any text, else None.
    """
    plain = [_PREFIX.sub("", clean_line(line)) for line in lines]
    for chain in reversed(_chains(plain)):
        if chain and not _SYMPTOM.search(chain[0]):
            return chain[0]
    texts = [line.strip() for line in plain if line.strip()]
    for wanted in (_EXCEPTION, _FATAL):
        for text in reversed(texts):
            if wanted.search(text) and not _SYMPTOM.search(text):
                return text
    return texts[-1] if texts else None


def find_progress(lines: Sequence[str]) -> tuple[str, ...]:
    """The last autotune line, or the last line of any other progress; at most one, empty if there is none."""
    plain = [clean_line(line) for line in lines]
    for wanted in (_AUTOTUNE, _PROGRESS):
        found = [line.strip() for line in plain if wanted.search(line)]
        if found:
            return (found[-1],)
    return ()


def is_progress(line: str) -> bool:
    return bool(_PROGRESS.search(line))


def _chains(lines: Sequence[str]) -> list[list[str]]:
    """The exception lines of each chain of tracebacks, in the order in which they were printed."""
    chains: list[list[str]] = []
    inside = linked = False
    for line in lines:
        if line.startswith("Traceback (most recent call last)"):
            if not linked or not chains:
                chains.append([])
            inside, linked = True, False
        elif line.startswith(_LINKS):
            linked = True
        elif inside and line and not line.startswith((" ", "\t")) and _EXCEPTION.match(line):
            chains[-1].append(line.strip())
            inside = False
    return chains
