"""`ToolContext`: what a tool body may ask of the run that called it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from locus.journal.effects import CallerCancel, CutScope

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from locus.core.directives import Option

T = TypeVar("T")
if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    Deps = DefaultTypeVar("Deps", default=Any)
else:
    Deps = TypeVar("Deps")


class ToolContext(ABC, Generic[Deps]):
    """Injected into a tool's parameter annotated ``ToolContext[Deps]``; left out of the tool's schema.

    A run makes them. Code that enters tools outside of a run derives a class of its own.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def call_id(self) -> str:
        """The id that the model gave the call."""

    @property
    @abstractmethod
    def idempotency_key(self) -> str:
        """The same on every attempt at this call, across crashes too: give it to services that deduplicate."""

    @property
    @abstractmethod
    def deps(self) -> Deps:
        """What the caller passed to ``agent.run(deps=...)``; never journalled."""

    @property
    @abstractmethod
    def run_id(self) -> str:
        """The run's id."""

    @property
    @abstractmethod
    def thread_id(self) -> str:
        """The thread the run belongs to."""

    @property
    @abstractmethod
    def deadline(self) -> float | None:
        """Seconds on `anyio.current_time` by which the body must end, or None."""

    @abstractmethod
    def interrupt(self, question: str, *, options: Sequence[str | Option] = ()) -> Any:
        """Ask a person. The body is left here and entered again from its top once there is an answer.

        Args:
            question: what the person reads.
            options: the answers to choose from, texts or `Option`; empty for a free answer.

        Returns:
            The answer, when the body runs again, of an option its label; several questions get their answers in order.
        """

    @abstractmethod
    async def step(self, name: str, fn: Callable[[], Awaitable[T]], *, effect: str = "once") -> T:
        """Run an effect once although the body may run again: its recorded result counts.

        Args:
            name: stable and unique within this body.
            fn: the effect; its result must have a JSON form.
            effect: ``"pure"``, ``"keyed"`` or ``"once"``.
        """

    @abstractmethod
    async def run_child(
        self, agent: Any, prompt: Any, *, budget: Any = None, without_guards: Collection[str] = ()
    ) -> Any:
        """Run another agent as a step of this run; gives its `AgentResult`.

        Args:
            agent: an `Agent`.
            prompt: what to run it on.
            budget: a `Budget` with limits of tokens, dollars and iterations; the smaller of it and what
                is left of this call's part of the run's tokens and dollars counts.
            without_guards: the names of guards of this run that do not hold in the child, nor below it. Every other
                one decides about the child's calls, filters its texts and reviews its answers as it does here.

        Raises:
            BudgetExceeded: nothing is left, or ``max_depth`` allows no further level; the child was not started.
        """

    @abstractmethod
    async def emit_progress(
        self, progress: float | None = None, *, total: float | None = None, message: str = ""
    ) -> None:
        """Say how far the body is; shown live as a `ToolProgressEvent`."""

    def cut_scope(self) -> CutScope:
        """A block that is left at once when the caller cancels the run; the body goes on behind it.

        Without one a body finishes. ``is_cut`` says afterwards whether the block was left; a body that then cannot know
        what it has caused raises `locus.core.errors.OutcomeUnknown`.
        """
        return CutScope(CallerCancel())
