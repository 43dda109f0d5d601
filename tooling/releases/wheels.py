"""Is there a wheel for the images' machines, is the release old enough, and do indexes agree about its bytes?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from packaging.version import Version

from tooling.findings import Finding, Severity
from tooling.releases.files import ProjectFiles, ReleaseFile, files_of, first_uploaded
from tooling.releases.targets import Target


def check_wheels(
    package: str, version: Version, pages: Sequence[ProjectFiles], targets: Sequence[Target]
) -> Iterator[Finding]:
    """`no-wheel` for every machine that no wheel fits.

    An sdist alone is a warning for a final release (old ones have nothing else) and an error for a pre-release; no
    file that fits at all is an error. A release that is not there at all is not for this check.
    """
    files = [file for file in files_of(pages, version) if not file.yanked]
    wheels = [file for file in files if file.kind == "wheel"]
    for target in targets if files else ():
        if any(target.takes(file) for file in wheels):
            continue
        sdist = any(file.kind == "sdist" and target.takes_python(file) for file in files)
        soft = sdist and not version.is_prerelease
        found = ", ".join(sorted(file.filename for file in files)[:4])
        yield Finding(
            check="no-wheel",
            severity=Severity.WARNING if soft else Severity.ERROR,
            detail=f"{package} {version} has no wheel for {target}; there is: {found}.",
            hint="it would be built from source in the image" if sdist else "take another release, Python or platform",
            reason="NO_WHEEL",
        )


def check_cooldown(
    package: str, version: Version, pages: Sequence[ProjectFiles], *, days: int, now: datetime, allowed: bool
) -> Iterator[Finding]:
    """`cooldown` if the release is younger than release.toml asks for, or if no index tells how old it is."""
    files = files_of(pages, version)
    if not days or not files:
        return
    uploaded = first_uploaded(files)
    if uploaded is None:
        yield Finding(
            check="cooldown",
            severity=Severity.WARNING,
            detail=f"{package} {version}: its index does not tell when it was published.",
            hint=f"release.toml asks for {days} days of age",
        )
    elif now - uploaded < timedelta(days=days):
        yield Finding(
            check="cooldown",
            severity=Severity.WARNING if allowed else Severity.ERROR,
            detail=f"{package} {version} was published {uploaded:%Y-%m-%d %H:%M} UTC, less than {days} days ago.",
            hint="" if allowed else f"wait until {uploaded + timedelta(days=days):%Y-%m-%d}, or --allow-fresh",
            reason="COOLDOWN",
        )


def check_hashes(package: str, version: Version, pages: Sequence[ProjectFiles]) -> Iterator[Finding]:
    """`hash-conflict` for a file name for which indexes claim different bytes."""
    claims: dict[str, dict[str, str]] = defaultdict(dict)
    for file in files_of(pages, version):
        if file.sha256 is not None:
            claims[file.filename].setdefault(file.sha256, file.index)
    for filename, by_hash in sorted(claims.items()):
        if len(by_hash) > 1:
            listed = "; ".join(f"{index}: sha256 {digest[:12]}…" for digest, index in by_hash.items())
            yield Finding(
                check="hash-conflict",
                detail=f"{package} {version}: indexes show different bytes for {filename} ({listed}).",
                hint="one of them was tampered with or rebuilt: find out which before anything is installed",
                reason="HASH_CONFLICT",
            )


def collect_sha256(version: Version, pages: Iterable[ProjectFiles], targets: Sequence[Target]) -> dict[str, str]:
    """File name to sha256 of the wheels that the machines may install, as the indexes show them."""
    wheels = [file for file in files_of(pages, version) if file.sha256 and not file.yanked]
    return {file.filename: file.sha256 or "" for file in wheels if any(target.takes(file) for target in targets)}


def best_wheel(version: Version, pages: Iterable[ProjectFiles], targets: Sequence[Target]) -> ReleaseFile | None:
    """A wheel of that version to read metadata from: one that a machine takes, with metadata of its own if possible."""
    wheels = [file for file in files_of(pages, version) if file.kind == "wheel" and not file.yanked]
    fitting = [file for file in wheels if any(target.takes(file) for target in targets)] or wheels
    return min(fitting, key=lambda file: not file.has_metadata, default=None)
