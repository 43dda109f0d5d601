"""A release.toml as text, made from what a scan found: its values with comments that say what they are for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from tooling.findings import Finding
from tooling.pins.scan import Tree
from tooling.pins.settings import LEAVE_OUT

_HEAD = """\
# This tree's own settings for the release pipeline. Every key may be left out; `tooling check` says what is wrong here.

[pins]
"""
_VERSIONS_FILE = """\
# The docker-bake variable file that decides: every other pin must hold what it says.
versions_file = {path}
"""
_NO_VERSIONS_FILE = """\
# No versions file was found: the pins must share one version. To let one file decide, name a docker-bake variable file:
# versions_file = "versions.json"
"""
_ALIASES = """\
# Variables and keys that hold {name}'s version and that their names do not tell.
{comment}variable_aliases = {names}
"""
_REQUIRED = """
# Files that must hold exactly so many pins. A pin that gets lost, or one in a file that is not listed, refuses a bump.
"""
_SCAN = """
[scan]
# What a scan leaves out: a name matches any part of a path, a path with `/` matches from the root.
leave_out = {names}

# Releases that must not be bumped to:
# [[blocked]]
# release = "0.6.12"
# reason = "tuned entries are lost when they are saved"
# link = ""

# What may go where: `tooling gate --channel NAME`. Images, GPUs and accuracy are asked for in further channels.
[gate]
channel = "pr"

[channels.pr]
stages = ["check"]
max_age_hours = {{ check = 24 }}
"""


def render_settings(tree: Tree, suspects: Sequence[Finding] = ()) -> str:
    """The file's whole text; it parses, and a scan with it finds the same pins."""
    parts = [_HEAD]
    if tree.versions_file is None:
        parts.append(_NO_VERSIONS_FILE)
    else:
        parts.append(_VERSIONS_FILE.format(path=_text(tree.versions_file)))
    names = sorted({finding.detail.split()[0] for finding in suspects if finding.check == "unknown-variable"})
    parts.append(_ALIASES.format(name=tree.library.name, comment="# " if names else "", names=_texts(names)))
    parts.append(_REQUIRED)
    for path, count in sorted(Counter(site.path for site in tree.pins).items()):
        shapes = sorted({site.shape for site in tree.pins if site.path == path})
        parts.append(f"[[pins.required]]\npath = {_text(path)}\ncount = {count}  # {', '.join(shapes)}\n\n")
    parts[-1] = parts[-1].rstrip("\n") + "\n"
    parts.append(_SCAN.format(names=_texts(LEAVE_OUT)))
    return "".join(parts)


def _text(value: str) -> str:
    """A TOML basic string; JSON's escapes are among TOML's."""
    return json.dumps(value)


def _texts(values: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, values))}]"
