"""`LLMCompactor`: keeps a conversation inside the model's window, by tokens.

It acts in two steps, the cheap one first: old tool outputs, mostly the bulk of a long run and seldom read again,
shrink to one line each; when that is not enough, a model summarises the middle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import Attribute, Factory, field, frozen

from locus.core.messages import Message, Role
from locus.plugin import StashKey
from locus_kit.validators import integer, number
from locus_plugin_conversation.compaction import Compaction, ShownMessages, act, load_shown
from locus_plugin_conversation.summaries import KEY, SHOWN, extend
from locus_plugin_conversation.tokens import Count, Totals, counter, estimate_tokens
from locus_plugin_conversation.turns import Turns

if TYPE_CHECKING:
    from locus.core.state import AgentState
    from locus.models import Model
    from locus.plugin import RunContext, View

__all__ = ["LLMCompactor"]

#: A part of the window.
_SHARE = number(above=0, high=1)
_TOTALS: StashKey[Totals] = StashKey("locus.totals")


def _counter(manager: LLMCompactor) -> Count:
    return counter(manager.count)


@frozen(kw_only=True)
class LLMCompactor:
    """Shows less of a conversation when it comes near the end of the model's window.

    Never touched: system messages, the first ``head`` messages, the newest ones that fill ``tail`` of the window, and
    the user turn that those answer. Of the rest, tool outputs older than ``tool_output_ttl`` turns shrink to one line,
    and when that does not free enough, all of it gives way to a summary. Both stay as they are until the window
    fills up again. When the summariser fails, nothing else is left out.

    Args:
        window: the model's context window, in tokens.
        trigger: the share of the window at which to act; what is left is for the answer, for the tools' schemas
            and for the error of the count.
        head: how many messages after the system prompt stay for good.
        tail: the share of the window that the newest messages may fill; less than ``trigger``.
        tool_output_ttl: how many turns of the assistant a tool output stays whole at least.
        model: who writes the summary; None = the run's own model.
        count: tokens of a message; each message is counted once. None = four bytes a token.

    Raises:
        ValueError: a number is out of range.
    """

    window: int = field(default=128_000, validator=integer(1))
    trigger: float = field(default=0.8, validator=_SHARE)
    head: int = field(default=2, validator=integer(0))
    tail: float = field(default=0.5, validator=_SHARE)
    tool_output_ttl: int = field(default=10, validator=integer(0))
    model: Model | str | None = None
    count: Count = estimate_tokens
    _counted: Count = field(init=False, eq=False, repr=False, default=Factory(_counter, takes_self=True))

    @tail.validator
    def _check_tail(self, _: Attribute[float], value: float) -> None:
        if value >= self.trigger:
            raise ValueError(
                f"tail must be less than trigger ({self.trigger!r}), got {value!r}; otherwise nothing is freed"
            )

    async def view(self, state: AgentState, run: RunContext) -> View:
        """The conversation, or what fits of it."""
        now = load_shown(state, run, KEY, SHOWN)
        messages = state.messages
        totals = self._totals(run, messages)
        if self._tokens(now, totals, len(messages)) <= self.trigger * self.window:
            return now.view(messages)
        turns = Turns(state)
        head = next(iter(turns.cuts_from(turns.lead + self.head)), len(messages))
        cut = self._tail(turns, totals, len(messages), max(head, now.compaction.end if now.compaction else 0))
        if cut is None:
            return now.view(messages)
        light = self._lighter(now, messages, head, cut)
        if light is not None and self._after(light, totals, messages) <= self._enough:
            return act(state, run, light, KEY, SHOWN)
        plan = Compaction(end=cut, kept=turns.find_kept(cut, head, summarised=True))
        if self._worth_it(now, plan, totals, messages):
            made = await extend(state, run, now, plan, self.model, piece=2 * self.window)
            if made is not None:
                return made
        return now.view(messages) if light is None else act(state, run, light, KEY, SHOWN)

    @property
    def _enough(self) -> float:
        # Well below the trigger, or the next turn would have to act again.
        return (self.trigger + self.tail) / 2 * self.window

    def _totals(self, run: RunContext, messages: tuple[Message, ...]) -> Totals:
        totals = run.stash.get(_TOTALS, None)
        if totals is None or totals.count is not self._counted:
            totals = run.stash[_TOTALS] = Totals(self._counted)
        totals.follow(messages)
        return totals

    def _tokens(self, now: ShownMessages, totals: Totals, total: int) -> int:
        if now.tokens is None:
            now.tokens = totals.of(now.fixed)
        return now.tokens + totals.between(now.reach, total)

    def _after(self, plan: Compaction, totals: Totals, messages: tuple[Message, ...]) -> int:
        return totals.of(plan.render(messages)) + totals.between(plan.reach, len(messages))

    def _tail(self, turns: Turns, totals: Totals, total: int, least: int) -> int | None:
        """Where the newest messages begin: as many as fit, and what belongs together with the last one."""
        found = turns.cut_at_most(total, least=least)
        for cut in reversed(turns.cuts_from(least)):
            if totals.between(cut, total) > self.tail * self.window:
                break
            found = cut
        return found

    def _lighter(self, now: ShownMessages, messages: tuple[Message, ...], head: int, tail: int) -> Compaction | None:
        """The view as it is with more tool outputs shortened, or None when no further one is old enough."""
        old = len(messages)
        turns = self.tool_output_ttl
        while turns > 0 and old > 0:
            old -= 1
            turns -= messages[old].role is Role.ASSISTANT
        old = min(old, tail)
        base = now.compaction or Compaction(end=head, kept=tuple(range(head)))
        if not any(m.tool_results for m in messages[base.reach : old]):
            return None
        return base.with_stubs(old)

    def _worth_it(self, now: ShownMessages, plan: Compaction, totals: Totals, messages: tuple[Message, ...]) -> bool:
        spare = (1 - self.trigger) * self.window
        if now.failed_at is not None and totals.between(now.failed_at, len(messages)) < spare / 4:
            return False
        done = now.compaction
        if done is None or not done.summary:
            return True
        # Where the rest alone fills the window, one more turn in the summary at every turn would cost a call each.
        return totals.between(done.end, plan.end) >= spare / 2
