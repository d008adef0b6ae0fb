"""The calls of a turn, told apart by names: their ids, and what is added to an id that a model has given before.

Hooks are given a call, and what came of it has the call's id; neither says which call of the turn it is. Models that
run locally give all calls of a turn one id, so what belongs to a call is kept by its name here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from locus.core.messages import Message, ToolCall, ToolResult, text_of
from locus.core.state import ToolExecution
from locus.tools import ArgumentError, ToolRegistry

__all__ = ["TurnCalls", "has_own_id", "number_of_call"]

#: How the text of a call begins that was not run.
_NOT_RUN = "Error: not run: "

#: The place of a child in its thread's name, behind that of the run above: the run, the turn, and the call.
_CHILD = re.compile(r"[^/]+/[0-9]+/execute/([0-9]+)(?:#[0-9]+)?/child/")


def has_own_id(call: ToolCall, calls: Iterable[ToolCall]) -> bool:
    """Whether no other call of a turn has the id of this one."""
    return sum(each.id == call.id for each in calls) <= 1


def number_of_call(child: str, above: str) -> int | None:
    """Which call of its turn has started a child run, from 0; None where the name of its thread does not say so.

    Args:
        child: the thread of the child.
        above: the thread of the run that made the call.
    """
    found = _CHILD.match(child.removeprefix(f"{above}/"))
    return None if found is None else int(found[1])


def _make_names(calls: Sequence[ToolCall]) -> tuple[str, ...]:
    ids = {call.id for call in calls}
    names: list[str] = []
    for number, call in enumerate(calls):
        name = call.id
        if name in names:
            name = f"{call.id}#{number}"
            while name in ids or name in names:
                name += "#"
        names.append(name)
    return tuple(names)


class TurnCalls:
    """The calls of a turn, each with a name that is the same whenever the turn is repeated.

    Args:
        calls: in the model's order.
    """

    def __init__(self, calls: Iterable[ToolCall]) -> None:
        self._calls = tuple(calls)
        #: The names, in the order of the calls. A call has its id for a name, unless one before it has the same.
        self.names = _make_names(self._calls)
        #: Which number each call was found to have that a hook was given; the calls are compared by identity.
        self._found: list[tuple[ToolCall, int]] = []

    def __iter__(self) -> Iterator[tuple[str, ToolCall]]:
        return zip(self.names, self._calls, strict=True)

    @property
    def have_own_ids(self) -> bool:
        """Whether no two of them have one id."""
        return self.names == tuple(call.id for call in self._calls)

    def name_at(self, number: int | None, default: str) -> str:
        """The name of the call with that number; the default where the turn has fewer calls."""
        return default if number is None or number >= len(self.names) else self.names[number]

    def find(self, call: ToolCall, registry: ToolRegistry) -> str:
        """The name of a call that a hook was given.

        A hook is given the call itself, or one with the arguments as the body gets them. Of several that are equal it
        may be any that no other call was found to be: they change the same.

        Args:
            call: as the hook was given it.
            registry: the tools of the run.
        """
        same = [number for number, each in enumerate(self._calls) if each.id == call.id]
        if len(same) <= 1:
            return call.id
        known = next((number for each, number in self._found if each is call), None)
        if known is None:
            known = min(same, key=lambda number: self._distance(number, call, registry))
            self._found.append((call, known))
        return self.names[known]

    def _distance(self, number: int, call: ToolCall, registry: ToolRegistry) -> tuple[bool, ...]:
        """How little a call of the turn is like one that a hook was given; the least is the most alike."""
        mine = self._calls[number]
        is_equal = mine.name == call.name and _binds_to(mine, call, registry)
        is_taken = any(number == other for _, other in self._found)
        return mine is not call, not is_equal, mine.name != call.name, is_taken

    def name_executions(self, done: Sequence[ToolExecution], messages: Iterable[Message]) -> list[str]:
        """The names of the calls that executions are of.

        Args:
            done: the executions of the turn, in the order of its calls; none of a call that was not started.
            messages: what the turn has added to the conversation: one result for every call.
        """
        if self.have_own_ids:
            return [each.call_id for each in done]
        said = [result for message in messages for result in message.tool_results]
        is_whole = len(done) == len(self._calls)
        names: list[str] = []
        number = 0
        for each in done:
            while not is_whole and number < len(self._calls) and not self._fits(number, each, said):
                number += 1
            names.append(self.name_at(number, each.call_id))
            number += 1
        return names

    def _fits(self, number: int, execution: ToolExecution, said: Sequence[ToolResult]) -> bool:
        """Whether an execution may be that of a call: not where the call's result says that it was not run."""
        call = self._calls[number]
        text = text_of(said[number].content) if number < len(said) else ""
        was_not_run = text.startswith(_NOT_RUN) and text != f"Error: {execution.error}"
        return (call.id, call.name) == (execution.call_id, execution.tool_name) and not was_not_run


def _binds_to(asked: ToolCall, given: ToolCall, registry: ToolRegistry) -> bool:
    """Whether a call as the model wrote it has the arguments of one as the body gets it."""
    if asked.arguments == given.arguments:
        return True
    tool = registry.get(asked.name)
    bound = None if tool is None else tool.bind(asked.arguments)
    return bound is not None and not isinstance(bound, ArgumentError) and bool(bound.data == given.arguments)
