"""Releases of FlashInfer, each started once for all tests that use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.warmup.environments import Release


@pytest.fixture(scope="session")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Release]]:
    """The release of that version, started when first asked for."""
    started: dict[str, Release] = {}

    def get(version: str) -> Release:
        if version not in started:
            started[version] = Release(version, tmp_path_factory.mktemp(f"release-{version}") / "home")
        return started[version]

    yield get
    for release in started.values():
        release.close()
