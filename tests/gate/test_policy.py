"""Channels: one table of samples through the parser and through the schema, and every problem named by its key path."""

from __future__ import annotations

import json
import tomllib
from datetime import date
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from tests.gate.samples import POLICY, make_channel
from tooling.errors import InputError
from tooling.gate.policy import AllowedFault, Channel
from tooling.gate.policy_text import parse_policy
from tooling.smoke.scenarios import SCENARIOS

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((files("tooling") / "data/schemas/release.schema.json").read_text())
C = "[channels.c]\n"
SMOKE = C + 'stages = ["smoke"]\n[channels.c.smoke]\narchitectures = ["sm90"]\n'
GSM8K = C + 'stages = ["gsm8k"]\n[channels.c.gsm8k]\n'
FAULT = C + 'stages = ["check"]\n[[channels.c.known_faults]]\nid = "a#1"\n'

SAMPLES: dict[str, tuple[str, str | None]] = {
    "nothing": ("", None),
    "the sample": (POLICY, None),
    "one stage": (C + 'stages = ["check"]\n', None),
    "a default": ('[gate]\nchannel = "c"\n' + C + 'stages = ["check"]\n', None),
    "tables of other rooms": ('[scan]\nleave_out = ["x"]\n[releases]\ncooldown_days = 3\n', None),
    "ages": (C + 'stages = ["check"]\nmax_age_hours = { check = 1.5, gsm8k = 0 }\n', None),
    "a fault": (FAULT + 'reason = "r"\nexpires = 2026-12-31\n', None),
    "no stage": (C + "stages = []\n", "channels.c.stages: found none, expected at least one of check, image"),
    "no stages at all": (C, "channels.c.stages: found none"),
    "an unknown stage": (C + 'stages = ["lint"]\n', "channels.c.stages: found 'lint', expected one of check"),
    "a stage twice": (C + 'stages = ["check", "check"]\n', "channels.c.stages: 'check' stands there twice"),
    "stages as text": (C + 'stages = "check"\n', "channels.c.stages: found 'check', expected a list of texts"),
    "a channel that is no table": ("[channels]\nc = 1\n", "channels.c: found 1, expected a table"),
    "channels that are no table": ("channels = 1\n", "channels: found 1, expected a table"),
    "a gate that is no table": ("gate = 1\n", "gate: found 1, expected a table"),
    "an unknown key": (C + 'stages = ["check"]\nage = 1\n', "channels.c.age: unknown key"),
    "an unknown key of the gate": ("[gate]\nname = 1\n", "gate.name: unknown key"),
    "an empty default": ('[gate]\nchannel = ""\n', "gate.channel: found '', expected a text"),
    "an unknown allowance": (C + 'stages = ["check"]\nallow = ["all"]\n', "channels.c.allow: found 'all', expected one of dirty"),
    "an age below zero": (C + 'stages = ["check"]\nmax_age_hours = { check = -1 }\n', "channels.c.max_age_hours.check: found -1"),
    "an age as text": (C + 'stages = ["check"]\nmax_age_hours = { check = "1" }\n', "channels.c.max_age_hours.check: found '1'"),
    "an age that is true": (C + 'stages = ["check"]\nmax_age_hours = { check = true }\n', "channels.c.max_age_hours.check: found True"),
    "an age of another stage": (C + 'stages = ["check"]\nmax_age_hours = { bump = 1 }\n', "channels.c.max_age_hours.bump: unknown key"),
    "a fault without reason": (FAULT + "expires = 2026-12-31\n", "channels.c.known_faults[0].reason: found nothing"),
    "a fault without end": (FAULT + 'reason = "r"\n', "channels.c.known_faults[0].expires: found nothing, expected a date"),
    "a fault with an unknown key": (
        FAULT + 'reason = "r"\nexpires = 2026-12-31\nuntil = 1\n', "channels.c.known_faults[0].until: unknown key"),
    "a fault that is no table": (C + 'stages = ["check"]\nknown_faults = [1]\n', "channels.c.known_faults[0]: found 1"),
    "faults that are no list": (C + 'stages = ["check"]\nknown_faults = 1\n', "channels.c.known_faults: found 1, expected [["),
    "an image stage without targets": (C + 'stages = ["image"]\n', "channels.c.image.targets: found nothing"),
    "an empty list of targets": (C + 'stages = ["image"]\n[channels.c.image]\ntargets = []\n', "channels.c.image.targets: found none"),
    "a table for a stage that is not asked for": (
        C + 'stages = ["check"]\n[channels.c.image]\ntargets = ["a"]\n', "channels.c.image: is set, but channels.c.stages"),
    "no architecture": (C + 'stages = ["smoke"]\n[channels.c.smoke]\narchitectures = []\n', "channels.c.smoke.architectures: found none"),
    "an architecture by its card": (
        C + 'stages = ["smoke"]\n[channels.c.smoke]\narchitectures = ["H100"]\n', "channels.c.smoke.architectures: found 'H100'"),
    "an unknown scenario": (SMOKE + 'scenarios = ["all"]\n', "channels.c.smoke.scenarios: found 'all', expected one of one-rank"),
    "coverage as text": (SMOKE + 'deepep = "yes"\n', "channels.c.smoke.deepep: found 'yes', expected true or false"),
    "a speed-up below one": (SMOKE + "min_speedup = 0.5\n", "channels.c.smoke.min_speedup: found 0.5, expected a number from 1"),
    "no configuration": (GSM8K, "channels.c.gsm8k.configs: found nothing"),
    "a configuration that is no file": (GSM8K + 'configs = ["qwen"]\n', "channels.c.gsm8k.configs: found 'qwen'"),
    "a configuration outside of the tree": (
        GSM8K + 'configs = ["../q.yaml"]\n', "channels.c.gsm8k.configs: found '../q.yaml', expected a file of the tree"),
    "a configuration outside of the tree, by a way through it": (
        GSM8K + 'configs = ["a/../../q.yaml"]\n', "channels.c.gsm8k.configs: found 'a/../../q.yaml'"),
    "half a question": (GSM8K + 'configs = ["q.yaml"]\nmin_questions = 0.5\n', "channels.c.gsm8k.min_questions: found 0.5"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "problem"), SAMPLES.values(), ids=SAMPLES)
