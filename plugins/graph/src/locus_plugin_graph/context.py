"""`NodeContext`: the run as a node sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from attrs import define

from locus.core import EMPTY
from locus.core.journal import CHILD, STEP, Outcome, StepId
from locus.core.messages import Message, Role
from locus.models import ModelRequest
from locus.tools import StepContext, StepEntry, as_tool

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    from locus.models import Model, ModelResponse
    from locus_plugin_graph.plan import Node

    Deps = DefaultTypeVar("Deps", default=Any)
else:
    Deps = TypeVar("Deps")

__all__ = ["NodeContext", "TaskEntry"]


@define(slots=True, kw_only=True)
class TaskEntry(StepEntry):
    """One task on its way.

    Args:
        node: what it runs.
        task: its place in the super-step.
        failed: of each child of its body that has ended with a failure, its number.
        kept: what the steps of its body came to, by name.
    """

    node: Node
    task: int
    # Neither is a container of its own until there is something in it: most tasks of a hundred Sends have neither.
    failed: tuple[int, ...] = ()
    # What steps of earlier attempts came to, by their names.
    kept: Mapping[str, Any] = EMPTY


class NodeContext(StepContext, Generic[Deps]):
    """The second parameter of a node that has two: what it may ask of the run.

    Another attempt at a node keeps what the attempts before have finished: a `step` with a result on record is not run
    again, and a child that was left open goes on. What failed is tried again.
    """

    __slots__ = ()
    _entry: TaskEntry

    @property
    def node(self) -> str:
        """The name of the node."""
        return self._entry.node.name

    @property
    def attempt(self) -> int:
        """How often the node was tried before in this super-step."""
        return self._entry.attempt

    def inner_step(self, node: str, ordinal: int = 0, name: str = "") -> StepId:
        """The id of a step inside the body, that of an earlier attempt where its result is on record."""
        entry = self._entry
        if node == CHILD:
            return entry.step_id.inner(node, ordinal).at_attempt(entry.failed.count(ordinal))
        for attempt in range(entry.attempt if node == STEP else 0):
            earlier = entry.step_id.at_attempt(attempt).inner(node, ordinal, name)
            found = self._run.host.find_unchecked(earlier)
            if isinstance(found, Outcome) and found.error is None:
                return earlier
        return entry.at.inner(node, ordinal, name)

    async def step(self, name: str, fn: Callable[[], Awaitable[Any]], *, effect: str = "once") -> Any:
        """Run an effect once although the node may be entered again: its recorded result counts.

        Args:
            name: stable and unique within the node.
            fn: the effect; its result must have a JSON form.
            effect: ``"pure"``, ``"keyed"`` or ``"once"``.
        """
        entry = self._entry
        if entry.attempt and name in entry.kept:
            return entry.kept[name]
        value = await StepContext.step(self, name, fn, effect=effect)
        entry.kept = {**entry.kept, name: value}
        return value

    async def run_child(
        self, agent: Any, prompt: Any, *, budget: Any = None, without_guards: Collection[str] = ()
    ) -> Any:
        """Run another agent, or a compiled graph, as a step of this run; gives its result.

        Args:
            agent: an `Agent` or a `CompiledGraph`.
            prompt: what to run it on; for a graph a dict of values.
            budget: a `Budget`; the smaller of it and what is left of this task's part of the run's counts.
            without_guards: the names of guards of this run that do not hold in the child.

        Raises:
            BudgetExceeded: nothing is left; the child was not started.
        """
        number = self._children
        inner = getattr(agent, "agent", agent)
        given = prompt if inner is agent else agent.to_prompt(prompt)
        result = await StepContext.run_child(self, inner, given, budget=budget, without_guards=without_guards)
        if result.failed and not result.is_open:
            self._entry.failed += (number,)
        return result if inner is agent else agent.to_result(result)

    async def call_model(
        self,
        request: ModelRequest | str | Message | Sequence[Message],
        *,
        tools: Sequence[Callable[..., Any]] = (),
        model: Model | str | None = None,
        purpose: str = "node",
    ) -> ModelResponse:
        """Ask a model: recorded, charged to the run, budgets checked first.

        Args:
            request: what to ask: the user's text, a message, messages, or a whole request.
            tools: what the model may call, where no whole request is given; the node runs the calls itself.
            model: another model than the one the graph was compiled with.
            purpose: what for, shown in events.

        Raises:
            ModelError: it failed, or the graph has no model.
            BudgetExceeded: a condition of the run, or of one above it, forbids it; no call was made.
        """
        if not isinstance(request, ModelRequest):
            if isinstance(request, str):
                request = Message(Role.USER, request)
            messages = (request,) if isinstance(request, Message) else tuple(request)
            request = ModelRequest(messages=messages, tools=tuple(as_tool(each).spec for each in tools))
        return await StepContext.call_model(self, request, model=model, purpose=purpose)
