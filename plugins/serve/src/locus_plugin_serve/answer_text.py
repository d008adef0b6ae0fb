"""What an agent says in a turn, as one text: whole, or piece by piece, and both come to the same.

It is the texts of the model's answers of the turn, also of those that call tools, with an empty line between them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from locus.core.events import Event, ModelChunkEvent, ModelRestartEvent, ThinkEvent
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
        between: what is put between two answers of the model.
    """

    def __init__(self, *, between: str = _BETWEEN) -> None:
        self._between = between
        self._answers = 0
        self._answer = ""
        #: What was made so far.
        self.sent = ""

    def hear(self, event: Event) -> str:
        """The piece that an event has, or ``""``.

        Raises:
            TextWithdrawn: an earlier piece is not a part of the text.
        """
        if event.parent_run_id is not None or event.replayed:
            return ""
        if isinstance(event, ModelChunkEvent):
            return self._extend(event.text) if event.kind == "text" and event.purpose == "think" else ""
        if isinstance(event, ModelRestartEvent) and event.purpose == "think" and self._answer:
            raise TextWithdrawn("the model was asked again, so the answer begins anew")
        if isinstance(event, ThinkEvent):
            if not event.text.startswith(self._answer):
                raise TextWithdrawn("the answer was replaced after it had been sent in pieces")
            piece = self._extend(event.text[len(self._answer) :])
            self._answers += bool(event.text)
            self._answer = ""
            return piece
        return ""

    def end(self, text: str) -> str:
        """The piece that is still missing of the whole text.

        Raises:
            TextWithdrawn: an earlier piece is not a part of the text.
        """
        if not text.startswith(self.sent):
            raise TextWithdrawn("the answer was replaced after it had been sent in pieces")
        return text[len(self.sent) :]

    def _extend(self, text: str) -> str:
        if not text:
            return ""
        piece = f"{self._between}{text}" if self._answers and not self._answer else text
        self._answer += text
        self.sent += piece
        return piece


async def read_pieces(turn: Turn, feed: Feed) -> AsyncIterator[list[str]]:
    """The pieces of a turn's text, those together that have come together, until it has ended.

    Raises:
        TextWithdrawn: an earlier piece is not a part of the text.
        Problem: the client reads too slowly.
        LocusError: what the run raised.
    """
    pieces = TextPieces()
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
