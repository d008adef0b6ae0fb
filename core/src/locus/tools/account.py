"""`Account`: what a run and all runs below it have spent by now, and how much they may.

The accounts of a tree are chains up to the first run: a child's run, the call whose body started it, the run of that
call, and so on. A model call that has an answer is added to its whole chain at once, and one that is about to begin
asks the whole chain first. So a limit anywhere above holds for all that happens below, whatever runs beside it, and no
call begins beyond it: what is spent on top is spent by calls that were under way when it was reached.

At the start of a turn's calls, what is left is split among those that may start a child, and the split is recorded. A
part is an account as well. It bounds what a call hands out where the others cannot be looked at: after a crash, before
the children that were under way have been found again.

Children that one body runs at the same time share its part, and go on until it is used up. A part of it for each was
rejected: how many there will be is not known when the first one starts, so the second one would get nothing, and
halves or quarters leave most of it unused. Sharing is as sound, because each call asks the account before it begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, evolve, field

from locus.core.errors import BudgetExceeded
from locus.core.frozen import frozen
from locus.core.journal import Outcome
from locus.core.step_id import CHILD, SEGMENT, StepId
from locus.core.termination import CostLimit, MaxIterations, TokenLimit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from locus.core.messages import Usage
    from locus.core.termination import Bounds, TerminationCondition
    from locus.journal.host import JournalHost

#: The name under which it is recorded how a turn's calls share what was left.
RESERVED = "reserved"

_NOTHING_LEFT = "no child run was started: nothing is left of what the children of this call may spend"


@frozen(kw_only=True)
class Budget:
    """What a child run may spend; the smaller of it and what its parent has left counts.

    Args:
        tokens: prompt and completion tokens.
        dollars: needs a model with a known price.
        iterations: model calls of the child's loop. They bound the child alone: its parent's do not count here.
    """

    tokens: int | None = None
    dollars: float | None = None
    iterations: int | None = None


def limits_of(budget: Budget, unknown_price: float | None = None) -> tuple[TerminationCondition, ...]:
    """The conditions that end a run which has used up its budget.

    Args:
        budget: the budget.
        unknown_price: what the parent charges for a model without a price, see `CostLimit`.
    """
    found: list[TerminationCondition] = []
    if budget.tokens is not None:
        found.append(TokenLimit(max(0, int(budget.tokens))))
    if budget.dollars is not None:
        found.append(CostLimit(max(0.0, budget.dollars), unknown_price=unknown_price))
    if budget.iterations is not None:
        found.append(MaxIterations(max(1, int(budget.iterations))))
    return tuple(found)


def check_budget(budget: Budget) -> None:
    """Refuse to start a child that has nothing to spend.

    Raises:
        BudgetExceeded: it has no tokens, or no dollars.
    """
    for name, amount in (("TokenLimit", budget.tokens), ("CostLimit", budget.dollars)):
        if amount is not None and amount <= 0:
            raise BudgetExceeded(name, _NOTHING_LEFT)


def child_thread(host: JournalHost, step_id: StepId) -> str:
    """The thread of a child: it is named after its parent's, and after the step that it is there."""
    return f"{host.claim.thread_id}/{host.run_id[:8]}/{step_id}"


_ANYTHING = Budget()


