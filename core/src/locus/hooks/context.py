"""`RunContext`: what a hook sees of the run; and `ConversationManager`: what of a conversation a model gets to see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from attrs import field

from locus.core.events import Event
from locus.core.frozen import EMPTY, FrozenDict, freeze, frozen
from locus.core.state import AgentState
from locus.tools.context import Stash

if TYPE_CHECKING:
    from locus.core.directives import Directive
    from locus.core.messages import Message
    from locus.journal.effects import Clock
    from locus.models.protocol import Model, ModelRequest, ModelResponse
    from locus.tools.registry import ToolRegistry

T = TypeVar("T")


class RunContext(Protocol):
    """The run, as hooks and nodes see it. Everything that has an effect goes through here."""

    @property
    def run_id(self) -> str:
        """The run's id."""

    @property
    def thread_id(self) -> str:
        """The thread the run belongs to."""

    @property
    def state(self) -> AgentState:
        """The state as last committed, or as the node under way last showed it."""

    @property
    def deps(self) -> Any:
        """What the caller passed as ``deps=``."""

    @property
    def registry(self) -> ToolRegistry:
        """The tools of the run: their names, what the model reads of them, and whether arguments fit."""

    @property
    def stash(self) -> Stash:
        """Where a plugin keeps what belongs to this run."""

    @property
    def deadline(self) -> float | None:
        """Seconds on `anyio.current_time` by which the run must end, or None."""

    @property
    def clock(self) -> Clock:
        """The source of time of the run; code that measures or waits by it can be tested without waiting."""

    @property
    def cancelled(self) -> str | None:
        """The reason of a cancel that is on its way (maybe empty), or None; check it in a loop that waits."""

    async def emit(self, event: Event) -> Directive | None:
        """Send an event to all listeners; fills in its envelope.

        Returns:
            The strictest directive of the listeners, or None.

        Raises:
            ValueError: this event was emitted before.
        """

    async def step(self, name: str, fn: Callable[[], Awaitable[T]], *, effect: str = "once") -> T:
        """Run an effect once per run: after a crash its recorded result is returned.

        Args:
            name: stable and unique within the node under way.
            fn: the effect. Its result must have a JSON form.
            effect: ``"pure"``, ``"keyed"`` or ``"once"``: what may happen after a crash in the middle.
        """

    async def call_model(
        self, request: ModelRequest, *, model: Model | str | None = None, purpose: str
    ) -> ModelResponse:
        """Ask a model: recorded, charged to the run, budgets checked first.

        Args:
            request: what to ask.
            model: another model than the run's.
            purpose: what for, shown in events; anything but ``"think"``. ``"quarantined"``, for text that is not
                trusted: a request without tools and with an output schema, whose answer is labelled as untrusted.

        Raises:
            ModelError: the call failed.
            BudgetExceeded: a condition of the run, or of one above it, forbids it; no call was made.
            ValueError: a quarantined call has tools, or no output schema.
        """

    async def think(self, state: AgentState, given: Message | None = None) -> AgentState:
        """The kernel's own Think, for a plugin's `locus_think` that leaves a part of the work to it.

        It ends a Think: call it once, and return what it returns.

        Args:
            state: what to think on; another one than the hook was given, if need be.
            given: an answer that needs no model, such as calls that a plan asks for. Everything else is as with the
                model's: it is recorded and emitted, its calls are executed, and one without calls is reviewed; but a
                hook's `Retry` does not concern it. None = the model is asked.

        Raises:
            ValueError: ``given`` is not a message of the assistant.
        """

    def report(self, plugin: str, value: Any) -> None:
        """Put something into ``AgentResult.reports`` under the plugin's name."""

    def cancel(self, reason: str = "") -> None:
        """End the run at the next safe point."""


# Holds the run, and nothing once it has ended: tasks that outlive it have copied the context.
_CURRENT: ContextVar[Sequence[RunContext]] = ContextVar("locus_run", default=())


def current_run() -> RunContext | None:
    """The run in which this code is called, for code that is not given one; None outside of a run, and after it.

    Hooks and bodies of tools have it, and so do the tasks and anyio's worker threads that they start; in a child run it
    is the child.
    """
    return next(iter(_CURRENT.get()), None)


@contextmanager
def as_current(run: RunContext) -> Iterator[None]:
    """Let `current_run` give a run to all code that is called in the block."""
    held = [run]
    token = _CURRENT.set(held)
    try:
        yield
    finally:
        held.clear()
        with suppress(ValueError):  # a run that is closed from outside is left in another context
            _CURRENT.reset(token)


# -- conversations -----------------------------------------------------------------------------------


@frozen
class View:
    """The messages of one request.

    Args:
        messages: what the model sees; the very tuple ``state.messages`` when nothing had to be left out.
        metadata: what the manager wants to find in ``state.metadata`` on later turns; Think puts it there.
    """

    messages: tuple[Message, ...]
    metadata: FrozenDict[str, Any] = field(default=EMPTY, converter=freeze)


@runtime_checkable
class ConversationManager(Protocol):
    """Keeps a long conversation inside the model's window.

    An implementation is shared by all runs of an agent, so it holds no state of a run: what must last goes
    into `View.metadata`, what may be lost into ``run.stash``.
    """

    async def view(self, state: AgentState, run: RunContext) -> View:
        """The messages of the next request; ``state.messages`` itself is never edited.

        Args:
            state: the state before the model call.
            run: for a model call (``run.call_model``), a report, and the stash.
        """
