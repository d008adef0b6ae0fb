"""`ToolContext`: what a tool body may ask of the run that called it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["ToolContext", "ToolHost"]

T = TypeVar("T")
if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    Deps = DefaultTypeVar("Deps", default=Any)
else:
    Deps = TypeVar("Deps")


class ToolHost(Protocol):
    """What the loop offers a tool body; `ToolContext` is its face."""

    @property
    def run_id(self) -> str:
        """The run's id."""
        ...

    @property
    def thread_id(self) -> str:
        """The run's thread."""
        ...

    @property
    def deps(self) -> Any:
        """The caller's ``deps=``."""
        ...

    @property
    def deadline(self) -> float | None:
        """When the body must end."""
        ...

    def interrupt(self, question: str, options: tuple[str, ...]) -> Any:
        """The answer, or leave the body."""
        ...

    async def step(self, name: str, fn: Callable[[], Awaitable[Any]], effect: str) -> Any:
        """Run an effect once."""
        ...

    async def run_child(self, agent: Any, prompt: Any, budget: Any) -> Any:
        """Run an agent as a part of this run."""
        ...

    async def emit_progress(self, progress: float | None, total: float | None, message: str) -> None:
        """Show progress."""
        ...


class ToolContext(Generic[Deps]):
    """Injected into a tool's parameter annotated ``ToolContext[Deps]``; left out of the tool's schema."""

    __slots__ = ("_host", "call_id", "idempotency_key")

    def __init__(self, host: ToolHost, call_id: str, idempotency_key: str) -> None:
        self._host = host
        self.call_id = call_id
        #: The same on every attempt at this call, across crashes too: give it to services that deduplicate.
        self.idempotency_key = idempotency_key

    @property
    def deps(self) -> Deps:
        """What the caller passed to ``agent.run(deps=...)``; never journalled."""
        deps: Deps = self._host.deps
        return deps

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._host.run_id

    @property
    def thread_id(self) -> str:
        """The thread the run belongs to."""
        return self._host.thread_id

    @property
    def deadline(self) -> float | None:
        """Seconds on `anyio.current_time` by which the body must end, or None."""
        return self._host.deadline

    def interrupt(self, question: str, *, options: tuple[str, ...] | list[str] = ()) -> Any:
        """Ask a person. The body is left here and entered again from its top once there is an answer.

        Args:
            question: what the person reads.
            options: the answers to choose from; empty for a free answer.

        Returns:
            The answer, when the body runs again; several questions get their answers in order.
        """
        return self._host.interrupt(question, tuple(options))

    async def step(self, name: str, fn: Callable[[], Awaitable[T]], *, effect: str = "once") -> T:
        """Run an effect once although the body may run again: its recorded result stands.

        Args:
            name: stable and unique within this body.
            fn: the effect; its result must have a JSON form.
            effect: ``"pure"``, ``"keyed"`` or ``"once"``.
        """
        result: T = await self._host.step(name, fn, effect)
        return result

    async def run_child(self, agent: Any, prompt: Any, *, budget: Any = None) -> Any:
        """Run another agent as a step of this run; gives its `AgentResult`.

        Args:
            agent: an `Agent`.
            prompt: what to run it on.
            budget: a `Budget` with limits of tokens, dollars and iterations; the smaller of it and what
                is left of this run's counts.
        """
        return await self._host.run_child(agent, prompt, budget)

    async def emit_progress(
        self, progress: float | None = None, *, total: float | None = None, message: str = ""
    ) -> None:
        """Say how far the body is; shown live as a `ToolProgressEvent`."""
        await self._host.emit_progress(progress, total, message)
