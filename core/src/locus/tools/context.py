"""`ToolContext`: what a tool body may ask of the run that called it; and `Stash`, what plugins keep for one run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from locus.journal.effects import CallerCancel, CutScope

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from locus.core.directives import Directive, Option
    from locus.core.events import Event
    from locus.core.state import AgentState
    from locus.models.protocol import Model, ModelRequest, ModelResponse

T = TypeVar("T")
D = TypeVar("D")
if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    Deps = DefaultTypeVar("Deps", default=Any)
else:
    Deps = TypeVar("Deps")


class StashKey(Generic[T]):
    """The key of one value; make it once, at module level. Two keys are never equal."""

    __slots__ = ("name",)

    def __init__(self, name: str = "") -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"StashKey({self.name!r})"


class Stash:
    """Typed storage of plugins for one run; it lives as long as the run and is never saved."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[StashKey[Any], Any] = {}

    def __setitem__(self, key: StashKey[T], value: T) -> None:
        self._values[key] = value

    def __getitem__(self, key: StashKey[T]) -> T:
        return cast("T", self._values[key])

    def __delitem__(self, key: StashKey[T]) -> None:
        del self._values[key]

    def __contains__(self, key: StashKey[T]) -> bool:
        return key in self._values

    def get(self, key: StashKey[T], default: D) -> T | D:
        """The value, or a default."""
        return cast("T | D", self._values.get(key, default))

    def setdefault(self, key: StashKey[T], default: T) -> T:
        """The value; without one, the default is stored and returned."""
        return cast("T", self._values.setdefault(key, default))


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

    @property
    @abstractmethod
    def state(self) -> AgentState:
        """The state of the run in which the model asked for the call; it cannot be changed."""

    @property
    @abstractmethod
    def stash(self) -> Stash:
        """Where a plugin keeps what belongs to this run; its hooks have the same as ``run.stash``."""

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
    async def call_model(
        self, request: ModelRequest, *, model: Model | str | None = None, purpose: str
    ) -> ModelResponse:
        """Ask a model as a step of this body: recorded, charged to the run, budgets checked first.

        The arguments and what is raised are those of `locus.plugin.RunContext.call_model`. A body that is entered again
        gets the recorded answer to what it asked before.
        """

    @abstractmethod
    async def emit(self, event: Event) -> Directive | None:
        """Send an event of a plugin to all listeners, and fill in its envelope: see `locus.plugin.RunContext.emit`.

        A synchronous body is in a worker thread, where it is ``anyio.from_thread.run(ctx.emit, event)``.
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