def test_the_parser_and_the_schema_agree(text: str, problem: str | None) -> None:
    data = json.loads(json.dumps(tomllib.loads(text), default=str))
    assert jsonschema.Draft202012Validator(SCHEMA).is_valid(data) == (problem is None)
    if problem is None:
        parse_policy(text, path="p.toml")
    else:
        with pytest.raises(InputError) as raised:
            parse_policy(text, path="p.toml")
        assert raised.value.message.startswith("p.toml: ")
        assert problem in raised.value.message
        assert (raised.value.reason, raised.value.hint) == ("BAD_POLICY", "see docs/gate.md")


BEYOND_THE_SCHEMA = {
    "an unknown table": ("[chanels]\n", "chanels: unknown key"),
    "a default that is no channel": ('[gate]\nchannel = "d"\n' + C + 'stages = ["check"]\n', "gate.channel: found 'd', expected one of c"),
    "a tested image that is no target": (
        C + 'stages = ["image"]\n[channels.c.image]\ntargets = ["a"]\ntested = "b"\n', "channels.c.image.tested: found 'b'"),
    "two configurations of one name": (
        GSM8K + 'configs = ["a/q.yaml", "b/q.yml"]\n', "channels.c.gsm8k.configs: two of them have one name"),
    "no scenario is left": (SMOKE + 'scenarios = ["two-ranks"]\nmulti_rank = false\n', "channels.c.smoke.scenarios: no scenario is left"),
    "what is asked for cannot only inform": (
        C + 'stages = ["check"]\ninforms = ["check"]\n', "channels.c.informs: 'check' is asked for"),
    "a date in quotes": (FAULT + 'reason = "r"\nexpires = "2026-12-31"\n', "channels.c.known_faults[0].expires: found '2026-12-31'"),
    "a time of day": (FAULT + 'reason = "r"\nexpires = 2026-12-31T10:00:00Z\n', "channels.c.known_faults[0].expires: found datetime"),
    "a fault twice": (
        FAULT + 'reason = "r"\nexpires = 2026-12-31\n[[channels.c.known_faults]]\nid = "a#1"\nreason = "r"\nexpires = 2027-12-31\n',
        "channels.c.known_faults: 'a#1' stands there twice"),
    "an age without end": (C + 'stages = ["check"]\nmax_age_hours = { check = inf }\n', "channels.c.max_age_hours.check: found inf"),
    "an age that is no number": (C + 'stages = ["check"]\nmax_age_hours = { check = nan }\n', "channels.c.max_age_hours.check: found nan"),
    "questions without end": (
        GSM8K + 'configs = ["q.yaml"]\nmin_questions = inf\n', "channels.c.gsm8k.min_questions: found inf"),
    "a speed-up without end": (SMOKE + "min_speedup = inf\n", "channels.c.smoke.min_speedup: found inf"),
    "a number of thousands of digits": (C + f"stages = {'9' * 5000}\n", "is not TOML"),
    "an age in centuries": (
        C + 'stages = ["check"]\nmax_age_hours = { check = 1e300 }\n', "expected a number from 0 to 1,000,000"),
    "a blank among what may stay uncovered": (SMOKE + 'not_covered = [" "]\n', "channels.c.smoke.not_covered: found [' ']"),
    "no TOML": ("[channels", "is not TOML"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "problem"), BEYOND_THE_SCHEMA.values(), ids=BEYOND_THE_SCHEMA)
