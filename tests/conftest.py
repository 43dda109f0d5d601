"""Markers that must be asked for, and a world without the caller's settings."""

from __future__ import annotations

import os
import signal

import hypothesis
import pytest

pytest_plugins = ["tests.edges.local_index"]

# A busy machine is slow, not wrong. CI judges a change by the same examples each time; everybody else looks for new ones.
BUSY = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("busy", BUSY, derandomize=bool(os.environ.get("SAME_EXAMPLES")))
hypothesis.settings.register_profile("hunt", BUSY, max_examples=3000)
hypothesis.settings.load_profile("busy")

ASKED_FOR = {
    "online": "asks the real package index",
    "docker": "needs a Docker engine with buildx",
    "server": "starts a real model server",
    "browser": "opens pages in Chromium (ci/browser.sh installs it)",
    "gpu": "needs a GPU",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    for marker, reason in ASKED_FOR.items():
        parser.addoption(f"--run-{marker}", action="store_true", help=f"run the tests whose marker says: {reason}")


def pytest_configure() -> None:
    """Signals count also where a shell or nohup started us with some of them ignored."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for marker, reason in ASKED_FOR.items():
        if config.getoption(f"--run-{marker}"):
            continue
        skip = pytest.mark.skip(reason=f"{reason}: ask for it with --run-{marker}")
        for item in items:
            if item.get_closest_marker(marker):  # not `keywords`: a parameter may be called so
                item.add_marker(skip)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No annotations, colours, widths or operator's settings from the machine that runs the tests."""
    of_this_machine = ("GITHUB_ACTIONS", "FORCE_COLOR", "NO_COLOR", "COLUMNS", "LINES")
    for name in (*of_this_machine, "FLASHINFER_VERSION", "FLASHINFER_DISABLE_VERSION_CHECK"):
        monkeypatch.delenv(name, raising=False)
