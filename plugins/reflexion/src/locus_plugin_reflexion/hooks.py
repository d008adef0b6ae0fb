"""`ReflexionHook`: the plugin's part in the Reflect node, and in the first Think where lessons are kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from attrs import evolve

from locus.core.errors import JournalError, LocusError
from locus.core.events import ReflectEvent
from locus.core.state import AgentState
from locus.plugin import Hook, StashKey, hookimpl
from locus.tools import ToolRegistry
from locus_kit.tool_names import check_tool_names
from locus_plugin_reflexion.events import ReflectionFailedEvent
from locus_plugin_reflexion.lessons import add_lesson, recall_lessons
from locus_plugin_reflexion.reflection import Reflection, ReflexionReport
from locus_plugin_reflexion.reflector import NAME, Reflector

if TYPE_CHECKING:
    from locus.core.events import Event
    from locus.loop.router import ReflectPolicy
    from locus.models import Model
    from locus.plugin import RunContext
    from locus_plugin_reflexion.settings import ReflexionSettings

__all__ = ["ReflexionHook"]

_REPORT: StashKey[ReflexionReport] = StashKey("reflexion.report")

#: How many errors a report keeps.
_ERRORS = 5


class ReflexionHook(Hook):
    """Reflects between Execute and the next Think.

    Args:
        settings: when and by whom; None = the defaults.
        model: the judge as an object, in place of ``settings.model``.
    """

    name = NAME

    def __init__(self, settings: ReflexionSettings | None = None, *, model: Model | None = None) -> None:
        self.reflector = Reflector(settings, model=model)
        if self.reflector.settings.lessons:
            # Only where it has something to do: a wrapper of nodes is called for every node.
            self.locus_wrap_node = _recall_first

    @hookimpl
    def locus_register_events(self) -> list[type[Event]]:
        """The plugin's own event."""
        return [ReflectionFailedEvent]

    @hookimpl
    def locus_register_reflect_policies(self) -> list[ReflectPolicy]:
        """When to reflect."""
        return [self.reflector.policy]

    @hookimpl
    def locus_check_tools(self, tools: ToolRegistry) -> None:
        """Refuse names of tools that do not exist."""
        check_tool_names(self.reflector.settings.after, tools, "reflexion.after")

    @hookimpl
    async def locus_reflect(self, state: AgentState, run: RunContext) -> AgentState | None:
        """Judge the last step, unless it was another plugin that wanted to reflect on it."""
        why = self.reflector.policy(state)
        if why is None:
            return None
        try:
            reflection = await self.reflector.judge(state, run, why=why)
        except JournalError:
            raise  # no failure of the judge: this worker must not go on
        except LocusError as e:
            await _emit_failure(run, e)
            return None
        state = self.reflector.apply(state, reflection)
        if self.reflector.settings.lessons:
            state = add_lesson(state, reflection, most=self.reflector.settings.lessons)
        await _tell(run, state, reflection)
        return state


@hookimpl
async def _recall_first(
    call_next: Callable[[AgentState], Awaitable[AgentState]], node: str, state: AgentState, run: Any
) -> AgentState:
    return await call_next(recall_lessons(state) if node == "think" and state.iteration == 0 else state)


async def _tell(run: RunContext, state: AgentState, reflection: Reflection) -> None:
    report = run.stash.get(_REPORT, ReflexionReport())
    _report(run, evolve(report, reflections=report.reflections + 1, last=reflection))
    await run.emit(
        ReflectEvent(
            judgment=reflection.judgment,
            confidence=state.confidence,
            assessment=reflection.verdict.assessment,
            guidance=reflection.guidance,
        )
    )


async def _emit_failure(run: RunContext, error: LocusError) -> None:
    report = run.stash.get(_REPORT, ReflexionReport())
    told = f"{type(error).__name__}: {error}"
    _report(run, evolve(report, failures=report.failures + 1, errors=(*report.errors, told)[-_ERRORS:]))
    await run.emit(ReflectionFailedEvent(error=str(error), error_type=type(error).__name__))


def _report(run: RunContext, report: ReflexionReport) -> None:
    run.stash[_REPORT] = report
    run.report(NAME, report)
