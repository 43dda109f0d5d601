"""Errors of the warm-up. A cache never raises one: what is wrong with a file is a reason in the record."""

from __future__ import annotations

from collections.abc import Mapping

from tooling.errors import EdgeError, InputError


class WarmupError(EdgeError):
    """The warm-up cannot go on, or `strict` asked for what this world does not offer."""

    reason = "WARMUP"


class RefusedError(WarmupError):
    """`strict`: what a starting engine would only be warned about."""

    reason = "REFUSED"


class SettingsError(InputError):
    """`strict`: an environment variable holds nonsense."""

    reason = "BAD_ENVIRONMENT"


class DisagreementError(WarmupError):
    """Ranks that must be alike are not. `values` holds what each rank said."""

    reason = "RANKS_DIFFER"

    def __init__(self, field: str, values: Mapping[int, str]) -> None:
        said: dict[str, list[int]] = {}
        for rank, value in sorted(values.items()):
            said.setdefault(value, []).append(rank)
        parts = (f"{value!r} on rank {', '.join(map(str, ranks))}" for value, ranks in said.items())
        super().__init__(
            f"ranks differ in {field}: {'; '.join(parts)}; expected the same on every rank",
            hint="start every rank from the same image with the same settings",
        )
        self.field = field
        self.values = dict(values)


class StuckError(WarmupError):
    """Ranks did not arrive where the others wait. `behind` maps each to its last step."""

    reason = "RANK_STUCK"

    def __init__(self, step: str, behind: Mapping[int, str], why: str) -> None:
        parts = (f"rank {rank} (last step: {last})" for rank, last in sorted(behind.items()))
        super().__init__(
            f"waiting at {step!r}: {why}; behind: {', '.join(parts) or 'not known'}",
            hint="look at that rank's log; FLASHINFER_WARMUP_TIMEOUT_S sets the total limit",
        )
        self.step = step
        self.behind = dict(behind)


class PeerFailedError(WarmupError):
    """Another rank raised; it says so itself, nobody waits for the deadline."""

    reason = "RANK_FAILED"

    def __init__(self, step: str, rank: int, message: str) -> None:
        super().__init__(f"waiting at {step!r}: rank {rank} failed: {message}", hint="look at that rank's log")
        self.step = step
        self.rank = rank


class BundleError(InputError):
    """A carried cache is damaged, or belongs to another environment; `field` names what differs."""

    reason = "BAD_BUNDLE"

    def __init__(self, message: str, *, hint: str = "", reason: str = "", field: str = "") -> None:
        super().__init__(message, hint=hint, reason=reason)
        self.field = field
