"""What a bump writes into release.toml leaves everything else as it is."""

from __future__ import annotations

import tomllib

import pytest

from tooling.errors import InputError
from tooling.pins.release_settings import DroppedPin, MovedCompanion
from tooling.pins.settings import parse_settings
from tooling.releases.settings_edits import write_kept

HASH = {"b.whl": "b" * 64, "a-1.0+cu130.whl": "a" * 64}
CUBIN = DroppedPin(
    package="flashinfer-cubin", path="requirements/cuda.txt", line="flashinfer-cubin=={version}",
    after="flashinfer-python", at="0.6.14",
)  # fmt: skip
TVM = MovedCompanion(package="apache-tvm-ffi", path="requirements/cuda.txt", was="==0.1.9", now="==0.1.11", at="0.7.4")
BASE = '# ours\n[pins]\nversions_file = "versions.json"  # why\n\n# scan\n[scan]\nleave_out = ["tests"]\n'

TEXTS = {
    "plain": BASE,
    "empty": "",
    "CRLF": BASE.replace("\n", "\r\n"),
    "no final newline": BASE.rstrip("\n"),
    "tables behind": BASE + "\n# of the image\n[image]\nx = 1\n",
    "an address": '[flashinfer]\nindex = "https://mirror.invalid/whl/"  # mirror\n\n' + BASE,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_is_written_is_read_again_and_taken_out_without_a_trace(text: str) -> None:
    full = write_kept(text, sha256=HASH, dropped=[CUBIN], moved=[TVM])
    table = tomllib.loads(full)["flashinfer"]
    assert table["sha256"] == HASH
    assert len(table["dropped"]) == len(table["moved"]) == 1
    assert full.startswith(text)
    assert ("\r\n" in text) == ("\r\n" in full)
    assert full.count("\n") == full.count("\r\n") or "\r\n" not in text
    assert write_kept(full, sha256=HASH, dropped=[CUBIN], moved=[TVM]) == full
    assert write_kept(full, sha256={}, dropped=[], moved=[]).rstrip() == text.rstrip()


def test_the_settings_read_back_are_the_values_that_were_written() -> None:
    settings = parse_settings(write_kept("", sha256=HASH, dropped=[CUBIN], moved=[TVM])).releases
    assert (settings.sha256, settings.dropped, settings.moved) == (HASH, (CUBIN,), (TVM,))


def test_comments_around_our_tables_stay_with_their_neighbours() -> None:
    full = write_kept(BASE, sha256=HASH, dropped=[CUBIN], moved=[])
    text = (
        full.replace("\n[[flashinfer.dropped]]", "\n# a note\n[[flashinfer.dropped]]")
        + "\n# about the image\n[image]\nx = 1\n"
    )
    after = write_kept(text, sha256={"c.whl": "c" * 64}, dropped=[], moved=[])
    assert "# a note\n" in after
    assert after.endswith("\n# about the image\n[image]\nx = 1\n")
    assert "b.whl" not in after
    assert "dropped" not in after


def test_the_table_is_sorted_and_explains_itself() -> None:
    lines = write_kept("", sha256=HASH, dropped=[], moved=[]).splitlines()
    assert lines[0] == "[flashinfer.sha256]"
    assert lines[1].startswith("# What the indexes showed")
    assert [line.split(" = ")[0] for line in lines[2:]] == ['"a-1.0+cu130.whl"', '"b.whl"']


@pytest.mark.parametrize("text", ['[flashinfer]\nsha256 = {"x" = "1"}\n', 'flashinfer.dropped = [{package = "x"}]\n'])
def test_a_spelling_that_is_not_ours_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="cannot edit"):
        write_kept(text, sha256=HASH, dropped=[CUBIN], moved=[])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[releases]\ncooldown_days = -1\n", "releases.cooldown_days"),
        ("[releases]\ncooldown_days = true\n", "releases.cooldown_days"),
        ('[releases]\nplatforms = ["windows"]\n', "releases.platforms"),
        ("[releases]\ncooldown = 1\n", "releases.cooldown: unknown key"),
        ("[releases.indexes]\nx = 1\n", "releases.indexes"),
        ("[flashinfer]\nindex = 1\n", "flashinfer.index"),
        ('[flashinfer.sha256]\n"x.whl" = "12"\n', "flashinfer.sha256.x.whl"),
        ('[[flashinfer.dropped]]\npackage = "x"\n', "flashinfer.dropped[0]"),
        ("releases = 3\n", "releases: found 3"),
    ],
)
def test_a_wrong_setting_is_named(text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_settings(text)
    assert problem in caught.value.message
