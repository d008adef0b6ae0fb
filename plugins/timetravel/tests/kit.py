"""What the tests of replays share: an agent, and the same agent on another day, whose model answers nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

from attrs import frozen

import locus_plugin_timetravel as timetravel
from locus import (
    Agent,
    AgentResult,
    AgentState,
    Hook,
    Message,
    ModelRequest,
    ModelResponse,
    Revise,
    Role,
    ToolContext,
    tool,
)
from locus.plugin import hookimpl
from locus_testkit import ScriptedModel

__all__ = [
    "Answer",
    "Crash",
    "Dead",
    "Strict",
    "add",
    "bodies",
    "confirm",
    "dead",
    "judge",
    "made",
    "question",
    "results",
    "same",
]


#: How often the bodies below were entered; a test that counts clears it first.
bodies: Counter[str] = Counter()


@tool
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    bodies["add"] += 1
    return a + b


@tool
async def confirm(what: str, ctx: ToolContext[Any]) -> str:
    """Ask a person."""
    bodies["confirm"] += 1
    return f"{what}: {ctx.interrupt(f'Shall I {what}?')}"


class Crash(GeneratorExit):
    """The process dies here: no clean-up of the run may count on it."""


def results(done: AgentState | AgentResult[Any]) -> list[str]:
    """The texts of the tool results, in order."""
    state = done if isinstance(done, AgentState) else done.state
    found = [result for message in state.messages for result in message.tool_results]
    return [r.content if isinstance(r.content, str) else repr(r.content) for r in found]


def question(text: str) -> ModelRequest:
    """A request of a plugin."""
    return ModelRequest(messages=(Message(Role.USER, text),), purpose="judge")


@frozen
class Answer:
    n: int


class Strict(Hook):
    """Sends answers back until one is polite."""

    @hookimpl
    def locus_review_answer(self, answer: Message) -> Revise | None:
        return None if "please" in answer.text else Revise("Be polite.")


class Dead:
    """A model that must not be asked, under the name of one that was."""

    name = "scripted:model"
    price = None

    async def complete(self, request: ModelRequest, on_chunk: Any = None) -> ModelResponse:
        raise AssertionError("a replay asked the model")


def made(store: Any, *script: Any, **options: Any) -> Agent[Any, Any]:
    """An agent that runs."""
    return _agent(ScriptedModel(*script), store, options)


def dead(store: Any, **options: Any) -> Agent[Any, Any]:
    """An agent that replays."""
    return _agent(Dead(), store, options)


def _agent(model: Any, store: Any, options: dict[str, Any]) -> Agent[Any, Any]:
    usual: dict[str, Any] = {"tools": [add, confirm], "checkpointer": store, "name": "a", "max_iterations": 20}
    return Agent[Any, Any](model, **{**usual, **options})


def judge(name: str, settings: Any) -> ScriptedModel:
    """What a plugin provides as models."""
    return ScriptedModel("fine", name=f"acme:{name}", after="repeat")


async def same(agent: Agent[Any, Any], thread: str = "t", **how: Any) -> None:
    """A replay finds no difference."""
    found = await timetravel.replay(agent, thread, **how)
    assert found, str(found)
    assert (found.difference, found.checked) == (None, len(await timetravel.history(agent, thread)))
