"""The entries of a journal as the blocks of a timeline; a window of them is enough, nothing is folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from locus.core.events import Ending
from locus.core.journal import (
    END,
    FORK,
    START,
    TOTALS,
    Answered,
    Asked,
    Body,
    Cancelled,
    Entry,
    Intent,
    ModelFailed,
    Outcome,
    Paused,
    Resumed,
    Retried,
    StateDelta,
    StepId,
    Submitted,
    Transition,
)
from locus.core.messages import Message, Role, ThinkingBlock, ToolCall, Usage
from locus_plugin_viewer.items import (
    Block,
    Change,
    ChildItem,
    Item,
    ModelItem,
    NoteItem,
    QuestionItem,
    StepItem,
    ToolItem,
)
from locus_plugin_viewer.text import cut, format_ms, format_usage, pretty

__all__ = ["read_blocks"]

#: Fields of a state that a block shows in other ways, or that change with every node.
_SHOWN_ELSEWHERE: Final = frozenset(
    {*TOTALS, "updated_at", "started_at", "active_seconds", "run_id", "messages", "tool_executions", "reasoning_steps"}
)

_PAUSES: Final = {
    "interrupted": ("waits for an answer", "warn"),
    "cancelled": ("its caller went away", "warn"),
    "dead_letter": ("set aside", "bad"),
    "yielded": ("made room for others", ""),
    "failed": ("stopped by an error", "bad"),
}


def read_blocks(entries: Iterable[Entry]) -> list[Block]:
    """The blocks of some entries, of which the first begins a block."""
    found: list[Block] = []
    steps: list[Entry] = []
    #: The calls that the newest answer asks for: what is under way has its arguments there.
    asked: tuple[ToolCall, ...] = ()
    following = ""
    for entry in entries:
        if not isinstance(entry.body, Transition):
            steps.append(entry)
            continue
        block = _make_block(entry, entry.body, steps, asked)
        found.append(block)
        asked = tuple(call for message in _messages(entry.body.delta) for call in message.tool_calls) or asked
        following, steps = block.next_node, []
    if steps:
        found.append(_make_open_block(steps, following, asked))
    return found


def _make_block(entry: Entry, body: Transition, steps: Sequence[Entry], asked: Sequence[ToolCall]) -> Block:
    items = list(_items(steps, asked))
    recorded = {done.call_id for each in steps if (done := _execution(each.body)) is not None}
    done = body.delta.grown.get("tool_executions", (0, ()))[1]
    items += [_tool(entry.n, each) for each in done if each.call_id not in recorded]
    prompt = ""
    if body.node == START:
        prompt = next((m.text for m in reversed(_messages(body.delta)) if m.role is Role.USER), "")
    failed = body.next_node == END and (body.error is not None or Ending(body.why, body.satisfied).is_failure)
    return Block(
        first=steps[0].n if steps else entry.n,
        last=entry.n,
        node=str(body.node),
        next_node=str(body.next_node),
        why=body.why,
        detail=body.detail,
        satisfied=body.satisfied,
        instead_of=body.instead_of,
        error=body.error or (body.why if failed else ""),
        iteration=_iteration(steps, body),
        run_id=body.run_id,
        segment=body.segment,
        at=body.delta.changed.get("updated_at"),
        items=tuple(items),
        prompt=prompt,
        changes=tuple(_changes(body.delta)),
    )


def _make_open_block(steps: Sequence[Entry], node: str, asked: Sequence[ToolCall]) -> Block:
    last = steps[-1].body
    return Block(
        first=steps[0].n,
        last=steps[-1].n,
        node=node if node not in ("", END) else ("queued" if isinstance(last, Submitted) else "under way"),
        iteration=_iteration(steps, None),
        run_id=last.run_id,
        items=tuple(_items(steps, asked)),
        is_paused=isinstance(last, Paused),
    )


def _iteration(steps: Sequence[Entry], body: Transition | None) -> int | None:
    if body is not None and body.node in (START, FORK):
        return None
    for entry in steps:
        step_id = getattr(entry.body, "step_id", None)
        if isinstance(step_id, StepId):
            return step_id.iteration + 1
    return None


def _messages(change: StateDelta) -> tuple[Message, ...]:
    found: tuple[Message, ...] = change.grown.get("messages", (0, ()))[1]
    return found


# -- steps ----------------------------------------------------------------------------------------


def _items(steps: Sequence[Entry], asked: Sequence[ToolCall]) -> Iterator[Item]:
    intents = {str(e.body.step_id): e.body for e in steps if isinstance(e.body, Intent)}
    begun: dict[str, int] = {}
    for entry in steps:
        if isinstance(entry.body, Intent):
            base = str(entry.body.step_id.at_attempt(0))
            begun[base] = begun.get(base, 0) + 1
    ended = {str(e.body.step_id) for e in steps if isinstance(e.body, Outcome | ModelFailed)}
    # A body that asked was left in good order; its question is shown.
    ended |= {str(e.body.step_id) for e in steps if isinstance(e.body, Asked)}
    answers = {e.body.interrupt_id: e.body for e in steps if isinstance(e.body, Answered)}
    seen: set[str] = set()
    children: dict[str, list[ChildItem]] = {}
    for entry in steps:
        body = entry.body
        if isinstance(body, Outcome) and _child(body):
            found = ChildItem(n=entry.n, thread_id=body.value.thread_id, usage=format_usage(_usage(body.value)))
            children.setdefault(str(body.step_id.root.at_attempt(0)), []).append(found)
        elif isinstance(body, Outcome):
            below = children.pop(str(body.step_id.at_attempt(0)), ())
            yield _outcome(entry.n, body, intents, begun, tuple(below))
        elif isinstance(body, Intent):
            step = str(body.step_id)
            if step not in ended and step not in seen:
                seen.add(step)
                yield _unknown(entry.n, body, asked)
        elif isinstance(body, Asked):
            yield _question(entry.n, body, answers.get(body.interrupt_id))
        else:
            note = _note(entry.n, body)
            if note is not None:
                yield note
    for left in children.values():  # of calls that are under way
        yield from left


def _outcome(
    n: int, body: Outcome, intents: Mapping[str, Intent], begun: Mapping[str, int], children: tuple[ChildItem, ...]
) -> Item:
    value, step = body.value, body.step_id
    if getattr(value, "response", None) is not None:
        return _model(n, step, body.digest, value)
    if _execution(body) is not None:
        attempts = begun.get(str(step.at_attempt(0)), 1)
        return _tool(n, value.execution, intents.get(str(step)), attempts, children)
    name = f"{step.node}{f': {step.name}' if step.name else ''}"
    inside = f", inside {step.root}" if step.parent is not None else ""
    shown = "" if value is None else cut(pretty(value))
    return StepItem(n=n, name=f"{name}{inside}", value=shown, error=body.error or "")


def _child(body: Outcome) -> bool:
    """Whether it is what a child run came to: its record names the child's thread."""
    name = getattr(body.value, "thread_id", None)
    return isinstance(name, str) and name != ""


