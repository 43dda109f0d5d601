"""The effective build: which targets bake will build, with which arguments; checks on it before an hour is spent.

The JSON is what `docker buildx bake --print` writes (docker-bake reference). Running bake is `edges.buildx`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tooling.errors import InputError
from tooling.findings import Finding
from tooling.images.credentials import find_credentials
from tooling.pins.dockerfile_syntax import assignments, parse_dockerfile

PlanSource = Literal["bake", "static"]
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}|\$(\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildTarget:
    """One target as it will be built. `stage` None is the Dockerfile's last stage; paths are relative to the root."""

    name: str
    context: str
    dockerfile: str
    stage: str | None
    args: Mapping[str, str]
    tags: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "context": self.context,
            "dockerfile": self.dockerfile,
            "target": self.stage,
            "args": dict(self.args),
            "tags": list(self.tags),
        }


def parse_bake_print(text: str) -> list[BuildTarget]:
    """The targets in the output of `bake --print`, in its order.

    Raises:
        InputError: not the JSON object that bake prints.
    """
    try:
        targets = json.loads(text)["target"]
        return [make_target(name, body) for name, body in targets.items()]
    except (ValueError, KeyError, TypeError, AttributeError) as cause:
        raise InputError(f"bake --print wrote something else than its JSON: {cause}", reason="BAD_PLAN") from cause


def make_target(name: str, body: Mapping[str, object]) -> BuildTarget:
    """A target from the keys that docker-bake knows; missing ones have bake's defaults."""
    args, tags = body.get("args") or {}, body.get("tags") or []
    if not isinstance(args, Mapping) or not isinstance(tags, list):
        raise TypeError(f"target {name}: args must be an object and tags a list")
    return BuildTarget(
        name=name,
        context=str(body.get("context") or "."),
        dockerfile=str(body.get("dockerfile") or "Dockerfile"),
        stage=None if body.get("target") is None else str(body["target"]),
        args={str(key): str(value) for key, value in args.items()},
        tags=tuple(str(tag) for tag in tags),
    )


def shadowing_variables(variables: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """Names of pins that the environment sets too; bake would take the environment's value over versions.json."""
    return [name for name in variables if name in environ]


def check_plan(
    targets: Sequence[BuildTarget], variables: Mapping[str, str], *, also_used_by: Iterable[str] = ()
) -> list[Finding]:
    """Findings on the effective arguments: each pin reaches a target with its own value; no secret is among them."""
    findings = []
    for name, value in variables.items():
        having = [target for target in targets if name in target.args]
        if not having and name not in set(also_used_by):
            findings.append(
                _finding(
                    "INERT_VARIABLE",
                    f"{name} reaches none of the targets {', '.join(target.name for target in targets)}: "
                    "the build would ignore it.",
                    hint=f"pass it on in the bake file: args = {{ {name} = {name} }}",
                )
            )
        findings += [
            _finding(
                "PLAN_DRIFT",
                f"{target.name} would be built with {name}={target.args[name]}, and the versions file says {value}.",
                hint="let the bake file pass the variable on as it is",
            )
            for target in having
            if target.args[name] != value
        ]
    return findings + [finding for target in targets for finding in _check_secrets(target)]


def base_images(dockerfile: str, target: BuildTarget, *, contexts: Iterable[str] = ()) -> list[str]:
    """Every image that the target's stages are built on, with the build's arguments put in, each once.

    Stages of the file itself, `scratch` and names that a build context replaces are left out.
    """
    scope: dict[str, str] = {}
    inside = {"scratch", *contexts}
    found: dict[str, None] = {}
    for item in parse_dockerfile(dockerfile):
        if item.keyword == "ARG" and item.stage == 0:
            for named in assignments(item):
                default = _expand(named.value or "", scope)
                scope[named.name] = target.args.get(named.name, default)
        elif item.keyword == "FROM":
            words = [word.text for word in item.words() if not word.text.startswith("--")]
            image = _expand(words[0], scope) if words else ""
            if image and image.lower() not in inside and image not in inside:
                found[image] = None
            if len(words) == 3 and words[1].lower() == "as":
                inside.add(words[2].lower())
    return list(found)


def _check_secrets(target: BuildTarget) -> Iterator[Finding]:
    """Arguments stand in the image's history for everyone to read."""
    for name, value in target.args.items():
        for kind in find_credentials(f"{name}={value}"):
            yield _finding(
                "CREDENTIALS",
                f"{target.name}: the argument {name} holds {kind}, and arguments stay in the image's history.",
                hint="pass it with --index-config FILE, which is mounted as a secret",
            )


def _expand(text: str, scope: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: scope.get(match[1] or match[3], "") or match[2] or "", text)


def _finding(reason: str, detail: str, *, hint: str) -> Finding:
    return Finding(check="image-plan", detail=detail, hint=hint, reason=reason)
