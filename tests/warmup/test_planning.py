"""What one rank would do, from the shipped table, its environment and what is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tooling.capabilities.gating import Strategy
from tooling.warmup import feasible, runtime
from tooling.warmup.errors import RefusedError, SettingsError
from tooling.warmup.planning import Plan, make_plan
from tooling.warmup.runtime import Installed
from tooling.warmup.settings import parse_settings

HOME = {"HOME": "/home/me"}
OFF = {"VLLM_DISABLE_FLASHINFER_AUTOTUNE_CACHE": "1"}
Planned = Callable[..., Plan]


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Planned:
    """Plans for a release, as if it were installed here and offered all but `lacks`."""

    def make(
        release: str,
        ranks: int = 1,
        backend: str | None = None,
        *,
        environment: dict[str, str] | None = None,
        lacks: tuple[str, ...] = (),
        strict: bool = False,
        parallel: dict[str, Any] | None = None,
        forced: Strategy | None = None,
        **installed: Any,
    ) -> Plan:
        found = Installed(**{"release": release, "usable": True, "gpu": True, "arch": "sm90", **installed})
        monkeypatch.setattr(runtime, "load_installed", lambda: found)
        monkeypatch.setattr(feasible, "missing_api", lambda names: [name for name in names if name in lacks])
        runner: Any = SimpleNamespace(
            get_model=object,
            scheduler_config=SimpleNamespace(max_num_batched_tokens=64),
            vllm_config=SimpleNamespace(parallel_config=SimpleNamespace(all2all_backend=backend, **(parallel or {}))),
        )
        settings = parse_settings(HOME if environment is None else environment)
        return make_plan(runner, ranks, settings, row=None, strict=strict, world=None, forced=forced)

    return make


@pytest.mark.parametrize(
    ("release", "ranks", "backend", "strategy", "rule"),
    [
        ("0.2.5", 1, None, "none", 1),
        ("0.6.6", 1, None, "all_ranks", 3),
        ("0.6.11.post2", 2, None, "all_ranks", 3),
        ("0.6.12", 1, None, "all_ranks", 3),
        ("0.6.13", 1, None, "leader_broadcast", 7),
        ("0.6.13+cu130", 2, "allgather_reducescatter", "leader_broadcast", 7),
        ("0.6.13", 2, "deepep_v2", "all_ranks", 4),
        ("0.6.13", 1, "deepep_v2", "leader_broadcast", 7),
        ("0.6.16", 1, None, "leader_broadcast", 7),
        ("0.6.16", 2, None, "synchronized", 5),
        ("0.7.4", 1, None, "managed", 6),
        ("0.7.4", 8, "naive", "synchronized", 5),
    ],
)
def test_the_shipped_table_decides(
    plan: Planned, release: str, ranks: int, backend: str | None, strategy: str, rule: int
) -> None:
    made = plan(release, ranks, backend, strict=True)
    assert (str(made.gating.strategy), made.gating.rule) == (strategy, rule)


def test_the_operator_turns_the_cache_off(plan: Planned) -> None:
    gating = plan("0.7.4", 2, environment=HOME | OFF).gating
    assert (str(gating.strategy), gating.rule, gating.persistent) == ("all_ranks", 2, False)


CAREFUL: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "no flashinfer": ({"usable": False, "problem": "NO_FLASHINFER", "detail": "gone"}, "none", "gone", "NO_FLASHINFER"),
    "other packages": (
        {"problem": "PACKAGE_MISMATCH", "detail": "cubin 1"},
        "all_ranks",
        "cubin 1",
        "PACKAGE_MISMATCH",
    ),
    "no gpu": ({"gpu": False}, "none", "there is no GPU", "NO_GPU"),
    "no row": ({"release": "9.9.9"}, "all_ranks", "no row for 9.9.9", "NO_ROW"),
    "wrong row": ({"lacks": ("AutoTuner.load_configs",)}, "all_ranks", "every rank tunes", "WRONG_ROW"),
    "no tuner": ({"lacks": ("autotune",)}, "none", "lacks autotune", "WRONG_ROW"),
}


@pytest.mark.parametrize("case", CAREFUL)
def test_what_strict_refuses_only_warns_an_engine_that_starts(plan: Planned, case: str) -> None:
    world, strategy, words, reason = CAREFUL[case]
    made = plan(**{"release": "0.6.13", "ranks": 2, **world})
    assert str(made.gating.strategy) == strategy
    assert not made.gating.persistent
    assert any(words in warning for warning in made.warnings)
    with pytest.raises(RefusedError) as caught:
        plan(**{"release": "0.6.13", "ranks": 2, **world}, strict=True)
    assert caught.value.reason == reason


def test_an_unknown_deepep_backend_is_never_guessed_to_be_harmless(plan: Planned) -> None:
    made = plan("0.6.13", 2, "deepep_v9")
    assert (str(made.gating.strategy), made.gating.rule) == ("all_ranks", 4)
    assert any("deepep_v9" in warning for warning in made.warnings)
    with pytest.raises(Exception, match="deepep_v9") as caught:
        plan("0.6.13", 2, "deepep_v9", strict=True)
    assert getattr(caught.value, "reason", "") == "UNKNOWN_BACKEND"


def test_without_a_place_for_a_cache_every_rank_tunes(plan: Planned) -> None:
    made = plan("0.6.13", environment={})
    assert str(made.gating.strategy) == "all_ranks"
    assert "there is nowhere to keep a cache" in made.warnings


def test_nonsense_in_the_environment_is_refused_under_strict(plan: Planned) -> None:
    with pytest.raises(SettingsError, match="FLASHINFER_WARMUP_TIMEOUT_S"):
        plan("0.6.13", environment=HOME | {"FLASHINFER_WARMUP_TIMEOUT_S": "soon"}, strict=True)


def test_names_of_operations_come_from_the_row(plan: Planned) -> None:
    operations = plan("0.6.13").operations
    assert operations is not None
    assert "fp4_gemm" in operations


class Backend(Enum):
    """How an engine may spell its backends."""

    LOW = "deepep_low_latency"
    DEEPEP_V2 = 2


@pytest.mark.parametrize("backend", Backend)
def test_a_backend_of_an_enumeration_is_taken_by_its_name(plan: Planned, backend: Any) -> None:
    assert plan("0.6.13", 2, backend).gating.rule == 4


@pytest.mark.parametrize("error", [RuntimeError, KeyError, OSError, ZeroDivisionError])
def test_whatever_the_private_function_raises_the_environment_is_unknown(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def collect() -> None:
        raise error("inside")

    monkeypatch.setitem(sys.modules, "flashinfer", ModuleType("flashinfer"))
    monkeypatch.setitem(sys.modules, "flashinfer.autotuner", SimpleNamespace(_collect_metadata=collect))
    assert runtime.load_metadata() == {}


class DriverError(Exception):
    """As torch's own: neither a RuntimeError nor an OSError."""


