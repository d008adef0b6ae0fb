"""How many runs may be within each other: a limit with a message, long before the interpreter's stack is full."""

from __future__ import annotations

from typing import Any

import pytest

from locus import Agent, AgentResult, ToolContext, tool
from locus.core.errors import BudgetExceeded, ConfigError
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


class Tower:
    """Agents that hand a task down, each to the next, and remember how deep it got."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.deepest = 0
        self.errors: list[Exception] = []

    def agent(self, level: int = 0, **options: Any) -> Agent[Any, Any]:
        self.deepest = max(self.deepest, level)

        @tool
        async def deeper(ctx: ToolContext[None]) -> str:
            """Hand the task down."""
            try:
                return str((await ctx.run_child(self.agent(level + 1), "Go on.")).text)
            except BudgetExceeded as e:
                self.errors.append(e)
                raise

        model = ScriptedModel(call("deeper"), f"level {level}")
        return Agent(model, tools=[deeper], name=f"level-{level}", **{**self.options, **options})


async def test_a_row_of_children_ends_with_a_message_and_every_run_above_goes_on() -> None:
    tower = Tower()

    result = await tower.agent().run("Go down.")

    assert tower.deepest == 17  # the agent was made, and not run
    assert [(e.reason, "max_depth" in str(e)) for e in tower.errors if isinstance(e, BudgetExceeded)] == [
        ("max_depth", True)
    ]
    assert result.text == "level 0"
    assert result.stop_reason == "NoToolCalls"


async def test_the_limit_of_any_agent_above_counts() -> None:
    tower = Tower()

    await tower.agent(max_depth=3).run("Go down.")

    assert tower.deepest == 4


async def test_an_agent_may_have_no_children_at_all() -> None:
    tower = Tower()

    result: AgentResult[Any] = await tower.agent(max_depth=0).run("Go down.")

    [execution] = result.state.tool_executions
    assert tower.deepest == 1
    assert "max_depth" in str(execution.error)


async def test_as_many_levels_as_may_be_asked_for_fit_the_stack() -> None:
    tower = Tower(max_depth=32)

    result = await tower.agent().run("Go down.")

    assert tower.deepest == 33
    assert [type(e) for e in tower.errors] == [BudgetExceeded]
    assert result.text == "level 0"


@pytest.mark.parametrize("depth", [-1, 33, 1.5, True, None, "3"])
def test_a_depth_that_cannot_be_is_refused(depth: Any) -> None:
    with pytest.raises(ConfigError, match="max_depth must be an integer from 0 to 32"):
        Agent(ScriptedModel(), max_depth=depth)
