"""`SlidingWindowManager`: the newest messages, and nothing of the older ones. Costs no model call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import Attribute, field, frozen

from locus.core.messages import Role
from locus.plugin import StashKey
from locus_kit.validators import integer
from locus_plugin_conversation.compaction import Compaction, ShownMessages, act, load_shown
from locus_plugin_conversation.turns import Turns

if TYPE_CHECKING:
    from locus.core.state import AgentState
    from locus.plugin import RunContext, View

__all__ = ["SlidingWindowManager"]

KEY = "locus.window"
_SHOWN: StashKey[ShownMessages] = StashKey(KEY)


@frozen
class SlidingWindowManager:
    """Shows the system prompt and the newest messages.

    A tool call and its results are shown or left out together, and the user turn that the shown messages answer
    always stays: where that does not fit, more than ``max_messages`` are shown.

    Args:
        max_messages: how many messages are shown at most; system messages that lie outside the window do not count.
        slack: how many messages below the limit a cut goes. With 0 the window moves at every turn, so that each
            request begins differently; with more, prompt caches stay warm in between. None = a quarter of
            ``max_messages``.

    Raises:
        ValueError: ``max_messages`` is less than 1, or ``slack`` is not below it.
    """

    max_messages: int = field(default=40, validator=integer(1))
    slack: int | None = field(default=None, kw_only=True)

    @slack.validator
    def _check_slack(self, _: Attribute[int | None], value: int | None) -> None:
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < self.max_messages:
            raise ValueError(
                f"slack must be an int of 0 or more and less than max_messages ({self.max_messages!r}), got {value!r}"
            )

    async def view(self, state: AgentState, run: RunContext) -> View:
        """The window: the same one as long as it is not full, so that the beginning of the request stays as it was."""
        now = load_shown(state, run, KEY, _SHOWN)
        messages = state.messages
        if _size(now, state) <= self.max_messages:
            return now.view(messages)
        turns = Turns(state)
        below = now.compaction.end if now.compaction is not None else turns.lead
        cut = self._cut(turns, len(messages), below)
        if cut is None:
            return now.view(messages)
        return act(state, run, Compaction(end=cut, kept=turns.find_kept(cut)), KEY, _SHOWN)

    def _cut(self, turns: Turns, total: int, below: int) -> int | None:
        target = self.max_messages - (self.max_messages // 4 if self.slack is None else self.slack)
        for cut in turns.cuts_from(total - target):
            if cut > below and total - cut + turns.count_kept(turns.find_kept(cut)) <= target:
                return cut
        # What belongs together is larger than the window.
        return turns.cut_at_most(total, least=below + 1)


def _size(now: ShownMessages, state: AgentState) -> int:
    messages = state.messages
    if now.compaction is not None:
        return now.counted + len(messages) - now.reach
    lead = 0
    while lead < len(messages) and messages[lead].role is Role.SYSTEM:
        lead += 1
    return len(messages) - lead
