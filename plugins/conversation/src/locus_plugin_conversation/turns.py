"""Where a conversation may be cut without parting a tool call from its result, and what a cut must leave standing."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from locus.core.messages import Message, Role

if TYPE_CHECKING:
    from locus.core.state import AgentState

__all__ = ["Turns"]


class Turns:
    """Where a conversation may be cut, and what a cut must keep. O(messages), made only when a manager acts."""

    __slots__ = ("_messages", "_opening", "_system", "_users", "cuts", "lead")

    def __init__(self, state: AgentState) -> None:
        messages = self._messages = state.messages
        #: How many messages the system prompt has.
        self.lead = next((i for i, m in enumerate(messages) if m.role is not Role.SYSTEM), len(messages))
        self._system = [i for i, m in enumerate(messages) if m.role is Role.SYSTEM]
        self._users = [i for i, m in enumerate(messages) if _asks(m)]
        self._opening = self._last_user(_first_answer(state))
        #: The indices before which a cut parts no tool call from its result and no user turn, ascending.
        self.cuts = _cuts(messages, self.lead)

    def _last_user(self, before: int) -> int | None:
        at = bisect_left(self._users, before)
        return self._users[at - 1] if at else None

    def cut_at_most(self, index: int, *, least: int = 0) -> int | None:
        """The last cut at or before an index, not below ``least``."""
        at = bisect_right(self.cuts, index) - 1
        return self.cuts[at] if at >= 0 and self.cuts[at] >= least else None

    def cuts_from(self, index: int) -> list[int]:
        """The cuts at or after an index."""
        return self.cuts[bisect_left(self.cuts, index) :]

    def find_kept(self, end: int, head: int = 0, *, summarised: bool = False) -> tuple[int, ...]:
        """What stays although it lies before a cut.

        Every system message; the head; the user turn that opened the run, which a note from Reflect or a reviewer's
        feedback may follow; and the user turn that the first message after the cut answers.

        Args:
            end: the cut.
            head: messages before this index stay.
            summarised: a summary tells what the first message after the cut answers, so that turn stays only
                without a newer one.
        """
        stay = set(range(min(head, end)))
        stay.update(self._system[: bisect_left(self._system, end)])
        asked = [self._opening]
        newer = bool(self._users) and self._users[-1] >= end
        if not (newer if summarised else _asks(self._messages[end])):
            asked.append(self._last_user(end))
        for index in asked:
            # A turn may be several messages in a row.
            while index is not None and 0 <= index < end and _asks(self._messages[index]):
                stay.add(index)
                index -= 1
        return tuple(sorted(stay))

    def count_kept(self, kept: tuple[int, ...]) -> int:
        """How many of the kept ones are not system messages."""
        return sum(1 for i in kept if self._messages[i].role is not Role.SYSTEM)


def _first_answer(state: AgentState) -> int:
    """The index of this run's first assistant message: each finished iteration made one."""
    index = len(state.messages)
    answers = state.iteration
    while answers > 0 and index > 0:
        index -= 1
        if state.messages[index].role is Role.ASSISTANT:
            answers -= 1
    return index


def _cuts(messages: tuple[Message, ...], lead: int) -> list[int]:
    # Ids are matched with the newest call of that id: local models use them again and again.
    parted = [0] * (len(messages) + 1)  # +1 where a call waits for its result from here on, -1 where it has come
    waiting: dict[str, list[int]] = {}
    for i in range(lead, len(messages)):
        message = messages[i]
        starts = [calls.pop() if (calls := waiting.get(r.call_id)) else i - 1 for r in message.tool_results]
        if message.role is Role.TOOL and not starts:
            starts = [i - 1]  # what answers no call that is known stays with the message before it
        for start in starts:
            parted[start + 1] += 1
            parted[i + 1] -= 1
        for call in message.tool_calls:
            waiting.setdefault(call.id, []).append(i)
    cuts, depth = [], 0
    for i in range(len(messages)):
        depth += parted[i]
        if i >= lead and depth == 0 and not (i and _asks(messages[i]) and _asks(messages[i - 1])):
            cuts.append(i)
    return cuts


def _asks(message: Message) -> bool:
    """Whether it is a user's, and not one that carries tool results as some providers have it."""
    return message.role is Role.USER and not message.tool_results
