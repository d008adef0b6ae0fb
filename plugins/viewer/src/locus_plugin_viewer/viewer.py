"""`Viewer`: what the pages are about: a store, and the agent whose runs they show, where one is known."""

from __future__ import annotations

from typing import Any

from anyio.abc import TaskGroup

from locus import Agent
from locus.core.errors import InputError
from locus.journal import JournalStore
from locus_plugin_viewer.states import StateReader

__all__ = ["Viewer"]


class Viewer:
    """A store to look at.

    Args:
        store: where the threads are kept.
        name: what the store is called on the pages.
        agent: the agent whose runs are answered and resumed from here; an `Agent`, a compiled graph, or None. It is
            run on this store.
        read_only: the pages offer nothing that changes something. What refuses it is `locus_plugin_viewer.make_app`.

    Raises:
        InputError: it is neither an agent nor a graph.
    """

    def __init__(self, store: JournalStore, *, name: str = "", agent: Any = None, read_only: bool = False) -> None:
        self.store, self.name, self.read_only = store, name or type(store).__name__, read_only
        self.graph: Any = None
        if agent is not None and not isinstance(agent, Agent):
            inner = getattr(agent, "agent", None)
            if not isinstance(inner, Agent) or not hasattr(agent, "svg"):
                raise InputError(f"expected an Agent or a compiled graph, got {type(agent).__name__}")
            agent, self.graph = inner, agent
        self.agent: Agent[Any, Any] | None = None if agent is None else agent.with_checkpointer(store)
        self.states = StateReader(store)
        #: Whether the server leaves: what follows a thread ends then.
        self.is_closing = False
        #: Where runs that are resumed from a page go on; set while the application runs.
        self.tasks: TaskGroup | None = None
        #: Thread -> why the last resume from here did not come to its end.
        self.failures: dict[str, str] = {}

    @property
    def source(self) -> Any:
        """What time travel takes: the agent where one is known, else the store."""
        return self.store if self.agent is None else self.agent

    def resume(self, thread_id: str, answers: dict[str, Any] | None = None) -> None:
        """Go on with a run in the background.

        Args:
            thread_id: its thread.
            answers: by the ids of the open questions; None to go on as after a crash.

        Raises:
            InputError: no agent is known.
        """
        if self.agent is None or self.tasks is None:
            raise InputError("no agent is known here; start `locus view FILE:AGENT` to resume runs from a page")
        self.failures.pop(thread_id, None)
        self.tasks.start_soon(self._resume, self.agent, thread_id, answers)

    async def _resume(self, agent: Agent[Any, Any], thread_id: str, answers: dict[str, Any] | None) -> None:
        try:
            await agent.resume(thread_id, answers)
        except Exception as e:  # noqa: BLE001 - the agent is a program of its own; its error must not end the server
            self.failures[thread_id] = f"{type(e).__name__}: {e}"
