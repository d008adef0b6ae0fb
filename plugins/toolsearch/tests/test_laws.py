"""The prompt prefix is stable, whatever the model does and wherever the process dies; and nothing is ranked twice."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import locus_plugin_timetravel as timetravel
from locus import Agent, AgentState, Hook
from locus.core.executions import ToolExecution
from locus.journal import MemoryStore
from locus.models import ModelRequest
from locus.plugin import hookimpl
from locus_kit.schematool import schema_tool
from locus_plugin_toolsearch import ToolSearchHook, index
from locus_plugin_toolsearch.selection import find_called, read_names
from locus_testkit import ScriptedModel, call

from .kit import INSTALLED, ROWS, dying, is_prefix, sent, tools, until_it_dies

pytestmark = pytest.mark.anyio
SEARCH = "tool_search"
TOOLS = tools()

_ROWS = st.sampled_from(ROWS)
_CALLS = st.one_of(
    _ROWS.map(lambda row: call(SEARCH, query=row.plain)),
    _ROWS.map(lambda row: call(SEARCH, query=row.paraphrase)),
    _ROWS.map(lambda row: call(row.name, about="x")),
    _ROWS.map(lambda row: call(row.name, wrong="x")),
    st.just(call("no_such_tool")),
    st.just(call(SEARCH)),
)
_TURNS = st.lists(st.one_of(st.just("Done."), st.lists(_CALLS, min_size=1, max_size=3)), min_size=1, max_size=6)
_PROMPTS = st.lists(_ROWS.map(lambda row: row.plain), min_size=1, max_size=3)
_SETTINGS = st.fixed_dictionaries(
    {"top": st.integers(1, 5), "results": st.integers(1, 4), "pinned": st.sampled_from([(), ("run_*",)])}
)


def following(script: list[Any]) -> Callable[[ModelRequest], Any]:
    """A model whose answer depends on the conversation alone, in any process."""

    def play(request: ModelRequest) -> Any:
        answers = sum(message.role == "assistant" for message in request.messages)
        return script[answers] if answers < len(script) else "Done."

    return play


def agent(model: ScriptedModel, store: MemoryStore, **options: Any) -> Agent[Any, str]:
    return Agent(model, tools=TOOLS, catalogue=INSTALLED, checkpointer=store, toolsearch=options)


@settings(max_examples=40, deadline=None)
@given(script=_TURNS, prompts=_PROMPTS, options=_SETTINGS)
def test_the_tools_of_a_request_begin_with_those_of_the_one_before(
    script: list[Any], prompts: list[str], options: dict[str, Any]
) -> None:
    model, store = ScriptedModel(following(script), after="repeat"), MemoryStore()

    async def converse() -> bool:
        one = agent(model, store, **options, keep=1000)
        for prompt in prompts:
            await one.run(prompt, thread_id="t")
        return (await timetravel.replay(one, "t")).ok

    assert anyio.run(converse), "a replay shows no difference"
    lists = sent(model.requests)
    assert all(is_prefix(one, other) for one, other in pairwise(lists))
    assert all(len(set(names)) == len(names) for names in lists)
    assert all(SEARCH in names for names in lists)


@settings(max_examples=25, deadline=None)
@given(script=_TURNS, prompt=_ROWS, at=st.integers(1, 20), stored=st.booleans(), options=_SETTINGS)
def test_a_run_that_died_anywhere_continues_with_the_tools_that_it_had(
    script: list[Any], prompt: Any, at: int, stored: bool, options: dict[str, Any]
) -> None:
    async def whole() -> list[list[str]]:
        model = ScriptedModel(following(script), after="repeat")
        await agent(model, dying(), **options).run(prompt.plain, thread_id="t")
        return sent(model.requests)

    async def torn() -> tuple[list[list[str]], list[list[str]], bool]:
        before, after = (ScriptedModel(following(script), after="repeat") for _ in range(2))
        store = dying(at, stored=stored)
        await until_it_dies(agent(before, store, **options).run(prompt.plain, thread_id="t"))
        # Whoever goes on would choose others: more for the prompt.
        other = agent(after, store, **{**options, "top": 7})
        if await store.peek("t") is None:
            return sent(before.requests), [], True
        history = await timetravel.history(other, "t")
        if history.open_node is not None:
            await other.resume("t")
        return (
            sent(before.requests),
            sent(after.requests),
            (await timetravel.replay(agent(after, store, **options), "t")).ok,
        )

    expected = anyio.run(whole)
    before, after, same = anyio.run(torn)
    assert before == expected[: len(before)]
    if before:  # else nothing was sent yet, and whoever goes on may choose
        assert after == expected[len(expected) - len(after) :]
        assert same, "a replay shows no difference"


async def test_an_index_is_made_once_a_tool_set_and_not_once_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Counted(index.Index):
        def __init__(self, *args: Any) -> None:
            made.append(1)
            super().__init__(*args)

    monkeypatch.setattr(index, "Index", Counted)
    one = agent(ScriptedModel(following([call(SEARCH, query="git diff")]), after="repeat"), MemoryStore())
    for n in range(4):
        await one.run("Set an alarm for 7", thread_id=str(n))
    assert len(made) == 1


async def test_the_prompt_is_ranked_once_wherever_the_run_dies_and_never_by_a_replay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prompt, ranked, best = "Set an alarm for 7", list[str](), index.Index.best

    def counted(self: index.Index, query: str, *args: Any, **options: Any) -> Any:
        ranked.append(query)
        return best(self, query, *args, **options)

    monkeypatch.setattr(index.Index, "best", counted)
    script = [[call(SEARCH, query="git diff")], "Done."]
    died = 0
    for at in range(1, 20):
        ranked.clear()
        before, after = (ScriptedModel(following(script), after="repeat") for _ in range(2))
        store = dying(at)
        if await until_it_dies(agent(before, store).run(prompt, thread_id="t")):
            died += 1
            if (await timetravel.history(agent(after, store), "t")).open_node is not None:
                await agent(after, store).resume("t")
        if before.requests:
            assert ranked.count(prompt) == 1
        asked = len(ranked)
        assert (await timetravel.replay(agent(after, store), "t")).ok
        assert len(ranked) == asked
    assert died > 4


async def test_a_think_that_another_wrapper_runs_twice_chooses_once() -> None:
    class Twice(Hook):
        @hookimpl
        async def locus_wrap_node(self, call_next: Any, node: str, state: Any) -> Any:
            if node == "think":
                await call_next(state)
            return await call_next(state)

    model, store = ScriptedModel(following([[call("git_diff")], "Done."]), after="repeat"), MemoryStore()
    for number, hooks in enumerate(([Twice(), ToolSearchHook()], [ToolSearchHook(), Twice()])):
        one = Agent(model, tools=TOOLS, catalogue=INSTALLED, checkpointer=store, hooks=hooks)
        await one.run("Set an alarm for 7", thread_id=str(number))
        assert (await timetravel.replay(one, str(number))).ok
    lists = sent(model.requests)
    assert lists[: len(lists) // 2] == lists[len(lists) // 2 :]
    assert all(is_prefix(lists[0], names) for names in lists)


async def test_the_names_survive_as_json() -> None:
    result = await agent(ScriptedModel("Done."), MemoryStore()).run("Set an alarm for 7")
    back = AgentState.from_checkpoint(json.loads(json.dumps(result.state.to_checkpoint())))
    assert read_names(back) == read_names(result.state)
    assert back == result.state


async def test_tools_that_are_known_only_once_a_run_begins_are_found_and_indexed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Server(Hook):
        @hookimpl
        def locus_run_session(self, run: Any) -> Any:
            return self.open()

        @asynccontextmanager
        async def open(self) -> AsyncIterator[list[Any]]:
            yield remotes

    class Counted(index.Index):
        def __init__(self, *args: Any) -> None:
            made.append(1)
            super().__init__(*args)

    made: list[int] = []
    remotes = [remote(row.name, row.description) for row in ROWS]
    monkeypatch.setattr(index, "Index", Counted)
    script = [[call(SEARCH, query="git diff")], [call("git_diff", about="x")], "Done."]
    model = ScriptedModel(following(script), after="repeat")
    for at in range(9):
        store = dying(at)
        one = Agent(
            model, catalogue=INSTALLED, checkpointer=store, toolsearch={"top": 1, "results": 1}, hooks=[Server()]
        )
        await until_it_dies(one.run("Set an alarm for 7", thread_id="t"))
        if await store.peek("t") is not None and (await timetravel.history(one, "t")).open_node is not None:
            await one.resume("t")
        assert (await timetravel.replay(one, "t")).ok
    lists = sent(model.requests)
    assert [SEARCH, "set_alarm"] in lists
    assert all(is_prefix(names, [SEARCH, "set_alarm", "git_diff"]) for names in lists)
    assert len(made) == 9, "one an agent, for the run that died and the one that went on"


def remote(name: str, description: str) -> Any:
    async def body(arguments: dict[str, Any], ctx: Any) -> str:
        return f"{name} did {arguments}"

    schema = {"type": "object", "properties": {"about": {"type": "string"}}}
    return schema_tool(
        body, name=name, description=description, parameters=schema, origin=f"server/{name}", effect="pure"
    )


async def test_a_fork_continues_with_the_tools_of_its_thread() -> None:
    script = [[call(SEARCH, query="git diff")], [call("git_diff")], "Done."]
    model, store = ScriptedModel(following(script), after="repeat"), MemoryStore()
    one = agent(model, store, top=1)
    await one.run("Set an alarm for 7", thread_id="t")
    await timetravel.fork(one, "t", at=3, into="fork")
    await one.resume("fork")
    lists = sent(model.requests)
    assert lists[3:] == lists[1:3]
    assert (await timetravel.replay(one, "fork")).ok


def test_what_the_last_turn_asked_for_is_read_without_the_turns_before() -> None:
    class Past:
        @property
        def iteration(self) -> int:
            read.append(1)
            return 0

    read: list[int] = []
    last = [ToolExecution(tool_name=name, iteration=4) for name in ("git_diff", "set_alarm")]
    state: Any = SimpleNamespace(iteration=5, tool_executions=(*(Past() for _ in range(1000)), *last))
    assert find_called(state) == ["git_diff", "set_alarm"]
    assert len(read) == 1
