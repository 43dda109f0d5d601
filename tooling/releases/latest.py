"""Which releases come into question for `--latest`, the newest first. Whether one installs is asked elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.version import Version

from tooling.pins.settings import Settings
from tooling.releases.files import ProjectFiles, released_versions


def candidates(pages: Sequence[ProjectFiles], settings: Settings, *, current: Version | None) -> list[Version]:
    """Published finals that are neither yanked nor blocked and not older than the pin, the newest first."""
    return [
        version
        for version in reversed(released_versions(pages))
        if not version.is_prerelease
        and settings.blocks(version) is None
        and (current is None or version >= Version(current.public))
    ]


def newest_final(pages: Sequence[ProjectFiles]) -> Version | None:
    """The newest published final, blocked or not."""
    finals = [version for version in released_versions(pages) if not version.is_prerelease]
    return finals[-1] if finals else None
