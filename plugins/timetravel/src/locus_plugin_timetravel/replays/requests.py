"""`model_requests`: what an agent's code of today asks a model, where the journal has the answers.

A journal keeps what models said and a fingerprint of what they were asked. The node that asked is run against the
record, as in a replay, and each request is kept when the node makes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field, frozen

from locus.core.fingerprint import PARTS, bare, parts_of
from locus.core.journal import BLANK, END, FORK, START, THINK, Fold, ModelFailed, Outcome, StepId, Transition, apply
from locus.models import ModelRequest
from locus_plugin_timetravel.histories import store_of
from locus_plugin_timetravel.pages import Pages, read_node
from locus_plugin_timetravel.replays.report import Walk
from locus_plugin_timetravel.replays.run import ReplayRun
from locus_plugin_timetravel.traces import NodeTrace, as_committed

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from locus import Agent
    from locus.core.messages import Message, Usage
    from locus.core.state import AgentState
    from locus.journal import JournalStore
    from locus.models import ModelResponse, ModelSettings

__all__ = ["RebuiltRequest", "model_requests"]


@frozen(kw_only=True)
class RebuiltRequest:
    """A request as an agent's code of today makes it.

    Args:
        step_id: of the model call; the journal's entry has it as well.
        request: what is asked. Wrappers of model calls have not seen it.
        changed: what the record says was different, such as ``"the system prompt"``; empty where all that it has a
            digest of is the same: the model, how many messages, and what each request of the run repeats.
        wrapped_by: the plugins whose wrappers saw the request, and may have sent another one.
    """

    step_id: StepId
    request: ModelRequest
    changed: tuple[str, ...] = ()
    wrapped_by: tuple[str, ...] = ()


async def model_requests(
    agent: Agent[Any, Any],
    thread_id: str,
    entry: int,
    *,
    before: AgentState | None = None,
    deps: Any = None,
    model_settings: ModelSettings | None = None,
    output_schema: Any = None,
) -> tuple[RebuiltRequest, ...]:
    """The requests of the node to which an entry of a thread belongs, of those model calls that are on record.

    No model is called, no tool's body is entered, and nothing is written.

    Args:
        agent: the agent, with the store where the thread is kept.
        thread_id: the thread.
        entry: the number of an entry, from 1, such as that of a model's answer.
        before: the state after the transition before that entry, where it is known; else the thread is read from its
            beginning.
        deps: as for `replay`; so are the others.
        model_settings: what its run was called with.
        output_schema: what its run was called with.

    Returns:
        One for each call that the code makes, in order; a call that it does not make any more has none.

    Raises:
        ConfigError, NothingToResume, JournalError: as for `history`; also where the thread has no such entry.
    """
    store = store_of(agent)
    last, entries = await read_node(store, thread_id, entry)
    if last is None or not isinstance(last.body, Transition):
        return ()  # the entries of a turn that has not begun, and its beginning, ask no model
    if before is None:
        before = await _fold(store, thread_id, last.n)
    *steps, newest = [each.body for each in entries]
    made = newest if isinstance(newest, Transition) else None
    before = as_committed(before)
    trace = NodeTrace(
        n=2,
        before=before,
        last=last.body,
        bodies=tuple(steps if made is not None else (*steps, newest)),
        transition=made,
        after=before if made is None else as_committed(apply(before, made.delta)),
    )
    if trace.node in (START, FORK, END):
        return ()
    walk = Walk(agent.runtime, store, thread_id, deps, model_settings, output_schema, make_run=_AskingRun)
    begun = NodeTrace(n=1, before=BLANK, last=None, bodies=(), transition=last.body, after=before)
    asked = await walk.run_alone(begun, trace)
    return () if not isinstance(asked, _AskingRun) else tuple(_compare(trace, asked))


async def _fold(store: JournalStore, thread_id: str, upto: int) -> AgentState:
    fold, pages = Fold(BLANK), Pages(store, thread_id)
    while page := await pages.next():
        for entry in page:
            if entry.n > upto:
                return fold.state()
            if isinstance(entry.body, Transition):
                fold.add(entry.body.delta)
    return fold.state()


@define(eq=False, repr=False)
class _AskingRun(ReplayRun):
    """A segment of a run that keeps what it asks."""

    asked: dict[StepId, ModelRequest] = field(factory=dict, init=False)

    def over_budget(self, state: AgentState) -> bool:
        """The record has an answer, so there was room for the call."""
        self.host.before_call()
        return self.halted

    def find_exceeded(self, more: Usage | None = None) -> str | None:
        """The same for the calls of plugins."""
        return None

    def ask(self, messages: tuple[Message, ...], attempt: int) -> Awaitable[tuple[ModelResponse, Usage, bool]]:
        """Think's model call."""
        output = None if self.output is None else self.output.spec
        request = ModelRequest(messages=messages, tools=self.registry.specs, settings=self.settings, output=output)
        self.asked[StepId(self.state.iteration, THINK, 0, attempt)] = request
        return super().ask(messages, attempt)

    async def call_model(
        self, request: ModelRequest, *, model: Any = None, purpose: str, parent: StepId | None = None
    ) -> ModelResponse:
        """A plugin's call."""
        self.asked[self.call_id(request, purpose, parent)] = evolve(request, purpose=purpose)
        return await super().call_model(request, model=model, purpose=purpose, parent=parent)


def _compare(trace: NodeTrace, run: _AskingRun) -> list[RebuiltRequest]:
    """What was asked of the calls that are on record, with what the record says was different."""
    digests = {b.step_id: b.digest for b in trace.bodies if isinstance(b, Outcome | ModelFailed)}
    impls = run.wrappers
    found: list[RebuiltRequest] = []
    for step_id, request in run.asked.items():
        if step_id not in digests:
            continue
        is_own = step_id.node == THINK
        changed = _changes(digests[step_id], request, run) if is_own else ()
        found.append(
            RebuiltRequest(step_id=step_id, request=request, changed=changed, wrapped_by=impls if is_own else ())
        )
    return found


def _changes(digest: str, request: ModelRequest, run: _AskingRun) -> tuple[str, ...]:
    model, _, count = bare(digest).rpartition(":")
    found = ["the model"] if model != run.runtime.model.name else []
    if count != str(len(request.messages)):
        found.append("the messages")
    then, now = parts_of(digest), parts_of(run.request_fingerprint) or {}
    if then is not None:
        found += [what for letter, what in PARTS.items() if then.get(letter) != now.get(letter)]
    return tuple(found)
