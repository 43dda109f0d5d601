"""Our own rules for Dockerfiles and the bake file, beside hadolint's: cheap bumps, closed networks, no secrets.

What is true of any tree's variables (defaults that drift, undeclared ARGs, inert variables) is `pins.variable_checks`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tooling.findings import Finding
from tooling.images.plan import BuildTarget
from tooling.pins.dockerfile_syntax import Instruction, assignments, parse_dockerfile
from tooling.pins.texts import SourceText

_NEW_SYNTAX = re.compile(r"^#\s*syntax\s*=", re.IGNORECASE)
_LINKED = re.compile(r"--(?:link|parents|exclude)\b")
_NETWORK = re.compile(r"\b(?:apt-get\s|apt-install\s|pip3?\s+(?:install|download)|uv\s+pip|git\s+clone|curl\s|wget\s)")
_SECRET_NAME = re.compile(r"(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|CREDENTIALS?)$", re.IGNORECASE)
_CA_MOUNT = re.compile(r"--mount=type=secret,id=ca_bundle\b")


def check_dockerfile(source: SourceText, *, variables: Iterable[str], version_variable: str) -> list[Finding]:
    """Findings on one Dockerfile, with path and line."""
    items = parse_dockerfile(source.text)
    rules = (
        _check_plain_frontend(source, items),
        _check_secrets(source, items),
        _check_environment(source, items, set(variables)),
        _check_user(source, items),
        _check_order(source, items, version_variable),
    )
    return [finding for rule in rules for finding in rule]


def check_bake(
    targets: Sequence[BuildTarget], *, path: str, dockerfiles: Iterable[str], variables: Mapping[str, str]
) -> list[Finding]:
    """Findings on the evaluated bake file: every pin reaches every target, tags tell releases apart, files exist."""
    existing, findings = set(dockerfiles), list[Finding]()
    for target in targets:
        missing = [name for name in variables if name not in target.args]
        if missing:
            findings.append(
                _bake(path, "INERT_VARIABLE", f"target {target.name} does not pass {', '.join(missing)} on.")
            )
        if target.dockerfile not in existing:
            findings.append(
                _bake(path, "MISSING", f"target {target.name} names {target.dockerfile}, which is not there.")
            )
        findings += [
            _bake(path, "SAME_TAG", f"a tag of target {target.name} does not carry {name}.")
            for name in ("FLASHINFER_VERSION", "CUDA_VERSION")
            if name in variables and not all(variables[name] in tag for tag in target.tags)
        ]
    return findings


def _check_plain_frontend(source: SourceText, items: list[Instruction]) -> Iterator[Finding]:
    """Nothing that only a pulled frontend or a new builder understands: closed networks have neither."""
    first = source.text.removeprefix("\ufeff").split("\n", 1)[0]
    if _NEW_SYNTAX.match(first):
        yield _at(source, 0, "NEEDS_PULL", "a `# syntax=` line makes every build pull a frontend.", "remove it")
    for item in items:
        if item.keyword in {"RUN", "COPY", "ADD"} and re.search(r"<<-?\s*[\"']?[A-Za-z_]", item.body):
            yield _at(source, item.start, "NEEDS_NEW_BUILDER", "a heredoc needs a newer frontend.", "use a file")
        if item.keyword in {"COPY", "ADD"} and _LINKED.search(item.body):
            yield _at(
                source, item.start, "NEEDS_NEW_BUILDER", "COPY's newer options need a newer frontend.", "do without"
            )


def _check_secrets(source: SourceText, items: list[Instruction]) -> Iterator[Finding]:
    """What is reached over the network is reached with the caller's certificates, and secrets are never arguments."""
    for item in items:
        if item.keyword == "RUN" and _NETWORK.search(item.body) and not _CA_MOUNT.search(item.body):
            detail = "a step that reaches the network does not mount the secret ca_bundle."
            yield _at(source, item.start, "NO_CERTIFICATES", detail, "add --mount=type=secret,id=ca_bundle")
        if item.keyword in {"ARG", "ENV"}:
            for named in assignments(item):
                if _SECRET_NAME.search(named.name):
                    detail = f"{item.keyword} {named.name} would stay in the image's history."
                    yield _at(source, named.name_start, "CREDENTIALS", detail, "mount it as a secret")


def _check_environment(source: SourceText, items: list[Instruction], variables: set[str]) -> Iterator[Finding]:
    for item in items:
        for named in assignments(item) if item.keyword == "ENV" else ():
            if named.name in variables:
                detail = f"ENV {named.name} wins over the argument of the same name in every later step."
                yield _at(source, named.name_start, "ENV_OVER_ARG", detail, "use the ARG, or another name")


def _check_user(source: SourceText, items: list[Instruction]) -> Iterator[Finding]:
    """The last stage ends with a numeric user other than root, which Kubernetes can check (runAsNonRoot)."""
    last = max((item.stage for item in items), default=0)
    users = [item for item in items if item.keyword == "USER" and item.stage == last]
    name = users[-1].body.strip() if users else "root"
    if not name.partition(":")[0].isdigit() or name.partition(":")[0] == "0":
        offset = users[-1].start if users else 0
        yield _at(source, offset, "ROOT_USER", f"the image would run as {name}.", "end with USER and a number above 0")


def _check_order(source: SourceText, items: list[Instruction], version_variable: str) -> Iterator[Finding]:
    """A declared argument is part of every later RUN's identity, so the library's comes after torch and companions."""
    for item in items:
        if item.keyword == "ARG" and item.stage > 0 and version_variable in {named.name for named in assignments(item)}:
            before = [other for other in items if other.stage > 0 and other.start < item.start]
            if not any(other.keyword == "RUN" and "companions.txt" in other.body for other in before):
                detail = (
                    f"{version_variable} is declared before torch and companions are installed; a bump rebuilds them."
                )
                yield _at(source, item.start, "BUMP_REBUILDS_ALL", detail, "declare it in a stage below them")


def _at(source: SourceText, offset: int, reason: str, detail: str, hint: str) -> Finding:
    line, _ = source.line_and_column(offset)
    return Finding(check="image-lint", path=source.path, line=line, detail=detail, hint=hint, reason=reason)


def _bake(path: str, reason: str, detail: str) -> Finding:
    return Finding(check="image-lint", path=path, detail=detail, reason=reason)
