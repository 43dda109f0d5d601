"""The key on disk is followed through every form that it has had."""

from __future__ import annotations

import pytest

from tests.capabilities.releases import CARRIES, KEY_CLASS, SAVES, release, source, tuner
from tooling.capabilities.disk_key import derive_disk_key
from tooling.capabilities.facts import Fact


def derive(text: str) -> Fact:
    found = source(release(autotuner=text))
    module = found.named("flashinfer.autotuner")
    assert module is not None
    cls = found.find(module, "AutoTuner")
    assert cls is not None
    return derive_disk_key(found, cls)


@pytest.mark.parametrize("form", SAVES)
def test_extras_are_seen_in_a_tuple_key(form: str) -> None:
    fact = derive(tuner(SAVES[form]))
    assert fact.value is CARRIES[form], fact.reason
    assert fact.evidence


@pytest.mark.parametrize(("extras", "expected"), [(", self.extras", True), ("", False)], ids=["kept", "left out"])
@pytest.mark.parametrize("written", ["cache_key.file_key", "str(cache_key.fields)"])
def test_extras_are_seen_through_a_key_class(extras: str, expected: bool, written: str) -> None:
    fact = derive(tuner(f"\n            configs[{written}] = 1\n", key_class=KEY_CLASS.format(extras=extras)))
    assert fact.value is expected, fact.reason


@pytest.mark.parametrize(
    ("save", "part"),
    [
        ("\n            configs[magic(cache_key)] = 1\n", "magic"),
        ("\n            configs[str(thing)] = 1\n", "thing"),
        ("\n            configs[cache_key.unheard_of] = 1\n", "unheard_of"),
        ("\n            pass\n", "no loop"),
        ("\n            configs[str([x for x in cache_key])] = 1\n", "not followed"),
    ],
    ids=["unknown function", "unknown name", "unknown field", "nothing written", "comprehension"],
)
def test_a_form_never_seen_is_could_not_tell_with_a_reason(save: str, part: str) -> None:
    fact = derive(tuner(save))
    assert fact.value is None
    assert part in fact.reason


def test_a_helper_that_calls_itself_is_could_not_tell() -> None:
    save = "\n            configs[spell(cache_key)] = 1\n\ndef spell(key):\n    return spell(key)\n"
    assert derive(tuner(save)).value is None


def test_an_element_that_no_runner_fills_is_not_extras() -> None:
    text = tuner(SAVES["unpacked, extras kept"]).replace("r.get_cache_key_extras(inputs)", "(1, 2)")
    assert derive(text).value is False


def test_a_tuner_without_files_has_no_extras_on_disk() -> None:
    assert derive(tuner(SAVES["the whole key"]).replace("save_configs", "keep")).value is False
