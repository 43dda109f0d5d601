"""Observations of smoke runs on an H200, made by hand from what was measured there (`tests/data/warmup`).

`seen_for("0.6.13")` is a run of all scenarios that passes; `altered(seen, path, value)` is the same with one thing changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from packaging.version import Version

from tooling.capabilities.table import Row, lookup
from tooling.capabilities.table_text import parse
from tooling.smoke.checks import judge_smoke
from tooling.smoke.files_seen import FileSeen, FilesSeen
from tooling.smoke.judgement import Judgement
from tooling.smoke.observations import ErrorSeen, MachineSeen, RankSeen, RunSeen, ScenarioSeen, Seen
from tooling.smoke.scenarios import FORCED, SCENARIOS, Scenario

RELEASES = ("0.6.12", "0.6.13", "0.7.0.post1")
SIZES = ("3", "24", "48", "64")
LABELS = {
    "bf16_cudnn_bf16": ("bf16_gemm", "bfloat16", 0.002695589791983366),
    "bf16_cudnn_fp16": ("bf16_gemm", "float16", 0.0004055938043165952),
    "fp8_cublas_bf16": ("fp8_gemm", "bfloat16", 0.002933015115559101),
    "fp8_cublas_fp16": ("fp8_gemm", "float16", 0.0010256298119202256),
}
DEEPEP = dict.fromkeys(("deepep-high-throughput", "deepep-low-latency", "deepep-v2"), ("all_ranks", 4))
OFF = {"cache-off": ("all_ranks", 2)}
STRATEGIES: dict[str, dict[str, tuple[str, int]]] = {
    "0.6.12": {**dict.fromkeys(SCENARIOS, ("all_ranks", 3)), **OFF, "force-persistent": ("leader_broadcast", 3)},
    "0.6.13": {
        **dict.fromkeys(SCENARIOS, ("leader_broadcast", 7)), **DEEPEP, **OFF,
        "force-persistent": ("leader_broadcast", 7),
    },
    "0.7.0.post1": {
        **dict.fromkeys(SCENARIOS, ("managed", 6)), **DEEPEP, **OFF,
        "two-ranks": ("synchronized", 5), "truncated": ("synchronized", 5), "foreign": ("synchronized", 5),
        "force-persistent": ("managed", 6),
    },
}  # fmt: skip
"""Strategy and rule of each scenario, as the gating table in the documents says: not asked of the code."""

API: dict[str, dict[str, Any]] = {
    "0.6.12": {
        "autotuner": "module", "autotune_parameters": ["tune_mode", "cache", "tuning_buckets", "round_up"],
        "config_files": True, "process_group_timing": False, "managed_store": False,
        "metadata_fields": ["cuda_version", "flashinfer_version", "gpu"],
    },
    "0.6.13": {
        "autotuner": "module", "autotune_parameters": ["tune_mode", "cache", "tuning_buckets", "round_up", "skip_ops"],
        "config_files": True, "process_group_timing": False, "managed_store": False,
        "metadata_fields": ["cuda_version", "flashinfer_version", "gpu"],
    },
    "0.7.0.post1": {
        "autotuner": "package",
        "autotune_parameters": [
            "tune_mode", "cache", "tuning_buckets", "round_up", "skip_ops", "cuda_graph_profile_replays",
        ],
        "config_files": True, "process_group_timing": True, "managed_store": True,
        "metadata_fields": ["cuda_version", "flashinfer_version", "gpu"],
    },
}  # fmt: skip

Table = Mapping[str, Mapping[str, int]]


@cache
def row_for(release: str) -> Row:
    """The shipped table's row."""
    text = resources.files("tooling").joinpath("data/capabilities.json").read_text(encoding="utf-8")
    row = lookup(parse(text), Version(release))
    assert row is not None
    return row


