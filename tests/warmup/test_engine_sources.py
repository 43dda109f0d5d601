"""What the adapter and the reference layers take for granted, held against the published source of vLLM and FlashInfer.

Read by byte ranges out of the wheels, and by syntax only: nothing of vLLM is installed, no kernel runs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from packaging.version import Version

from tests.warmup.environments import newest_release, release_folder
from tooling.edges.index import IndexClient
from tooling.edges.pip_config import load_index_settings
from tooling.edges.ranged_archive import open_release_file
from tooling.warmup.runner import PARALLEL_SIZES
from tooling.warmup.skipping import SLOW_KERNEL
from tooling.warmup.vllm import RANDOM
from tooling.warmup.vllm_tuning import BUCKETS, FLAG

pytestmark = [pytest.mark.online, pytest.mark.timeout(600)]
NEWEST_VLLM = "newest"
VLLM = ("0.11.0", "0.18.1", "0.25.1", NEWEST_VLLM)
"""The first with the warm-up's calls; two between, before and after vLLM kept a cache of its own; and today's."""
PARALLEL = "vllm/config/parallel.py"
RUNNERS = ("vllm/v1/worker/gpu_model_runner.py", "vllm/v1/worker/gpu/model_runner.py")
WORKER = "vllm/v1/worker/gpu_worker.py"
WARMUP = "vllm/model_executor/warmup/kernel_warmup.py"
COMPILATION, SCHEDULER = "vllm/config/compilation.py", "vllm/config/scheduler.py"
KERNEL, WHOLE = "vllm/config/kernel.py", "vllm/config/vllm.py"
UTILS = "vllm/utils/flashinfer.py"
MEMBERS = (PARALLEL, *RUNNERS, WORKER, WARMUP, COMPILATION, SCHEDULER, KERNEL, WHOLE, UTILS)
Source = Mapping[str, ast.Module]


@pytest.fixture(scope="module")
def vllm() -> Iterator[Callable[[str], Source]]:
    """The parsed modules of that release of vLLM, each read once."""
    read: dict[str, Source] = {}
    with IndexClient(load_index_settings()) as client:

        def get(version: str) -> Source:
            if version not in read:
                files = [file for page in client.fetch_project("vllm") for file in page.files if file.kind == "wheel"]
                stable = [file for file in files if not file.yanked and not Version(str(file.version)).is_prerelease]
                wanted = max(Version(str(file.version)) for file in stable) if version == NEWEST_VLLM else version
                wheel = next(file for file in stable if str(file.version) == str(wanted))
                with open_release_file(client.http, wheel) as archive:
                    read[version] = {name: ast.parse(archive.read(name)) for name in MEMBERS if name in archive.names}
            return read[version]

        yield get


def class_of(module: ast.Module, name: str) -> ast.ClassDef:
    return next(node for node in module.body if isinstance(node, ast.ClassDef) and node.name == name)


def members(module: ast.Module, name: str) -> dict[str, ast.stmt]:
    """Fields and methods of a class by name."""
    found: dict[str, ast.stmt] = {}
    for node in class_of(module, name).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node
        elif isinstance(node, ast.FunctionDef):
            found[node.name] = node
    return found


def parameters(function: ast.stmt) -> list[str]:
    assert isinstance(function, ast.FunctionDef)
    return [one.arg for one in (*function.args.args, *function.args.kwonlyargs)]


def required(function: ast.stmt) -> set[str]:
    """Parameters that a caller must give."""
    assert isinstance(function, ast.FunctionDef)
    arguments = function.args
    free = arguments.args[: len(arguments.args) - len(arguments.defaults)]
    bare = [one for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value is None]
    return {one.arg for one in (*free, *bare)} - {"self"}


@pytest.mark.parametrize("version", VLLM)
def test_vllms_runners_take_the_dummy_pass(vllm: Callable[[str], Source], version: str) -> None:
    """Both of vLLM's model runners; the adapter leaves out what one does not name, and `num_tokens` is all it must."""
    source = vllm(version)
    found = [members(source[name], "GPUModelRunner") for name in RUNNERS if name in source]
    assert found
    for runner in found:
        assert "get_model" in runner
        assert required(runner["get_model"]) == set()
        assert required(runner["_dummy_run"]) == {"num_tokens"}
        assert "skip_attn" in parameters(runner["_dummy_run"]) or "is_profile" in parameters(runner["_dummy_run"])
    assert {"skip_eplb", "is_profile"} <= set(parameters(found[0]["_dummy_run"]))


