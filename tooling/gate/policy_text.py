"""Reads channels out of TOML: the tables `[gate]` and `[channels.NAME]` of release.toml, strictly. Judges nothing."""

from __future__ import annotations

import re
import tomllib

from tooling.errors import InputError
from tooling.gate.policy import (
    ALLOWANCES,
    STAGES,
    AllowedFault,
    Channel,
    Gsm8kRules,
    ImageRules,
    Policy,
    SmokeRules,
)
from tooling.gate.policy_fields import Fields
from tooling.smoke.scenarios import SCENARIOS

NAME = "[A-Za-z0-9_][A-Za-z0-9._-]*"
"""A channel's name is typed in shells and stands in CI's own files."""

_CONFIG = r"(?:(?!\.\./)[^/\0]+/)*[A-Za-z0-9_][A-Za-z0-9._-]*\.ya?ml"
"""Inside the tree: a record is of the commit that holds its configuration."""

_OTHER_ROOMS = ("pins", "scan", "bake", "blocked", "releases", "flashinfer", "image", "smoke")
"""Tables of a release.toml that are not the gate's; they are parsed where they are used."""


def parse_policy(text: str, *, path: str) -> Policy:
    """The gate's tables of a release.toml, or of a file that holds nothing else.

    Raises:
        InputError: not TOML, or wrong and unknown keys, all of them named at once by their key paths.
    """
    try:
        data = tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as cause:  # TOMLDecodeError, and a number with thousands of digits
        raise InputError(f"{path}: is not TOML: {cause}", hint="see docs/gate.md", reason="BAD_POLICY") from cause
    problems: list[str] = []
    ours = {key: value for key, value in data.items() if key not in _OTHER_ROOMS}
    policy = _policy(Fields("", ours, problems.append))
    if problems:
        raise InputError(f"{path}: " + "; ".join(problems), hint="see docs/gate.md", reason="BAD_POLICY")
    return policy


def _policy(top: Fields) -> Policy:
    gate, listed = top.table("gate"), top.table("channels")
    default = gate.text("channel") if gate.has("channel") else None
    gate.close()
    channels = {name: _channel(name, Fields(listed.path(name), value, top.problem)) for name, value in listed.rest()}
    top.close()
    if default is not None and default not in channels:
        top.problem(f"gate.channel: found {default!r}, expected one of {', '.join(channels) or 'the channels'}")
    return Policy(channels=channels, default=default)


def _channel(name: str, fields: Fields) -> Channel:
    if not re.fullmatch(NAME, name):
        fields.problem(f"channels: found the name {name!r}, expected the form {NAME}")
    is_empty, stages = fields.is_empty("stages"), fields.names("stages", known=STAGES)
    if is_empty:
        fields.problem(f"{fields.path('stages')}: found none, expected at least one of {', '.join(STAGES)}")
    ages = fields.table("max_age_hours")
    channel = Channel(
        name=name,
        stages=tuple(stage for stage in STAGES if stage in stages),
        max_age_hours={stage: value for stage in STAGES if (value := ages.number(stage, None)) is not None},
        allow=fields.names("allow", known=ALLOWANCES),
        informs=fields.names("informs"),
        known_faults=tuple(_fault(entry) for entry in fields.tables("known_faults")),
        image=_image(fields, asked="image" in stages),
        smoke=_smoke(fields, asked="smoke" in stages),
        gsm8k=_gsm8k(fields, asked="gsm8k" in stages),
    )
    ages.close(known=STAGES)
    fields.close()
    _check_informs(channel, fields)
    _check_faults(channel, fields)
    return channel


def _check_informs(channel: Channel, fields: Fields) -> None:
    for title in channel.informs:
        if title in channel.titles:
            fields.problem(f"{fields.path('informs')}: {title!r} is asked for, so it cannot only inform")


def _check_faults(channel: Channel, fields: Fields) -> None:
    names = [fault.id for fault in channel.known_faults]
    for name in sorted({name for name in names if names.count(name) > 1}):
        fields.problem(f"{fields.path('known_faults')}: {name!r} stands there twice, expected one day for it")


def _fault(entry: Fields) -> AllowedFault:
    fault = AllowedFault(id=entry.text("id"), reason=entry.text("reason"), expires=entry.day("expires"))
    entry.close()
    return fault


def _image(fields: Fields, *, asked: bool) -> ImageRules:
    table = _stage_table(fields, "image", asked=asked)
    if table is None:
        return ImageRules()
    targets = _needed(table, "targets")
    tested = table.text("tested", targets[0] if targets else "release")
    if targets and tested not in targets:
        table.problem(f"{table.path('tested')}: found {tested!r}, expected one of {', '.join(targets)}")
    table.close()
    return ImageRules(targets=targets, tested=tested)


def _smoke(fields: Fields, *, asked: bool) -> SmokeRules:
    table = _stage_table(fields, "smoke", asked=asked)
    if table is None:
        return SmokeRules()
    architectures = _needed(table, "architectures", pattern=r"sm[0-9]{2,3}[a-z]?", form="one such as sm90")
    multi_rank, deepep = table.flag("multi_rank", default=True), table.flag("deepep", default=True)
    named = table.names("scenarios", tuple(SCENARIOS), known=tuple(SCENARIOS))
    left_out = {
        name
        for name, scenario in SCENARIOS.items()
        if (scenario.deepep and not deepep) or (scenario.ranks > 1 and not scenario.deepep and not multi_rank)
    }
    rules = SmokeRules(
        architectures=architectures,
        scenarios=tuple(name for name in SCENARIOS if name in named and name not in left_out),
        not_covered=table.names("not_covered"),
        min_speedup=table.number("min_speedup", None, least=1.0),
    )
    if not rules.scenarios:
        table.problem(f"{table.path('scenarios')}: no scenario is left, expected at least one")
    table.close()
    return rules


def _gsm8k(fields: Fields, *, asked: bool) -> Gsm8kRules:
    table = _stage_table(fields, "gsm8k", asked=asked)
    if table is None:
        return Gsm8kRules()
    configs = _needed(table, "configs", pattern=_CONFIG, form="a file of the tree, such as configs/gsm8k/NAME.yaml")
    questions = table.number("min_questions", 0)
    if isinstance(questions, float) and not questions.is_integer():
        table.problem(f"{table.path('min_questions')}: found {questions}, expected a whole number")
    rules = Gsm8kRules(
        configs=configs, baseline=table.flag("baseline", default=False), min_questions=int(questions or 0)
    )
    if len(rules.subjects) < len(configs):
        table.problem(f"{table.path('configs')}: two of them have one name, so that their records would be one file")
    table.close()
    return rules


def _stage_table(fields: Fields, stage: str, *, asked: bool) -> Fields | None:
    """The stage's own table; one for a stage that is not asked for is surely a mistake."""
    if asked:
        return fields.table(stage)
    if fields.has(stage):
        fields.table(stage)
        fields.problem(f"{fields.path(stage)}: is set, but {fields.path('stages')} does not ask for {stage}")
    return None


def _needed(table: Fields, key: str, *, pattern: str = "", form: str = "") -> tuple[str, ...]:
    is_there, is_empty = table.has(key), table.is_empty(key)
    names = table.names(key, pattern=pattern, form=form)
    if is_empty:
        table.problem(f"{table.path(key)}: found {'none' if is_there else 'nothing'}, expected at least one")
    return names
