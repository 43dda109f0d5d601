"""What a number of right answers says: intervals, the smallest drop that would be seen, and paired tests.

Everything is exact or a textbook formula; nothing here knows of configurations or servers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

ALPHA = 0.05
POWER = 0.8


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float


def wilson(correct: int, total: int, *, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a share. `total` must not be 0.

    E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).
    """
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = correct / total
    centre = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    low, high = centre - half, centre + half
    return Interval(0.0 if correct == 0 else max(low, 0.0), 1.0 if correct == total else min(high, 1.0))


def standard_error(accuracy: float, total: int) -> float:
    return math.sqrt(accuracy * (1 - accuracy) / total)


def distance_in_sigmas(accuracy: float, floor: float, total: int) -> float | None:
    """How many standard errors of the measurement lie between accuracy and floor; None if it has no spread."""
    error = standard_error(accuracy, total)
    return (accuracy - floor) / error if error > 0 else None


def detectable_drop(accuracy: float, total: int, *, alpha: float = ALPHA, power: float = POWER) -> float | None:
    """The smallest drop from `accuracy` that a run of `total` questions shows at that power.

    One-sided exact binomial test at level `alpha` against a known accuracy: with the largest count that is still
    significant, the highest true accuracy that stays at or under it with probability `power`. None if no count is
    significant (too few questions).
    """
    critical = largest_significant(accuracy, total, alpha=alpha)
    if critical is None:
        return None
    return accuracy - _share_below(critical, total, power=power, ceiling=accuracy)


def gate_detectable_drop(accuracy: float, floor: float, total: int, *, power: float = POWER) -> float | None:
    """The smallest drop from `accuracy` that makes a run fall under `floor` with that power; None if nothing can."""
    critical = math.ceil(floor * total - 1e-9) - 1
    if critical < 0:
        return None
    return accuracy - _share_below(critical, total, power=power, ceiling=1.0)


def largest_significant(accuracy: float, total: int, *, alpha: float = ALPHA) -> int | None:
    """The largest count with a probability of at most `alpha` at or under it, or None."""
    under, critical = 0.0, None
    for count in range(total + 1):
        under += _binomial(count, total, accuracy)
        if under > alpha:
            break
        critical = count
    return critical


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """The two-sided p-value of McNemar's exact test on the discordant pairs; 1 if there are none.

    Q. McNemar, Psychometrika 12 (1947): under no difference each discordant pair is a fair coin.
    """
    total = only_first + only_second
    ways = tail = 1
    for count in range(1, min(only_first, only_second) + 1):
        ways = ways * (total - count + 1) // count  # the binomial coefficient, from the one before
        tail += ways
    # Two whole numbers, divided exactly: neither has to fit a float.
    return min(1.0, float(Fraction(2 * tail, 2**total)))


def binomial_at_most(count: int, total: int, share: float) -> float:
    """The probability of at most `count` successes."""
    return min(1.0, math.fsum(_binomial(each, total, share) for each in range(count + 1)))


def _share_below(critical: int, total: int, *, power: float, ceiling: float) -> float:
    """The highest share, up to `ceiling`, under which at most `critical` successes have probability `power`."""
    low, high = 0.0, ceiling
    for _ in range(40):
        middle = (low + high) / 2
        if binomial_at_most(critical, total, middle) >= power:
            low = middle
        else:
            high = middle
    return low


def _binomial(count: int, total: int, share: float) -> float:
    if share <= 0 or share >= 1:
        return float(count == (total if share >= 1 else 0))
    log_choose = math.lgamma(total + 1) - math.lgamma(count + 1) - math.lgamma(total - count + 1)
    return math.exp(log_choose + count * math.log(share) + (total - count) * math.log1p(-share))
