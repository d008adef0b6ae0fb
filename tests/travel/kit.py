"""What the tests of replays share: an agent, and the same agent on another day, whose model answers nothing."""

from __future__ import annotations

from typing import Any

from attrs import frozen
from tests.loop.kit import add, confirm

from locus import Agent, Hook, Message, ModelRequest, ModelResponse, Revise
from locus.plugin import hookimpl
from locus_testkit import ScriptedModel

__all__ = ["Answer", "Dead", "Strict", "dead", "judge", "made", "same"]


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
    found = await agent.replay(thread, **how)
    assert found, str(found)
    assert (found.difference, found.checked) == (None, len(await agent.history(thread)))
