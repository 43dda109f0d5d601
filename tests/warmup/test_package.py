"""The package as an engine sees it: quick to import, complete, and usable with vLLM's runner as it is."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tooling.warmup.errors
from tooling.warmup.runner import describe_runner
from tooling.warmup.vllm import VllmRunner, warm_up

ROOT = Path(__file__).resolve().parents[2]


def test_importing_it_pulls_in_neither_torch_nor_flashinfer_nor_anything_slow() -> None:
    code = "import sys; sys.path.insert(0, '.'); import tooling.warmup; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    found = {name for name in ran.stdout.split() if name.split(".")[0] not in sys.stdlib_module_names}
    assert found - {"__main__"} == {"tooling", "tooling.warmup"}


def test_importing_it_takes_less_than_50_ms() -> None:
    """The quickest of several fresh interpreters counts: a busy machine makes others slower, and none quicker."""
    code = "import sys, time; sys.path.insert(0, '.'); start = time.perf_counter(); import tooling.warmup; print(time.perf_counter() - start)"
    command = [sys.executable, "-S", "-c", code]
    ran = [subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True) for _ in range(7)]
    assert min(float(one.stdout) for one in ran) < 0.050


def test_calling_it_needs_only_what_engines_have() -> None:
    code = "import sys; from tooling.warmup import flashinfer_autotune; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    roots = {name.split(".")[0] for name in ran.stdout.split()} - set(sys.stdlib_module_names)
    assert {name for name in roots if not name.startswith(("_", "sitecustomize"))} <= {"tooling", "packaging"}


@pytest.mark.parametrize("name", tooling.warmup.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(tooling.warmup, name)


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'autotune_everything'"):
        tooling.warmup.autotune_everything  # noqa: B018


class Model:
    """A model of no framework: the modules are found all the same."""

    def __init__(self) -> None:
        weight = SimpleNamespace(shape=(4, 8), dtype="torch.bfloat16")
        self._parameters = {"weight": weight, "bias": None}

    def modules(self) -> list[Any]:
        return [self, self]


def engine(**parallel: Any) -> SimpleNamespace:
    """What a vLLM worker looks like from here."""
    calls: list[dict[str, Any]] = []

    def dummy_run(num_tokens: int, is_profile: bool = False) -> None:
        calls.append({"num_tokens": num_tokens, "is_profile": is_profile})

    config = SimpleNamespace(
        parallel_config=SimpleNamespace(tensor_parallel_size=2, enable_expert_parallel=True, **parallel),
        model_config=SimpleNamespace(dtype="torch.bfloat16", quantization="fp8"),
        kernel_config=SimpleNamespace(enable_flashinfer_autotune=True),
    )
    runner = SimpleNamespace(
        _dummy_run=dummy_run,
        get_model=Model,
        scheduler_config=SimpleNamespace(max_num_batched_tokens=8192),
        vllm_config=config,
        calls=calls,
    )
    return SimpleNamespace(model_runner=runner)


def test_facts_are_read_off_a_runner() -> None:
    facts = describe_runner(engine(all2all_backend="deepep_v2").model_runner)
    assert (facts.max_tokens, facts.all2all_backend) == (8192, "deepep_v2")
    assert facts.shapes == ("Model.weight [4, 8] torch.bfloat16",)
    assert facts.parallel == {"tensor_parallel_size": 2, "enable_expert_parallel": 1}
    assert (facts.dtype, facts.quantization) == ("torch.bfloat16", "fp8")


def test_vllms_backend_comes_from_its_config_or_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_ALL2ALL_BACKEND", "deepep_low_latency")
    old, new = engine().model_runner, engine(all2all_backend="naive").model_runner
    assert describe_runner(VllmRunner(old)).all2all_backend == "deepep_low_latency"
    assert describe_runner(VllmRunner(old)).parallel == {"tensor_parallel_size": 2, "enable_expert_parallel": 1}
    assert describe_runner(VllmRunner(new)).all2all_backend == "naive"


@pytest.mark.parametrize("parallel", [{}, {"all2all_backend": "naive"}], ids=["older vLLM", "newer"])
def test_what_else_shapes_token_buckets_is_read_off_vllms_settings(parallel: dict[str, Any]) -> None:
    """The largest captured graph goes to mixtures of experts as `tune_max_num_tokens`."""
    runner = engine(enable_dbo=True, ubatch_size=0, use_sequence_parallel_moe=None, **parallel).model_runner
    assert describe_runner(VllmRunner(runner)).buckets == {"enable_dbo": 1, "ubatch_size": 0}
    runner.vllm_config.compilation_config = SimpleNamespace(max_cudagraph_capture_size=512)
    assert describe_runner(VllmRunner(runner)).buckets["max_cudagraph_capture_size"] == 512


def test_vllms_dummy_run_gets_what_its_version_takes() -> None:
    runner = engine().model_runner
    VllmRunner(runner)._dummy_run(num_tokens=8, skip_eplb=True, is_profile=True)
    assert runner.calls == [{"num_tokens": 8, "is_profile": True}]


def fake_modules(monkeypatch: pytest.MonkeyPatch, autotune: Any) -> list[tuple[int, ...]]:
    """A vLLM with buckets of its own beside a FlashInfer that tunes, with that `autotune`; the buckets asked for."""
    asked: list[tuple[int, ...]] = []

    def buckets(most: int) -> tuple[int, ...]:
        asked.append((most,))
        return (most,)

    tuner = SimpleNamespace(is_tuning_mode=True)
    modules = {
        "vllm.utils.flashinfer": SimpleNamespace(flashinfer_get_hybrid_num_tokens_buckets=buckets),
        "flashinfer.autotuner": SimpleNamespace(autotune=autotune, AutoTuner=SimpleNamespace(get=lambda: tuner)),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)  # type: ignore[arg-type]
    return asked


def test_a_release_that_takes_no_buckets_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 0.6.8 `autotune` has neither `tuning_buckets` nor `round_up`."""
    asked = fake_modules(monkeypatch, lambda tune_mode=True, cache=None: contextlib.nullcontext())
    runner = engine().model_runner
    VllmRunner(runner)._dummy_run(num_tokens=8, is_profile=True)
    assert (asked, len(runner.calls)) == ([], 1)
    assert describe_runner(VllmRunner(runner)).buckets == {}


