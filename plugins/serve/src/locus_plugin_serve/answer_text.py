"""What an agent says in a turn, as one text: whole, or piece by piece, and both come to the same.

It is the texts of the model's answers of the turn, also of those that call tools, with an empty line between them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from locus.core.events import CheckpointEvent, Event, ModelChunkEvent, ModelRestartEvent, ThinkEvent
from locus.core.messages import Role
from locus.core.state import AgentState
from locus_plugin_serve.feed import Feed
from locus_plugin_serve.problems import Problem
from locus_plugin_serve.turns import Turn

__all__ = ["TextPieces", "TextWithdrawn", "read_pieces", "whole_text"]

_BETWEEN = "\n\n"

#: Seconds between two looks whether a run has ended; its feed says so at once, and this is for a feed that was overrun.
_LOOK = 15.0


class TextWithdrawn(Exception):
    """What was sent already does not count: the model was asked again, or a plugin has replaced its answer."""


def whole_text(state: AgentState, *, between: str = _BETWEEN) -> str:
    """What the agent said in the turn.

    Args:
        state: at the end of the turn.
        between: what is put between two answers of the model.
    """
    said: list[str] = []
    for message in reversed(state.messages):
        if message.role is Role.USER and message.plugin is None:
            break
        if message.role is Role.ASSISTANT and message.text:
            said.append(message.text)
    return between.join(reversed(said))


class TextPieces:
    """Makes pieces of events; joined, they are the whole text.

    Args:
        turn: whose events they are.
        feed: of them.
        between: what is put between two answers of the model.
    """

    def __init__(self, turn: Turn, feed: Feed, *, between: str = _BETWEEN) -> None:
        self._between = between
        missed = feed.missed
        is_same = missed is not None and missed.run_id == turn.run_id
        #: What the agent had said in the turn before the feed began.
        self.missed = whole_text(missed.state, between=between) if missed is not None and is_same else ""
        #: What was made so far, what was missed included.
        self.sent = self.missed
        self._has_answers = bool(self.missed)
        self._answer = ""
        #: The number of the last entry that was missed, while it is not known whether an event comes behind it.
        self._head = missed.claim.head if missed is not None and feed.is_late else None
        #: Answers that came until then, and whether the beginning of the one under way is lost.
        self._waiting: list[str] = []
        self._is_cut = False

    def hear(self, event: Event) -> str:
        """The piece that an event has, or ``""``.

        Raises:
            TextWithdrawn: an earlier piece is not a part of the text.
        """
        if event.parent_run_id is not None:
            return ""
        if isinstance(event, ModelChunkEvent):
            is_said = event.kind == "text" and event.purpose == "think" and not event.replayed
            return self._hear_chunk(event.text) if is_said else ""
        if isinstance(event, ModelRestartEvent) and event.purpose == "think" and self._answer:
            raise TextWithdrawn("the model was asked again, so the answer begins anew")
        if isinstance(event, ThinkEvent):
            self._is_cut = False
            if self._head is None:
                return self._end_answer(event.text)
            self._waiting.append(event.text)
        elif isinstance(event, CheckpointEvent) and self._head is not None:
            return self._pass(event.head)
        return ""

    def end(self, text: str) -> str:
        """The piece that is still missing of the whole text.

        Raises:
            TextWithdrawn: an earlier piece is not a part of the text.
        """
        if not text.startswith(self.sent):
            raise TextWithdrawn("the answer was replaced after it had been sent in pieces")
        return text[len(self.sent) :]

    def _hear_chunk(self, text: str) -> str:
        self._is_cut = self._is_cut or self._head is not None
        return "" if self._is_cut else self._extend(text)

    def _pass(self, head: int) -> str:
        """Tell what was said behind the entries that were missed, once the events are there."""
        assert self._head is not None
        said, self._waiting = self._waiting, []
        if head <= self._head:
            return ""
        self._head = None
        return "".join(map(self._end_answer, said))

    def _end_answer(self, text: str) -> str:
        if not text.startswith(self._answer):
            raise TextWithdrawn("the answer was replaced after it had been sent in pieces")
        piece = self._extend(text[len(self._answer) :])
        self._has_answers = self._has_answers or bool(text)
        self._answer = ""
        return piece

    def _extend(self, text: str) -> str:
        if not text:
            return ""
        piece = f"{self._between}{text}" if self._has_answers and not self._answer else text
        self._answer += text
        self.sent += piece
        return piece


async def read_pieces(turn: Turn, feed: Feed) -> AsyncIterator[list[str]]:
    """The pieces of a turn's text, those together that have come together, until it has ended.

    What the agent had said before the feed began comes first.

    Raises:
        TextWithdrawn: an earlier piece is not a part of the text.
        Problem: the client reads too slowly.
        LocusError: what the run raised.
    """
    pieces = TextPieces(turn, feed)
    if pieces.missed:
        yield [pieces.missed]
    while True:
        was_over = turn.finished.is_set() or feed.is_closed
        heard = [pieces.hear(event) for event in feed.take()]
        if any(heard):
            yield [piece for piece in heard if piece]
        if was_over:
            break
        await feed.wait(_LOOK)
    if feed.is_overrun:
        raise Problem(500, "the client reads too slowly", kind="server_error", code="too_slow")
    rest = pieces.end(whole_text((await turn.wait()).state))
    if rest:
        yield [rest]