def seen_for(release: str, *, names: Sequence[str] = tuple(SCENARIOS), **changes: Any) -> Seen:
    """A run of those scenarios that passes on that release; `changes` replace fields of the value.

    `force-persistent` among the names adds the diagnosis.
    """
    machine = MachineSeen(
        gpus=("NVIDIA H200",),
        arch="sm90",
        driver="580.159.04",
        cuda="13.0",
        nvcc="13.0.88",
        python="3.12.3",
        packages={
            "flashinfer-python": release,
            "flashinfer-cubin": None,
            "flashinfer-jit-cache": None,
            "apache-tvm-ffi": "0.1.9",
            "torch": "2.11.0+cu130",
        },
        api=API[release],
    )
    seen = Seen(
        machine=machine,
        scenarios=tuple(scenario_for(release, name) for name in names),
        pinned={"flashinfer-python": release, "flashinfer-cubin": release, "apache-tvm-ffi": "0.1.9"},
        jit={"fresh": True},
        not_covered=("flashinfer-cubin is not installed", "flashinfer-jit-cache is not installed"),
        took_s=295.0,
    )
    return replace(seen, **changes)


def judged_for(release: str, *, names: Sequence[str] = tuple(SCENARIOS), **changes: Any) -> Judgement:
    """What the checks make of `seen_for`."""
    return judge(seen_for(release, names=names, **changes), release, names=names)


def judge(seen: Seen, release: str | None, *, names: Sequence[str] = tuple(SCENARIOS)) -> Judgement:
    """What the checks make of it with the shipped row of that release, None for no row."""
    row = row_for(release) if release else None
    return judge_smoke(seen, row, requested=[FORCED if name == FORCED.name else SCENARIOS[name] for name in names])


def altered(seen: Seen, *path: str | int, to: Any) -> Seen:
    """The same observations with one value changed, by its path in their JSON; a callable `to` gets the old value."""
    body = json.loads(json.dumps(seen.as_json()))
    place: Any = body
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to(place[path[-1]]) if isinstance(to, Callable) else to  # type: ignore[arg-type]
    return Seen.from_json(body)


def scenario_for(release: str, name: str) -> ScenarioSeen:
    """One scenario as it went well, cold and warm."""
    scenario = FORCED if name == FORCED.name else SCENARIOS[name]
    maker = _Maker(release, scenario)
    return ScenarioSeen(name=name, cold=maker.run(warm=False), warm=maker.run(warm=True))


