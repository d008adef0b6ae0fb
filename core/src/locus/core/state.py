"""`AgentState`: everything one run has seen, as an immutable value.

Every builder returns a new state. A state also remembers the committed state that it grew from (`_base`), so that
`locus.core.journal.delta` proves "this is the old history plus two messages" without reading the history.

The class has no slots, as the only value here: a copy is one dict update in C, a fifth of what 27 slots cost, and the
loop copies a state several times an iteration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from operator import is_
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from attrs import Attribute, Factory, evolve, field, fields

from locus.core.data import declare_forms, encode_data
from locus.core.errors import CheckpointError, CheckpointTooNew, NotSerialisable
from locus.core.executions import ArgsPredicate, ExecutionIndex, ToolExecution
from locus.core.frozen import EMPTY, FrozenDict, fast_init, freeze, frozen
from locus.core.labels import CLEAN, UNKNOWN, Label
from locus.core.lazy import Lazy
from locus.core.messages import (
    ASSISTANT,
    SYSTEM,
    TOOL,
    USER,
    Message,
    ToolCall,
    ToolResult,
    Usage,
    label_answer,
    label_messages,
)

if TYPE_CHECKING:
    from locus.core import codec
else:
    codec = Lazy("locus.core.codec")

__all__ = ["GROWING", "SCHEMA", "AgentState", "ReasoningStep", "ToolExecution", "not_run"]

#: The schema version of checkpoints and journal entries written by this version.
SCHEMA = 1

#: The fields that only grow in a run; they are saved as what was added.
GROWING = ("messages", "tool_executions", "reasoning_steps", "confidence_history", "tool_history", "errors")

#: Fields that came later: a checkpoint without them is older, not damaged.
_ADDED = frozenset({"answer_fault", "estimated_tokens_used", "label", "priced"})


#: A pure function of a state.
StatePredicate = Callable[["AgentState"], bool]


@fast_init
@frozen(kw_only=True)
class ReasoningStep:
    """What one iteration thought, did and concluded.

    Args:
        iteration: 0-based index of the iteration.
        thought: what the model said beside its calls (reasoning, where the provider exposes it).
        actions: names of the tools it called, in order.
        reflection: the judgment of the Reflect node, or None when it did not run.
    """

    iteration: int
    thought: str = ""
    actions: tuple[str, ...] = field(default=(), converter=tuple[str, ...])
    reflection: str | None = None


def not_run(call: ToolCall, reason: str) -> Message:
    """The tool message for a call that was not run."""
    return Message(TOOL, ToolResult(call.id, f"Error: not run: {reason}", is_error=True, name=call.name))


def _names(value: Iterable[str]) -> frozenset[str]:
    if isinstance(value, str):
        raise ValueError(f"terminal_tools must be a set of names, got {value!r}; write {{{value!r}}}")
    return frozenset(value)


def _confidence(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise ValueError(f"confidence must be a number from 0.0 to 1.0, got {value!r}")
    return min(1.0, max(0.0, float(value)))


def _metadata(value: Mapping[str, Any]) -> FrozenDict[str, Any]:
    return FrozenDict({key: _freeze_entry(key, item) for key, item in value.items()})


def _refuse_nan(value: Any, path: str) -> None:
    if isinstance(value, float) and math.isnan(value):
        why = "NaN is not equal to itself, so no copy of the state would be; store None or a text"
        raise NotSerialisable(path, why)
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, tuple) else ()
    for key, item in inner:
        _refuse_nan(item, f"{path}[{key!r}]")


def _freeze_entry(key: str, value: Any) -> Any:
    """A metadata value, frozen and known to have a JSON form."""
    path = f"metadata[{key!r}]"
    try:
        item = freeze(value)
        encode_data(item, path)
        _refuse_nan(item, path)
    except RecursionError:
        raise NotSerialisable(path, "it contains itself, or is nested too deeply") from None
    return item


def _refuse_unless_counted(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} must be an integer, 0 or more, got {value!r}")


def _not_negative(_: object, attribute: Attribute[Any], value: Any) -> None:
    _refuse_unless_counted(attribute.name, value)


def _label(state: AgentState) -> Label:
    # Of a state that is built by hand: the runner's have theirs.
    return label_messages(state.messages)


def _join(label: Label, other: Label) -> Label:
    # Most of what is added is clean, or what was added before; a run's first result is joined with a clean label.
    return label if other is label or other is CLEAN else other if label is CLEAN else label | other


def _aware(_: object, attribute: Attribute[Any], value: datetime) -> None:
    if value.tzinfo is None:
        raise ValueError(f"{attribute.name} has no time zone; use datetime.now(UTC)")


def _now() -> datetime:
    # Only for a state that is built by hand: the runner stamps its own, from its own clock.
    return datetime.now(UTC)


@frozen(kw_only=True, slots=False)
class AgentState:
    """One agent run.

    Args:
        run_id: a UUID, new for each user turn, kept over interrupt and resume.
        agent_id: a stable name of the agent, carried across runs.
        messages: the whole conversation, system prompt included, oldest first.
        iteration: 0-based index of the current iteration = number of finished ones.
        max_iterations: the bound that the agent's condition guarantees.
        tool_executions: every tool call and what came of it, in call order.
        reasoning_steps: one record per iteration.
        confidence: 0.0 to 1.0, clamped; NaN is refused.
        confidence_threshold: what ``ConfidenceMet()`` without an argument compares with.
        confidence_history: each confidence that was set.
        tool_history: tool names in call order.
        tool_loop_threshold: how many turns in a row with the same calls make a loop.
        terminal_tools: names of tools that end the run when called.
        prompt_tokens_used, completion_tokens_used, cached_tokens_used, estimated_tokens_used: totals of the run; see
            `Usage`.
        token_budget: what ``TokenLimit()`` without an argument compares with, or None.
        cost: dollars spent on calls whose price is known.
        priced: whether there was such a call; a known price of zero is not an unknown one.
        errors: messages of tool and model errors of this run.
        metadata: free-form data of the application, deep-frozen; what has no JSON form is refused.
        active_seconds: time the run was at work; waiting for a person and downtime excluded.
        pending_revision: the last answer was sent back by a reviewer.
        revisions: how often that happened to the answer under way.
        answer_fault: what is wrong with the newest answer, a key of `locus.core.messages.ANSWER_FAULTS`, or ``""``.
        label: of all that the model has seen; default: see `locus.core.messages.label_messages`.
        started_at, updated_at: UTC.
    """

    run_id: str = field(factory=lambda: str(uuid4()))
    agent_id: str | None = None
    messages: tuple[Message, ...] = field(default=(), converter=tuple[Message, ...])
    iteration: int = field(default=0, validator=_not_negative)
    max_iterations: int = field(default=20, validator=_not_negative)
    tool_executions: tuple[ToolExecution, ...] = field(default=(), converter=tuple[ToolExecution, ...])
    reasoning_steps: tuple[ReasoningStep, ...] = field(default=(), converter=tuple[ReasoningStep, ...])
    confidence: float = field(default=0.0, converter=_confidence)
    confidence_threshold: float = field(default=0.8, converter=_confidence)
    confidence_history: tuple[float, ...] = field(default=(), converter=tuple[float, ...])
    tool_history: tuple[str, ...] = field(default=(), converter=tuple[str, ...])
    tool_loop_threshold: int = field(default=3, validator=_not_negative)
    terminal_tools: frozenset[str] = field(default=frozenset(), converter=_names)
    prompt_tokens_used: int = field(default=0, validator=_not_negative)
    completion_tokens_used: int = field(default=0, validator=_not_negative)
    cached_tokens_used: int = field(default=0, validator=_not_negative)
    estimated_tokens_used: int = field(default=0, validator=_not_negative)
    token_budget: int | None = None
    cost: float = 0.0
    priced: bool = False
    errors: tuple[str, ...] = field(default=(), converter=tuple[str, ...])
    metadata: FrozenDict[str, Any] = field(default=EMPTY, converter=_metadata)
    active_seconds: float = 0.0
    pending_revision: bool = False
    revisions: int = field(default=0, validator=_not_negative)
    answer_fault: str = ""
    label: Label = field(default=Factory(_label, takes_self=True))
    started_at: datetime = field(factory=_now, validator=_aware)
    updated_at: datetime = field(factory=_now, validator=_aware)
    # The committed state whose growing fields this one's start with; a committed state has none. See `commit`.
    _base: AgentState | None = field(default=None, init=False, eq=False, repr=False)
    _committed: bool = field(default=False, init=False, eq=False, repr=False)
    # How many reasoning steps are those of the base: the last one may have been replaced.
    _steps_kept: int | None = field(default=None, init=False, eq=False, repr=False)
    _index: ExecutionIndex | None = field(default=None, init=False, eq=False, repr=False)
    # What predicates say of this state; see `satisfies`.
    _answers: dict[StatePredicate, bool] | None = field(default=None, init=False, eq=False, repr=False)

    # -- builders -------------------------------------------------------------------------------

    def _with(self, **changes: Any) -> AgentState:
        """A copy with some fields changed; the values are trusted (builders check what comes from outside)."""
        new, values = self._copy()
        values.update(changes)
        return new

    def _copy(self) -> tuple[AgentState, dict[str, Any]]:
        """A copy of the state, and the dict of its fields: change it before anybody else gets the copy."""
        values = self.__dict__.copy()
        values["_answers"] = None
        if values["_committed"]:
            values["_base"], values["_committed"] = self, False
        new = _new(AgentState)
        _set_values(new, values)
        return new, values

    def with_message(self, message: Message) -> AgentState:
        """One message added."""
        return self._with(messages=self.messages + (message,))

    def with_messages(self, messages: Iterable[Message]) -> AgentState:
        """Several messages added, in order."""
        return self._with(messages=self.messages + tuple(messages))

    def with_system(self, prompt: Message | None) -> AgentState:
        """This system prompt in place of the first one, if any; None changes nothing."""
        first = self.messages[0] if self.messages else None
        if prompt is None or first == prompt:
            return self
        rest = self.messages[1:] if first is not None and first.role is SYSTEM else self.messages
        return evolve(self, messages=(prompt, *rest))

    def with_label(self, label: Label) -> AgentState:
        """The state of a run whose model gets to see something with this label, too."""
        joined = _join(self.label, label)
        return self if joined is self.label else self._with(label=joined)

    def with_iteration(self, iteration: int) -> AgentState:
        """Another iteration index."""
        _refuse_unless_counted("iteration", iteration)
        return self._with(iteration=iteration)

    def with_next_iteration(self) -> AgentState:
        """The next iteration index, to ask what a bound on iterations says then: predicates are not asked again."""
        return self._with(iteration=self.iteration + 1, _answers=self._known_answers())

    def with_tool_execution(self, execution: ToolExecution) -> AgentState:
        """One execution added, to `tool_history` as well."""
        return self._with(
            tool_executions=self.tool_executions + (execution,),
            tool_history=self.tool_history + (execution.tool_name,),
            label=_join(self.label, execution.label or UNKNOWN),
            _index=None if self._index is None else self._index.with_execution(len(self.tool_executions), execution),
        )

    def with_reasoning_step(self, step: ReasoningStep) -> AgentState:
        """A step added, or put in place of the one of the same iteration."""
        steps = self.reasoning_steps
        if not steps or steps[-1].iteration != step.iteration:
            return self._with(reasoning_steps=steps + (step,))
        base = self if self._committed else self._base
        kept = self._steps_kept
        if kept is None and base is not None:
            kept = len(base.reasoning_steps)
        kept = None if kept is None else min(kept, len(steps) - 1)
        return self._with(reasoning_steps=(*steps[:-1], step), _steps_kept=kept)

    def with_confidence(self, confidence: float) -> AgentState:
        """Another confidence, clamped to 0.0 .. 1.0 and recorded in the history; NaN is refused."""
        value = _confidence(confidence)
        return self._with(confidence=value, confidence_history=(*self.confidence_history, value))

    def with_error(self, error: str) -> AgentState:
        """One error message added."""
        return self._with(errors=(*self.errors, error))

    def with_metadata(self, key: str, value: Any) -> AgentState:
        """One metadata entry set, deep-frozen (a list becomes a tuple).

        Raises:
            NotSerialisable: the value has no JSON form and no registered converter, or holds NaN.
        """
        return self.with_entries({key: value})

    def with_entries(self, entries: Mapping[str, Any]) -> AgentState:
        """Several metadata entries set, each as `with_metadata` sets it."""
        made = dict(self.metadata)
        for key, value in entries.items():
            before = made.get(key)
            if (
                type(before) is tuple
                and isinstance(value, tuple | list)
                and len(before) <= len(value)
                and all(map(is_, before, value))
            ):  # only what is added need be looked at
                made[key] = before + _freeze_entry(key, tuple(value[len(before) :]))
            else:
                made[key] = _freeze_entry(key, value)
        return self._with(metadata=FrozenDict(made))

    def with_token_usage(
        self,
        *,
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
        cached_tokens: int = 0,
        estimated_tokens: int = 0,
        cost: float | None = None,
    ) -> AgentState:
        """Tokens and dollars of one more call, added to the totals; None where the price is not known.

        Raises:
            ValueError: a number of tokens is not an integer, or something is negative or NaN.
        """
        for name, value in (
            ("prompt_tokens", prompt_tokens),
            ("completion_tokens", completion_tokens),
            ("cached_tokens", cached_tokens),
            ("estimated_tokens", estimated_tokens),
        ):
            _refuse_unless_counted(name, value)
        if isinstance(cost, bool) or not (cost is None or (isinstance(cost, int | float) and cost >= 0)):
            raise ValueError(f"cost must be a number of dollars, 0 or more, or None, got {cost!r}")
        return self._with(
            prompt_tokens_used=self.prompt_tokens_used + prompt_tokens,
            completion_tokens_used=self.completion_tokens_used + completion_tokens,
            cached_tokens_used=self.cached_tokens_used + cached_tokens,
            estimated_tokens_used=self.estimated_tokens_used + estimated_tokens,
            cost=self.cost + (cost or 0.0),
            priced=self.priced or cost is not None,
        )

    def with_usage(self, usage: Usage) -> AgentState:
        """`with_token_usage` of what a model says that it used."""
        return self.with_token_usage(
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=usage.cached_tokens,
            estimated_tokens=usage.estimated_tokens,
            cost=usage.cost,
        )

    def with_answer(self, message: Message, step: ReasoningStep, usage: Usage, fault: str = "") -> AgentState:
        """One model answer: its message, its reasoning step, its tokens and what is wrong with it, in one copy."""
        steps = self.reasoning_steps
        again = bool(steps) and steps[-1].iteration == step.iteration
        new, values = (self.with_reasoning_step(step) if again else self)._copy()
        if not again:
            values["reasoning_steps"] = steps + (step,)
        values["messages"] = self.messages + (message,)
        if self.pending_revision or fault != self.answer_fault:
            values["pending_revision"], values["answer_fault"] = False, fault
        if (label := label_answer(message)) is not CLEAN:
            values["label"] = _join(self.label, label)
        values["prompt_tokens_used"] += usage.prompt_tokens
        values["completion_tokens_used"] += usage.completion_tokens
        if usage.cached_tokens or usage.estimated_tokens:
            values["cached_tokens_used"] += usage.cached_tokens
            values["estimated_tokens_used"] += usage.estimated_tokens
        if usage.cost is not None:
            values["cost"], values["priced"] = self.cost + usage.cost, True
        return new

    def with_results(self, messages: Iterable[Message], executions: Iterable[ToolExecution]) -> AgentState:
        """The results of one batch of calls, in call order: messages, executions and errors, in one copy."""
        added = tuple(executions)
        index = self._index
        if index is not None:  # it was asked for before, so it is kept up to date; otherwise it costs nothing
            owned = len(self.tool_executions)
            for i, execution in enumerate(added):
                index = index.with_execution(owned + i, execution)
        errors = [f"{e.tool_name}: {e.error}" for e in added if e.error is not None]
        label = self.label
        for execution in added:
            label = _join(label, execution.label or UNKNOWN)
        new, values = self._copy()
        values["messages"] = self.messages + tuple(messages)
        values["tool_executions"] = self.tool_executions + added
        values["tool_history"] = self.tool_history + tuple([e.tool_name for e in added])
        values["label"], values["_index"] = label, index
        if errors:
            values["errors"] = (*self.errors, *errors)
        return new

    def with_answer_fault(self, fault: str, why: str) -> AgentState:
        """The newest answer found to be faulty; why is added to the errors."""
        return self._with(answer_fault=fault, errors=(*self.errors, f"{fault}: {why}"))

    def with_calls_closed(self, reason: str) -> AgentState:
        """Every call that has no result gets an error result: ``Error: not run: <reason>``."""
        calls = self.unanswered
        return self.with_messages([not_run(c, reason) for c in calls]) if calls else self

    def with_revision(self, feedback: Message) -> AgentState:
        """The last answer sent back with feedback: Think runs again."""
        return self._with(messages=(*self.messages, feedback), pending_revision=True, revisions=self.revisions + 1)

    def commit(self, *, updated_at: datetime, active_seconds: float, iteration: int) -> AgentState:
        """The state as a transition commits it; what follows is saved relative to it."""
        values = self.__dict__.copy()
        values["updated_at"], values["active_seconds"], values["iteration"] = updated_at, active_seconds, iteration
        values["_base"], values["_committed"], values["_steps_kept"], values["_answers"] = None, True, None, None
        new = _new(AgentState)
        _set_values(new, values)
        return new

    def at(self, *, updated_at: datetime, active_seconds: float) -> AgentState:
        """The state as it is at a later time; nothing else changes."""
        return self._with(updated_at=updated_at, active_seconds=active_seconds)

    def start_run(self, *, run_id: str, now: datetime) -> AgentState:
        """The start of a run that has this state for its template."""
        return self._with(run_id=run_id, started_at=now, updated_at=now)

    def next_turn(self, *, run_id: str, now: datetime) -> AgentState:
        """The start of a new run on the same conversation: everything but the conversation starts afresh."""
        return AgentState(
            run_id=run_id,
            agent_id=self.agent_id,
            messages=self.messages,
            max_iterations=self.max_iterations,
            confidence_threshold=self.confidence_threshold,
            tool_loop_threshold=self.tool_loop_threshold,
            terminal_tools=self.terminal_tools,
            token_budget=self.token_budget,
            metadata=self.metadata,
            label=self.label,
            started_at=now,
            updated_at=now,
        )

    # -- derived ----------------------------------------------------------------------------------

    @property
    def total_tokens_used(self) -> int:
        """Prompt and completion tokens of the run."""
        return self.prompt_tokens_used + self.completion_tokens_used

    @property
    def usage(self) -> Usage:
        """Tokens and dollars of the run."""
        return Usage(
            prompt_tokens=self.prompt_tokens_used,
            completion_tokens=self.completion_tokens_used,
            cached_tokens=self.cached_tokens_used,
            estimated_tokens=self.estimated_tokens_used,
            cost=self.cost if self.priced or self.cost else None,
        )

    @property
    def unanswered(self) -> tuple[ToolCall, ...]:
        """The calls of the newest assistant turn that have no result yet, in order."""
        answered = 0
        for message in reversed(self.messages):
            if message.role is TOOL:
                answered += len(message.tool_results)
            elif message.role is ASSISTANT:
                # Results are in call order; ids are not matched, because local models reuse them.
                return message.tool_calls[answered:]
            else:
                return ()
        return ()

    @property
    def last_assistant(self) -> Message | None:
        """The newest assistant message of this run's end of the conversation, or None before there is one.

        Looks back over tool results, what plugins said and reviewers' feedback, never past a user turn of an older run.
        """
        for message in reversed(self.messages):
            if message.role is ASSISTANT:
                return message
            if message.role is USER and not self.pending_revision and message.plugin is None:
                return None
        return None

    @property
    def started_calls(self) -> int:
        """How many tool calls were started or answered from the cache; calls that were refused do not count."""
        return self._executions().count_started(len(self.tool_executions))

    def find_execution(self, key: str) -> ToolExecution | None:
        """The execution of this run that answers for a dedup key, or None."""
        return self._executions().with_key(len(self.tool_executions), key)

    def first_execution(
        self, name: str, predicate: ArgsPredicate | None = None, *, require_success: bool = True
    ) -> ToolExecution | None:
        """The first execution of a tool whose arguments satisfy a pure predicate."""
        return self._executions().first(len(self.tool_executions), name, predicate, require_success=require_success)

    def satisfies(self, predicate: StatePredicate) -> bool:
        """What a pure predicate says of this state; it is called once."""
        answers = self._known_answers()
        answer = answers.get(predicate)
        if answer is None:
            answer = answers[predicate] = predicate(self)
        return answer

    def _known_answers(self) -> dict[StatePredicate, bool]:
        answers = self._answers
        if answers is None:
            answers = {}
            object.__setattr__(self, "_answers", answers)
        return answers

    def _executions(self) -> ExecutionIndex:
        index = self._index
        if index is None:
            index = ExecutionIndex(self.tool_executions)
            object.__setattr__(self, "_index", index)
        return index

    # -- checkpoint -------------------------------------------------------------------------------

    def to_checkpoint(self) -> dict[str, Any]:
        """A plain, JSON-safe dict with a schema version; `from_checkpoint` gives an equal state back."""
        return {"schema": SCHEMA, **codec.encode(self)}

    @classmethod
    def from_checkpoint(cls, data: Mapping[str, Any]) -> AgentState:
        """The state a checkpoint was made from.

        Raises:
            CheckpointTooNew: it was written by a newer version.
            CheckpointError: it is damaged; the message says where.
        """
        if not isinstance(data, Mapping):
            raise CheckpointError("", f"{data!r:.80} is not a checkpoint; it is what to_checkpoint() gave, a mapping")
        found = data.get("schema")
        if isinstance(found, bool) or not isinstance(found, int) or found < 1:
            raise CheckpointError("schema", f"the checkpoint has schema version {found!r}; this is not a checkpoint")
        if found > SCHEMA:
            raise CheckpointTooNew(found, SCHEMA)
        missing = [a.name for a in fields(cls) if a.init and a.name not in data and a.name not in _ADDED]
        if missing:
            # A default in place of what was lost would be a state that never was.
            raise CheckpointError(missing[0], f"the checkpoint lacks {', '.join(missing)}; it is damaged")
        state = codec.decode({k: v for k, v in data.items() if k not in ("schema", "journal")}, cls)
        return state if "label" in data else state._with(label=UNKNOWN)

    def __getstate__(self) -> dict[str, Any]:
        # What grows with the line of descent stays here: a pickled state is a value and nothing else.
        return self.__dict__ | {
            "_base": None,
            "_committed": False,
            "_steps_kept": None,
            "_index": None,
            "_answers": None,
        }

    def __setstate__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)


_new = object.__new__
_set_values = vars(AgentState)["__dict__"].__set__

declare_forms(lambda codec: codec.register_whole(AgentState))
