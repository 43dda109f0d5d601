"""What must be asked for is known to pytest, and CI asks for all that its machine can run."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tests.conftest import ASKED_FOR

ROOT = Path(__file__).resolve().parents[2]


def test_every_marker_is_registered_with_its_option() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
    assert {line.split(":")[0] for line in listed} == set(ASKED_FOR)
    assert all(f"--run-{line.split(':')[0]}" in line for line in listed)


def test_ci_turns_on_everything_but_the_gpu() -> None:
    asked = (ROOT / ".ci" / "run").read_text()
    assert {marker for marker in ASKED_FOR if f"--run-{marker}" in asked} == set(ASKED_FOR) - {"gpu"}


def test_ci_installs_the_browser_before_the_tests() -> None:
    asked = (ROOT / ".ci" / "run").read_text()
    assert asked.index("run ci/browser.sh") < asked.index("run nox -s tests")
