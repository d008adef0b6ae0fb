"""`HandlerTable`: what runs the steps of workflows, by the names of their handlers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self, TypeVar

from locus import Agent
from locus.core.errors import ConfigError, UnknownName
from locus_plugin_workflow.agents import handler_of
from locus_plugin_workflow.definition import StepDef, WorkflowDef

if TYPE_CHECKING:
    from locus.core.events import Event

__all__ = ["HandlerTable"]

_Function = TypeVar("_Function", bound=Callable[[Any], Any])


class HandlerTable:
    """The handlers of a worker.

    Args:
        on_event: hears the events of the runs of agents among them, but for the chunks of answers.
    """

    def __init__(self, on_event: Callable[[Event], None] | None = None) -> None:
        self._handlers: dict[str, Any] = {}
        self._on_event = on_event

    def handle(self, name: str, handler: Callable[[Any], Any] | Agent[Any, Any]) -> Self:
        """Say what runs the steps whose handler has this name.

        Args:
            name: as in the workflow.
            handler: an async function of a `TaskContext`, a plain one of a `SyncTaskContext`, or an agent.

        Raises:
            ConfigError: the name is taken, or the handler is neither.
        """
        if not isinstance(name, str) or not name:
            raise ConfigError(f"name: expected the name of a handler, got {name!r}")
        if self._handlers.get(name, handler) is not handler:
            raise ConfigError(f"this worker has another handler with the name {name!r}; choose another name")
        if not isinstance(handler, Agent) and not callable(handler):
            raise ConfigError(f"handler {name!r}: expected a function or an agent, got {handler!r:.80}")
        handler_of(handler)
        self._handlers[name] = handler
        return self

    def handler(self, name: str) -> Callable[[_Function], _Function]:
        """The same as `handle`, as a decorator."""

        def register(function: _Function) -> _Function:
            self.handle(name, function)
            return function

        return register

    def add(self, workflow: WorkflowDef) -> Self:
        """Know the handlers that a workflow was given as functions or agents."""
        for name, handler in workflow.local.items():
            self.handle(name, handler)
        return self

    def find(self, name: str) -> Any:
        """What runs the steps whose handler has this name.

        Raises:
            UnknownName: this worker has none.
        """
        if name not in self._handlers:
            raise UnknownName("handler", name, self._handlers)
        handler = self._handlers[name]
        if isinstance(handler, Agent) and self._on_event is not None:
            handler = handler.with_listener("workflow", self._on_event)
        return handler_of(handler)

    def check_handlers(self, steps: Iterable[StepDef]) -> None:
        """Insist on a handler for each of some steps.

        Raises:
            UnknownName: one of them has no handler here.
        """
        for step in steps:
            if step.handler not in self._handlers:
                hint = f"step {step.name!r} needs it; add it with handle(name, handler) or handlers="
                raise UnknownName("handler", step.handler, self._handlers, hint)

    Handle = handle
