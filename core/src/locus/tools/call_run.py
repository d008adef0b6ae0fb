"""`CallRun`: what running tool calls needs of the run, so that tools need not know the loop; and its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from locus.core.frozen import frozen
from locus.core.labels import CLEAN, Label

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from locus.core.directives import Decision, Directive
    from locus.core.events import Event
    from locus.core.messages import ToolCall
    from locus.core.state import AgentState
    from locus.core.step_id import StepId
    from locus.core.termination import Bounds
    from locus.journal.effects import CallerCancel
    from locus.journal.host import JournalHost
    from locus.models.protocol import Model, ModelRequest, ModelResponse
    from locus.tools.account import Account
    from locus.tools.context import Stash
    from locus.tools.outcome import CallOutcome
    from locus.tools.registry import ToolRegistry


@frozen(kw_only=True)
class CallLimits:
    """How many tool calls an agent makes, and how long one call of a tool or a model may take.

    Args:
        per_turn: how many calls of one turn are made; None = all.
        at_once: how many of them at the same time, 1 = one after another; None = all.
        tool_seconds: how long a body may take whose tool has no timeout of its own; None = any time.
        model_seconds: how long one attempt at the model may take, streaming included; None = any time.
        levels: how many levels of child runs there may be below a run.
    """

    per_turn: int | None = None
    at_once: int | None = None
    tool_seconds: float | None = None
    model_seconds: float | None = None
    levels: int = 16


class HostedRun(Protocol):
    """The run, as a step of any kind sees it."""

    @property
    def host(self) -> JournalHost:
        """Where steps are recorded."""

    @property
    def call_limits(self) -> CallLimits:
        """How many calls, and how long each."""

    @property
    def caller_cancel(self) -> CallerCancel:
        """Cuts off calls of models, and what bodies let it, when the caller cancels."""

    @property
    def has_listener(self) -> Callable[[type[Event]], object]:
        """Whether anybody listens to events of a kind: true or false."""

    async def emit(self, event: Event) -> Directive | None:
        """Emit an event; the strictest directive of those who listen."""

    def cancel(self, reason: str = "") -> None:
        """End the run at the next safe point."""


class StepRun(HostedRun, Protocol):
    """The run, as the body of a step sees it; `locus.loop.SegmentContext` is one."""

    @property
    def run_id(self) -> str:
        """The run's id."""

    @property
    def thread_id(self) -> str:
        """The run's thread."""

    @property
    def deps(self) -> Any:
        """The caller's ``deps=``."""

    @property
    def deadline(self) -> float | None:
        """Seconds on `anyio.current_time` by which bodies must end, or None."""

    @property
    def state(self) -> AgentState:
        """The state as last committed, or as the node under way last showed it."""

    @property
    def stash(self) -> Stash:
        """Where plugins keep what belongs to the run."""

    async def call_model(
        self, request: ModelRequest, *, model: Model | str | None = None, purpose: str, parent: StepId | None = None
    ) -> ModelResponse:
        """Ask a model in the body of a step, that is the parent."""

    async def run_child(
        self,
        agent: Any,
        prompt: Any,
        budget: Any,
        step_id: StepId,
        account: Account | None,
        answers: Any = None,
        without_guards: Collection[str] = (),
        given: Label = CLEAN,
    ) -> Any:
        """Run or resume a child run, which spends from this account."""


class CallRun(StepRun, Protocol):
    """The run, as Execute's engine sees it."""

    #: The tools.
    registry: ToolRegistry
    #: What the run's condition guarantees.
    bounds: Bounds

    @property
    def halted(self) -> bool:
        """Whether nothing more may be started."""

    #: Whether a hook decides about calls, wraps tool bodies, shortens or labels results.
    has_deciders: bool
    has_tool_wrappers: bool
    has_result_hooks: bool

    def is_out_of_time(self) -> bool:
        """Whether the time of the run is used up; the run stops then."""

    @property
    def stop_reason(self) -> str:
        """Why the run is ending."""

    #: Why a hook asked for another try last.
    retry_reason: str

    def take_retry(self) -> bool:
        """Whether a hook asked for another try."""

    async def decide(self, call: ToolCall, *, is_answered: bool = False) -> Decision:
        """Ask the deciders about a call; where a person has given it, nothing is asked of a person again."""

    async def label_result(self, call: ToolCall, outcome: CallOutcome, own: Label) -> CallOutcome:
        """The outcome with the label that hooks give it."""

    async def shorten_result(self, text: str, call: ToolCall, limit: int) -> str:
        """What is kept of the text of a result."""

    async def filter_progress(self, message: str, call: ToolCall) -> str:
        """What a body reports of its progress, as it may be emitted."""

    def wrap_tool_call(
        self, core: Callable[[ToolCall], Awaitable[CallOutcome]]
    ) -> Callable[[ToolCall], Awaitable[CallOutcome]]:
        """The onion around a body."""

    #: Whether what children spend is limited.
    is_limited: bool

    def reserve(self, ordinals: Sequence[int]) -> list[Account]:
        """What the children of each of these calls of a turn may spend."""
