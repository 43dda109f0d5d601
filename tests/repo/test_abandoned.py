"""Which staged images may go: those that only runs name, none of which can publish any more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trees import write

SCRIPT = Path(__file__).resolve().parents[2] / "ci/abandoned.py"
OLD, YOUNG = "2026-01-31T23:59:59Z", "2026-02-01T00:00:00Z"
KEPT = (YOUNG, ["0.6.13-cu13.0.2"])

SAMPLES: dict[str, tuple[list[tuple[str, list[str]]], list[str]]] = {
    "nothing": ([], []),
    "of a run that is gone": ([KEPT, (OLD, ["staging-7"])], ["1 staging-7"]),
    "of two such runs": ([KEPT, (OLD, ["staging-7", "staging-8"])], ["1 staging-7 staging-8"]),
    "young": ([KEPT, (YOUNG, ["staging-7"])], []),
    "of a recent run that built the same bytes": ([KEPT, (OLD, ["staging-7", "staging-90"])], []),
    "published": ([KEPT, (OLD, ["staging-7", "0.6.12"])], []),
    "without a tag": ([KEPT, (OLD, [])], []),
    "an attestation": ([KEPT, (OLD, ["sha256-" + "a" * 64])], []),
    "a tag that looks alike": ([KEPT, (OLD, ["staging-7-amd64"]), (OLD, ["my-staging-7"]), (OLD, ["staging-"])], []),
    "the oldest first": (
        [(OLD, ["staging-8"]), KEPT, ("2025-01-01T00:00:00Z", ["staging-7"])],
        ["2 staging-7", "0 staging-8"],
    ),
    "the last with a tag stays": ([(OLD, ["staging-7"]), (OLD, [])], []),
    "the newest of all stays": ([(OLD, ["staging-8"]), ("2025-01-01T00:00:00Z", ["staging-7"])], ["1 staging-7"]),
}


@pytest.mark.parametrize(("versions", "expected"), SAMPLES.values(), ids=SAMPLES)
def test_what_is_abandoned(tmp_path: Path, versions: list[tuple[str, list[str]]], expected: list[str]) -> None:
    lines = [
        json.dumps({"id": number, "created_at": created, "tags": tags})
        for number, (created, tags) in enumerate(versions)
    ]
    recent = write(tmp_path, "recent.txt", "90\n91\n")
    done = subprocess.run(
        [sys.executable, SCRIPT, "--before", "2026-02-01", "--recent", recent],
        input="\n".join(lines), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == expected
