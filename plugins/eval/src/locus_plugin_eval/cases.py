"""`Suite` and `Case`: what an agent is evaluated on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path

from attrs import evolve, field, frozen

from locus.core.errors import InputError, closest
from locus_plugin_eval.checks import Check, Ends, Judge

__all__ = ["Case", "Suite"]


@frozen(kw_only=True)
class Case:
    """What the agent is asked, and what is expected of it.

    Args:
        id: letters, digits, ``.``, ``_`` and ``-``; unique in its file.
        prompt: the user's turns, in order; most cases have one.
        checks: in order; where none is an `Ends`, the run must end by itself as well.
        answers: to the questions that a run asks a person, in the order in which they come.
        tags: words by which cases are chosen.
    """

    id: str
    prompt: tuple[str, ...]
    checks: tuple[Check, ...] = ()
    answers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def all_checks(self) -> tuple[Check, ...]:
        """The checks, and that the run ends by itself where none says how it is to end."""
        return self.checks if any(isinstance(each, Ends) for each in self.checks) else (Ends(), *self.checks)


@frozen(kw_only=True)
class Suite:
    """Cases, and how they are run.

    Args:
        name: in reports.
        cases: at least one.
        agent: ``"FILE:NAME"``, or None; a relative file is in the folder of `path`.
        repeats: trials of each case.
        concurrency: how many trials run at once.
        judge: the model that judges, ``"provider:model"``, or None.
        thresholds: the least share that must pass: ``"pass"`` of the trials, or a kind of check, of those checks.
        path: of the file, or None.
    """

    name: str
    cases: tuple[Case, ...]
    agent: str | None = None
    repeats: int = 1
    concurrency: int = 4
    judge: str | None = None
    thresholds: Mapping[str, float] = field(factory=dict)
    path: Path | None = None

    @property
    def digest(self) -> str:
        """A short hash of what is asked and checked; two suites with the same one can be compared."""
        said = repr([(each.id, each.prompt, each.checks, each.answers) for each in self.cases])
        return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()

    @property
    def needs_judge(self) -> str | None:
        """The id of the first case that asks a judge, or None."""
        return next((case.id for case in self.cases if any(isinstance(each, Judge) for each in case.checks)), None)

    def select(self, words: Iterable[str]) -> Suite:
        """The suite with the cases that have one of the words as a tag, or as a part of their id.

        Raises:
            InputError: no case has one.
        """
        wanted = [word.casefold() for word in words]
        if not wanted:
            return self
        cases = tuple(
            case
            for case in self.cases
            if any(word in case.id.casefold() or word in map(str.casefold, case.tags) for word in wanted)
        )
        if not cases:
            known = [case.id for case in self.cases] + [tag for case in self.cases for tag in case.tags]
            near = closest(wanted[0], known)
            hint = f"did you mean {near!r}?" if near else f"its ids are {', '.join(c.id for c in self.cases[:10])}"
            raise InputError(f"no case of {self.name!r} matches {' or '.join(map(repr, words))}; {hint}")
        return evolve(self, cases=cases)
