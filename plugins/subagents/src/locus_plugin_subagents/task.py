"""`task`: the tool with which a model gives a piece of its work to a subagent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from locus import Agent, AgentResult, ToolContext, tool
from locus.core.errors import ToolError
from locus.models import Model
from locus.plugin import Lazy
from locus.tools import Tool
from locus_kit.tool_names import add_child_tools
from locus_plugin_subagents.crew import Crew
from locus_plugin_subagents.definition import MAX_DESCRIPTION, SubAgentDef

__all__ = ["TASK", "SubAgentFailed", "make_task", "task_tool"]

signals: Any = Lazy("locus.observability.emit")

TASK = "task"

#: What ends a run whose model answers with nothing.
_EMPTY = "EmptyAnswer"

#: How much of a wrong name, of a reason and of a last message an error shows, in characters.
_NAME_SHOWN, _REASON_SHOWN, _SAID_SHOWN = 100, 1_000, 500

_DESCRIPTION = """\
Give a piece of work to a subagent, which does it alone and answers once.

Use it for work that can be described completely and whose steps do not matter here, only its result. A subagent sees \
nothing of this conversation: say all that it has to know, and what its answer should hold. The user does not see its \
answer. Independent pieces of work run at the same time if you call this several times in one turn.

The subagents:
{}"""


class SubAgentFailed(ToolError):
    """A subagent has ended without an answer; the text says why, for the model of the agent that it worked for."""


def task_tool(subagents: Iterable[SubAgentDef], *, parent_model: str | Model) -> Tool[..., Any]:
    """The tool `task`, for ``Agent(tools=[...])``.

    Its ``_subagent_catalog`` has the lines of the subagents, which its description ends with.

    Args:
        subagents: at least one. Each agent is built now, once.
        parent_model: of those that have no model of their own.

    Raises:
        ValueError: the list is empty, or two have one name.
        ConfigError: one cannot be built.
    """
    crew = Crew(subagents)
    crew.build(parent_model)
    return make_task(crew, lambda each: crew.agent(each, each.model if each.model is not None else parent_model))


def make_task(crew: Crew, find_agent: Callable[[SubAgentDef], Agent[Any, Any]]) -> Tool[..., Any]:
    """The tool.

    Args:
        crew: the subagents.
        find_agent: the agent of a definition, in the run that calls.
    """
    available = ", ".join(crew.names)
    # Asked for here and not in the body: from now on hooks may listen to these events.
    spawned = signals.EV_DEEPAGENT_SUBAGENT_SPAWNED

    # The child has a journal of its own, so a call that a crash interrupted goes on with it: "pure". What the child has
    # seen is the label of its result, and it gets the label of what its prompt was written from, with all guards: so
    # who it reaches is decided at its own calls.
    @tool(
        name=TASK,
        description=_DESCRIPTION.format(crew.catalogue),
        effect="pure",
        reads="user",
        targets=(),
        egress=False,
    )
    async def task(subagent_type: str, description: str, ctx: ToolContext[Any] | None = None) -> str:
        """Give a piece of work to a subagent.

        Args:
            subagent_type: The name of the subagent.
            description: The work, with everything that the subagent has to know.
            ctx: Of the call; None where the function is called by itself.
        """
        definition = crew.get(subagent_type)
        if definition is None:
            shown = subagent_type if len(subagent_type) <= _NAME_SHOWN else f"{subagent_type[:_NAME_SHOWN]}..."
            return f"unknown subagent_type {shown!r}; available: {available}"
        _check(description)
        agent = find_agent(definition)
        await signals.emit(
            spawned,
            subagent_type=subagent_type,
            description_preview=description,
            max_iterations=definition.max_iterations,
        )
        began = time.perf_counter()
        try:
            result = await (agent.run(description) if ctx is None else ctx.run_child(agent, description))
            answer = find_answer(definition, result)
        except Exception:  # not a question to a person, with whose answer the subagent goes on
            await _emit_completed(definition, "", began)
            raise
        await _emit_completed(definition, answer, began)
        return answer

    object.__setattr__(task, "_subagent_catalog", crew.catalogue)
    add_child_tools(task, crew.tool_names)
    return task


async def _emit_completed(definition: SubAgentDef, answer: str, began: float) -> None:
    await signals.emit(
        signals.EV_DEEPAGENT_SUBAGENT_COMPLETED,
        subagent_type=definition.name,
        output_length=len(answer),
        duration_ms=(time.perf_counter() - began) * 1000,
        success=answer != "",
    )


def _check(description: str) -> None:
    size = len(description.encode("utf-8", "surrogatepass"))
    if size > MAX_DESCRIPTION:
        raise ToolError(
            f"description must have at most {MAX_DESCRIPTION:,} bytes, got {size:,}; say it in fewer words, or name "
            "where the rest can be read"
        )
    if not description.strip():
        raise ToolError("description must say what the subagent is to do, got an empty one")


def find_answer(definition: SubAgentDef, result: AgentResult[Any]) -> str:
    """The answer of a subagent; ``""`` where its model gave an empty one.

    Raises:
        SubAgentFailed: it has none.
    """
    ending, last = result.ending, result.state.last_assistant
    if _EMPTY in ending.satisfied:
        return ""
    # An answer counts that came at the same time as a limit.
    if not (ending.is_failure or ending.is_cancelled or last is None or last.tool_calls):
        return result.text
    why = ending.error_text or (result.error if isinstance(result.error, str) else "") or ending.detail
    text = f"subagent {definition.name!r} has no answer: {ending.reason}"
    if why:
        text += f": {why[:_REASON_SHOWN]}"
    said = "" if last is None else last.text.strip()
    if said:
        text += f"\nIts last message: {said[:_SAID_SHOWN]}{'...' if len(said) > _SAID_SHOWN else ''}"
    raise SubAgentFailed(text)
