"""What the benchmark of an image's rebuild refuses before it empties anybody's build cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PINNED = json.loads((ROOT / "versions.json").read_text())["variable"]["FLASHINFER_VERSION"]["default"]
REFUSED = {
    "a docker that cannot be started": ([], 3, "there is no program `docker`"),
    "a base of no name": (["--base-image", "bad name!"], 2, "expected an image"),
    "a bump to what is pinned": (["--to", PINNED], 2, "nothing would be built anew"),
}


@pytest.mark.parametrize(("words", "status", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_no_cache_is_emptied_where_nothing_can_be_measured(
    tmp_path: Path, words: list[str], status: int, sentence: str
) -> None:
    (tmp_path / "docker").write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/calls\n[ "$1" = builder ]\n')
    (tmp_path / "docker").chmod(0o755 if words else 0o644)
    env = {**os.environ, "PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(ROOT / "benchmarks" / "image_rebuild.py"), *words]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert sentence in done.stderr
    calls = tmp_path / "calls"
    assert not calls.exists() or "prune" not in calls.read_text()
