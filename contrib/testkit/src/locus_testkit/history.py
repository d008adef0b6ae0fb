"""What every provider asks of a conversation, as a check: for a history, and for what a manager shows of one.

A model refuses a request whose tool calls lack their results, or whose thinking is not what it had signed. What cuts
conversations short must never make such a request, wherever it cuts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from locus.core.messages import Message, Role, ThinkingBlock, ToolCall, ToolResult

__all__ = ["HistoryInvalid", "assert_valid_history", "assert_valid_request", "history_problems"]


class HistoryInvalid(AssertionError):
    """A provider would not accept a conversation.

    Args:
        problems: what is wrong, each with the index of its message.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


def assert_valid_history(messages: Iterable[Message], said: Iterable[Message] | None = None) -> None:
    """Insist that a conversation is valid: `history_problems` finds none.

    Args:
        messages: the conversation, such as ``result.state.messages``.
        said: as there.

    Raises:
        HistoryInvalid: it is not.
    """
    found = history_problems(messages, said)
    if found:
        raise HistoryInvalid(found)


def assert_valid_request(messages: Iterable[Message], said: Iterable[Message] | None = None) -> None:
    """Insist that a model can be asked with these messages: a valid history that does not end with an assistant turn.

    Args:
        messages: those of the request, such as a conversation manager's `View.messages`.
        said: as in `history_problems`: for a view, the conversation that it is made of.

    Raises:
        HistoryInvalid: it cannot.
    """
    shown = tuple(messages)
    found = list(history_problems(shown, said))
    if _lead(shown) == len(shown) or shown[-1].role is Role.ASSISTANT:
        found.append(f"{_place(shown, len(shown) - 1)} is the last one: there is nothing for the model to answer")
    if found:
        raise HistoryInvalid(found)


def history_problems(messages: Iterable[Message], said: Iterable[Message] | None = None) -> tuple[str, ...]:
    """What is wrong with a conversation; nothing, when every provider can be sent it.

    - System messages come before all others, unless ``said`` has them where they are said later as well; the first of
      those others is a user's.
    - Calls and thinking are in assistant turns, results in tool messages, which hold nothing else.
    - Each call has one result, with its id and its name, after its turn and before any other message, in call order.
      Ids need not be unique beyond that: local models use them again.
    - With ``said``: each assistant turn is one of those, whole (thinking with its signature, calls, unknown blocks and
      extras, in their order), and the turns come in the order in which they were said.

    Args:
        messages: the conversation.
        said: where the assistant turns were taken from: the answers of the model, or the conversation of which
            ``messages`` is a view. Some may be missing in the view. None = not compared.
    """
    shown = tuple(messages)
    whole = None if said is None else tuple(said)
    found = [*_roles(shown, () if whole is None else whole[_lead(whole) :]), *_blocks(shown), *_calls(shown)]
    if whole is not None:
        found += _turns(shown, [m for m in whole if m.role is Role.ASSISTANT])
    return tuple(found)


def _lead(messages: Sequence[Message]) -> int:
    return next((i for i, m in enumerate(messages) if m.role is not Role.SYSTEM), len(messages))


def _place(messages: Sequence[Message], at: int) -> str:
    return f"message {at} ({messages[at].role.value})" if 0 <= at < len(messages) else "no message"


def _roles(messages: Sequence[Message], said: Sequence[Message]) -> Iterator[str]:
    first = _lead(messages)
    if first < len(messages) and messages[first].role is not Role.USER:
        yield f"{_place(messages, first)} begins the conversation, which must begin with the user"
    for i in range(first, len(messages)):
        if messages[i].role is Role.SYSTEM and messages[i] not in said:
            yield f"{_place(messages, i)} comes after other messages"


def _blocks(messages: Sequence[Message]) -> Iterator[str]:
    for i, message in enumerate(messages):
        for block in message.content:
            if isinstance(block, ToolCall | ThinkingBlock) and message.role is not Role.ASSISTANT:
                yield f"{_place(messages, i)} holds a {type(block).__name__}, which only the model makes"
            if isinstance(block, ToolResult) is not (message.role is Role.TOOL):
                yield f"{_place(messages, i)} holds a {type(block).__name__}"


def _calls(messages: Sequence[Message]) -> Iterator[str]:
    waiting: list[ToolCall] = []
    for i, message in enumerate(messages):
        if message.role is not Role.TOOL:
            if waiting:
                yield f"{_place(messages, i)} is where results belong: {_name_calls(waiting)} has no result"
            waiting = list(message.tool_calls)
            continue
        for result in message.tool_results:
            if not waiting:
                yield f"{_place(messages, i)} holds the result of {result.call_id!r} ({result.name}), never called"
                continue
            call = waiting.pop(0)
            if (result.call_id, result.name) != (call.id, call.name):
                yield (
                    f"{_place(messages, i)} holds the result of {result.call_id!r} ({result.name}) where that of "
                    f"{call.id!r} ({call.name}) belongs"
                )
    if waiting:
        yield f"at the end {_name_calls(waiting)} has no result"


def _name_calls(calls: Sequence[ToolCall]) -> str:
    return " and ".join(f"{call.id!r} ({call.name})" for call in calls)


def _turns(messages: Sequence[Message], said: Sequence[Message]) -> Iterator[str]:
    # Each is looked for behind the one before; what does not fit does not keep the others from being found.
    after = 0
    for i, message in enumerate(messages):
        if message.role is not Role.ASSISTANT:
            continue
        at = next((k for k in range(after, len(said)) if said[k] == message), None)
        if at is not None:
            after = at + 1
        elif message in said:
            yield f"{_place(messages, i)} comes after a turn that was said later, or appears twice"
        else:
            yield f"{_place(messages, i)} is not as the model said it: {_describe_change(message, said)}"


def _describe_change(message: Message, said: Sequence[Message]) -> str:
    thought = [b for b in message.content if isinstance(b, ThinkingBlock)]
    calls = message.tool_calls
    for other in said:
        if other.tool_calls == calls and other.text == message.text:
            whole = [b for b in other.content if isinstance(b, ThinkingBlock)]
            return f"its thinking is {thought}, and was {whole}" if whole != thought else "its blocks are others"
    return "no turn has its text and its calls"
