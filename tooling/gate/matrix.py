"""What CI runs for a channel, and where: images to build, GPUs to smoke on, evaluations. For GitHub's `fromJSON`.

Runners are the tree's own words, in release.toml: `[image.runners] PLATFORM = [LABEL…]`, `[smoke.runners] ARCH = […]`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tooling.errors import InputError
from tooling.gate.policy import Channel
from tooling.images.plan import BuildTarget
from tooling.smoke.scenarios import SCENARIOS

KINDS = ("build", "gpu", "gsm8k", "publish")

_BUILD_RUNNERS = {"linux/amd64": ("ubuntu-24.04",), "linux/arm64": ("ubuntu-24.04-arm",)}
"""GitHub's own runners for each platform; both are free for public repositories."""
_TABLES = {"image": "a platform such as linux/amd64", "smoke": "a GPU architecture such as sm90"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Runners:
    """Labels of the runners by platform and by GPU architecture, where release.toml names some."""

    build: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    gpu: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def for_platform(self, platform: str) -> list[str]:
        return list(self.build.get(platform) or _BUILD_RUNNERS[platform])

    def for_architecture(self, architecture: str) -> list[str]:
        return list(self.gpu.get(architecture) or ("self-hosted", "linux", "gpu", architecture))


def parse_runners(text: str, *, path: str) -> Runners:
    """The runners of a release.toml, which must be TOML already.

    Raises:
        InputError: unknown or wrong keys of the two tables, all of them named at once.
    """
    data = tomllib.loads(text.removeprefix("\ufeff"))
    problems: list[str] = []
    found = {table: _labels(data.get(table, {}), table, problems) for table in _TABLES}
    problems += [
        f"image.runners.{platform}: expected one of {', '.join(_BUILD_RUNNERS)}"
        for platform in found["image"]
        if platform not in _BUILD_RUNNERS
    ]
    if problems:
        raise InputError(f"{path}: " + "; ".join(problems), hint="see docs/ci.md", reason="BAD_SETTINGS")
    return Runners(build=found["image"], gpu=found["smoke"])


def plan_build(
    channel: Channel, targets: Sequence[BuildTarget], platforms: Sequence[str], runners: Runners
) -> list[dict[str, object]]:
    """One job for each image that the channel asks for or is informed by, on each platform.

    `tested`: smoke and gsm8k run in this image.

    Raises:
        InputError: the channel asks for a target that the bake file does not have.
    """
    known = {target.name: target for target in targets}
    missing = [name for name in channel.image.targets if name not in known]
    if missing:
        raise InputError(
            f"channels.{channel.name}.image.targets: {', '.join(missing)} is no target of the bake file; "
            f"there are {', '.join(known) or 'none'}",
            hint="name targets of the bake file's default group",
            reason="NO_TARGET",
        )
    wanted = [name for name in known if name in channel.image.targets or f"image {name}" in channel.informs]
    return [
        {
            "name": f"{name}-{platform.replace('/', '-')}",
            "target": name,
            "platform": platform,
            "runner": runners.for_platform(platform),
            "required": name in channel.image.targets,
            "tested": name == channel.image.tested,
        }
        for name in wanted
        for platform in platforms
    ]


def plan_gpu(channel: Channel, runners: Runners) -> list[dict[str, object]]:
    """One smoke job for each GPU architecture that the channel asks for, with the scenarios that must have run.

    `image` is the target that it must run in, null where the channel asks for no image; `ranks` is how many processes
    the largest scenario has; they may share one GPU.
    """
    scenarios = channel.smoke.scenarios
    return [
        {
            "name": f"smoke-{architecture}",
            "architecture": architecture,
            "image": channel.image.tested,
            "runner": runners.for_architecture(architecture),
            "scenarios": list(scenarios),
            "ranks": max(SCENARIOS[name].ranks for name in scenarios),
        }
        for architecture in channel.smoke.architectures
    ]


def plan_gsm8k(channel: Channel, runners: Runners) -> list[dict[str, object]]:
    """One job for each evaluation that the channel asks for, on a runner of its first GPU architecture."""
    first = next(iter(channel.smoke.architectures), None)
    runner = ["self-hosted", "linux", "gpu"] if first is None else runners.for_architecture(first)
    return [
        {"name": f"gsm8k-{subject}", "config": path, "image": channel.image.tested, "runner": runner}
        for subject, path in channel.gsm8k.subjects.items()
    ]


def plan_publish(
    channel: Channel, targets: Sequence[BuildTarget], platforms: Sequence[str], *, several: bool
) -> list[dict[str, object]]:
    """One job for each image that the channel asks for, on each platform, with the tag that the bake file gives it.

    Images that only inform are never published. Where the tree has `several` platforms each tag ends in its own, also
    in a plan of one of them: the next run's image would take the name away otherwise.
    """
    return [
        {
            "name": f"{target.name}-{platform.replace('/', '-')}",
            "target": target.name,
            "platform": platform,
            "tag": _tag(target) + (f"-{platform.rpartition('/')[2]}" if several else ""),
        }
        for target in targets
        if target.name in channel.image.targets
        for platform in platforms
    ]


def _tag(target: BuildTarget) -> str:
    """What stands behind the name in the target's first tag; `latest`, as docker has it, where nothing does."""
    name = target.tags[0] if target.tags else ""
    return name.rpartition("/")[2].partition("@")[0].partition(":")[2] or "latest"


def _labels(table: object, name: str, problems: list[str]) -> dict[str, tuple[str, ...]]:
    if not isinstance(table, dict):
        problems.append(f"{name}: expected a table")
        return {}
    problems += [f"{name}.{key}: unknown key" for key in table if key != "runners"]
    runners = table.get("runners", {})
    if not isinstance(runners, dict):
        problems.append(f"{name}.runners: expected a table of {_TABLES[name]} and labels")
        return {}
    for key, value in runners.items():
        if not isinstance(value, list) or not value or not all(isinstance(item, str) and item for item in value):
            problems.append(f"{name}.runners.{key}: found {value!r}, expected a list of labels")
    return {key: tuple(value) for key, value in runners.items() if isinstance(value, list)}
