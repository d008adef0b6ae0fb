"""`compare`: two evaluations of the same cases, case by case, and whether the difference is more than chance.

The cases are the pairs. A case in which both sides passed the same share of its repeats is a tie, and says nothing
about which side is better; of the others, each side would win half if there were no difference. With one repeat this
is McNemar's exact test, and with several the sign test over cases: repeats of one case are never counted as so many
cases.
"""

from __future__ import annotations

from attrs import frozen

from locus.core.errors import InputError
from locus_plugin_eval.report import CaseRow, Report
from locus_plugin_eval.statistics import mcnemar_exact

__all__ = ["Comparison", "compare"]


@frozen(kw_only=True)
class Comparison:
    """Two reports side by side.

    Args:
        before, after: the reports.
        better: cases of which `after` passed more.
        worse: cases of which it passed fewer.
        ties: how many cases came to the same.
        left_out: cases with trials that are missing on a side, which therefore cannot be compared.
        p: the probability of so uneven a split between better and worse, if there were no difference.
    """

    before: Report
    after: Report
    better: tuple[str, ...]
    worse: tuple[str, ...]
    ties: int
    left_out: tuple[str, ...]
    p: float

    @property
    def difference(self) -> float | None:
        """What the mean share of passed trials gained from `before` to `after`, over the cases that can be compared."""
        pairs = [(a, b) for a, b in _pairs(self.before, self.after) if a.case not in self.left_out]
        gained = [(b.tally.share or 0.0) - (a.tally.share or 0.0) for a, b in pairs]
        return sum(gained) / len(gained) if gained else None


def compare(before: Report, after: Report) -> Comparison:
    """Compare two evaluations of the same cases.

    Raises:
        InputError: the cases are not the same.
    """
    if before.digest != after.digest:
        raise InputError(
            f"{before.agent!r} and {after.agent!r} were evaluated on different cases, or on other checks of them "
            f"({before.digest}, {after.digest}); evaluate both on the same file"
        )
    better: list[str] = []
    worse: list[str] = []
    left_out: list[str] = []
    ties = 0
    for a, b in _pairs(before, after):
        if any(each.missing for each in (*a.trials, *b.trials)):
            left_out.append(a.case)
        elif (gained := (b.tally.share or 0.0) - (a.tally.share or 0.0)) == 0:
            ties += 1
        else:
            (better if gained > 0 else worse).append(a.case)
    return Comparison(
        before=before,
        after=after,
        better=tuple(better),
        worse=tuple(worse),
        ties=ties,
        left_out=tuple(left_out),
        p=mcnemar_exact(len(better), len(worse)),
    )


def _pairs(before: Report, after: Report) -> list[tuple[CaseRow, CaseRow]]:
    others = {row.case: row for row in after.rows}
    return [(row, others[row.case]) for row in before.rows if row.case in others]
