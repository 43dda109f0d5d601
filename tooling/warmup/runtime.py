"""The world around a warm-up: environment variables, the installed FlashInfer, the GPU, and the shipped table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module, metadata, resources

from tooling.capabilities.table import Row, lookup
from tooling.capabilities.table_text import parse_body, parse_json
from tooling.errors import InputError
from tooling.warmup.settings import Settings, parse_settings

PACKAGES = ("flashinfer-python", "flashinfer-cubin", "flashinfer-jit-cache")
TABLE = "capabilities.json"
NO_FLASHINFER, PACKAGE_MISMATCH, NO_GPU, NO_ROW = "NO_FLASHINFER", "PACKAGE_MISMATCH", "NO_GPU", "NO_ROW"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """The FlashInfer at hand. `problem` is a reason word with `detail` where it cannot be used or is not of one piece.

    `usable`: it imports. `metadata` is what FlashInfer itself records of this environment, {} where it does not.
    """

    release: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    usable: bool = False
    problem: str = ""
    detail: str = ""
    gpu: bool = False
    arch: str = "none"
    metadata: Mapping[str, str] = field(default_factory=dict)


def load_settings() -> Settings:
    """The operator's settings from the process environment; a relative cache root is one below the current folder."""
    settings = parse_settings(os.environ)
    try:
        root = settings.cache_root and settings.cache_root.absolute()
    except OSError:  # the current folder is gone; the path stays as it is, and is unwritable
        return settings
    return replace(settings, cache_root=root)


def load_installed() -> Installed:
    """What is installed here. Imports FlashInfer and torch; never raises for what they are like."""
    packages = _packages()
    release = packages.get("flashinfer-python", "")
    if not release:
        return Installed(packages=packages, problem=NO_FLASHINFER, detail="flashinfer-python is not installed")
    try:
        import_module("flashinfer")
    except Exception as cause:  # noqa: BLE001  # whatever its import raises, an engine must be able to start without
        problem = PACKAGE_MISMATCH if _mismatch(packages) else NO_FLASHINFER
        detail = _mismatch(packages) or f"import flashinfer: {type(cause).__name__}: {cause}"
        return Installed(release=release, packages=packages, problem=problem, detail=detail)
    detail = _mismatch(packages)
    gpu, arch = _gpu()
    return Installed(
        release=release,
        packages=packages,
        usable=True,
        problem=PACKAGE_MISMATCH if detail else "",
        detail=detail,
        gpu=gpu,
        arch=arch,
        metadata=load_metadata(),
    )


def load_metadata() -> dict[str, str]:
    """FlashInfer's own record of this environment (from 0.6.7 on), by which it calls a file foreign.

    {} where it has none or cannot tell; never raises.
    """
    try:
        collect = import_module("flashinfer.autotuner")._collect_metadata  # noqa: SLF001  # no public name in any release
        return {str(key): str(value) for key, value in collect().items()}
    except Exception:  # noqa: BLE001  # a private function may raise anything, and an engine must be able to start
        return {}


def load_row(release: str) -> Row | None:
    """The shipped table's row of that release; None without one.

    Raises:
        InputError: the table itself is broken.
    """
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415  # keeps the import of this package quick

    try:
        version = Version(release)
        text = resources.files("tooling").joinpath("data", TABLE).read_text(encoding="utf-8")
    except (FileNotFoundError, InvalidVersion):
        return None
    return lookup(parse_body(parse_json(text, path=TABLE), path=TABLE, only=(Version(version.public),)), version)


def load_row_or_problem(release: str) -> tuple[Row | None, str]:
    """The row, and why there is none."""
    try:
        row = load_row(release)
    except InputError as cause:
        return None, cause.message
    except (OSError, UnicodeDecodeError) as cause:
        return None, f"{TABLE} cannot be read: {cause}"
    return row, "" if row else f"the capabilities table has no row for {release}"


def _packages() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            version = metadata.version(name)
        except (metadata.PackageNotFoundError, KeyError, OSError):
            continue
        if isinstance(version, str):  # what an uninstaller has left behind says none
            found[name] = version
    return found


def _mismatch(packages: Mapping[str, str]) -> str:
    """What differs among the packages, or "". A local label such as `+cu130` does not count."""
    plain = {name: version.split("+", 1)[0] for name, version in packages.items()}
    return "" if len(set(plain.values())) <= 1 else ", ".join(f"{name} {version}" for name, version in packages.items())


def _gpu() -> tuple[bool, str]:
    try:
        import torch  # noqa: PLC0415  # only when called

        if not torch.cuda.is_available():
            return False, "none"
        major, minor = torch.cuda.get_device_capability()
    except Exception:  # noqa: BLE001  # a driver that is broken has errors of many kinds, some of torch's own
        return False, "none"
    return True, f"sm{major}{minor}"
