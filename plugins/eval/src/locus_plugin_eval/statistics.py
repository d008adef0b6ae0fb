"""Intervals of a share, and the test of two agents on the same cases.

**Why Wilson.** Clopper-Pearson's interval never covers less than it says, and is wider for it: for 20 cases 0.37
against 0.33 on average over what may be found, and it covers 97.7 % on average over the true share where it says 95.
Wilson's covers 95.3 % on average (beside 0 and 1 as little as 85 %), stays within 0 and 1, is not empty where all
cases passed, as the textbook's is, and is a formula of the share and of a sample size that need not be an integer.
The last is needed here: see `effective_size`.

**Why repeats are not cases.** Ten repeats of one case say how often the agent passes that one case. Counted as ten
cases, they would make an interval a third as wide without anything being known about other cases. `effective_size`
measures how alike the repeats of a case are, and gives a size between the number of cases and the number of trials.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb, sqrt
from statistics import NormalDist

__all__ = ["CONFIDENCE", "effective_size", "mcnemar_exact", "median", "wilson"]

#: How often the intervals cover the true share.
CONFIDENCE = 0.95


def wilson(share: float, size: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Wilson's interval of a share, without continuity correction.

    Args:
        share: what was found, 0 to 1.
        size: of the sample, above 0; it need not be an integer.
        confidence: how often the interval is to cover the true share, between 0 and 1.

    Returns:
        The lower and the upper end; ``(0.0, 1.0)`` where the sample is empty.
    """
    if size <= 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    spread = z * z / size
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * sqrt(share * (1 - share) / size + spread / (4 * size))
    # Exactly 0 and 1 at the ends, where the formula is so up to rounding, and never beside what was found.
    low = 0.0 if share == 0 else max(0.0, min(centre - half, share))
    high = 1.0 if share == 1 else min(1.0, max(centre + half, share))
    return low, high


def effective_size(groups: Iterable[tuple[int, int]]) -> float:
    """How many independent trials say as much about the share as these groups of trials do.

    The variance of the share is estimated from the shares of the groups, which needs nothing to be known of how alike
    the trials of one group are. Where all passed, or none, that cannot be estimated, and each group counts once.

    Args:
        groups: of each case how many trials passed, and how many there were; cases without trials do not count.

    Returns:
        Between the number of groups and the number of trials.
    """
    found = [(passed, size) for passed, size in groups if size]
    count, total = len(found), sum(size for _, size in found)
    if count == 0 or total == count:
        return float(total)
    share = sum(passed for passed, _ in found) / total
    if share in (0.0, 1.0) or count == 1:
        return float(count)
    # The ratio estimator of clustered samples: what each group adds to the error of the share.
    residues = sum((passed - share * size) ** 2 for passed, size in found)
    variance = residues * count / (count - 1) / total**2
    if variance == 0:
        return float(total)
    return min(float(total), max(float(count), share * (1 - share) / variance))


def mcnemar_exact(better: int, worse: int) -> float:
    """The p-value of McNemar's exact test, two-sided.

    Pairs in which both sides came to the same say nothing about which one is better. Of the others, each side would win
    half if there were no difference: the probability of a split at least as uneven as this one.

    Args:
        better: pairs that only the one side won.
        worse: pairs that only the other side won.
    """
    pairs = better + worse
    tail = sum(comb(pairs, k) for k in range(min(better, worse) + 1))
    return min(1.0, 2 * tail / 2**pairs) if pairs else 1.0


def median(values: Sequence[float]) -> float | None:
    """The middle of some values, or None where the list is empty."""
    ordered = sorted(values)
    if not ordered:
        return None
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