@pytest.mark.parametrize("version", VLLM)
def test_vllm_keeps_its_settings_where_they_are_read(vllm: Callable[[str], Source], version: str) -> None:
    source = vllm(version)
    parallel = members(source[PARALLEL], "ParallelConfig")
    assert {"tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "enable_expert_parallel"} <= set(
        parallel
    )
    newer = Version("99" if version == NEWEST_VLLM else version) >= Version("0.18")
    assert ("all2all_backend" in parallel) is newer, "before, it is a variable of the environment"
    assert (set(PARALLEL_SIZES) <= set(parallel)) is newer
    assert ({"enable_elastic_ep", "data_parallel_index"} <= set(parallel)) is newer
    assert {"data_parallel_rank", "enable_dbo", "use_sequence_parallel_moe"} <= set(parallel)
    assert "max_num_batched_tokens" in members(source[SCHEDULER], "SchedulerConfig")
    if newer:
        assert "max_cudagraph_capture_size" in members(source[COMPILATION], "CompilationConfig")
        assert "enable_flashinfer_autotune" in members(source[KERNEL], "KernelConfig")
        assert {"kernel_config", "compilation_config", "parallel_config", "model_config"} <= set(
            members(source[WHOLE], "VllmConfig")
        )


@pytest.mark.parametrize("version", VLLM)
def test_vllm_calls_its_own_warm_up_where_this_one_stands(vllm: Callable[[str], Source], version: str) -> None:
    """`kernel_warmup(worker)` calls `flashinfer_autotune(worker.model_runner)`, and the worker holds the runner."""
    source = vllm(version)
    functions = {node.name: node for node in source[WARMUP].body if isinstance(node, ast.FunctionDef)}
    assert required(functions["kernel_warmup"]) == {"worker"}
    assert required(functions["flashinfer_autotune"]) == {"runner"}
    assert "flashinfer_autotune(worker.model_runner)" in ast.unparse(functions["kernel_warmup"])
    assert "self.model_runner" in ast.unparse(class_of(source[WORKER], "Worker"))
    assert "skip_eplb" in ast.unparse(source[WARMUP])


def test_vllm_tunes_with_the_buckets_and_passes_that_the_adapter_looks_for(vllm: Callable[[str], Source]) -> None:
    """The newest: FlashInfer's hybrid buckets up to what a drafter takes, rounded up, and passes at smaller counts."""
    source = vllm(NEWEST_VLLM)
    warm_up = ast.unparse(source[WARMUP])
    assert f"{BUCKETS} = _lazy_import_wrapper" in ast.unparse(source[UTILS])
    assert "autotune(tuning_buckets=tuning_buckets, round_up=True)" in warm_up
    for name in (BUCKETS, "use_deferred_moe_finalize", "defer_moe_finalize_max_num_tokens", "moe_config"):
        assert name in warm_up
    for name in ("speculator", "num_query_per_req", "max_num_reqs", "max_num_tokens", f"{RANDOM}=True"):
        assert name in warm_up
    assert RANDOM in parameters(members(source[RUNNERS[0]], "GPUModelRunner")["_dummy_run"])


@pytest.mark.parametrize("version", VLLM)
def test_one_vllm_sets_a_flag_meanwhile_and_older_ones_tune_flashinfers_own_buckets(
    vllm: Callable[[str], Source], version: str
) -> None:
    source = vllm(version)
    assert (FLAG in ast.unparse(source[WARMUP])) is (FLAG in ast.unparse(source[UTILS])) is (version == "0.18.1")
    assert (BUCKETS in ast.unparse(source[UTILS])) is (version == NEWEST_VLLM)


