"""`Report`: what came of an evaluation, counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from locus.core.errors import InputError
from locus_plugin_eval.statistics import effective_size, median, wilson
from locus_plugin_eval.trials import Trial, trial_from_json, trial_to_json

__all__ = ["CaseRow", "Report", "Tally"]

_FORMAT = 1


@frozen(kw_only=True)
class Tally:
    """How many of some trials, or of some checks, passed.

    Args:
        passed, size: the numbers; what is missing is in neither.
        low, high: Wilson's interval of the share, where repeats of one case do not count as so many cases.
    """

    passed: int
    size: int
    low: float
    high: float

    @classmethod
    def of(cls, groups: list[tuple[int, int]]) -> Tally:
        """The tally of groups that each belong to one case: how many passed, and how many there were."""
        passed, size = sum(p for p, _ in groups), sum(n for _, n in groups)
        low, high = wilson(passed / size if size else 0.0, effective_size(groups))
        return cls(passed=passed, size=size, low=low, high=high)

    @property
    def share(self) -> float | None:
        """Of those that passed, or None of an empty tally."""
        return self.passed / self.size if self.size else None


@frozen(kw_only=True)
class CaseRow:
    """What came of one case.

    Args:
        case: its id.
        trials: its repeats.
        tally: how many passed.
        tokens: on average; 0.0 without trials.
        cost: dollars on average, or None where no price is known.
        seconds: the median, or None where answers were replayed.
    """

    case: str
    trials: tuple[Trial, ...]
    tally: Tally
    tokens: float
    cost: float | None
    seconds: float | None

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why trials did not pass, each reason once."""
        found = [each.missing for each in self.trials if each.missing]
        found += [f"{fault.kind}: {fault.detail}" for each in self.trials for fault in each.faults]
        return tuple(dict.fromkeys(found))


@frozen(kw_only=True)
class Report:
    """What came of an evaluation.

    Args:
        suite: the name of the cases.
        agent: what the agent is called.
        thread: of the evaluation.
        digest: of the cases; reports of the same cases have the same one.
        trials: by case and repeat, in the order of the file.
        thresholds: the least shares; see `Suite`.
        replayed: the answers were given from a tape.
        notes: what in the cases looks like a mistake, in a sentence each.
    """

    suite: str
    agent: str
    thread: str
    digest: str
    trials: tuple[Trial, ...]
    thresholds: Mapping[str, float] = field(factory=dict)
    replayed: bool = False
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[CaseRow, ...]:
        """Case by case."""
        by: dict[str, list[Trial]] = {}
        for trial in self.trials:
            by.setdefault(trial.case, []).append(trial)
        return tuple(_row(case, tuple(trials)) for case, trials in by.items())

    @property
    def tally(self) -> Tally:
        """Of all trials that are not missing."""
        return Tally.of([(row.tally.passed, row.tally.size) for row in self.rows])

    @property
    def kinds(self) -> Mapping[str, Tally]:
        """Of the checks of each kind, over all trials."""
        groups: dict[str, dict[str, list[int]]] = {}
        for trial in self.trials:
            for each in trial.checks:
                found = groups.setdefault(each.kind, {}).setdefault(trial.case, [0, 0])
                found[0] += each.status == "passed"
                found[1] += 1
        return {kind: Tally.of([(p, n) for p, n in cases.values()]) for kind, cases in groups.items()}

    @property
    def missing(self) -> tuple[Trial, ...]:
        """Trials of which it cannot be told what they would have come to: a recorded answer was not there."""
        return tuple(each for each in self.trials if each.missing)

    @property
    def tokens(self) -> int:
        """Of the agent, over all trials."""
        return sum(each.tokens for each in self.trials)

    @property
    def cost(self) -> float | None:
        """Dollars of the agent over all trials, or None where no price is known."""
        return _sum(self.trials)

    @property
    def judge_tokens(self) -> int:
        """Of the judges."""
        return sum(each.judge_tokens for each in self.trials)

    @property
    def seconds(self) -> float | None:
        """The median of a trial, or None where answers were replayed."""
        return median([each.seconds for each in self.trials if each.seconds is not None])

    def find_unmet(self, *, min_pass: float | None = None) -> tuple[str, ...]:
        """The thresholds that are not met, in a sentence each; trials that are missing are one, too.

        Args:
            min_pass: the least share of trials, over what the file says; where neither says, 1.0.
        """
        wanted = {"pass": 1.0, **self.thresholds}
        if min_pass is not None:
            wanted["pass"] = min_pass
        kinds = self.kinds
        found = [f"{len(self.missing)} of {len(self.trials)} trials need answers that are not on the tape"] * bool(
            self.missing
        )
        for name, least in wanted.items():
            tally = self.tally if name == "pass" else kinds.get(name)
            what = "trials" if name == "pass" else f"{name} checks"
            if tally is None or tally.share is None:
                if name != "pass" or not self.missing:
                    found.append(f"there are no {what}, and {least:.1%} of them must pass")
            elif tally.share < least:
                found.append(f"{tally.passed} of {tally.size} {what} passed ({tally.share:.1%}), expected {least:.1%}")
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "format": _FORMAT,
            "suite": self.suite,
            "agent": self.agent,
            "thread": self.thread,
            "digest": self.digest,
            "replayed": self.replayed,
            "notes": list(self.notes),
            "thresholds": dict(self.thresholds),
            "passed": self.tally.passed,
            "size": self.tally.size,
            "interval": [self.tally.low, self.tally.high],
            "trials": list(map(trial_to_json, self.trials)),
        }

    @classmethod
    def from_json(cls, form: Any) -> Report:
        """The inverse.

        Raises:
            InputError: it is not the form of a report.
        """
        try:
            if form["format"] != _FORMAT:
                raise ValueError(f"its format is {form['format']!r}, expected {_FORMAT}")
            return cls(
                suite=str(form["suite"]),
                agent=str(form["agent"]),
                thread=str(form["thread"]),
                digest=str(form["digest"]),
                trials=tuple(map(trial_from_json, form["trials"])),
                thresholds=dict(form["thresholds"]),
                replayed=bool(form["replayed"]),
                notes=tuple(map(str, form.get("notes", ()))),
            )
        except (ValueError, TypeError, KeyError) as e:
            raise InputError(f"expected a report of `locus eval --json`: {type(e).__name__}: {e}") from e


def _row(case: str, trials: tuple[Trial, ...]) -> CaseRow:
    found = [each.status for each in trials if each.status != "missing"]
    cost = _sum(trials)
    return CaseRow(
        case=case,
        trials=trials,
        tally=Tally.of([(1, 1)] * found.count("passed") + [(0, 1)] * (len(found) - found.count("passed"))),
        tokens=sum(each.tokens for each in trials) / len(trials),
        cost=None if cost is None else cost / len(trials),
        seconds=median([each.seconds for each in trials if each.seconds is not None]),
    )


def _sum(trials: tuple[Trial, ...]) -> float | None:
    known = [each.cost for each in trials if each.cost is not None]
    return sum(known) if known else None