@pytest.mark.parametrize("error", [RuntimeError, AssertionError, DriverError])
def test_a_driver_that_is_broken_is_no_gpu(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def broken() -> None:
        raise error("inside")

    cuda = SimpleNamespace(is_available=lambda: True, get_device_capability=broken)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))  # type: ignore[arg-type]
    assert runtime._gpu() == (False, "none")


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", None], ids=["empty", "cut off", "no UTF-8", "a folder"])
def test_a_table_that_cannot_be_read_is_no_row_and_an_engine_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, data: bytes | None
) -> None:
    table = tmp_path / "data" / runtime.TABLE
    table.parent.mkdir()
    table.mkdir() if data is None else table.write_bytes(data)
    monkeypatch.setattr(runtime.resources, "files", lambda _: tmp_path)
    row, problem = runtime.load_row_or_problem("0.6.13")
    assert row is None
    assert runtime.TABLE in problem


def test_with_packages_that_differ_nobody_says_that_the_row_is_missing(plan: Planned) -> None:
    made = plan("0.6.13", 2, problem=runtime.PACKAGE_MISMATCH, detail="flashinfer-cubin 0.6.12")
    assert (str(made.gating.strategy), made.gating.rule) == ("all_ranks", 3)
    assert made.warnings == ("flashinfer-cubin 0.6.12",)
    assert "row is not trusted" in made.gating.why
    assert "no row in the capabilities table" in " ".join(plan("0.6.99", 2).warnings)


