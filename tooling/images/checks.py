"""The proof: facts of a built image against the pins. Every rule gives findings; reading the image is an edge's job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from tooling.findings import Finding, Severity
from tooling.images.facts import Distribution, ImageFacts
from tooling.images.labels import PINS_LABEL, VERSION_LABEL, version_label
from tooling.pins.library import Library
from tooling.pins.requirements import RequirementLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What the tree pins, and how this image was meant to be built.

    `is_nightly`: torch is recorded, not compared. `left_out`: packages that the build was told to do without.
    `hashes`: SHA-256 by wheel file name, as the bump recorded them; empty where it recorded none.
    """

    library: Library
    variables: Mapping[str, str]
    requirements: Sequence[RequirementLine]
    pins_sha256: str | None
    is_nightly: bool = False
    is_ours: bool = True
    left_out: frozenset[str] = frozenset()
    hashes: Mapping[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        return self.variables.get(self.library.variable, "")

    @property
    def cuda(self) -> str:
        """Major.minor of CUDA_VERSION, such as `13.0`; empty if it is not pinned."""
        return ".".join(self.variables.get("CUDA_VERSION", "").split(".")[:2])


def check_image(facts: ImageFacts, wanted: Expectation) -> list[Finding]:
    """Every finding, the pinned library's first."""
    rules = (
        _check_library, _check_companions, _check_hashes, _check_variables, _check_bypass, _check_user,
        _check_credentials, _check_tools, _check_caches, _check_python, _check_labels,
    )  # fmt: skip
    return [finding for rule in rules for finding in rule(facts, wanted)]


def measured_versions(facts: ImageFacts, wanted: Expectation) -> dict[str, str]:
    """Installed versions of the library, its companions and torch, for the record."""
    names = {*wanted.library.packages, "torch", *(line.name for line in wanted.requirements if line.name)}
    return {name: item.version for name, item in sorted(facts.main_distributions().items()) if name in names}


def _check_library(facts: ImageFacts, wanted: Expectation) -> Iterator[Finding]:
    """All distributions of the library, wherever they lie: a stale one of the base image breaks the import too."""
    present = set()
    for item in facts.distributions:
        if item.name in wanted.library.packages:
            present.add(item.name)
            yield from _check_one(item, wanted)
    required = {line.name for line in wanted.requirements if line.name in wanted.library.packages}
    for name in sorted({wanted.library.main_package, *required} - present - wanted.left_out):
        yield _finding(
            "IMAGE_SKEW", f"{name} is not installed; the pin is {wanted.version}.", hint="build the image anew"
        )


def _check_one(item: Distribution, wanted: Expectation) -> Iterator[Finding]:
    shown = f"{item.name} {item.version} in /{item.place}"
    try:
        found, pinned = Version(item.version), Version(wanted.version)
    except InvalidVersion:
        yield _finding(
            "CANNOT_VERIFY", f"{shown}: not a version that can be compared.", hint="install a released wheel"
        )
        return
    if found.public == "0.0.0" or found.local == "unknown":
        yield _finding(
            "CANNOT_VERIFY",
            f"{shown}: a source tree without version information, which cannot be verified.",
            hint="build it from a tag, or install a released wheel",
        )
    elif found.public != pinned.public:
        yield _finding(
            "IMAGE_SKEW",
            f"{shown}, and the pin is {wanted.version}.",
            hint=f"install {item.name}=={wanted.version} there (see {wanted.library.own_index}), or remove it",
        )
    else:
        yield from _check_local(item, found, wanted)


def _check_local(item: Distribution, found: Version, wanted: Expectation) -> Iterator[Finding]:
    """`+cu130` names the CUDA that it was built for; other local labels say nothing about CUDA."""
    local = found.local or ""
    expected = "cu" + wanted.cuda.replace(".", "")
    if local.startswith("cu") and local[2:].isdigit() and wanted.cuda and local != expected:
        yield _finding(
            "IMAGE_SKEW",
            f"{item.name} {item.version} in /{item.place} is for another CUDA than {wanted.variables['CUDA_VERSION']}.",
            hint=f"install {item.name}=={found.public}+{expected}",
        )


def _check_companions(facts: ImageFacts, wanted: Expectation) -> Iterator[Finding]:
    installed = facts.main_distributions()
    for line in wanted.requirements:
        name, version = line.name, line.exact_version
        if name is None or version is None or name in wanted.library.packages:
            continue
        item = installed.get(name)
        if name in wanted.left_out:
            yield _finding(
                "LEFT_OUT",
                f"{name} was left out of this build on demand; the pin {version} is not proved.",
                severity=Severity.WARNING,
            )
        elif wanted.is_nightly and name == "torch" and item is not None:
            yield _finding("RECORDED", f"torch {item.version} is recorded, not compared.", severity=Severity.NOTE)
        elif item is None:
            yield _finding("IMAGE_SKEW", f"{name} is not installed; the pin is {version}.", hint="build the image anew")
        elif not _same_public(item.version, version):
            yield _finding("IMAGE_SKEW", f"{name} {item.version} in /{item.place}, and the pin is {version}.")


def _same_public(found: str, pinned: str) -> bool:
    """Equal versions; a local label counts only where the pin has one."""
    try:
        one, other = Version(found), Version(pinned)
    except InvalidVersion:
        return found == pinned
    return one == other if other.local else one.public == other.public


def _check_hashes(facts: ImageFacts, wanted: Expectation) -> Iterator[Finding]:
    """The hashes that the installer was made to verify are those that the bump recorded."""
    pinned: dict[str, set[str]] = {}
    for file, digest in wanted.hashes.items():
        name, _, rest = file.partition("-")
        if rest.partition("-")[0].partition("+")[0] == wanted.version:
            pinned.setdefault(canonicalize_name(name), set()).add(digest)
    for name, digests in facts.recorded_hashes.items():
        if name in pinned and digests - pinned[name]:
            yield _finding("WHEEL_HASH", f"{name} was installed by another hash than the one that the bump recorded.")
    from_index = {item.name for item in facts.distributions} & set(wanted.library.packages)
    if wanted.is_nightly:
        from_index.discard(wanted.library.main_package)
    unverified = sorted(from_index - set(facts.recorded_hashes))
    if unverified:
        why = "the bump recorded none" if not pinned else "the image does not say by which hash"
        yield _finding(
            "HASH_NOT_CHECKED",
            f"wheel hashes of {', '.join(unverified)} are not checked: {why}.",
            severity=Severity.WARNING if pinned and wanted.is_ours else Severity.NOTE,
        )


def _check_variables(facts: ImageFacts, wanted: Expectation) -> Iterator[Finding]:
    """An ENV of a pin's name wins over the ARG in every RUN; a base image may have brought it."""
    for name, value in wanted.variables.items():
        found = facts.config.env.get(name)
        if found is not None and found != value:
            yield _finding(
                "ENV_OVER_ARG",
                f"ENV {name}={found} shadows the argument of the same name, which is {value}.",
                hint="remove the ENV, or take a base image that sets the same value",
            )


def _check_bypass(facts: ImageFacts, wanted: Expectation) -> Iterator[Finding]:
    for name in wanted.library.bypass_variables:
        for where, variables in (("ENV", facts.config.env), ("a profile", facts.file_variables)):
            if name in variables:
                yield _finding(
                    "BYPASS",
                    f"{where} sets {name}, which silences {wanted.library.name}'s version check.",
                    hint="remove it; a mismatch must be mended, not hidden",
                )


def _check_user(facts: ImageFacts, _: Expectation) -> Iterator[Finding]:
    if facts.user.uid == 0:
        yield _finding("ROOT_USER", "the image runs as root.", hint="end the Dockerfile with USER and a number above 0")
    elif facts.user.uid is None:
        yield _finding("ROOT_USER", f"the image runs as {facts.user.name}, which is not in its /etc/passwd.")


def _check_credentials(facts: ImageFacts, _: Expectation) -> Iterator[Finding]:
    for found in facts.credentials:
        yield _finding(
            "CREDENTIALS", f"the image holds {found}.", hint="mount it as a secret, build anew, and replace what leaked"
        )


def _check_tools(facts: ImageFacts, wanted: Expectation) -> Iterator[Finding]:
    """FlashInfer compiles kernels on first use: nvcc of the pinned CUDA, and ninja."""
    home = facts.config.env.get("CUDA_HOME", "/usr/local/cuda")
    if facts.nvcc is None:
        yield _finding("NO_NVCC", f"there is no nvcc in {home}/bin.", hint="build on a `devel` base image")
    elif wanted.cuda and facts.nvcc != wanted.cuda:
        yield _finding(
            "IMAGE_SKEW", f"nvcc in {home}/bin is {facts.nvcc}, and CUDA_VERSION is {wanted.variables['CUDA_VERSION']}."
        )
    if not facts.has_ninja:
        yield _finding("NO_NINJA", "there is no ninja on the image's PATH.", hint="install the package ninja")


def _check_caches(facts: ImageFacts, _: Expectation) -> Iterator[Finding]:
    for folder, writable in facts.cache_folders.items():
        if not writable:
            yield _finding(
                "CACHE_NOT_WRITABLE",
                f"{facts.user.name} cannot write {folder}, so every start compiles and tunes anew.",
                hint="make the folder and give it to that user",
            )


def _check_python(facts: ImageFacts, wanted: Expectation) -> Iterator[Finding]:
    """The Python is the base's own, so PYTHON_VERSION speaks of the pinned base only."""
    pinned, base = (
        wanted.variables.get("PYTHON_VERSION"),
        f"ubuntu {wanted.variables.get('UBUNTU_VERSION', '')}".strip(),
    )
    if pinned is None:
        return
    if facts.system != base:
        detail = f"PYTHON_VERSION is not compared: the base is {facts.system or 'unknown'}, not {base}."
        yield _finding("NOT_COMPARED", detail, severity=Severity.NOTE)
    elif facts.python is not None and facts.python != pinned and not facts.python.startswith(f"{pinned}."):
        yield _finding("IMAGE_SKEW", f"the environment's Python is {facts.python}, and PYTHON_VERSION is {pinned}.")


def _check_labels(facts: ImageFacts, wanted: Expectation) -> Iterator[Finding]:
    """Labels and contents agree. An image that others built need not have ours."""
    labels, severity = facts.config.labels, Severity.ERROR if wanted.is_ours else Severity.NOTE
    if PINS_LABEL not in labels:
        yield _finding("NO_LABEL", f"the image has no label {PINS_LABEL}.", severity=severity)
    elif labels[PINS_LABEL] != wanted.pins_sha256:
        yield _finding(
            "LABEL_SKEW",
            f"the label {PINS_LABEL} is of other pins than this tree's.",
            hint="check out the commit that the image was built from, or build it anew",
        )
    expected, main = version_label(wanted.variables, wanted.library), wanted.library.main_package
    found = labels.get(VERSION_LABEL)
    if PINS_LABEL in labels and found != expected:
        yield _finding("LABEL_SKEW", f"the label {VERSION_LABEL} is {found}, expected {expected} ({main}, CUDA).")


def _finding(reason: str, detail: str, *, hint: str = "", severity: Severity = Severity.ERROR) -> Finding:
    return Finding(check="image-proof", detail=detail, hint=hint, reason=reason, severity=severity)