def _usage(value: Any) -> Usage | None:
    found = getattr(value, "usage", None)
    return found if isinstance(found, Usage) else None


def _execution(body: Body) -> Any:
    return getattr(body.value, "execution", None) if isinstance(body, Outcome) else None


def _model(n: int, step: StepId, digest: str, value: Any) -> ModelItem:
    response = value.response
    message: Message = response.message
    thinking = "\n".join(each.text for each in message.content if isinstance(each, ThinkingBlock))
    return ModelItem(
        n=n,
        purpose=step.purpose or "think",
        model=response.model,
        text=cut(message.text),
        thinking=cut(thinking),
        calls=tuple((call.name, cut(pretty(call.arguments), 2_000)) for call in message.tool_calls),
        usage=format_usage(value.usage),
        attempts=value.attempts,
        stop_reason=response.stop_reason,
        notes=response.notes,
        response_id=response.id,
        digest=digest,
        attempt=step.attempt,
    )


def _tool(
    n: int, done: Any, intent: Intent | None = None, attempts: int = 1, children: tuple[ChildItem, ...] = ()
) -> ToolItem:
    state = "done"
    if done.outcome_unknown:
        state = "unknown"
    elif not done.started:
        state = "refused"
    elif done.error is not None:
        state = "failed"
    elif done.cache_hit:
        state = "cached"
    return ToolItem(
        n=n,
        name=done.tool_name,
        arguments=cut(pretty(done.arguments), 4_000),
        result=cut(done.result or ""),
        error=cut(done.error or ""),
        state=state,
        effect="" if intent is None else intent.policy,
        took=format_ms(done.duration_ms) if done.started and not done.cache_hit else "",
        attempts=attempts,
        answer="" if done.answer is None else pretty(done.answer),
        reads=done.label.reads if done.label is not None else "",
        children=children,
    )


