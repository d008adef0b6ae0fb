"""Review: what goes into a run and what comes out of it, before it stands.

Sync or async, every implementation in order. A failing one is skipped and reported, unless it is a guard:
then the run is cancelled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus.hooks.markers import Lifetime, spec

if TYPE_CHECKING:
    from locus.core.directives import Cancel, Verdict
    from locus.core.messages import Message, ToolCall
    from locus.core.state import AgentState
    from locus.hooks.context import RunContext

_SINCE = Lifetime(since=(1, 0))


@spec(_SINCE)
def locus_review_answer(answer: Message, state: AgentState, run: RunContext) -> Verdict | Cancel | None:
    """Does this answer stand? Asked when the model answers with text and no tool call.

    `Revise` sends the answer back with feedback for the model (the feedback of several is joined, in one
    `plugin_message` of ``"review"``), `Cancel`
    ends the run; None and `Accept` let it stand. Each implementation is a recorded step.
    """


@spec(_SINCE)
def locus_filter_input(prompt: Message, run: RunContext) -> Message | str | Cancel | None:
    """The user's turn as it is to enter the conversation, before anything of it is saved.

    Of a prompt that is a transcript, each turn of the user's, in order; when one is refused, so are those after it.
    Each implementation gets what the one before made of it. A text replaces the whole content; None leaves
    the turn as it is; `Cancel` refuses it and ends the run. Events that it causes are told right after the
    `RunStartEvent`, which tells what it made of the turn.
    """


@spec(_SINCE)
def locus_filter_progress(message: str, call: ToolCall, run: RunContext) -> str | None:
    """What a tool's body says of its progress, before anybody is told; not asked when nobody listens.

    Each implementation gets what the one before made of it; None leaves it as it is. Of a message that a failing
    guard was asked about nothing is told.
    """
