"""`Workflow`: steps, their bounds and their dependencies, collected and then built into a `WorkflowDef`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, Self, TypeAlias

from locus import Agent
from locus.core import FrozenDict
from locus.core.errors import ConfigError, closest
from locus_plugin_workflow.definition import (
    AgentLoopConfig,
    Dispatch,
    Duration,
    RetryPolicy,
    StepDef,
    StepType,
    StepTypeAgentLoop,
    StepTypeNormal,
    WorkflowDef,
    check_name,
)
from locus_plugin_workflow.errors import InvalidWorkflow

__all__ = ["Handler", "NewWorkflow", "StepBuilder", "Workflow"]

#: What runs a step: the name by which a worker knows it, a function of a `TaskContext`, or an agent.
Handler: TypeAlias = "str | Callable[[Any], Any] | Agent[Any, Any]"


class Workflow:
    """A workflow under construction.

    Args:
        name: of the workflow, 1 to 200 characters without ``/``.
        version: any text, recorded with each run.

    Example::

        wf = Workflow("code-review")
        wf.agent_loop("review", "llm-review").with_max_iterations(10).with_timeout(30)
        definition = wf.build()
    """

    def __init__(self, name: str, *, version: str = "") -> None:
        self.name, self.version = name, version
        self._steps: list[StepBuilder] = []

    def agent_loop(self, step: str, handler: Handler, depends_on: Iterable[str] | str = ()) -> StepBuilder:
        """Add a step that iterates until its handler, or a bound, ends it; give it ``with_max_iterations``.

        Args:
            step: its name, unique in the workflow.
            handler: what runs each iteration. An agent needs no handler: it iterates by itself, see ``with_dispatch``.
            depends_on: the steps that must be completed before.
        """
        return self._add(StepTypeAgentLoop, step, handler, depends_on)

    def step(self, step: str, handler: Handler, depends_on: Iterable[str] | str = ()) -> StepBuilder:
        """Add a step that is executed once.

        Args:
            step: its name, unique in the workflow.
            handler: what runs it.
            depends_on: the steps that must be completed before.
        """
        return self._add(StepTypeNormal, step, handler, depends_on)

    def build(self) -> WorkflowDef:
        """The finished definition.

        Raises:
            InvalidWorkflow: the steps do not make a workflow; every problem is named with its step.
        """
        problems: list[str] = []
        try:
            check_name("name", self.name)
        except ConfigError as e:
            problems.append(str(e))
        names = [builder.name for builder in self._steps]
        if not names:
            problems.append("it has no steps; add one with agent_loop(step, handler) or step(step, handler)")
        for name in dict.fromkeys(name for name in names if isinstance(name, str)):
            if names.count(name) > 1:
                problems.append(f"step {name!r}: {names.count(name)} steps have this name; each needs its own")
        for builder in self._steps:
            problems += builder._find_problems(names)  # noqa: SLF001  one class in two: a step is a part of it
        local = self._find_local(problems)
        ordered = self._order(problems)
        if not problems:
            try:
                steps = tuple(builder._define() for builder in ordered)  # noqa: SLF001
                return WorkflowDef(name=self.name, version=self.version, steps=steps, local=FrozenDict(local))
            except ConfigError as e:
                problems.append(str(e))
        raise InvalidWorkflow(self.name, problems)

    def _add(self, kind: StepType, step: str, handler: Handler, depends_on: Iterable[str] | str) -> StepBuilder:
        made = StepBuilder(self, kind, step, handler)
        self._steps.append(made)
        is_one = isinstance(depends_on, str) or not isinstance(depends_on, Iterable)
        return made.depends_on(*((depends_on,) if is_one else depends_on))

    def _find_local(self, problems: list[str]) -> Mapping[str, Any]:
        """The handlers that were given as objects, by name."""
        found: dict[str, Any] = {}
        for builder in self._steps:
            given = builder.given
            if isinstance(given, str) or not isinstance(builder.handler, str):
                continue
            if found.setdefault(builder.handler, given) is not given:
                problems.append(
                    f"step {builder.name!r}: another handler of this workflow has the name {builder.handler!r}; "
                    "give one of them another name"
                )
        return found

    def _order(self, problems: list[str]) -> list[StepBuilder]:
        """The steps, each behind what it depends on, else in the order in which they were added."""
        by_name = {builder.name: builder for builder in self._steps if isinstance(builder.name, str)}
        graph = {
            name: [each for each in builder.dependencies if isinstance(each, str) and each in by_name and each != name]
            for name, builder in by_name.items()
        }
        try:
            return [by_name[name] for name in TopologicalSorter(graph).static_order()]
        except CycleError as e:
            problems.append(f"step {e.args[1][0]!r}: it depends on itself: {' -> '.join(reversed(e.args[1]))}")
            return []

    AgentLoop = agent_loop
    Step = step
    Build = build


#: The source's spelling.
NewWorkflow = Workflow


class StepBuilder:
    """A step under construction: what `Workflow.agent_loop` and `Workflow.step` return. Methods return the step.

    What they are given is checked by ``build``, which names the step. ``agent_loop``, ``step`` and ``build`` are those
    of the workflow, so that a workflow can be written as one chain.
    """

    def __init__(self, workflow: Workflow, kind: StepType, name: str, handler: Handler) -> None:
        self._workflow = workflow
        self._config: dict[str, Any] = {}
        self._options: dict[str, Any] = {}
        #: What was given for the handler, and the name by which workers know it.
        self.given, self.handler = handler, _handler_name(handler) or name
        self.name, self.type = name, kind
        #: The steps that it depends on.
        self.dependencies: tuple[str, ...] = ()

    def with_max_iterations(self, n: int) -> Self:
        """How many iterations there are at most: exactly this many handler runs, and then the step fails."""
        self._config["max_iterations"] = n
        return self

    def with_max_duration(self, duration: Duration) -> Self:
        """How long the loop may take, from the start of its first iteration; 0 = unlimited."""
        self._config["max_duration"] = duration
        return self

    def with_loop_delay(self, duration: Duration) -> Self:
        """How long to wait between an iteration and the next dispatch."""
        self._config["loop_delay"] = duration
        return self

    def with_timeout(self, duration: Duration) -> Self:
        """How long one iteration may take, from its recorded start; 0 = unlimited."""
        self._options["timeout"] = duration
        return self

    def with_retry(self, retry: RetryPolicy | int) -> Self:
        """What follows a failed attempt: a policy, or how often an iteration is tried in all."""
        self._options["retry"] = retry
        return self

    def with_dispatch(self, dispatch: Dispatch) -> Self:
        """``"iteration"``: each iteration is a dispatch of its own. ``"run"``: a worker keeps it to its end."""
        self._options["dispatch"] = dispatch
        return self

    def depends_on(self, *steps: str) -> Self:
        """The steps that must be completed before this one begins; their outputs are its input."""
        for step in steps:  # by no hash: what is not a name is kept, so that `build` can say so
            if step not in self.dependencies:
                self.dependencies += (step,)
        return self

    def agent_loop(self, step: str, handler: Handler, depends_on: Iterable[str] | str = ()) -> StepBuilder:
        """Add another step to the workflow, see `Workflow.agent_loop`."""
        return self._workflow.agent_loop(step, handler, depends_on)

    def step(self, step: str, handler: Handler, depends_on: Iterable[str] | str = ()) -> StepBuilder:
        """Add another step to the workflow, see `Workflow.step`."""
        return self._workflow.step(step, handler, depends_on)

    def build(self) -> WorkflowDef:
        """The finished definition, see `Workflow.build`."""
        return self._workflow.build()

    def _find_problems(self, names: list[str]) -> list[str]:
        found = []
        for needed in self.dependencies:
            if not isinstance(needed, str):
                found.append(f"it depends on {needed!r:.80}; expected the name of a step, as in depends_on('a', 'b')")
            elif needed == self.name:
                found.append("it depends on itself")
            elif needed not in names:
                near = closest(needed, [name for name in names if isinstance(name, str)])
                hint = f"; did you mean {near!r}?" if near else ""
                found.append(f"it depends on {needed!r}, which is not a step of the workflow{hint}")
        if self.type == StepTypeAgentLoop and "max_iterations" not in self._config:
            found.append("an agent loop needs a bound; give it with_max_iterations(n)")
        elif self.type == StepTypeNormal and self._config:
            found.append(f"{', '.join(self._config)}: only an agent loop has these; make it one, or leave them out")
        try:
            self._define()
        except ConfigError as e:
            found.append(str(e))
        except TypeError:
            pass  # max_iterations is missing: said above
        return [f"step {self.name!r}: {problem}" for problem in found]

    def _define(self) -> StepDef:
        options = dict(self._options)
        retry = options.pop("retry", None)
        if isinstance(retry, int):
            retry = RetryPolicy(retry)
        elif retry is not None and not isinstance(retry, RetryPolicy):
            raise ConfigError(f"retry: expected a RetryPolicy or a number of attempts, got {retry!r}")
        dispatch = options.pop("dispatch", "run" if isinstance(self.given, Agent) else "iteration")
        if dispatch not in ("run", "iteration"):
            raise ConfigError(f"dispatch: expected 'run' or 'iteration', got {dispatch!r}")
        return StepDef(
            name=self.name,
            type=self.type,
            handler=self.handler,
            depends_on=self.dependencies,
            config=AgentLoopConfig(**self._config) if self.type == StepTypeAgentLoop else None,
            retry=retry or RetryPolicy(),
            dispatch=dispatch,
            **options,
        )

    WithMaxIterations = with_max_iterations
    WithMaxDuration = with_max_duration
    WithLoopDelay = with_loop_delay
    WithTimeout = with_timeout
    WithRetry = with_retry
    DependsOn = depends_on
    AgentLoop = agent_loop
    Step = step
    Build = build


def _handler_name(handler: Any) -> str:
    if isinstance(handler, str):
        return handler
    return str(getattr(handler, "name", None) or getattr(handler, "__name__", "") or "")
