"""Types of arguments that several commands take; each refuses what is surely a mistake."""

from __future__ import annotations

import argparse
from pathlib import Path


def folder(text: str) -> Path:
    """A folder's path; an empty one is an unset variable in somebody's script, not this folder."""
    if not text:
        raise argparse.ArgumentTypeError("found an empty text, expected a folder")
    return Path(text)
