"""Which operations are skipped, and what a release makes of it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.warmup.faults import Derived, FlashInferCuteDslNvFp4LinearKernel
from tooling.warmup.skipping import fit, flashinfer_autotune_skip_ops


def module(holder: str, kernel: object) -> SimpleNamespace:
    return SimpleNamespace(**{holder: SimpleNamespace(kernel=kernel)})


@pytest.mark.parametrize("holder", ["quant_method", "scheme"])
@pytest.mark.parametrize("kernel", [Derived(), FlashInferCuteDslNvFp4LinearKernel()], ids=["base", "itself"])
def test_the_slow_kernel_is_known_by_name_anywhere_in_its_bases(holder: str, kernel: object) -> None:
    skipping = flashinfer_autotune_skip_ops([SimpleNamespace(), module(holder, kernel)])
    assert (skipping.operations, skipping.source) == ({"fp4_gemm"}, "model")


@pytest.mark.parametrize("kernel", [None, object()], ids=["none", "another"])
def test_other_kernels_are_tuned(kernel: object) -> None:
    assert flashinfer_autotune_skip_ops([module("scheme", kernel), module("other", Derived())]).operations == set()


def test_the_operators_wish_wins_over_the_model() -> None:
    slow = [module("scheme", Derived())]
    assert flashinfer_autotune_skip_ops(slow, frozenset()).operations == set()
    assert flashinfer_autotune_skip_ops(slow, frozenset({"a"})).operations == {"a"}
    assert flashinfer_autotune_skip_ops(slow, frozenset({"a"})).source == "operator"


def test_a_release_without_the_parameter_gets_nothing_and_it_is_said() -> None:
    fitted = fit({"b", "a"}, supported=False, known=None, release="0.6.12")
    assert fitted.operations == set()
    assert fitted.warnings == ("FlashInfer 0.6.12 takes no skip_ops; a, b will be tuned",)
    assert fit(set(), supported=False, known=None, release="0.6.12").warnings == ()


def test_a_name_that_is_no_operation_is_passed_on_with_a_warning() -> None:
    fitted = fit({"fp4_gemm", "fp5_gemm"}, supported=True, known={"fp4_gemm"}, release="0.6.13")
    assert fitted.operations == {"fp4_gemm", "fp5_gemm"}
    assert fitted.warnings == ("'fp5_gemm' is no operation that FlashInfer 0.6.13 tunes; skipping it does nothing",)
    assert fit({"x"}, supported=True, known=None, release="0.6.13").warnings == ()
    assert fitted.text == "fp4_gemm, fp5_gemm"


def test_a_name_that_a_pattern_of_the_release_covers_is_known() -> None:
    fitted = fit({"moe_gemm1", "Moe_x"}, supported=True, known={"moe_*"}, release="0.6.13")
    assert fitted.warnings == ("'Moe_x' is no operation that FlashInfer 0.6.13 tunes; skipping it does nothing",)


@pytest.mark.parametrize(
    ("wish", "operations"), [("fp4_gemm", {"fp4_gemm"}), (" a, b,", {"a", "b"}), ("", set()), (["a"], {"a"})]
)
def test_a_wish_that_is_one_text_is_a_comma_list(wish: str | list[str], operations: set[str]) -> None:
    assert flashinfer_autotune_skip_ops([], wish).operations == operations


class Unready:
    """A layer whose properties raise before its weights are there."""

    @property
    def quant_method(self) -> object:
        raise RuntimeError("not loaded")

    @property
    def kernel(self) -> object:
        raise KeyError("kernel")


def test_properties_that_raise_hide_no_slow_kernel() -> None:
    unready = SimpleNamespace(quant_method=Unready())
    assert flashinfer_autotune_skip_ops([Unready(), unready]).operations == set()
    assert flashinfer_autotune_skip_ops([Unready(), module("scheme", Derived())]).operations == {"fp4_gemm"}