@pytest.mark.parametrize(("each", "most"), [(None, 64), (0, 64), (4, 80), (100, 100)])
def test_vllms_buckets_reach_to_what_a_drafter_takes(
    monkeypatch: pytest.MonkeyPatch, each: int | None, most: int
) -> None:
    """Twenty requests at most, and 100 tokens in all."""
    asked = fake_modules(monkeypatch, lambda tuning_buckets=None, round_up=None: contextlib.nullcontext())
    runner = engine().model_runner
    runner.max_num_reqs, runner.max_num_tokens = 20, 100
    if each is not None:
        runner.speculator = SimpleNamespace(num_query_per_req=each)
    VllmRunner(runner)._dummy_run(num_tokens=64, is_profile=True)
    assert asked == [(most,)]
    assert describe_runner(VllmRunner(runner)).buckets == {"vllm_buckets": 1}


def test_vllms_own_switch_is_obeyed() -> None:
    worker = engine()
    worker.model_runner.vllm_config.kernel_config.enable_flashinfer_autotune = False
    assert warm_up(worker) is None


def test_without_flashinfer_an_engine_starts_and_strict_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """This interpreter has no FlashInfer; an engine's start must not fail for that."""
    monkeypatch.setenv("HOME", "/nonexistent")
    if tooling.warmup.HOMES and _has_flashinfer():
        pytest.skip("FlashInfer is installed here")
    record = tooling.warmup.flashinfer_autotune(engine().model_runner)
    assert (record.strategy, record.persistent, record.nothing_to_tune) == ("none", False, True)
    assert "flashinfer-python is not installed" in record.warnings
    with pytest.raises(tooling.warmup.errors.RefusedError, match="not installed"):
        tooling.warmup.flashinfer_autotune(engine().model_runner, strict=True)


MISMATCHES = {
    "equal": ({"flashinfer-python": "0.6.13", "flashinfer-cubin": "0.6.13"}, "NO_FLASHINFER"),
    "a local label": ({"flashinfer-python": "0.6.13", "flashinfer-jit-cache": "0.6.13+cu130"}, "NO_FLASHINFER"),
    "another cubin": ({"flashinfer-python": "0.6.13", "flashinfer-cubin": "0.6.12"}, "PACKAGE_MISMATCH"),
    "another jit-cache": ({"flashinfer-python": "0.6.13", "flashinfer-jit-cache": "0.6.14+cu130"}, "PACKAGE_MISMATCH"),
    "none": ({}, "NO_FLASHINFER"),
    "a cubin that was removed but for its folder": (
        {"flashinfer-python": "0.6.13", "flashinfer-cubin": ""},
        "NO_FLASHINFER",
    ),
}


@pytest.mark.parametrize("case", MISMATCHES)
def test_packages_of_different_versions_are_told_from_a_broken_one(tmp_path: Path, case: str) -> None:
    """Installed as their metadata says, with a FlashInfer that does not import: as 0.6.13 with another cubin does."""
    packages, problem = MISMATCHES[case]
    for name, version in packages.items():
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        if version:
            (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (tmp_path / "flashinfer.py").write_text("raise RuntimeError('flashinfer-cubin version does not match')\n")
    code = "from tooling.warmup.runtime import load_installed; found = load_installed(); print(found.problem, found.usable)"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [problem, "False"]


def _has_flashinfer() -> bool:
    from importlib.util import find_spec

    return find_spec("flashinfer") is not None
