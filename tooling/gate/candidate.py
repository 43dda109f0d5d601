"""What the verdict is about: pins, commit and images that records must share. Judges no record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tooling.evidence import Record
from tooling.gate.policy import Channel

_TELLING = ("image", "check", "smoke", "gsm8k")
"""Whose word counts for what nobody gave: the image is what is released."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What is known beside the records: the tree's own pins and release, and the commit that was asked for.

    `head`: the commit that the tree is at, which nobody asked for; it is compared with and judges nothing.
    `configs`: the sha256 of the tree's own file of an evaluation, by the record's subject, "" where a tree with pins
    has no such file; absent where there is no tree.
    """

    pins_sha256: str | None = None
    flashinfer_version: str | None = None
    commit: str | None = None
    head: str | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The release under judgement. `images`: config digest by target; `tested`: the image that stages must run in.

    `layers`: digests of an image's layers, bottom first, by its config digest; `proved`: images with a passing record;
    `tag`: a name of the tested image; `platforms`: the platform of each image that was built together with the tested
    one, by config digest; `head`, which is None where a commit was asked for, and `configs` as they were given.
    """

    pins_sha256: str | None
    flashinfer_version: str | None
    commit: str | None
    images: Mapping[str, str] = field(default_factory=dict)
    tested: str | None = None
    layers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    proved: frozenset[str] = frozenset()
    tag: str | None = None
    platforms: Mapping[str, str] = field(default_factory=dict)
    head: str | None = None
    configs: Mapping[str, str] = field(default_factory=dict)

    def derives(self, image_id: str) -> bool:
        """Whether that image was proved and built from the tested one: its layers begin with all of that one's."""
        return image_id in self.proved and extends(
            self.layers.get(image_id, ()), self.layers.get(self.tested or "", ())
        )


def find_candidate(records: Sequence[Record], channel: Channel, given: Given) -> Candidate:
    """What the records speak of: what was given holds; the rest is what the newest telling records say."""
    telling = _by_weight((record for record in records if record.stage in _TELLING), channel)
    pins = given.pins_sha256 or _first(record.pins_sha256 for record in telling)
    ours = [record for record in telling if record.pins_sha256 == pins]
    layers = {record.image_id: found for record in records if record.image_id and (found := _layers(record))}
    images = _images(ours, layers)
    tested = images.get(channel.image.tested or "")
    if tested is None and "image" not in channel.stages:
        tested = _first(record.image_id for record in ours if record.stage in {"smoke", "gsm8k"})
    return Candidate(
        pins_sha256=pins,
        flashinfer_version=given.flashinfer_version or _first(record.flashinfer_version for record in ours),
        commit=_whole(
            given.commit or _first(record.commit for record in ours if _tells_commit(record, images)),
            [record.commit for record in ours if record.commit],
        ),
        images={target: image for target, image in images.items() if target in channel.image.targets},
        tested=tested,
        layers=layers,
        proved=frozenset(one.image_id for one in ours if one.image_id and (one.stage, one.status) == ("image", "pass")),
        platforms=_platforms(ours, tested),
        tag=_first(_tag(record) for record in ours if record.image_id == tested),
        head=None if given.commit else given.head,
        configs=given.configs,
    )


def _by_weight(records: Iterable[Record], channel: Channel) -> list[Record]:
    """What the channel asks for first, then telling stages first, and of one stage the newest first; equal ones in an
    order of their own content. A record that nothing asks for may be of last week, or of the next release.
    """
    newest = sorted(records, key=lambda record: (record.ended, record.started, repr(record)), reverse=True)
    asked = channel.required
    return sorted(newest, key=lambda one: ((one.stage, one.subject) not in asked, _TELLING.index(one.stage)))


def _tells_commit(record: Record, images: Mapping[str, str]) -> bool:
    """Not one that failed, and not one of an image that is not, or no longer, its target's."""
    is_other = record.stage == "image" and record.image_id not in {None, images.get(record.subject or "")}
    return record.status != "fail" and not is_other


def _images(records: Iterable[Record], layers: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """The newest image of every target. One that was only verified and was built from another is not the target's own:
    such an image carries the labels of the one below it.
    """
    found: dict[str, list[tuple[str, bool]]] = {}
    for record in records:
        if record.stage == "image" and record.subject is not None and record.image_id is not None:
            found.setdefault(record.subject, []).append((record.image_id, "verified" in record.measurements))
    return {
        target: next(
            image
            for image, verified in images
            if not (verified and any(extends(layers.get(image, ()), layers.get(other, ())) for other, _ in images))
        )
        for target, images in found.items()
    }


def extends(upper: tuple[str, ...], lower: tuple[str, ...]) -> bool:
    """Whether an image has all layers of the other at its bottom, and more."""
    return bool(lower) and len(upper) > len(lower) and upper[: len(lower)] == lower


def _whole(commit: str | None, told: Sequence[str]) -> str | None:
    """The commit as the first record has it that tells more of it: two commits may begin alike."""
    if commit is None:
        return None
    return next((one for one in told if len(one) > len(commit) >= 7 and one.lower().startswith(commit.lower())), commit)


def _layers(record: Record) -> tuple[str, ...]:
    value = record.measurements.get("layers")
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _platforms(records: Iterable[Record], tested: str | None) -> dict[str, str]:
    """The platforms of the newest record of the tested image, by their images."""
    told = (
        one.measurements.get("platform_images") for one in records if one.stage == "image" and one.image_id == tested
    )
    found = next((images for images in told if isinstance(images, Mapping)), {})
    return {str(image): str(platform) for platform, image in found.items()}


def _tag(record: Record) -> str | None:
    tags = record.measurements.get("tags")
    return str(tags[0]) if isinstance(tags, list) and tags else None


def _first(values: Iterable[str | None]) -> str | None:
    return next((value for value in values if value), None)
