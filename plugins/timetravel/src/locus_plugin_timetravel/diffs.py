"""`diff`: two runs side by side, and where they part.

What is compared is what was said and done: nodes, answers, calls, results, and how it ended. Ids, times and durations
differ between any two runs and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import starmap, takewhile, zip_longest
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from locus import AgentResult
from locus.core.errors import InputError
from locus.core.journal import END, FORK
from locus.core.messages import Message, Role, Usage
from locus.journal import History
from locus.schema import call_key
from locus_plugin_timetravel.histories import Source, history
from locus_plugin_timetravel.text import call_text, describe_usage, one_line, outcome_text, table

if TYPE_CHECKING:
    from locus.core.state import AgentState, ToolExecution
    from locus.journal import HistoryEntry

__all__ = ["Act", "Diff", "Row", "diff", "diff_threads"]

_WIDTH = 56


@frozen(kw_only=True)
class Act:
    """What one transition did, without what differs between any two runs.

    Args:
        node: the node.
        next_node: the node that followed; ``""`` where only a final state is known.
        said: the texts that it added to the conversation.
        asked: the calls that the model asked for, as text, which is short; `keys` is what is compared.
        calls: the calls that were run, with what they came to; as `asked`.
        keys: of both, whole: equal arguments have the same key in whatever order they are.
        why: the reason, where the run ended here.
        n: the number of the transition on its thread, or None.
        usage: what it spent; not compared, for providers count as they like.
    """

    node: str
    next_node: str = ""
    said: tuple[str, ...] = ()
    asked: tuple[str, ...] = field(default=(), eq=False)
    calls: tuple[tuple[str, str], ...] = field(default=(), eq=False)
    keys: tuple[Any, ...] = field(default=(), repr=False)
    why: str = ""
    n: int | None = field(default=None, eq=False)
    usage: Usage = field(default=Usage(), eq=False)

    def __str__(self) -> str:
        done = [f"{call} = {came}" for call, came in self.calls] or [*map(one_line, self.said), *self.asked]
        return join_parts([self.node, "; ".join(done), self.why, describe_usage(self.usage)])


@frozen
class Row:
    """Two acts side by side; None where a run has no act there."""

    a: Act | None
    b: Act | None

    @property
    def same(self) -> bool:
        """Whether both did the same."""
        return self.a == self.b


@frozen(kw_only=True)
class Diff:
    """Two runs side by side.

    Args:
        a, b: what the runs are called.
        rows: their acts, in order.
        usage_a, usage_b: what each has spent.
    """

    a: str
    b: str
    rows: tuple[Row, ...] = field(repr=False)
    usage_a: Usage = Usage()
    usage_b: Usage = Usage()

    @property
    def same(self) -> bool:
        """Whether both said and did the same."""
        return self.first is None

    @property
    def first(self) -> Row | None:
        """The first row that is not the same on both sides, or None."""
        return next((row for row in self.rows if not row.same), None)

    def __str__(self) -> str:
        lines = [("", self.a, self.b), ("", describe_usage(self.usage_a), describe_usage(self.usage_b))]
        parted = False
        for row in self.rows:
            mark = "" if row.same else "*" if parted else ">"
            parted = parted or not row.same
            lines.append((mark, _cell(row.a), "(the same)" if row.same else _cell(row.b)))
        end = "no difference" if not parted else "> is where they part"
        return f"{table(lines)}\n{end}"


def _cell(act: Act | None) -> str:
    text = "-" if act is None else str(act)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


def join_parts(parts: Sequence[str]) -> str:
    """The parts that are there, two spaces apart."""
    return "  ".join(part for part in parts if part)


Side = History | AgentResult[Any]


def diff(a: Side, b: Side) -> Diff:
    """Two runs side by side.

    Args:
        a: the history of a thread, or the result of a run.
        b: the other one. Two histories are compared transition by transition; where one side is a result, the last
            runs of both are compared by what their final states hold.

    Raises:
        InputError: something else was given.
    """
    for side in (a, b):
        if not isinstance(side, History | AgentResult):
            raise InputError(
                f"diff compares histories and results, not {type(side).__name__}; for threads there is "
                "await diff_threads(agent, thread_a, thread_b)"
            )
    if isinstance(a, History) and isinstance(b, History):
        left, right = _acts(a), _acts(b)
    else:
        left, right = list(_acts_of_state(a.state)), list(_acts_of_state(b.state))
    return Diff(a=_name(a), b=_name(b), rows=tuple(_rows(left, right)), usage_a=a.usage, usage_b=b.usage)


async def diff_threads(source: Source, thread_a: str, thread_b: str) -> Diff:
    """Two threads side by side, and where they part.

    Args:
        source: the agent, or the store where both are kept.
        thread_a: the one.
        thread_b: the other.

    Raises:
        ConfigError, NothingToResume, JournalError: as for `history`.
    """
    return diff(await history(source, thread_a), await history(source, thread_b))


def _rows(left: Sequence[Act], right: Sequence[Act]) -> Iterator[Row]:
    """Side by side, with what both did beside each other where one did something in between."""
    # What comes first is the same as long as it is: a matcher alone would look for the longest part that is.
    prefix = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
    yield from map(Row, left[:prefix], right[:prefix])
    left, right = left[prefix:], right[prefix:]
    for _, i, j, k, m in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        yield from (Row(a, b) for a, b in zip_longest(left[i:j], right[k:m]))


def _name(side: Side) -> str:
    return f"thread {side.thread_id}" if isinstance(side, History) else f"run {side.run_id[:8]} on {side.thread_id}"


def _acts(past: History) -> list[Act]:
    # Where a fork parts nothing was done, and its origin has no such transition.
    return [_act(entry) for entry in past if entry.node != FORK]


def _act(entry: HistoryEntry) -> Act:
    said, asked, keys = _texts_and_calls(entry.messages)
    calls, came = _calls(entry.calls)
    return Act(
        node=entry.node,
        next_node=entry.next_node,
        said=said,
        asked=asked,
        calls=calls,
        keys=(*keys, *came),
        why=entry.why if entry.next_node == END else "",
        n=entry.n,
        usage=entry.usage,
    )


def _texts_and_calls(messages: Sequence[Message]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Any, ...]]:
    said = tuple(m.text for m in messages if m.role is not Role.TOOL and m.text)
    calls = [(c.name, c.arguments) for m in messages for c in m.tool_calls]
    return said, tuple(starmap(call_text, calls)), tuple(starmap(call_key, calls))


def _calls(executions: Sequence[ToolExecution]) -> tuple[tuple[tuple[str, str], ...], tuple[Any, ...]]:
    shown = tuple((call_text(e.tool_name, e.arguments), outcome_text(e)) for e in executions)
    return shown, tuple((call_key(e.tool_name, e.arguments), e.result, e.error, e.cache_hit) for e in executions)


def _acts_of_state(state: AgentState) -> Iterator[Act]:
    """What a run did, as far as its final state shows."""
    answers = [i for i, m in enumerate(state.messages) if m.role is Role.ASSISTANT]
    # One answer an iteration; those before are of earlier runs.
    answers = answers[max(0, len(answers) - len(state.reasoning_steps)) :]
    before = answers[0] if answers else len(state.messages)
    said, _, _ = _texts_and_calls([m for m in state.messages[:before] if m.role is Role.USER][-1:])
    yield Act(node="start", said=said)
    for index, step in zip(answers, state.reasoning_steps, strict=False):
        said, asked, keys = _texts_and_calls(state.messages[index : index + 1])
        yield Act(node="think", said=said, asked=asked, keys=keys)
        calls = [e for e in state.tool_executions if e.iteration == step.iteration]
        if calls:
            shown, came = _calls(calls)
            yield Act(node="execute", calls=shown, keys=came)
