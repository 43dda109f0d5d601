"""What images install for: platform, Python and glibc as wheel tags (PEP 425, PEP 600) and as marker environments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

from tooling.releases.files import ReleaseFile

_MACHINES = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}
_GLIBC_OF_UBUNTU = {"20.04": 31, "22.04": 35, "24.04": 39, "26.04": 43}
"""glibc 2.x of Ubuntu's releases (packages.ubuntu.com, libc6)."""
DEFAULT_GLIBC = 39
DEFAULT_PYTHON = "3.12"
_LEGACY = {5: "manylinux1", 12: "manylinux2010", 17: "manylinux2014"}


@dataclass(frozen=True, kw_only=True)
class Target:
    """One image's machine: `platform` is docker's name, `python` is X.Y, `glibc` the minor of 2.x."""

    platform: str
    python: str = DEFAULT_PYTHON
    glibc: int = DEFAULT_GLIBC

    @property
    def machine(self) -> str:
        return _MACHINES[self.platform]

    @property
    def uv_platform(self) -> str:
        """What uv calls it (`--python-platform`)."""
        return f"{self.machine}-manylinux_2_{self.glibc}"

    def __str__(self) -> str:
        return f"{self.platform}, Python {self.python}"

    @cached_property
    def tags(self) -> frozenset[Tag]:
        """Every tag that a wheel for this machine may carry."""
        version = tuple(int(part) for part in self.python.split("."))
        platforms = list(self._platform_tags())
        interpreter = "cp" + "".join(map(str, version))
        return frozenset(
            [*cpython_tags(version, platforms=platforms, abis=[interpreter]),
             *compatible_tags(version, interpreter, platforms)]
        )  # fmt: skip

    def environment(self, extra: str = "") -> dict[str, str]:
        """Marker variables of PEP 508 there, with one extra or none."""
        return {
            "python_version": self.python,
            "python_full_version": f"{self.python}.0",
            "implementation_name": "cpython",
            "implementation_version": f"{self.python}.0",
            "platform_python_implementation": "CPython",
            "os_name": "posix",
            "sys_platform": "linux",
            "platform_system": "Linux",
            "platform_machine": self.machine,
            "platform_release": "",
            "platform_version": "",
            "extra": extra,
        }

    def takes(self, file: ReleaseFile) -> bool:
        """True if pip would install that wheel there without building anything."""
        return file.kind == "wheel" and self.takes_python(file) and bool(_tags_of(file.filename) & self.tags)

    def takes_python(self, file: ReleaseFile) -> bool:
        """True if the file's Requires-Python, where it has a valid one, allows the Python there."""
        try:
            return SpecifierSet(file.requires_python or "").contains(f"{self.python}.0", prereleases=True)
        except InvalidSpecifier:
            return True

    def _platform_tags(self) -> Iterator[str]:
        for minor in range(self.glibc, 4, -1):
            yield f"manylinux_2_{minor}_{self.machine}"
            if minor in _LEGACY and (self.machine == "x86_64" or minor == 17):
                yield f"{_LEGACY[minor]}_{self.machine}"
        yield f"linux_{self.machine}"


def make_targets(platforms: Iterable[str], variables: Mapping[str, str]) -> list[Target]:
    """The images' machines: every platform, with the Python and the Ubuntu that the versions file names."""
    python = ".".join(variables.get("PYTHON_VERSION", DEFAULT_PYTHON).split(".")[:2])
    glibc = _GLIBC_OF_UBUNTU.get(variables.get("UBUNTU_VERSION", ""), DEFAULT_GLIBC)
    valid = python if python.replace(".", "", 1).isdigit() and "." in python else DEFAULT_PYTHON
    return [Target(platform=platform, python=valid, glibc=glibc) for platform in platforms]


def _tags_of(filename: str) -> frozenset[Tag]:
    return parse_wheel_filename(filename)[3]