def _unknown(n: int, intent: Intent, asked: Sequence[ToolCall]) -> ToolItem:
    """A call whose body was entered, and of which nothing more is on record: it runs, or its process is gone."""
    step = intent.step_id
    call = asked[step.ordinal] if step.parent is None and step.node == "execute" and step.ordinal < len(asked) else None
    return ToolItem(
        n=n,
        name=step.name or str(step) if call is None else call.name,
        arguments="" if call is None else cut(pretty(call.arguments), 4_000),
        state="unknown",
        effect=intent.policy,
    )


def _question(n: int, body: Asked, answer: Answered | None) -> QuestionItem:
    said = None if answer is None else pretty(answer.answer)
    options = tuple(map(str, body.options))
    return QuestionItem(
        n=n,
        interrupt_id=body.interrupt_id,
        question=body.question,
        options=options,
        tool=body.tool_name,
        answer=said,
    )


def _note(n: int, body: Body) -> Item | None:
    match body:
        case ModelFailed():
            text = f"{body.error_type}: {body.error}" if body.error_type else body.error
            purpose, usage = body.step_id.purpose or "think", format_usage(body.usage)
            return ModelItem(n=n, purpose=purpose, error=text, usage=usage, digest=body.digest)
        case Retried():
            return NoteItem(n=n, label=f"a hook asked for another try of {body.step_id}", text=body.reason, tone="warn")
        case Cancelled():
            return NoteItem(n=n, label="cancelled", text=body.reason, tone="warn")
        case Submitted():
            queue = f" to queue {body.queue}" if body.queue else ""
            return NoteItem(n=n, label=f"turn submitted{queue}", text=cut(body.prompt.text))
        case Paused():
            label, tone = _PAUSES[body.kind]
            if body.not_before is not None:
                label = f"sleeps until {body.not_before.astimezone():%Y-%m-%d %H:%M:%S}"
            return NoteItem(n=n, label=f"paused: {label}", text=body.reason, tone=tone)
        case Resumed():
            return NoteItem(n=n, label=f"resumed, segment {body.segment + 1}", tone="good")
        case _:
            return None


# -- changes --------------------------------------------------------------------------------------


def _changes(change: StateDelta) -> Iterator[Change]:
    for name, value in change.changed.items():
        if name not in _SHOWN_ELSEWHERE:
            yield Change(name, cut(pretty(value), 300))
    for name, (_, added) in change.grown.items():
        if name not in _SHOWN_ELSEWHERE and added:
            yield Change(name, f"+ {cut(pretty(added), 300)}")
    for name, value in change.entries.items():
        yield Change(f"metadata[{name!r}]", cut(pretty(value), 300))
    for name, added in change.extended.items():
        yield Change(f"metadata[{name!r}]", f"+ {cut(pretty(added), 300)}")
    for name in change.dropped:
        if name not in change.entries:
            yield Change(f"metadata[{name!r}]", "dropped")