@pytest.mark.parametrize(("stages", "strategy"), [(1, "synchronized"), (2, "leader_broadcast")])
def test_pipeline_stages_are_never_averaged_together(plan: Planned, stages: int, strategy: str) -> None:
    """A stage that times a kernel which another one does not have would wait for it for ever."""
    made = plan("0.6.16", 2, strict=True, parallel={"pipeline_parallel_size": stages})
    assert (str(made.gating.strategy), made.gating.persistent) == (strategy, True)
    assert any("pipeline stages" in word for word in made.warnings) is (stages > 1)


ELASTIC = {"enable_elastic_ep": True, "data_parallel_size": 2, "tensor_parallel_size": 2}


@pytest.mark.parametrize(
    ("parallel", "ranks", "strategy"),
    [
        (ELASTIC, 2, "all_ranks"),
        (ELASTIC, 4, "leader_broadcast"),
        (ELASTIC | {"enable_elastic_ep": False}, 2, "leader_broadcast"),
        (ELASTIC | {"data_parallel_size": 1}, 2, "leader_broadcast"),
    ],
    ids=["replicas apart", "all in one world", "replicas of their own", "one replica"],
)
def test_replicas_that_run_a_pass_together_without_meeting_keep_no_cache(
    plan: Planned, parallel: dict[str, Any], ranks: int, strategy: str
) -> None:
    """If one replica found a cache and the other did not, it would leave the other alone in a pass."""
    made = plan("0.6.13", ranks, parallel=parallel)
    assert str(made.gating.strategy) == strategy
    assert any("replicas that do not meet" in word for word in made.warnings) is (strategy == "all_ranks")


INSTEAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "nowhere to keep it": ({"environment": {}}, "all_ranks", "there is nowhere to keep a cache"),
    "no files": (
        {"lacks": ("AutoTuner.save_configs",)},
        "all_ranks",
        "the installed tuner lacks AutoTuner.save_configs",
    ),
    "no tuner": ({"lacks": ("autotune",)}, "none", "the installed tuner lacks autotune"),
    "stages": ({"parallel": {"pipeline_parallel_size": 2}}, "leader_broadcast", "pipeline stages"),
    "elastic": ({"parallel": ELASTIC}, "all_ranks", "elastic expert parallelism"),
    "elastic stages": (
        {"parallel": ELASTIC | {"pipeline_parallel_size": 2}},
        "all_ranks",
        "elastic expert parallelism",
    ),
    "forced": ({"forced": Strategy.ALL_RANKS}, "all_ranks", "forced to all_ranks, as a diagnosis"),
}


@pytest.mark.parametrize("case", INSTEAD)
def test_what_is_done_instead_of_the_rules_answer_has_its_own_reason(plan: Planned, case: str) -> None:
    """The log would read "all_ranks (timings are averaged over the process group)"."""
    world, strategy, why = INSTEAD[case]
    made = plan("0.6.16", 2, **world)
    assert (str(made.gating.strategy), made.gating.rule) == (strategy, 5)
    assert made.gating.why.startswith(why)
    told = [word for word in made.warnings if why in word]
    assert len(told) == 1, "and it is said once"
    assert made.gating.persistent is (strategy == "leader_broadcast")
