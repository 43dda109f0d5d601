"""Small index answers for tests of decisions."""

from __future__ import annotations

from packaging.version import Version

from tooling.releases.addresses import AddressRole
from tooling.releases.files import ProjectFiles, ReleaseFile, parse_file_name

MAIN, EXTRA = "https://main.invalid/simple/", "https://extra.invalid/whl/"


def file(filename: str, project: str, *, index: str = MAIN, **facts: object) -> ReleaseFile:
    parsed = parse_file_name(filename, project)
    assert parsed is not None, filename
    version, kind = parsed
    return ReleaseFile(
        filename=filename, project=project, version=version, kind=kind, url=f"{index}{filename}", index=index,
        **facts,  # type: ignore[arg-type]
    )  # fmt: skip


def page(project: str, *filenames: str, index: str = MAIN, role: AddressRole = AddressRole.MAIN, **facts: object) -> ProjectFiles:  # fmt: skip
    files = tuple(file(name, project, index=index, **facts) for name in filenames)
    return ProjectFiles(project=project, index=index, role=role, files=files)


def wheels(project: str, *versions: str, **facts: object) -> ProjectFiles:
    """A page with a pure wheel of each version."""
    stem = project.replace("-", "_")
    return page(project, *(f"{stem}-{version}-py3-none-any.whl" for version in versions), **facts)  # type: ignore[arg-type]


def v(text: str) -> Version:
    return Version(text)
