"""Known faults are found where the source shows them, and only there."""

from __future__ import annotations

import pytest

from tests.capabilities.releases import release, source
from tooling.capabilities.faults import derive_faults

RUNNER = """
class {name}(TunableRunner):
    def get_cache_key_extras(self, inputs):
        a, b, _, out = inputs
        return ({extras})
"""
WORKSPACE = """
CONFIG = TuningConfig(constraint_specs=({constraints}))

def bf16_gemm(a, b, out, workspace_buffer):
    inputs = [a, b, out, workspace_buffer]
    AutoTuner.get().choose_one({name}, [R()], CONFIG, inputs)

def run_bf16(graph, workspace):
    {resize}
"""


def found(text: str) -> list[str]:
    return [fault.id for fault in derive_faults(source(release({"gemm/base": f"# Runner\n{text}"})))]


@pytest.mark.parametrize(
    ("name", "extras", "expected"),
    [
        ("CublasFp8GemmRunner", "a.shape, a.dtype", ["flashinfer#3436"]),
        ("CublasFp8GemmRunner", "a.dtype, out.dtype", []),
        ("CublasltBf16GemmRunner", "a.shape[0], b.shape[1]", ["flashinfer#3868/cublaslt"]),
        ("CublasltBf16GemmRunner", "b.shape[1], a.dtype", []),
        ("SomeOtherRunner", "a.shape, a.dtype", []),
    ],
)
def test_a_token_count_in_the_extras_is_seen(name: str, extras: str, expected: list[str]) -> None:
    assert found(RUNNER.format(name=name, extras=extras)) == expected


@pytest.mark.parametrize(
    ("constraints", "name", "resize", "expected"),
    [
        ("ConstraintSpec(2, -2, f),", "'bf16_gemm'", "workspace.resize_(n)", ["flashinfer#3868"]),
        ("ConstraintSpec(2, -2, f), ConstraintSpec(3, 0, f)", "'bf16_gemm'", "workspace.resize_(n)", []),
        ("ConstraintSpec(2, -2, f),", "'fp8_gemm'", "workspace.resize_(n)", []),
        ("ConstraintSpec(2, -2, f),", "'bf16_gemm'", "workspace = new(n)", []),
    ],
    ids=["in the key and growing", "taken out of the key", "another operation", "never grows"],
)
def test_a_growing_workspace_in_the_key_is_seen(constraints: str, name: str, resize: str, expected: list[str]) -> None:
    assert found(WORKSPACE.format(constraints=constraints, name=name, resize=resize)) == expected


def test_a_fault_says_what_it_does_and_how_to_see_it() -> None:
    text = RUNNER.format(name="CublasFp8GemmRunner", extras="a.shape, a.dtype")
    (fault,) = derive_faults(source(release({"gemm/base": text})))
    assert fault.operations == ("fp8_gemm",)
    assert fault.link.endswith("/3436")
    assert "between two buckets" in fault.how_to_see
    assert fault.evidence[0].where == "CublasFp8GemmRunner.get_cache_key_extras"
