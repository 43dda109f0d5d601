"""The tuner's facts, and "could not tell" for tuners that this parser has never seen."""

from __future__ import annotations

import pytest

from tests.capabilities.releases import SAVES, release, source, tuner
from tooling.capabilities.facts import Fact
from tooling.capabilities.tuner import derive_tuner

PLAIN = tuner(SAVES["unpacked, extras kept"])


def derive(texts: dict[str, str] | None = None, **more: str) -> dict[str, Fact]:
    return derive_tuner(source(release(texts, **more)))


def test_a_module_tells_its_parameters_files_and_metadata() -> None:
    facts = derive(autotuner=PLAIN)
    assert {name: fact.value for name, fact in facts.items()} == {
        "autotuner": "module",
        "autotune_parameters": ("tune_mode", "cache", "skip_ops"),
        "config_files": True,
        "disk_key_has_runner_extras": True,
        "metadata_fields": ("flashinfer_version", "gpu"),
        "foreign_save": "merge",
        "process_group_timing": False,
        "managed_store": False,
        "tuner_environment": (),
    }
    assert all(fact.evidence for fact in facts.values())


@pytest.mark.parametrize("spelling", ["flashinfer.autotuner.core", ".core"], ids=["absolute", "relative"])
def test_a_package_is_followed_through_its_imports(spelling: str) -> None:
    facts = derive({"autotuner/__init__": f"from {spelling} import AutoTuner, autotune\n", "autotuner/core": PLAIN})
    assert facts["autotuner"].value == "package"
    assert facts["disk_key_has_runner_extras"].value is True
    assert facts["autotune_parameters"].evidence[0].path == "flashinfer/autotuner/core.py"


def test_a_release_without_tuner_has_none() -> None:
    facts = derive(gemm="x = 1\n")
    assert facts["autotuner"].value == "none"
    assert facts["config_files"].value is False
    assert facts["foreign_save"].value == "none"


@pytest.mark.parametrize(
    "texts",
    [
        {"autotuner": "class Tuner:\n    pass\n"},
        {"autotuner": PLAIN.replace("choose_one", "choose_two")},
        {"autotuner": PLAIN.replace("def autotune(", "def tune_automatically(")},
        {"autotuning/core": PLAIN},
        {"tools/tuner": PLAIN},
        {"__init__": "from .elsewhere import autotune\n", "elsewhere": "x = 1\n"},
    ],
    ids=["another class", "another method", "no autotune", "another folder", "another name", "imported from elsewhere"],
)
def test_a_tuner_never_seen_is_could_not_tell_with_a_reason(texts: dict[str, str]) -> None:
    facts = derive(texts)
    assert facts["autotuner"].value is None
    assert all(fact.value is None and fact.reason for fact in facts.values())


def test_a_save_that_gives_up_on_a_foreign_file_is_told_from_one_that_merges() -> None:
    careful = PLAIN.replace(
        "        disk_configs.update(configs)\n",
        "        hard, soft = classify_mismatches(disk, now)\n        if hard:\n            return\n"
        "        disk_configs.update(configs)\n",
    )
    assert derive(autotuner=careful)["foreign_save"].value == "skip_or_replace"
    odd = PLAIN.replace("        disk_configs.update(configs)\n", "        if hard:\n            return\n")
    assert derive(autotuner=odd)["foreign_save"].value is None


def test_environment_variables_are_listed_with_who_reads_them() -> None:
    text = PLAIN + '\n\ndef timer():\n    return os.getenv("FLASHINFER_B") or os.environ.get("FLASHINFER_A", "0")\n'
    fact = derive(autotuner=text)["tuner_environment"]
    assert fact.value == ("FLASHINFER_A", "FLASHINFER_B")
    assert {item.where for item in fact.evidence} == {"timer"}


@pytest.mark.parametrize(
    ("body", "expected"), [("    dist.all_reduce(t, op=SUM)\n", True), ("    pass\n", None)], ids=["sums", "does not"]
)
def test_a_process_group_counts_only_if_timings_are_summed_over_it(body: str, expected: bool | None) -> None:
    text = f"{PLAIN}\n\ndef set_autotune_process_group(group):\n{body}"
    assert derive(autotuner=text)["process_group_timing"].value is expected


def test_a_managed_store_is_found_beside_the_tuner() -> None:
    facts = derive(autotuner=PLAIN, autotune_cache="def autotune_v2(mode='tune'):\n    yield\n")
    assert facts["managed_store"].value is True
