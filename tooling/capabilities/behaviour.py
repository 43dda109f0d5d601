"""Whether a release's tuner behaves as its source reads. The observations come from `edges.behaviour`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from tooling.capabilities.facts import Fact
from tooling.findings import Finding

Observed = Mapping[str, Any]

SAVED_ONTO_FOREIGN = {"merge": {"merged"}, "skip_or_replace": {"kept", "replaced"}}
"""What a file of another environment may be afterwards, by the fact `foreign_save`."""
METADATA_ANSWERS = {
    "foreign": "refused",
    "missing_field": "refused",
    "wildcard": "loaded",
    "none": "loaded",
    "truncated": "JSONDecodeError",
}
"""What loading answers to each variant of a file in every release with cache files. A file without metadata is loaded:
only who opens it first can refuse it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One fact and what running shows of it, in the same words; equal or a contradiction."""

    fact: str
    read: object
    ran: object

    @property
    def agrees(self) -> bool:
        return self.read == self.ran

    def as_json(self) -> dict[str, object]:
        return {"fact": self.fact, "read": _plain(self.read), "ran": _plain(self.ran), "agrees": self.agrees}


def compare_behaviour(facts: Mapping[str, Fact], observed: Observed) -> tuple[Comparison, ...]:
    """Every fact that running can show, with both answers. Facts that could not be told are left out."""
    shown: dict[str, Callable[[], object]] = {
        "autotuner": lambda: observed.get("layout"),
        "autotune_parameters": lambda: tuple(observed.get("parameters", ())),
        "config_files": lambda: observed.get("config_files"),
        "disk_key_has_runner_extras": lambda: _stay_apart(observed),
        "metadata_fields": lambda: tuple(observed.get("metadata_fields", ())),
        "foreign_save": lambda: _foreign_save(observed),
        "process_group_timing": lambda: observed.get("process_group"),
        "managed_store": lambda: observed.get("managed_store"),
        "mismatch_policy": lambda: _mismatch(observed, facts["mismatch_policy"]),
    }
    compared = [
        Comparison(fact=name, read=facts[name].value, ran=see())
        for name, see in shown.items()
        if name in facts and facts[name].value is not None
    ]
    return (*compared, *_skipping(facts, observed), *_metadata(observed))


def check_behaviour(release: Version, facts: Mapping[str, Fact], observed: Observed) -> Iterator[Finding]:
    """A finding for each contradiction, which names both, and for each step of the run that crashed."""
    for name in sorted(observed):
        if name.endswith("_crashed"):
            yield Finding(
                check="behaviour",
                detail=f"{release}: {name.removesuffix('_crashed')} crashed: {observed[name]}",
                reason="CRASHED",
            )
    for item in compare_behaviour(facts, observed):
        if not item.agrees:
            fact = facts.get(item.fact)
            where = f" ({fact.evidence[0].path}:{fact.evidence[0].where})" if fact and fact.evidence else ""
            yield Finding(
                check="behaviour",
                detail=(
                    f"{release}: {item.fact}: reading says {_words(item.read)}{where}, running says {_words(item.ran)}"
                ),
                hint="one of them is wrong: look at the evidence, then at the worker",
                reason="CONTRADICTION",
            )


def _stay_apart(observed: Observed) -> bool | str:
    """Whether two runners that differ only in their extras find their own tactics in a fresh process."""
    if not observed.get("config_files"):
        return False
    if not observed.get("loaded"):
        return "its own file was not loaded"
    if observed.get("found") == observed.get("tuned") and observed.get("entries") == observed.get("in_memory"):
        return True
    found = observed.get("found", {})
    return False if len(set(found.values())) == 1 else f"found {found} for {observed.get('tuned')}"


def _foreign_save(observed: Observed) -> str:
    if not observed.get("config_files"):
        return "none"
    after = {str(observed.get("foreign_save")), str(observed.get("unknown_save"))}
    fitting = [name for name, allowed in SAVED_ONTO_FOREIGN.items() if after <= allowed]
    return fitting[0] if fitting else " and ".join(sorted(after))


def _mismatch(observed: Observed, fact: Fact) -> object:
    """`raise`, or the fact's own word where nothing was raised and it promises nothing else."""
    if observed.get("mismatch") == "raise":
        return "raise"
    return fact.value if fact.value in {"none", "warn"} and observed.get("mismatch") == "no-raise" else "no raise"


def _skipping(facts: Mapping[str, Fact], observed: Observed) -> Iterator[Comparison]:
    """`skip_ops` skips and never profiles where it is a parameter, and is refused where it is none."""
    parameters, seen = facts["autotune_parameters"].value, observed.get("skip")
    if not isinstance(parameters, tuple) or not isinstance(seen, Mapping):
        return
    read = "skips without profiling" if "skip_ops" in parameters else "TypeError"
    ran = "TypeError"
    if seen.get("accepted"):
        quiet = seen.get("tactic") == -1 and seen.get("profiled") == 0
        ran = "skips without profiling" if quiet else f"tactic {seen.get('tactic')}, {seen.get('profiled')} profiled"
    yield Comparison(fact="skip_ops", read=read, ran=ran)


def _metadata(observed: Observed) -> Iterator[Comparison]:
    answers = observed.get("metadata")
    if isinstance(answers, Mapping):
        for name, expected in METADATA_ANSWERS.items():
            yield Comparison(fact=f"metadata: {name}", read=expected, ran=answers.get(name))


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