def test_what_no_schema_can_say_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_policy(text, path="p.toml")
    assert problem in raised.value.message


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(InputError) as raised:
        parse_policy('[gate]\nx = 1\n[channels.a]\n[channels.b]\nstages = ["smoke"]\nallow = 3\n', path="p.toml")
    parts = raised.value.message.removeprefix("p.toml: ").split("; ")
    assert [part.split(":")[0] for part in parts] == [
        "gate.x", "channels.a.stages", "channels.b.allow", "channels.b.smoke.architectures",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ['stages = "check"', 'stages = ["smoke"]\nsmoke = { architectures = "sm90" }'])
def test_a_value_of_another_kind_is_one_problem(text: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_policy(f"{C}{text}\n", path="p.toml")
    assert ";" not in raised.value.message


@pytest.mark.parametrize("name", ["", "a b", "\u202e", "-x", "a\n::error::b", "a/b"])
def test_a_channel_has_a_name_that_can_be_typed(name: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_policy(f'[channels.{json.dumps(name)}]\nstages = ["check"]\n', path="p.toml")
    assert f"channels: found the name {name!r}" in raised.value.message


def test_an_empty_channel_name_is_none_of_the_channels_and_not_the_default() -> None:
    policy = parse_policy('[gate]\nchannel = "c"\n' + C + 'stages = ["check"]\n', path="p.toml")
    assert policy.channel(None, path="p.toml").name == "c"
    with pytest.raises(InputError, match="no channel is called ''; it has c"):
        policy.channel("", path="p.toml")


def test_an_unknown_channel_lists_those_there_are() -> None:
    policy = parse_policy('[channels.a]\nstages = ["check"]\n[channels.b]\nstages = ["check"]\n', path="p")
    with pytest.raises(InputError, match="no channel is called 'c'; it has a, b") as raised:
        policy.channel("c", path="p.toml")
    assert raised.value.reason == "UNKNOWN_CHANNEL"
    with pytest.raises(InputError, match="names no channel"):
        policy.channel(None, path="p.toml")


def test_an_empty_name_is_an_unset_variable_and_never_the_default_channel() -> None:
    policy = parse_policy('[gate]\nchannel = "a"\n[channels.a]\nstages = ["check"]\n', path="p")
    assert policy.channel(None, path="p.toml").name == "a"
    with pytest.raises(InputError, match="no channel is called ''; it has a") as raised:
        policy.channel("", path="p.toml")
    assert raised.value.reason == "UNKNOWN_CHANNEL"


def test_a_channel_has_every_scenario_unless_it_says_otherwise() -> None:
    assert make_channel().smoke.scenarios == tuple(SCENARIOS)
    without = make_channel("min_speedup = 2", "deepep = false").smoke.scenarios
    assert set(SCENARIOS) - set(without) == {"deepep-high-throughput", "deepep-low-latency", "deepep-v2"}
    assert set(SCENARIOS) - set(make_channel("min_speedup = 2", "multi_rank = false").smoke.scenarios) == {"two-ranks"}


def test_the_values_of_the_sample() -> None:
    channel = make_channel()
    assert channel.required == (("check", None), ("image", "release"), ("smoke", "sm90"), ("gsm8k", "qwen"))
    assert channel.image.tested == "release"
    assert channel.max_age("smoke") == 168
    assert channel.known_faults == (
        AllowedFault(id="flashinfer#3868", reason="falls back to the default tactic", expires=date(2026, 12, 31)),
    )


def test_the_policys_digest_is_over_what_it_asks_for_and_not_over_its_layout() -> None:
    assert make_channel().sha256 == make_channel(text="# a comment\n" + POLICY).sha256
    others = [
        make_channel("baseline = true", "baseline = false"),
        make_channel("2026-12-31", "2026-12-30"),
        make_channel('["sm90"]', '["sm90", "sm100"]'),
        make_channel("[channels.release.image]", 'allow = ["dirty"]\n[channels.release.image]'),
    ]
    assert len({make_channel().sha256, *(channel.sha256 for channel in others)}) == 5


@pytest.mark.parametrize("name", ["pr", "nightly", "release"])
def test_this_repository_has_the_channel(name: str) -> None:
    channel: Channel = parse_policy((ROOT / "release.toml").read_text(), path="release.toml").channel(name, path="x")
    assert all((ROOT / path).is_file() for path in channel.gsm8k.configs)
    assert not {"bypasses", "overrides", "dirty"} & set(channel.allow)


def test_the_schema_knows_the_scenarios_that_there_are() -> None:
    assert SCHEMA["$defs"]["scenario"]["enum"] == list(SCENARIOS)
