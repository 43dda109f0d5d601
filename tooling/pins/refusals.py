"""What forbids a bump to a release before any index is asked: its kind, and the tree's own list of blocked releases."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version

from tooling.errors import InputError
from tooling.findings import Finding, Severity
from tooling.pins.settings import Settings


def parse_target(text: str) -> Version:
    """The release that a bump goes to, normalised by PEP 440 (`v0.6.13.post1` is `0.6.13.post1`).

    Raises:
        InputError: empty, no version, or one with a local part.
    """
    try:
        version = Version(text)
    except InvalidVersion as cause:
        raise InputError(
            f"VERSION: found {text!r}, expected a version by PEP 440",
            hint="such as 0.6.13 or 0.6.16.post3",
            reason="BAD_VERSION",
        ) from cause
    if version.local is not None:
        raise InputError(
            f"VERSION: {version} has a local part, and no index serves it as a release",
            hint=f"name the release, {version.public}; each pin keeps its own +{version.local}",
            reason="BAD_VERSION",
        )
    return version


def check_target(
    to: Version, settings: Settings, *, allow_prerelease: bool = False, allow_blocked: bool = False
) -> list[Finding]:
    """Findings that refuse the target, or warn where a flag lets it through."""
    findings = []
    if to.is_prerelease:
        findings.append(
            Finding(
                check="prerelease",
                severity=Severity.WARNING if allow_prerelease else Severity.ERROR,
                detail=f"{to} is a pre-release.",
                hint="" if allow_prerelease else "--allow-prerelease takes it all the same",
                reason="PRERELEASE",
            )
        )
    if (entry := settings.blocks(to)) is not None:
        link = f" ({entry.link})" if entry.link else ""
        findings.append(
            Finding(
                check="blocked",
                severity=Severity.WARNING if allow_blocked else Severity.ERROR,
                path="release.toml",
                detail=f"{to} is blocked: {entry.reason}{link}.",
                hint="" if allow_blocked else "take another release, or --allow-blocked",
                reason="BLOCKED",
            )
        )
    return findings
