"""What a journal says, line by line: how a run in another process is watched.

A reader gets each entry once, in order, and keeps nothing but the calls of the newest answer. So what a watcher costs
does not grow with the length of the thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

from attrs import frozen

from locus.core import encode_data
from locus.core.events import Ending
from locus.core.journal import (
    END,
    FORK,
    START,
    Answered,
    Asked,
    Body,
    Cancelled,
    Entry,
    ModelFailed,
    Outcome,
    Paused,
    Resumed,
    Retried,
    Submitted,
    Transition,
)
from locus.core.messages import Message, Role, ToolCall

__all__ = ["Moment", "MomentKind", "read_moments"]

#: ``"queued"``: a turn was handed in. ``"began"``, ``"resumed"``, ``"paused"``, ``"ended"``: of the run. ``"said"``:
#: the model. ``"called"``, ``"returned"``: a tool. ``"asked"``, ``"answered"``: a person. ``"failed"``: a model call.
MomentKind = Literal[
    "queued", "began", "resumed", "said", "called", "returned", "asked", "answered", "failed", "retried", "cancelled",
    "paused", "ended",
]  # fmt: skip


@frozen(kw_only=True)
class Moment:
    """Something that an entry of a journal says.

    Args:
        n: the number of the entry.
        kind: what it is.
        run_id: of the run.
        text: what was said, asked or came back; for ``"ended"`` and ``"paused"`` the reason, or until when it sleeps.
        call: the call, for ``"called"``.
        tool: the tool's name, for ``"returned"`` and ``"asked"``.
        is_failure: a tool, a model or the run failed.
        interrupt_id: of a question, or its answer.
        options: the answers to choose from.
        pause: for ``"paused"`` the kind of the pause, as in `Paused`.
    """

    n: int
    kind: MomentKind
    run_id: str = ""
    text: str = ""
    call: ToolCall | None = None
    tool: str = ""
    is_failure: bool = False
    interrupt_id: str = ""
    options: tuple[str, ...] = ()
    pause: str = ""

    def to_json(self) -> dict[str, Any]:
        """The JSON form: the fields that say something, by their names."""
        form: dict[str, Any] = {"n": self.n, "kind": self.kind, "run_id": self.run_id, "text": self.text}
        for name in ("tool", "interrupt_id", "pause", "is_failure"):
            if getattr(self, name):
                form[name] = getattr(self, name)
        if self.call is not None:
            form["call"] = {"id": self.call.id, "name": self.call.name, "arguments": encode_data(self.call.arguments)}
        if self.options:
            form["options"] = list(self.options)
        return form


#: Why a segment ended and its run did not, for people.
_PAUSES: Final = {
    "interrupted": "waits for an answer",
    "cancelled": "its worker left",
    "dead_letter": "set aside",
    "yielded": "made room for others",
    "failed": "stopped by an error",
}


def read_moments(entry: Entry) -> Iterator[Moment]:
    """What an entry says to a person, in the order of what happened; an intent or an annotation says nothing."""
    n, body = entry.n, entry.body
    if isinstance(body, Transition):
        yield from _of_transition(n, body)
    elif isinstance(body, Outcome):
        yield from _of_outcome(n, body)
    else:
        found = _of_note(n, body)
        if found is not None:
            yield found


def _of_note(n: int, body: Body) -> Moment | None:
    match body:
        case Submitted():
            return Moment(n=n, kind="queued", run_id=body.run_id, text=body.prompt.text)
        case Asked():
            return Moment(
                n=n,
                kind="asked",
                run_id=body.run_id,
                text=body.question,
                tool=body.tool_name,
                interrupt_id=body.interrupt_id,
                options=tuple(map(str, body.options)),
            )
        case Answered():
            text = body.answer if isinstance(body.answer, str) else repr(body.answer)
            return Moment(n=n, kind="answered", run_id=body.run_id, text=text, interrupt_id=body.interrupt_id)
        case ModelFailed():
            text = f"{body.error_type}: {body.error}" if body.error_type else body.error
            return Moment(n=n, kind="failed", run_id=body.run_id, text=text, is_failure=True)
        case Retried():
            return Moment(n=n, kind="retried", run_id=body.run_id, text=body.reason)
        case Cancelled():
            return Moment(n=n, kind="cancelled", run_id=body.run_id, text=body.reason)
        case Paused():
            why = _PAUSES[body.kind]
            if body.not_before is not None:
                why = f"sleeps until {body.not_before.isoformat(timespec='seconds')}"
            text = f"{why}: {body.reason}" if body.reason else why
            failed = body.kind in ("dead_letter", "failed")
            return Moment(n=n, kind="paused", run_id=body.run_id, text=text, is_failure=failed, pause=body.kind)
        case Resumed():
            return Moment(n=n, kind="resumed", run_id=body.run_id)
        case _:
            return None


def _of_outcome(n: int, body: Outcome) -> Iterator[Moment]:
    done: Any = getattr(body.value, "execution", None)
    if done is not None:
        failed = done.error is not None
        text = done.error if failed else done.result or ""
        yield Moment(n=n, kind="returned", run_id=body.run_id, text=text, tool=done.tool_name, is_failure=failed)


def _of_transition(n: int, body: Transition) -> Iterator[Moment]:
    messages: tuple[Message, ...] = body.delta.grown.get("messages", (0, ()))[1]
    if body.node == START:
        prompt = next((each.text for each in reversed(messages) if each.role is Role.USER), "")
        yield Moment(n=n, kind="began", run_id=body.run_id, text=prompt)
    elif body.node != FORK:
        for each in messages:
            if each.role is Role.ASSISTANT:
                if each.text.strip():
                    yield Moment(n=n, kind="said", run_id=body.run_id, text=each.text)
                for call in each.tool_calls:
                    yield Moment(n=n, kind="called", run_id=body.run_id, call=call, tool=call.name)
    if body.next_node == END:
        failed = body.error is not None or Ending(body.why, body.satisfied).is_failure
        text = body.why if body.error is None else f"{body.why}: {body.error}"
        yield Moment(n=n, kind="ended", run_id=body.run_id, text=text, is_failure=failed)
