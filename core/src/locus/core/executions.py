"""What tools did: executions, and an index over them that grows with the run instead of being rebuilt.

The loop asks "was this call made before?" and "did this tool succeed?" after every node; scanning the
history for that would make each iteration dearer than the last.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from attrs import field

from locus.core.frozen import EMPTY, FrozenDict, fast_init, freeze, frozen
from locus.core.labels import UNKNOWN, Label, Reads

#: How many questions an index remembers how far it has answered. A predicate that is made anew each time is another
#: question each time, and would be kept alive for as long as the run.
QUESTIONS = 128


@fast_init
@frozen(kw_only=True)
class ToolExecution:
    """One tool call and what came of it.

    Args:
        tool_name: as the model wrote it.
        arguments: as the body got them, in canonical JSON, with the defaults that the schema shows filled in, and as a
            person or a wrapper changed them; of a call that was refused, as the model gave them.
        result: the text the model got, or None when it failed.
        error: ``"<Type>: <message>"``, or None when it succeeded.
        duration_ms: milliseconds the body ran; 0.0 for a cache hit or a call that never started.
        cache_hit: the body did not run, an earlier result was used.
        key: hash of the dedup key: the name and the arguments of the call, before a wrapper changed them.
        call_id: the provider's id of the call.
        iteration: 0-based index of the iteration it belongs to.
        started: the body was entered; refused and rejected calls are not.
        retryable: the body said that nothing happened (`RetryableToolError`).
        outcome_unknown: the body was begun before an interruption, and it is not known whether it had its effect.
        media_at: the index of the result in the conversation, counted behind the system prompt, when it is more than
            text (``result`` has its text alone); None for a result that is text.
        label: of the result; None where it was written before there were labels, which counts as untrusted.
        fields: the levels of parts of a result that is JSON, by dotted path, see ``locus_label_result``.
        answer: the answer to the question whether the call may run; None if no person was asked.
    """

    tool_name: str
    arguments: FrozenDict[str, Any] = field(default=EMPTY, converter=freeze)
    result: str | None = None
    error: str | None = None
    duration_ms: float = 0.0
    cache_hit: bool = False
    key: str = ""
    call_id: str = ""
    iteration: int = 0
    started: bool = True
    retryable: bool = False
    media_at: int | None = None
    outcome_unknown: bool = False
    label: Label | None = None
    fields: FrozenDict[str, Reads] = field(default=EMPTY, converter=freeze)
    answer: Any = field(default=None, converter=freeze)

    @property
    def known_label(self) -> Label:
        """The label that counts, also where none was recorded."""
        return UNKNOWN if self.label is None else self.label

    @property
    def succeeded(self) -> bool:
        """Whether the model got a result, from the body or from the cache."""
        return self.error is None


ArgsPredicate = Callable[[Mapping[str, Any]], bool]


class ExecutionIndex:
    """An append-only log of executions, shared by all states of one line of descent.

    A state owns a prefix of it, ``entries[:n]``. Appending to the longest state extends the log in place;
    appending to a shorter one (a fork) starts a log of its own, so no state ever sees another's entries.
    """

    __slots__ = ("_by_key", "_by_name", "_entries", "_found", "_lock", "_started")

    def __init__(self, entries: tuple[ToolExecution, ...] = ()) -> None:
        self._entries: list[ToolExecution] = []
        #: How many were started among the first 0, 1, 2, ... entries.
        self._started = [0]
        self._by_key: dict[str, list[int]] = {}
        self._by_name: dict[str, list[int]] = {}
        self._found: dict[tuple[str, ArgsPredicate | None, bool], tuple[int, int | None]] = {}
        self._lock = Lock()
        for entry in entries:
            self._add(entry)

    def _add(self, entry: ToolExecution) -> None:
        at = len(self._entries)
        self._entries.append(entry)
        self._started.append(self._started[-1] + entry.started)
        self._by_key.setdefault(entry.key, []).append(at)
        self._by_name.setdefault(entry.tool_name, []).append(at)

    def with_execution(self, owned: int, entry: ToolExecution) -> ExecutionIndex:
        """The index of the state that owns ``owned`` entries, with one more."""
        with self._lock:
            if owned == len(self._entries):
                self._add(entry)
                return self
        fork = ExecutionIndex(tuple(self._entries[:owned]))
        fork._add(entry)
        return fork

    def count_started(self, owned: int) -> int:
        """How many were started: their bodies were entered, or the cache had their results."""
        return self._started[owned]

    def with_key(self, owned: int, key: str) -> ToolExecution | None:
        """The latest execution under a key that entered its body and did not promise that nothing happened."""
        at = self._by_key.get(key, ())
        for i in reversed(at[: bisect_left(at, owned)] if at else at):
            entry = self._entries[i]
            if entry.started and not entry.retryable:
                return entry
        return None

    def first(
        self, owned: int, name: str, predicate: ArgsPredicate | None, *, require_success: bool
    ) -> ToolExecution | None:
        """The first execution of a tool that matches; each execution is tested once per question."""
        question = (name, predicate, require_success)
        at = self._by_name.get(name, ())
        with self._lock:
            seen, hit = self._found.get(question, (0, None))
        while hit is None and seen < len(at) and at[seen] < owned:
            entry = self._entries[at[seen]]
            if (entry.succeeded if require_success else entry.started) and (
                predicate is None or predicate(entry.arguments)
            ):
                hit = at[seen]
            seen += 1
        with self._lock:
            if self._found.pop(question, None) is None and len(self._found) >= QUESTIONS:
                del self._found[next(iter(self._found))]  # the one that was not asked for longest
            self._found[question] = (seen, hit)
        return None if hit is None or hit >= owned else self._entries[hit]
