"""What was seen, as JSON and back, and the schema of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.smoke.samples import RELEASES, judge, seen_for
from tooling.smoke.files_seen import FileSeen, FilesSeen
from tooling.smoke.judgement import measurements
from tooling.smoke.observations import End, ErrorSeen, MachineSeen, RankSeen, RunSeen, ScenarioSeen, Seen
from tooling.smoke.scenarios import SCENARIOS

SCHEMA = json.loads((Path(__file__).parents[2] / "tooling/data/schemas/smoke-measurements.schema.json").read_text())
EVERYTHING = (*SCENARIOS, "force-persistent")

text = st.text(max_size=8)
texts = st.lists(text, max_size=3).map(tuple)
seconds = st.none() | st.floats(0, 1e6)
counts = st.integers(0, 50)
count = st.fixed_dictionaries(
    dict.fromkeys(("calls", "lookups", "hits", "misses", "fell_back", "skipped", "tuned"), counts)
)
files = st.builds(FileSeen, path=text, size_bytes=counts, sha256=text.map("sha256:".__add__))
folders = st.lists(files, max_size=3, unique_by=lambda file: file.path).map(tuple)
errors = st.builds(ErrorSeen, label=text, operation=text, largest=seconds, finite=st.booleans(), out=text, sha256=text)
ranks = st.builds(
    RankSeen,
    rank=counts,
    end=st.sampled_from(("ended", "error", "died", "hung", "not-started")),
    step=text,
    why=text,
    exit_status=st.none() | st.integers(-15, 139),
    device=text,
    strategy=text,
    lookups=st.dictionaries(counts.map(str), st.dictionaries(text, count, max_size=2), max_size=2),
    tactics_sha256=text,
    passed=st.none() | texts,
    jit_s=seconds,
    tuning_s=seconds,
    errors=st.lists(errors, max_size=2).map(tuple),
    sticky_error=text,
    out_of_memory=texts,
    skipped_tactics=texts,
    downloads=texts,
    log_tail=text,
)
runs = st.builds(
    RunSeen,
    ranks=st.lists(ranks, max_size=2).map(tuple),
    seconds=seconds,
    files=st.builds(FilesSeen, before=folders, after=folders, read=st.none() | texts),
)
observations = st.builds(
    Seen,
    machine=st.builds(
        MachineSeen,
        gpus=texts,
        arch=text,
        driver=st.none() | text,
        packages=st.dictionaries(text, st.none() | text, max_size=2),
    ),
    scenarios=st.lists(
        st.builds(ScenarioSeen, name=text, cold=st.none() | runs, warm=st.none() | runs, not_run=text), max_size=2
    ).map(tuple),
    pinned=st.dictionaries(text, text, max_size=2),
    bypasses=st.dictionaries(text, text, max_size=2),
    not_covered=texts,
    took_s=seconds,
)


@settings(max_examples=30)
@given(observations)
def test_observations_come_back_from_their_json_as_they_were(seen: Seen) -> None:
    body = json.loads(json.dumps(seen.as_json()))
    assert Seen.from_json(body) == seen
    jsonschema.validate(body, SCHEMA)


@settings(max_examples=30)
@given(observations)
def test_any_observations_can_be_judged(seen: Seen) -> None:
    judged = judge(seen, "0.6.13")
    assert judged.status != "pass"
    jsonschema.validate(json.loads(json.dumps(measurements(seen, judged))), SCHEMA)


@pytest.mark.parametrize("release", RELEASES)
def test_the_measurements_of_a_whole_run_follow_their_schema(release: str) -> None:
    seen = seen_for(release, names=EVERYTHING)
    body = json.loads(json.dumps(measurements(seen, judge(seen, release, names=EVERYTHING)), allow_nan=False))
    jsonschema.validate(body, SCHEMA)
    assert Seen.from_json(body) == seen


BROKEN: dict[str, tuple[tuple[str | int, ...], Any]] = {
    "a machine without an architecture": (("machine", "arch"), None),
    "an unknown end": (("scenarios", 0, "cold", "ranks", 0, "end"), "well"),
    "a negative count": (("scenarios", 0, "cold", "ranks", 0, "lookups", "3", "bf16_gemm", "hits"), -1),
    "a token count in words": (("scenarios", 0, "cold", "ranks", 0, "lookups", "three"), {}),
    "a rule that there is not": (("judged", "scenarios", 0, "expected", "rule"), 8),
    "a verdict that there is not": (("judged", "status"), "ok"),
    "a file without a digest": (("scenarios", 0, "cold", "files", "after", 0, "sha256"), "abc"),
}


@pytest.mark.parametrize(("path", "value"), BROKEN.values(), ids=BROKEN)
def test_the_schema_refuses(path: tuple[str | int, ...], value: Any) -> None:
    seen = seen_for("0.6.13", names=("one-rank",))
    body = json.loads(json.dumps(measurements(seen, judge(seen, "0.6.13", names=("one-rank",)))))
    place: Any = body
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(body, SCHEMA)


def test_a_list_of_created_files_that_does_not_follow_from_the_files_is_refused() -> None:
    body = json.loads(json.dumps(seen_for("0.6.13", names=("one-rank",)).as_json()))
    body["scenarios"][0]["cold"]["files"]["created"] = []
    with pytest.raises(ValueError, match="created is not what before and after come to"):
        Seen.from_json(body)


def test_the_ends_of_a_rank_are_those_of_the_schema() -> None:
    assert tuple(SCHEMA["$defs"]["rank"]["properties"]["end"]["enum"]) == get_args(End)
