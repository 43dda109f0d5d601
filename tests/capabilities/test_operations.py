"""Names of operations are followed to where they are written, and stay patterns where a part is not known."""

from __future__ import annotations

import pytest

from tests.capabilities.releases import release, source
from tooling.capabilities.facts import Fact
from tooling.capabilities.operations import derive_operations


def derive(text: str, **more: str) -> Fact:
    members = release({"ops": f"# AutoTuner\n{text}", **{name: f"# AutoTuner\n{body}" for name, body in more.items()}})
    return derive_operations(source(members), has_tuner=True)["operations"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(t):\n    t.choose_one('a', [], None, [])\n", ["a"]),
        ("def f(t):\n    t.choose_one(custom_op='a', runners=[])\n", ["a"]),
        ("def f(t):\n    t.rank_tactics('a', [])\n    t.choose_with_protocol('b', p)\n", ["a", "b"]),
        ("NAME = 'a'\ndef f(t):\n    t.choose_one(NAME)\n", ["a"]),
        ("def f(t, wide):\n    t.choose_one('a_8x4' if wide else 'a_128x4')\n", ["a_128x4", "a_8x4"]),
        ("def f(t, wide):\n    op = 'a'\n    if wide:\n        op = 'b'\n    t.choose_one(op)\n", ["a", "b"]),
        ("def f(t, kind):\n    t.choose_one(f'{kind}_gemm')\n\ndef g(t):\n    f(t, 'bf16')\n    f(t, kind='fp16')\n",
         ["bf16_gemm", "fp16_gemm"]),
        ("def f(t, kind='fp8'):\n    t.choose_one(kind + '_gemm')\n\ndef g(t):\n    f(t)\n", ["fp8_gemm"]),
        ("def f(t, kind):\n    t.choose_one(f'{kind}_gemm')\n", ["*_gemm"]),
        ("def name(rank):\n    return f'op_r{rank}'\n\ndef f(t, n):\n    t.choose_one(name(n))\n", ["op_r*"]),
        ("def make(op):\n    def run(t):\n        t.choose_one(op)\n    return run\n\nrun = make('a')\n", ["a"]),
        ("class A:\n    key = 'one'\n    def f(self, t):\n        t.choose_one(f'moe_{self.key}')\n\nclass B(A):\n    key = 'two'\n",
         ["moe_one", "moe_two"]),
        ("class A:\n    def __init__(self, op):\n        self.op = op\n    def f(self, t):\n        t.choose_one(self.op)\n\nA('a')\n",
         ["a"]),
        ("NAMES = {1: 'a', 2: 'b'}\ndef f(t, n):\n    t.choose_one(NAMES[n])\n", ["a", "b"]),
        ("def f(t):\n    for op in ('a', 'b'):\n        t.choose_one(op)\n", ["a", "b"]),
    ],
    ids=["literal", "keyword", "other methods", "constant", "either", "branch", "callers", "default", "unknown part",
         "helper", "closure", "children", "constructor", "table", "loop"],
)  # fmt: skip
def test_a_name_is_followed(text: str, expected: list[str]) -> None:
    fact = derive(text)
    assert fact.value == tuple(expected)
    assert len(fact.evidence) == len(expected)
    assert fact.reason == ""


def test_a_constant_of_another_module_is_followed() -> None:
    text = "from .names import NAME as OP\n\ndef f(t):\n    t.choose_one(OP)\n"
    assert derive(text, names="NAME = 'a'\n").value == ("a",)


def test_callers_in_other_modules_count() -> None:
    text = "def tuned(t, op):\n    t.choose_one(op)\n"
    assert derive(text, use="from .ops import tuned\n\ndef g(t):\n    tuned(t, 'a')\n").value == ("a",)


def test_a_name_that_is_not_followed_is_said_beside_those_that_are() -> None:
    fact = derive("def f(t):\n    t.choose_one('a')\n    t.choose_one(ask_the_user())\n")
    assert fact.value == ("a",)
    assert "flashinfer/ops.py:f" in fact.reason


def test_no_name_at_all_is_could_not_tell() -> None:
    assert derive("x = 1\n").value is None


def test_a_module_that_cannot_be_parsed_is_said() -> None:
    fact = derive("def f(t):\n    t.choose_one('a')\n", broken="def g(t):\n    t.choose_one('b'\n")
    assert fact.value == ("a",)
    assert "flashinfer/broken.py" in fact.reason


@pytest.mark.parametrize(
    ("names", "expected"),
    [("self.tp_rank", True), ("self.rank", True), ("self.local_expert_offset", True), ("self.kv_lora_rank", False)],
)
def test_a_rank_in_the_extras_is_told_from_a_shape(names: str, expected: bool) -> None:
    text = f"class R(TunableRunner):\n    def get_cache_key_extras(self, i):\n        return self._mine()\n    def _mine(self):\n        return ({names},)\n"
    members = release(ops=text + "def f(t):\n    t.choose_one('a')\n")
    assert derive_operations(source(members), has_tuner=True)["extras_have_rank"].value is expected