def test_vllm_names_the_slow_kernel_as_the_skip_rule_does(vllm: Callable[[str], Source]) -> None:
    assert SLOW_KERNEL in ast.unparse(vllm(NEWEST_VLLM)[WARMUP])


def test_vllm_spans_data_parallel_replicas_of_experts_but_for_elastic_ones(vllm: Callable[[str], Source]) -> None:
    """What makes the warm-up look at `enable_elastic_ep`: a size across replicas, and an index that outlives the rank."""
    parallel = members(vllm(NEWEST_VLLM)[PARALLEL], "ParallelConfig")
    assert {"world_size_across_dp", "reconfigure_for_independent_dp_rank"} <= set(parallel)
    assert "data_parallel_size = 1" in ast.unparse(parallel["reconfigure_for_independent_dp_rank"])


CALLS = {
    "mm_fp4": ("gemm/gemm_base.py", 6, set()),
    "nvfp4_quantize": ("quantization/fp4_quantization.py", 2, {"sfLayout", "do_shuffle"}),
    "cutlass_fused_moe": ("fused_moe/core.py", 6, {"quant_scales"}),
    "mm_bf16": ("gemm/gemm_base.py", 2, {"out_dtype", "backend"}),
    "bmm_fp8": ("gemm/gemm_base.py", 5, {"backend"}),
}
"""Functions that the reference layers call: module, values by position, values by name."""
ORDER = {
    "mm_fp4": ["a", "b", "a_descale", "b_descale", "alpha", "out_dtype"],
    "nvfp4_quantize": ["a", "a_global_sf"],
    "cutlass_fused_moe": [
        "input",
        "token_selected_experts",
        "token_final_scales",
        "fc1_expert_weights",
        "fc2_expert_weights",
        "output_dtype",
    ],
    "mm_bf16": ["a", "b"],
    "bmm_fp8": ["A", "B", "A_scale", "B_scale", "dtype"],
}


@pytest.mark.parametrize("version", ["0.6.13", newest_release()])
@pytest.mark.parametrize("name", CALLS)
def test_flashinfers_functions_take_what_the_reference_layers_give(version: str, name: str) -> None:
    """NVFP4 and mixtures of experts do not run without a GPU that has them; their signatures can be read."""
    module, given, named = CALLS[name]
    path = release_folder(version) / "flashinfer" / module
    tree = ast.parse(path.read_text())
    (function,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    assert parameters(function)[:given] == ORDER[name]
    assert named <= set(parameters(function))
    assert required(function) <= {*ORDER[name], *named}


@pytest.mark.parametrize("name", CALLS)
def test_the_reference_layers_call_them_so(name: str) -> None:
    """The table above is what the layers' own source says."""
    path = Path(__file__).resolve().parents[2] / "tooling" / "warmup" / "reference" / "operations.py"
    _, given, named = CALLS[name]
    held = {"mm_bf16": "_gemm", "bmm_fp8": "_gemm", "cutlass_fused_moe": "_moe"}.get(name, name)
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    made = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == held]
    assert (given, named) in [(len(call.args), {one.arg for one in call.keywords}) for call in made]


@pytest.mark.parametrize("version", ["0.6.13", newest_release()])
def test_flashinfer_exports_them_where_the_layers_look(version: str) -> None:
    folder = release_folder(version) / "flashinfer"
    exported = imported(folder / "__init__.py")
    assert {"mm_fp4", "nvfp4_quantize", "mm_bf16", "bmm_fp8", "SfLayout"} <= exported
    assert "cutlass_fused_moe" in imported(folder / "fused_moe" / "__init__.py")
    (layout,) = [
        node
        for node in ast.parse((folder / "tllm_enums.py").read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == "SfLayout"
    ]
    assert "layout_128x4" in ast.unparse(layout)


def imported(path: Path) -> set[str]:
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name for node in nodes for alias in node.names}