@define(eq=False, repr=False)
class Account:
    """What was spent below a point of a tree of runs, as of now.

    Args:
        above: the account that all of this is spent from as well, or None.
        max_tokens, max_dollars: the limits of this point, None where it has none. As with `TokenLimit` and
            `CostLimit`, tokens are used up when they are exceeded, dollars when they are reached.
        tokens, dollars: what was spent.
    """

    above: Account | None = None
    max_tokens: int | None = None
    max_dollars: float | None = None
    tokens: int = 0
    dollars: float = 0.0
    #: The accounts below that are open, by the number of a call, or by the step of a child.
    below: dict[int | StepId, Account] = field(factory=dict)

    def open_below(self, key: int | StepId) -> Account:
        """The account below under that key: a new one, unless there is one already."""
        return self.below.setdefault(key, Account(self))

    def limit(self, bounds: Bounds) -> Account:
        """Set the limits to those of a condition."""
        self.max_tokens = None if bounds.tokens is None else int(bounds.tokens.limit)
        self.max_dollars = None if bounds.dollars is None else bounds.dollars.limit
        return self

    def add(self, usage: Usage) -> None:
        """Add what was spent, here and all the way up."""
        self._add(usage.total_tokens, usage.cost or 0.0)

    def catch_up(self, usage: Usage) -> None:
        """Add what is missing to that total: what was spent in an earlier process, or is not a model call."""
        self._add(max(0, usage.total_tokens - self.tokens), max(0.0, (usage.cost or 0.0) - self.dollars))

    def _add(self, tokens: int, dollars: float) -> None:
        account: Account | None = self
        while account is not None:
            account.tokens += tokens
            account.dollars += dollars
            account = account.above

    def find_exceeded(self) -> str | None:
        """The condition that forbids another model call, here or above, by its name, or None."""
        account: Account | None = self
        while account is not None:
            if account.max_tokens is not None and account.tokens > account.max_tokens:
                return "TokenLimit"
            if account.max_dollars is not None and account.dollars >= account.max_dollars:
                return "CostLimit"
            account = account.above
        return None

    def find_rest(self, wanted: Budget = _ANYTHING) -> Budget:
        """The smaller of a budget and of what is left here and above."""
        tokens, dollars = wanted.tokens, wanted.dollars
        account: Account | None = self
        while account is not None:
            if account.max_tokens is not None:
                rest = max(0, account.max_tokens - account.tokens)
                tokens = rest if tokens is None else min(tokens, rest)
            if account.max_dollars is not None:
                more = max(0.0, account.max_dollars - account.dollars)
                dollars = more if dollars is None else min(dollars, more)
            account = account.above
        return evolve(wanted, tokens=tokens, dollars=dollars)

    def grant(self, wanted: Budget) -> Budget:
        """The smaller of a budget and of what the run of this account may spend in all, what it has spent included."""
        rest = self.find_rest()
        known = Budget(
            tokens=None if rest.tokens is None else rest.tokens + self.tokens,
            dollars=None if rest.dollars is None else rest.dollars + self.dollars,
        )
        return Account(max_tokens=known.tokens, max_dollars=known.dollars).find_rest(wanted)

    def split(self, host: JournalHost, iteration: int, ordinals: Sequence[int]) -> list[Account]:
        """A part of what is left for each of a turn's calls that may start a child, in order.

        The decision is written with what comes next, before any body is entered. Where it is on record, it counts: a
        call that is not in it gets nothing.
        """
        step_id = StepId(iteration, SEGMENT, name=RESERVED)
        found = host.find_unchecked(step_id)
        if isinstance(found, Outcome):
            record = found.value
        else:
            rest = self.find_rest()
            record = {"calls": tuple(ordinals), "tokens": rest.tokens, "dollars": rest.dollars}
            host.defer(Outcome(run_id=host.run_id, step_id=step_id, value=record))
            self.below = {}  # of the turns before
        calls, tokens, dollars = list(record["calls"]), record["tokens"], record["dollars"]
        parts = {ordinal: self.open_below(ordinal) for ordinal in ordinals}
        for part in parts.values():
            part.max_tokens, part.max_dollars = 0, 0.0
        for number, ordinal in enumerate(reversed(calls)):
            if ordinal in parts:  # parts of tokens are whole, and add up
                parts[ordinal].max_tokens = None if tokens is None else (tokens + number) // len(calls)
                parts[ordinal].max_dollars = None if dollars is None else dollars / len(calls)
        for step in host.steps if isinstance(found, Outcome) else ():
            ordinal = step.step_id.root.ordinal
            if step.step_id.node == CHILD and isinstance(step, Outcome) and ordinal in parts:
                spent: Usage = step.value.usage  # of a child that has ended; its parent was charged with it
                part = parts[ordinal]
                part.tokens, part.dollars = part.tokens + spent.total_tokens, part.dollars + (spent.cost or 0.0)
        return list(parts.values())
