"""The request of a model call: made again by the agent, or from the record, and always with where it is from."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from locus import Agent, Hook, ModelSettings, tool
from locus.core.errors import ModelError
from locus.core.journal import ModelFailed, Outcome
from locus.journal import MemoryStore
from locus.models import ModelRequest
from locus.models.call import ModelCallResult
from locus.plugin import ConversationManager, RunContext, View, hookimpl
from locus_plugin_conversation import SlidingWindowManager, SummarizingManager
from locus_plugin_timetravel.replays.report import Walk
from locus_testkit import ScriptedModel, call

from .servers import Served, serving
from .shop import HOSTILE, SECRET

PROMPT = f"You sell lamps. The orders are in {SECRET}."
SETTINGS = ModelSettings(temperature=0.25, extras={"api_key": "hunter2", "top_k": 3})


@tool(effect="pure")
def find_order(number: int) -> str:
    """Find an order."""
    return f"order {number}: two lamps"


class Newest(ConversationManager):
    """Shows the newest message, and remembers nothing."""

    async def view(self, state: Any, run: RunContext) -> View:
        """What is shown."""
        return View(state.messages[-1:])


def make_agent(*turns: Any, store: Any = None, **options: Any) -> Agent[Any, Any]:
    """The agent whose runs are looked at."""
    usual: dict[str, Any] = {"tools": [find_order], "system_prompt": PROMPT, "model_settings": SETTINGS, "name": "shop"}
    return Agent[Any, Any](ScriptedModel(*turns), checkpointer=store, **{**usual, **options})


FINDS = [call("find_order", number=number) for number in range(5)]


@contextmanager
def looking(agent: Agent[Any, Any] | None, *turns: Any, **options: Any) -> Iterator[tuple[Served, httpx.Client]]:
    """A viewer that knows that agent, or none, of a thread of one run."""
    with serving(MemoryStore, agent=agent) as served, served.client() as client:
        served.run(lambda: make_agent(*turns, store=served.viewer.store, **options).run("Find all.", thread_id="t"))
        yield served, client


def requests(served: Served, client: httpx.Client, purpose: str = "") -> list[str]:
    """What the page says about each model call."""
    found = []
    for entry in served.run(lambda: served.viewer.store.read("t")):
        body = entry.body
        is_call = isinstance(body, ModelFailed) or isinstance(getattr(body, "value", None), ModelCallResult)
        if is_call and body.step_id.purpose == purpose:
            answer = client.get("/thread/request", params={"id": "t", "n": entry.n})
            assert answer.status_code == 200, answer.text
            found.append(" ".join(html.unescape(re.sub(r"<[^>]*>", " ", answer.text)).split()))
    return found


# -- from the record ------------------------------------------------------------------------------


def test_without_the_agent_the_record_says_what_it_knows() -> None:
    with looking(None, FINDS[0], "Lamps.", output_schema=None) as (served, client):
        first, second = requests(served, client)
    assert first.startswith("From the record: the 2 messages of the state before the call.")
    assert "Model scripted:model" in first
    assert re.search(r"Tools offered, of which the record has a hash, [0-9a-f]{8}; `locus view FILE:AGENT`", first)
    assert re.search(r"Settings given, of which the record has a hash, [0-9a-f]{8}", first)
    assert "Output schema none" in first
    assert "You sell lamps." in first
    assert "order 0: two lamps" not in first
    assert second.startswith("From the record: the 4 messages of the state before the call.")
    assert "order 0: two lamps" in second


def test_what_was_not_given_is_said() -> None:
    with looking(None, "Lamps.", tools=[], model_settings=None) as (served, client):
        (found,) = requests(served, client)
    assert "Tools none Settings none Output schema none" in found


@pytest.mark.parametrize(
    "manager",
    [
        SlidingWindowManager(4, slack=0),
        SummarizingManager(6, keep_recent=2, model=ScriptedModel("There were lamps.", after="repeat")),
    ],
)
def test_what_a_conversation_manager_has_shown_is_shown(manager: Any) -> None:
    with looking(None, *FINDS, "Lamps.", conversation_manager=manager) as (served, client):
        *_, last = requests(served, client)
    assert re.match(r"From the record: the \d messages that a conversation manager has shown, of 12 ", last)
    assert "order 0: two lamps" not in last
    assert "order 4: two lamps" in last
    assert "Find all." in last
    assert ("> There were lamps." in last) == isinstance(manager, SummarizingManager)


def test_a_manager_that_remembers_nothing_is_not_guessed_at() -> None:
    with looking(None, FINDS[0], "Lamps.", conversation_manager=Newest()) as (served, client):
        *_, last = requests(served, client)
    assert last.startswith("The record says that 1 message was sent. Which ones it does not say;")
    assert "You sell lamps." in last


def test_a_plugins_request_is_not_on_record() -> None:
    manager = SummarizingManager(6, keep_recent=2, model=ScriptedModel("There were lamps.", after="repeat"))
    with looking(None, *FINDS, "Lamps.", conversation_manager=manager) as (served, client):
        first, *_ = requests(served, client, "summarize")
    assert first.startswith("A plugin's request for 'summarize', of 2 messages. The record has a hash of it")
    assert "order 0" not in first


def test_a_call_that_failed_has_its_request_too() -> None:
    with looking(None, ModelError("busy")) as (served, client):
        (found,) = requests(served, client)
        assert "Request</summary>" in client.get("/thread", params={"id": "t"}).text
    assert "Find all." in found


@pytest.mark.parametrize("n", ["1", "3", "99"])
def test_another_entry_has_no_request(n: str) -> None:
    with looking(None, "Lamps.") as (_, client):
        answer = client.get("/thread/request", params={"id": "t", "n": n})
    assert answer.status_code == 400
    assert f"has no model call as its entry {n}" in html.unescape(answer.text)


# -- made again -----------------------------------------------------------------------------------


def test_the_agent_makes_the_request_again() -> None:
    manager = SlidingWindowManager(4, slack=0)
    with looking(make_agent(conversation_manager=manager), *FINDS, "Lamps.", conversation_manager=manager) as (
        served,
        client,
    ):
        *_, last = requests(served, client)
    assert last.startswith(
        "Made again by the agent's code of today; all that the record has of the request is the same."
    )
    assert '"temperature": 0.25' in last
    assert '"top_k": 3' in last
    assert "Output schema none" in last
    assert "Tools find_order Find an order. {" in last
    assert '"number"' in last
    assert "order 0: two lamps" not in last
    assert "order 4: two lamps" in last


def test_a_changed_agent_is_noticed() -> None:
    agent = make_agent(tools=[], model_settings=ModelSettings(seed=1))
    with looking(agent, FINDS[0], "Lamps.") as (served, client):
        first, _ = requests(served, client)
    assert first.startswith("Made again by the agent's code of today. Not as on record: the tools, the model settings.")


def test_the_agent_makes_a_plugins_request_again() -> None:
    manager = SummarizingManager(6, keep_recent=2, model=ScriptedModel("There were lamps.", after="repeat"))
    agent = make_agent(conversation_manager=manager)
    with looking(agent, *FINDS, "Lamps.", conversation_manager=manager) as (served, client):
        first, *_ = requests(served, client, "summarize")
    assert "You condense the record of a conversation" in first
    assert "order 0: two lamps" in first
    assert "Settings none" in first


class Wraps(Hook):
    """A plugin that sends something else."""

    name = "shortener"

    @hookimpl
    async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
        """Send it."""
        return await call_next(request)


def test_wrappers_that_may_have_changed_it_are_named() -> None:
    with looking(make_agent(hooks=[Wraps()]), "Lamps.", hooks=[Wraps()]) as (served, client):
        (found,) = requests(served, client)
    assert "which may have sent another one: shortener." in found


class Fails(ConversationManager):
    """A bug of the program."""

    async def view(self, state: Any, run: RunContext) -> View:
        """Fail."""
        raise RuntimeError("a bug of the program")


def test_an_agent_that_asks_nothing_there_leaves_the_record() -> None:
    with looking(make_agent(conversation_manager=Fails()), "Lamps.") as (served, client):
        (found,) = requests(served, client)
    assert found.startswith("From the record: the 2 messages of the state before the call.")
    assert "The code of today does not ask this here." in found


def test_an_agent_that_cannot_be_asked_leaves_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a bug of the program")

    monkeypatch.setattr(Walk, "run_alone", fail)
    with looking(make_agent(), "Lamps.") as (served, client):
        (found,) = requests(served, client)
    assert found.startswith("From the record: the 2 messages of the state before the call.")
    assert "The agent could not make it again: RuntimeError: a bug of the program" in found


def test_another_agents_runs_are_shown_from_the_record() -> None:
    with looking(make_agent(name="another"), "Lamps.") as (served, client):
        (found,) = requests(served, client)
    assert found.startswith("From the record")


# -- text of others -------------------------------------------------------------------------------


@pytest.mark.parametrize("is_known", [False, True])
def test_secrets_are_hidden_and_hostile_text_is_text(is_known: bool) -> None:
    @tool(name="echo", description=HOSTILE)
    def echo(text: str) -> str:
        return text

    options: dict[str, Any] = {"tools": [echo], "system_prompt": f"{PROMPT} {HOSTILE}"}
    agent = make_agent(**options) if is_known else None
    with looking(agent, call("echo", text=HOSTILE), "Lamps.", **options) as (served, client):
        for entry in served.run(lambda: served.viewer.store.read("t")):
            if isinstance(entry.body, Outcome) and isinstance(entry.body.value, ModelCallResult):
                answer = client.get("/thread/request", params={"id": "t", "n": entry.n})
                assert answer.status_code == 200
                assert "hunter2" not in answer.text
                assert HOSTILE[:8] not in answer.text
                assert "<img" not in answer.text
                assert "{{ 7*7 }}" in answer.text
                assert not {"\u202e", "\x1b", "\U000e0041"} & set(answer.text)
                assert "postgres://shop:***@db.example/orders" in answer.text
                assert ('"api_key": "***"' in html.unescape(answer.text)) == is_known
