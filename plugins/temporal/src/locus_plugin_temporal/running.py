"""`run`: a run of an agent in a workflow, from its prompt to its end, questions to people included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve
from temporalio import workflow

from locus.core.errors import ConfigError, StepMismatch
from locus.journal import MemoryStore
from locus_plugin_temporal.effects import WorkflowClock, WorkflowEffects
from locus_plugin_temporal.handover import Carried, pack, unpack
from locus_plugin_temporal.session import current_session
from locus_plugin_temporal.standin import NamedModel

if TYPE_CHECKING:
    from locus import Agent, AgentResult
    from locus.models import ModelSettings

__all__ = ["carry", "run"]

#: Why a run ends that has made room.
YIELDED = "Yielded"


async def run(
    agent: str | Agent[Any, Any],
    prompt: Any,
    *,
    thread_id: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    model_settings: ModelSettings | None = None,
    carried: Carried | None = None,
    history_limit: int | None = None,
) -> AgentResult[Any]:
    """Run an agent in the workflow that calls this.

    Its calls of models and its tools are activities. A question to a person waits for the signal ``locus.answer``; the
    signal ``locus.cancel`` ends the run.

    Args:
        agent: its name among those of the worker's `LocusPlugin`, or an agent of that name.
        prompt: as for ``agent.run``.
        thread_id: the name of the conversation; None = a new one.
        metadata: entries for ``state.metadata``.
        model_settings: over those of the agent.
        carried: what `carry` gave: the run goes on with that, and the prompt is not used.
        history_limit: how many events the workflow's history may have before the run makes room for a new workflow: it
            ends with the stop reason ``"Yielded"``, and `carry` says what the next workflow needs. Where the server
            suggests it, it does so too. None = it goes on to its end.

    Returns:
        How it ended.

    Raises:
        NotInWorkflow: this is not a workflow, or its worker has no `LocusPlugin`.
        UnknownName: the worker has no agent of that name.
        NondeterminismError: the workflow is replayed, and the agent is not the one that was running: its task is tried
            again, until a worker has that one.
    """
    session = current_session()
    name = agent if isinstance(agent, str) else agent.name or ""
    known = session.agents.get(name)
    here = known.with_effects(WorkflowEffects(session), clock=WorkflowClock(), model=NamedModel(known.runtime.model))
    session.history_limit = history_limit
    options: dict[str, Any] = {"model_settings": model_settings}
    if carried is not None:
        session.take(carried)
        thread_id = carried.thread_id
        here = here.with_checkpointer(await unpack(thread_id, carried.journal))
        begun = here.resume(thread_id, **options)
    else:
        thread_id = f"thread-{workflow.uuid4()}" if thread_id is None else thread_id
        here = here.with_checkpointer(MemoryStore(history=False))
        begun = here.run(prompt, thread_id=thread_id, metadata=metadata, **options)
    with session.running(thread_id, here):
        while True:
            if session.cancelled is not None:
                begun.cancel(session.cancelled)
            try:
                result = await begun
            except StepMismatch as e:
                raise workflow.NondeterminismError(str(e)) from e
            if not result.interrupts:
                return evolve(result, store=here.runtime.store)
            answers = await session.wait_for_answers(thread_id, result.interrupts)
            begun = here.resume(thread_id, answers, **options)


async def carry(result: AgentResult[Any]) -> Carried:
    """What the next workflow needs to go on with a run that has made room.

    Args:
        result: with the stop reason ``"Yielded"``.

    Raises:
        ConfigError: the run has ended.
    """
    session = current_session()
    if result.stop_reason != YIELDED or result.store is None:
        raise ConfigError(f"the run of thread {result.thread_id!r} ended with {result.stop_reason}: nothing is left")
    journal = await pack(result.store, result.thread_id)
    left = {place: given for place, given in session.answers.items() if given}
    return Carried(thread_id=result.thread_id, journal=journal, answers=left, cancelled=session.cancelled)
