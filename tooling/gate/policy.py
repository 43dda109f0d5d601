"""What a channel asks for before a release may go there, as values. Its text is read by `policy_text`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Literal, get_args

from tooling.errors import InputError
from tooling.evidence import canonical_json, title

STAGES = ("check", "image", "smoke", "gsm8k")
"""Stages that a channel may ask for, in the order in which a release goes through them: a failing one is the cause of
what fails after it. A bump informs and is never asked for."""

MAX_AGE_HOURS = 168.0
"""How old a record may be where the channel does not say: a week."""

Allowance = Literal["dirty", "no-commit", "no-image", "bypasses", "overrides"]
ALLOWANCES: tuple[Allowance, ...] = get_args(Allowance)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedFault:
    """A known fault that the channel takes until the end of that day (UTC), and why."""

    id: str
    reason: str
    expires: date


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRules:
    """The bake targets whose proof is asked for, and the one of them that smoke and gsm8k must have run in."""

    targets: tuple[str, ...] = ()
    tested: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeRules:
    """GPU architectures such as `sm90`, each of which needs a record; the scenarios that must have run, cold and warm.

    `not_covered` may stay uncovered. `min_speedup`: how many times as fast a warm start that uses the cache must be.
    """

    architectures: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    min_speedup: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gsm8kRules:
    """Configuration files, each of which needs a record; `baseline`: compared with an earlier release's record."""

    configs: tuple[str, ...] = ()
    baseline: bool = False
    min_questions: int = 0

    @property
    def subjects(self) -> dict[str, str]:
        """The record's subject and the configuration's path."""
        return {_subject(path): path for path in self.configs}


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """All that one channel asks for. `informs`: titles (`image nightly`) whose records are shown and never count."""

    name: str
    stages: tuple[str, ...]
    max_age_hours: Mapping[str, float] = field(default_factory=dict)
    allow: tuple[str, ...] = ()
    informs: tuple[str, ...] = ()
    known_faults: tuple[AllowedFault, ...] = ()
    image: ImageRules = ImageRules()
    smoke: SmokeRules = SmokeRules()
    gsm8k: Gsm8kRules = Gsm8kRules()

    @property
    def required(self) -> tuple[tuple[str, str | None], ...]:
        """Stage and subject of every record that is asked for, in the order of the stages."""
        subjects: dict[str, tuple[str | None, ...]] = {
            "check": (None,),
            "image": self.image.targets,
            "smoke": self.smoke.architectures,
            "gsm8k": tuple(self.gsm8k.subjects),
        }
        return tuple((stage, subject) for stage in STAGES if stage in self.stages for subject in subjects[stage])

    @property
    def titles(self) -> tuple[str, ...]:
        """Every record that is asked for, as outputs name it: `check`, `smoke sm90`."""
        return tuple(title(stage, subject) for stage, subject in self.required)

    def allows(self, what: Allowance) -> bool:
        return what in self.allow

    def max_age(self, stage: str) -> float:
        return self.max_age_hours.get(stage, MAX_AGE_HOURS)

    def as_json(self) -> dict[str, object]:
        faults = [{"id": item.id, "reason": item.reason, "expires": str(item.expires)} for item in self.known_faults]
        return {**asdict(self), "known_faults": faults}

    @property
    def sha256(self) -> str:
        """Over the canonical JSON of all that the channel asks for; comments and layout do not count."""
        return hashlib.sha256(canonical_json(self.as_json()).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The channels by name, and the one that is meant where none is named."""

    channels: Mapping[str, Channel]
    default: str | None = None

    def channel(self, name: str | None, *, path: str) -> Channel:
        """The channel of that name; None is the default one, an empty name is somebody's unset variable and no channel.

        Raises:
            InputError: there is none; the message lists those there are.
        """
        wanted = self.default if name is None else name
        found = None if wanted is None else self.channels.get(wanted)
        if found is not None:
            return found
        there = ", ".join(self.channels) or "none"
        raise InputError(
            f"{path}: names no channel"
            if wanted is None
            else f"{path}: no channel is called {wanted!r}; it has {there}",
            hint="give --channel NAME; docs/gate.md shows how to write one",
            reason="UNKNOWN_CHANNEL",
        )


def _subject(path: str) -> str:
    """The name that gsm8k gives the record of that configuration."""
    return path.rsplit("/", 1)[-1].removesuffix(".yaml").removesuffix(".yml").rstrip("-.")
