"""What the smoke stage tries: each scenario as a value. Running them is `edges.smoke`'s."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tooling.errors import InputError

ORDINARY_BACKEND = "allgather_reducescatter"
"""An all2all backend whose ranks do not wait for each other while kernels are tuned."""

SKIPPED = "bf16_gemm"
"""The operation that `skip-given` skips: every GPU that the smoke runs on has it."""

SkipSource = Literal["unset", "given", "empty", "automatic"]
Layout = Literal["none", "truncated", "foreign"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One world that the warm-up runs in, cold and then warm.

    `skip`: what VLLM_FLASHINFER_AUTOTUNE_SKIP_OPS is; `automatic` is unset, with a module in the model that carries the
    CuTe-DSL NVFP4 kernel. `cache_off`: the operator's switch. `layout`: what lies in the cache root beforehand.
    `forced`: the cache is on whatever the table says; a diagnosis, never part of a release's evidence.
    """

    name: str
    about: str
    ranks: int = 1
    backend: str | None = None
    skip: SkipSource = "unset"
    cache_off: bool = False
    layout: Layout = "none"
    forced: bool = False

    @property
    def deepep(self) -> bool:
        return self.backend is not None and self.backend.startswith("deepep")


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(name="one-rank", about="one rank"),
        Scenario(name="two-ranks", about="two ranks, ordinary all2all", ranks=2, backend=ORDINARY_BACKEND),
        Scenario(name="deepep-high-throughput", about="two ranks, DeepEP", ranks=2, backend="deepep_high_throughput"),
        Scenario(name="deepep-low-latency", about="two ranks, DeepEP", ranks=2, backend="deepep_low_latency"),
        Scenario(name="deepep-v2", about="two ranks, DeepEP", ranks=2, backend="deepep_v2"),
        Scenario(name="skip-given", about=f"the operator skips {SKIPPED}", skip="given"),
        Scenario(name="skip-empty", about="the operator skips nothing", skip="empty"),
        Scenario(name="skip-automatic", about="the model carries a CuTe-DSL NVFP4 kernel", skip="automatic"),
        Scenario(name="cache-off", about="the operator turned the cache off", cache_off=True),
        Scenario(name="truncated", about="a cut-off cache file lies there", layout="truncated"),
        Scenario(name="foreign", about="another environment's cache file lies there", layout="foreign"),
    )
}
"""The default scenarios, in the order in which they run."""

FORCED = Scenario(name="force-persistent", about="the cache forced on, as a diagnosis", forced=True)


def choose(names: Sequence[str], *, force_persistent: bool) -> tuple[Scenario, ...]:
    """The scenarios of those names in the order of the table, all without names; the diagnosis last.

    Raises:
        InputError: a name is not known.
    """
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        raise InputError(
            f"no scenario is called {', '.join(map(repr, unknown))}",
            hint=f"there are {', '.join(SCENARIOS)}",
            reason="UNKNOWN_SCENARIO",
        )
    chosen = tuple(scenario for name, scenario in SCENARIOS.items() if not names or name in names)
    return (*chosen, FORCED) if force_persistent else chosen
