"""What a block of a timeline is made of: plain values that a template prints."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

__all__ = ["Block", "Change", "ChildItem", "Item", "ModelItem", "NoteItem", "QuestionItem", "StepItem", "ToolItem"]


@frozen(kw_only=True)
class ModelItem:
    """A model call.

    Args:
        n: the number of its entry.
        purpose: ``"think"``, or what the plugin that called the model said.
        model: the model that answered.
        text: the answer.
        thinking: what the provider exposed of the model's reasoning.
        calls: the calls that it asks for: name and arguments.
        usage: tokens and money, as text.
        attempts: how many requests it took.
        stop_reason: why the model stopped.
        notes: what the provider says about the call.
        response_id: what the provider calls the answer.
        digest: of what was asked.
        error: why it failed, or ``""``.
        attempt: how often a hook has asked for another try before this one.
    """

    n: int
    purpose: str = "think"
    model: str = ""
    text: str = ""
    thinking: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    usage: str = ""
    attempts: int = 1
    stop_reason: str = ""
    notes: tuple[str, ...] = ()
    response_id: str = ""
    digest: str = ""
    error: str = ""
    attempt: int = 0

    kind = "model"


@frozen(kw_only=True)
class ChildItem:
    """A child run, which has a thread of its own."""

    n: int
    thread_id: str
    usage: str = ""

    kind = "child"


@frozen(kw_only=True)
class ToolItem:
    """A tool call.

    Args:
        n: the number of its newest entry.
        name: of the tool.
        arguments: as JSON.
        result: the text that the model gets, or ``""``.
        error: why it failed or was not run, or ``""``.
        state: ``"done"``, ``"failed"``, ``"refused"`` (the body was not entered), ``"unknown"`` (begun, and no outcome
            is on record), ``"cached"``.
        effect: what may happen to it after a crash: ``"once"``, ``"keyed"``, or ``""`` where no intent is on record.
        took: how long the body ran, as text.
        attempts: how often it was begun.
        answer: what a person said to the question whether it may run, or ``""``.
        reads: whose words the result may hold, or ``""``.
        children: the child runs of its body.
    """

    n: int
    name: str
    arguments: str = ""
    result: str = ""
    error: str = ""
    state: str = "done"
    effect: str = ""
    took: str = ""
    attempts: int = 1
    answer: str = ""
    reads: str = ""
    children: tuple[ChildItem, ...] = ()

    kind = "tool"


@frozen(kw_only=True)
class QuestionItem:
    """A question to a person.

    Args:
        n: the number of its entry.
        interrupt_id: what an answer names.
        question: the text.
        options: the answers to choose from.
        tool: the call that asks.
        answer: as text; None while it is open.
    """

    n: int
    interrupt_id: str
    question: str
    options: tuple[str, ...] = ()
    tool: str = ""
    answer: str | None = None

    kind = "question"


@frozen(kw_only=True)
class NoteItem:
    """Something that was decided or happened to the run: a retry, a cancel, a pause, a turn that was handed in.

    Args:
        n: the number of its entry.
        label: what it is.
        text: the reason, or what was said.
        tone: ``""``, ``"good"``, ``"warn"`` or ``"bad"``.
    """

    n: int
    label: str
    text: str = ""
    tone: str = ""

    kind = "note"


@frozen(kw_only=True)
class StepItem:
    """Another step: of a hook, a reviewer, or a tool's body."""

    n: int
    name: str
    value: str = ""
    error: str = ""

    kind = "step"


Item = ModelItem | ToolItem | QuestionItem | NoteItem | StepItem | ChildItem


@frozen
class Change:
    """A field of the state that a transition changed, in a few words."""

    name: str
    text: str


@frozen(kw_only=True)
class Block:
    """A transition with the steps before it; without a transition where the node is still under way.

    Args:
        first: the number of its first entry.
        last: the number of its last entry, which is the transition's.
        node: the node that finished, or is under way.
        next_node: the node that follows; ``""`` while it is under way.
        why: why that one follows, or why the run ended.
        detail: what the reason says further.
        satisfied: the leaves of the condition that ended the run.
        instead_of: the node that the router chose, where a hook named another one.
        error: what ended the run, or ``""``.
        iteration: from 1, or None where nothing says it.
        run_id: of the run.
        segment: which call of ``run`` or ``resume`` made it.
        at: when it was committed.
        items: what happened.
        prompt: what a new turn says.
        changes: what the transition changed in the state, without the conversation.
        is_paused: the segment ended in it and the run did not.
    """

    first: int
    last: int
    node: str
    next_node: str = ""
    why: str = ""
    detail: str = ""
    satisfied: tuple[str, ...] = ()
    instead_of: str = ""
    error: str = ""
    iteration: int | None = None
    run_id: str = ""
    segment: int = 0
    at: datetime | None = None
    items: tuple[Item, ...] = ()
    prompt: str = ""
    changes: tuple[Change, ...] = ()
    is_paused: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the node is still under way."""
        return not self.next_node

    @property
    def ends_run(self) -> bool:
        """Whether the run ended with it."""
        return self.next_node == "end"

    @property
    def begins_iteration(self) -> bool:
        """Whether an iteration begins with it: with the model's turn, or in graphs with each super-step."""
        return self.iteration is not None and self.node not in ("start", "execute", "reflect", "terminate", "fork")
