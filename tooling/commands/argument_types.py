"""Types of arguments that several commands take; each refuses what is surely a mistake."""

from __future__ import annotations

import argparse
from pathlib import Path


def folder(text: str) -> Path:
    """A folder's path; an empty one is an unset variable in somebody's script, not this folder."""
    if not text:
        raise argparse.ArgumentTypeError("found an empty text, expected a folder")
    return Path(text)


def file(text: str) -> Path:
    """A file's path, never an empty one."""
    if not text.strip():
        raise argparse.ArgumentTypeError("found an empty text, expected a file")
    return Path(text)