class _Maker:
    """One scenario on one release."""

    def __init__(self, release: str, scenario: Scenario) -> None:
        if scenario.layout != "none" and STRATEGIES[release][scenario.name][0] == "synchronized":
            scenario = replace(scenario, ranks=2)
        self.release, self.scenario = release, scenario
        self.strategy, self.rule = STRATEGIES[release][scenario.name]
        self.takes_skip = "skip_ops" in API[release]["autotune_parameters"]
        wish = {"given": ("bf16_gemm",), "automatic": ("fp4_gemm",)}.get(scenario.skip, ())
        self.skip = wish if self.takes_skip else ()
        self.foreign = scenario.layout == "foreign" and self.strategy in {"leader_broadcast", "synchronized"}
        self.forced = scenario.name == FORCED.name and self.rule == 3
        self.persistent = self.strategy != "all_ranks"
        self.hits_warm = self.persistent and not self.foreign
        self.folder = f"{release}/sm90/cba381c8101215f77e32"
        self.grows = release in {"0.6.12", "0.6.13"} and self.skip != ("bf16_gemm",) and not self.forced

    def run(self, *, warm: bool) -> RunSeen:
        warm_used = warm and self.hits_warm
        ranks = tuple(self.rank(number, warm_used=warm_used, warm=warm) for number in range(self.scenario.ranks))
        return RunSeen(
            ranks=ranks,
            seconds=(0.4 if warm_used else 6.9 if not warm else 6.1),
            record=self.record(ranks, warm_used=warm_used),
            files=self.files(warm=warm),
        )

    def record(self, ranks: Sequence[RankSeen], *, warm_used: bool) -> dict[str, Any]:
        layout = self.scenario.layout
        cold = {"none": "NO_CACHE", "truncated": "TRUNCATED", "foreign": "FOREIGN"}[layout]
        return {
            "strategy": self.strategy,
            "persistent": self.persistent,
            "rule": self.rule,
            "why": "as the table says",
            "release": self.release,
            "arch": "sm90",
            "file": f"/tmp/smoke/cache/{self.folder}/{self.cache_name(0)}" if self.persistent else None,
            "warm": warm_used,
            "why_cold": "" if warm_used or not self.persistent else cold,
            "loaded": max(rank.report["loaded"] for rank in ranks),
            "tuned": sum(rank.report["tuned"] for rank in ranks),
            "nothing_to_tune": False,
            "skip_ops": list(self.skip),
            "skip_source": "operator" if self.scenario.skip in {"given", "empty"} else "model",
            "skip_passed": self.takes_skip,
            "difference": "" if self.strategy != "all_ranks" or len(ranks) == 1 else "('bf16_gemm', …)",
            "spread_s": {"barrier": 0.0011 if len(ranks) > 1 else 0.0},
            "warnings": [],
        }

    def rank(self, number: int, *, warm_used: bool, warm: bool) -> RankSeen:
        passes = self.passes(number, warm_used=warm_used)
        tuned = sum(one["tuned"] for by in passes.values() for one in by.values())
        entered = self.takes_skip and not (warm_used and self.strategy != "managed") and self.entered(number)
        report = {
            "rank": number,
            "cache": {"kind": "valid" if warm_used else self.found()},
            "loaded": self.disk if warm_used or (self.strategy == "leader_broadcast" and number) else 0,
            "tuned": tuned,
            "hits": sum(one["hits"] for by in passes.values() for one in by.values()),
            "passes": passes,
            "seconds": dict.fromkeys(passes, 0.1),
            "waits_s": {"barrier": 0.0},
            "round_trip": self.round_trip(number, warm_used=warm_used),
            "written": self.written(number, warm_used=warm_used),
            "digest": self.digest(number, warm=warm),
        }
        return RankSeen(
            rank=number,
            end="ended",
            step="done",
            exit_status=0,
            device="cuda:0 NVIDIA H200",
            strategy=self.strategy,
            report=report,
            lookups=self.lookups(warm_used=warm_used),
            tactics_sha256=self.digest(number, warm=warm),
            passed=self.skip if entered else None,
            jit_s=0.0 if warm else 0.9,
            tuning_s=0.0 if warm_used else 6.0,
            errors=tuple(
                ErrorSeen(
                    label=label, operation=operation, largest=largest, finite=True, out=out, sha256="sha256:" + label
                )
                for label, (operation, out, largest) in LABELS.items()
            ),
        )

    def found(self) -> str:
        """What the cold run, and a warm one that takes nothing, say of the cache."""
        if self.scenario.layout == "truncated" and self.persistent:
            return "miss"
        return "foreign" if self.foreign else "absent"

    def entered(self, number: int) -> bool:
        return self.strategy != "leader_broadcast" or number == 0 or self.grows

    def digest(self, number: int, *, warm: bool) -> str:
        return f"sha256:{number}-{warm}" if self.strategy == "all_ranks" else "sha256:same"

    @property
    def disk(self) -> int:
        """Entries on disk: two operations in two types at seven buckets, seven more where the workspace grew."""
        if self.skip == ("bf16_gemm",):
            return 14
        if self.forced:
            return 21
        return 35 if self.grows and self.strategy == "leader_broadcast" else 28

    def passes(self, number: int, *, warm_used: bool) -> dict[str, dict[str, dict[str, int]]]:
        leads = self.strategy != "leader_broadcast" or number == 0
        skips = "bf16_gemm" in self.skip
        missing = _counts(misses=2, fell_back=2)
        blind = missing if skips else _counts(hits=2)
        half = _counts(hits=1, misses=1, fell_back=1)
        good = {"bf16_gemm": blind, "fp8_gemm": _counts(hits=2)}
        after = {"bf16_gemm": half, "fp8_gemm": _counts(hits=2)} if self.grows else good
        tune = {
            "bf16_gemm": _counts(skipped=2) if skips else _counts(hits=2, misses=14, tuned=14),
            "fp8_gemm": _counts(hits=2, misses=14, tuned=14),
        }
        if warm_used:
            return {"verify": good, "check 1": good, "check 2": good}
        passes = {"tune": tune if leads else {"bf16_gemm": missing, "fp8_gemm": missing}}
        if self.strategy == "all_ranks":
            return {**passes, "check 1": after, "check 2": after}
        if self.strategy == "managed":
            return {**passes, "recheck": good, "check 1": good, "check 2": good}
        passes["verify"] = after
        if self.grows:
            passes["complete"] = {
                "bf16_gemm": _counts(hits=9, misses=7, tuned=7), "fp8_gemm": _counts(hits=16),
            }  # fmt: skip
            passes["recheck"] = good
        return {**passes, "check 1": good, "check 2": good}

    def lookups(self, *, warm_used: bool) -> dict[str, dict[str, dict[str, int]]]:
        del warm_used
        in_memory = self.strategy == "all_ranks"
        half, missing = _counts(hits=1, misses=1, fell_back=1), _counts(misses=2, fell_back=2)
        bf16 = missing if "bf16_gemm" in self.skip else half if self.grows and in_memory else _counts(hits=2)
        raw = self.release == "0.6.12" and in_memory
        return {
            size: {"bf16_gemm": bf16, "fp8_gemm": missing if raw and size != "64" else _counts(hits=2)}
            for size in SIZES
        }

    def round_trip(self, number: int, *, warm_used: bool) -> dict[str, Any]:
        trip: dict[str, Any] = {"memory": 0, "disk": 0, "lost": 0, "lost_keys": [], "other_tactic": []}
        if not self.persistent or (warm_used and self.strategy == "synchronized"):
            return trip
        writes = not warm_used and (number == 0 or self.strategy == "synchronized")
        trip |= {"memory": self.disk if writes else 0, "disk": self.disk}
        if self.forced and writes:
            key = "('fp8_gemm', 'CublasFp8GemmRunner', ((1, 1, 1024), (1, 1024, 1024)))"
            trip |= {"memory": 28, "lost": 7, "lost_keys": [key] * 7, "other_tactic": [key]}
        return trip

    def written(self, number: int, *, warm_used: bool) -> dict[str, Any] | None:
        if not self.persistent or warm_used or (self.strategy == "leader_broadcast" and number):
            return None
        if self.foreign:
            return {"done": False, "reason": "FOREIGN", "detail": "left as it was", "lock": ""}
        return {"done": True, "reason": "", "detail": "", "lock": ""}

    def cache_name(self, number: int) -> str:
        names = {"synchronized": f"rank-{number}-of-{self.scenario.ranks}.json", "managed": "managed"}
        return names.get(self.strategy, "autotune_configs.json")

    def files(self, *, warm: bool) -> FilesSeen:
        laid = self.laid_out()
        if not self.hits_warm:
            return FilesSeen(before=laid, after=laid, read=())
        ours = self.own_files()
        there = tuple(file for file in laid if file.path not in {one.path for one in ours}) + ours
        return FilesSeen(before=there if warm else laid, after=there, read=(ours[0].path,) if warm else ())

    def laid_out(self) -> tuple[FileSeen, ...]:
        if self.scenario.layout == "none":
            return ()
        names = [self.cache_name(number) for number in range(self.scenario.ranks if self.persistent else 1)]
        return tuple(
            FileSeen(path=f"{self.folder}/{name}", size_bytes=17, sha256=f"sha256:{self.scenario.layout}")
            for name in names
        )

    def own_files(self) -> tuple[FileSeen, ...]:
        names = [self.cache_name(number) for number in range(self.scenario.ranks)]
        if self.strategy == "leader_broadcast":
            names = ["autotune_configs.json", ".autotune_configs.json.lock"]
        if self.strategy == "managed":
            names = [f"managed/v2/1f0a/entries/{number:02}.json" for number in range(3)]
            names += ["managed/v2/1f0a/manifest.json", "managed-notes.json"]
        return tuple(FileSeen(path=f"{self.folder}/{name}", size_bytes=4096, sha256=f"sha256:{name}") for name in names)


def _counts(**values: int) -> dict[str, int]:
    """One operation's counts in a pass of two calls."""
    counts = {"calls": 2, "hits": 0, "misses": 0, "fell_back": 0, "skipped": 0, "tuned": 0, **values}
    return {"lookups": counts["hits"] + counts["misses"], **counts}
