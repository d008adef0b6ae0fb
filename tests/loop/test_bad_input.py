"""Input that cannot be used is refused with a typed error that says what to do; what can be used loses nothing."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.loop.kit import add, results

from locus import Agent, AgentResult, AgentState, ConfigError, LocusError, Message, ModelSettings, Role, tool
from locus.core.errors import (
    CheckpointError,
    CheckpointTooNew,
    InputError,
    InterruptMismatch,
    NothingToResume,
    NotSerialisable,
    ToolDefinitionError,
    UnknownName,
)
from locus.core.messages import MediaBlock, TextBlock
from locus.core.state import SCHEMA
from locus.core.termination import MaxIterations
from locus.journal import MemoryStore
from locus_kit.snapshots import SnapshotAdapter
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


def agent(*turns: Any, **options: Any) -> Agent[Any, str]:
    return Agent[Any, str](ScriptedModel(*(turns or ("hi",))), **options)


# -- prompts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        " \n\t ",
        [],
        (),
        [TextBlock("")],
        [""],
        TextBlock("  "),
        Message(Role.USER, ""),
        Message(Role.USER, ()),
        [Message(Role.USER, "")],
        AgentState(),
        MediaBlock("image", "image/png", data=b""),
    ],
)
def test_an_empty_prompt_is_refused_before_anything_starts(prompt: Any) -> None:
    with pytest.raises(InputError, match=r"empty|no messages"):
        agent().run(prompt)


@pytest.mark.parametrize("prompt", [None, 3, b"bytes", object(), [3], [Message(Role.USER, "x"), "y", 3], {"a": 1}])
def test_what_is_not_a_prompt_is_refused_and_named(prompt: Any) -> None:
    with pytest.raises(InputError, match="text, content blocks"):
        agent().run(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "half \ud800 a pair",
        [TextBlock("fine"), TextBlock("\udfff")],
        TextBlock("\ud83d"),
        Message(Role.USER, "\ud800"),
        Message(Role.USER, [TextBlock("a"), TextBlock("\ud800")]),
        [Message(Role.USER, "fine"), Message(Role.ASSISTANT, "\ud800"), Message(Role.USER, "fine")],
    ],
)
def test_a_lone_surrogate_is_refused_with_its_place(prompt: Any) -> None:
    with pytest.raises(InputError, match="lone surrogate") as refused:
        agent().run(prompt)
    str(refused.value).encode()  # the error itself can be printed


@pytest.mark.parametrize(
    "text", ["a\0b", "\x1b[31mred\x1b[0m", "\u202eabc", "e\u0301 \U0001f600", "\ufeffbom", " padded "]
)
async def test_strange_but_valid_text_arrives_as_it_is(text: str) -> None:
    model = ScriptedModel("hi")
    result = await Agent(model).run(text)
    assert model.requests[0].messages[-1].text == text
    again = AgentState.from_checkpoint(json.loads(json.dumps(result.state.to_checkpoint())))
    assert again.messages[0].text == text


async def test_ten_megabytes_are_a_prompt() -> None:
    text = "x" * 10_000_000
    store = MemoryStore()
    model = ScriptedModel(call("add", a=1), "hi")
    result = await Agent(model, tools=[add], checkpointer=store).run(text, thread_id="t")
    assert result.message == "hi"
    assert model.requests[1].messages[0].text == text
    # Saved once, not with every transition.
    saved = [len(str(e.body)) for e in await store.read("t")]
    assert sum(size > 10_000_000 for size in saved) == 1


async def test_a_picture_is_a_prompt() -> None:
    picture = MediaBlock("image", "image/png", data=b"png")
    model = ScriptedModel("a cat", "a dog", "a cow")
    prompts: list[Any] = [
        picture,
        ["what is it?", picture],
        Message(Role.USER, [TextBlock("what is it?"), picture]),
    ]
    for prompt in prompts:
        await Agent(model).run(prompt)
        assert picture in model.requests[-1].messages[-1].content


def test_a_system_prompt_is_checked_like_a_prompt() -> None:
    with pytest.raises(ConfigError, match="lone surrogate"):
        agent(system_prompt="\ud800")


async def test_metadata_that_cannot_be_kept_is_refused_and_named() -> None:
    one = agent("hi", "hi")
    with pytest.raises(NotSerialisable, match=r"metadata\['socket'\]"):
        await one.run("x", metadata={"socket": object()})
    assert (await one.run("x", metadata={"tags": ["a"]})).state.metadata == {"tags": ("a",)}


@pytest.mark.parametrize("metadata", [["tags"], "tags", 3])
def test_metadata_that_is_not_a_mapping_is_refused(metadata: Any) -> None:
    with pytest.raises(InputError, match="metadata must be a mapping"):
        agent().run("x", metadata=metadata)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"model_settings": {"temperature": 1}}, "ModelSettings"),
        ({"termination": "MaxIterations(3)"}, "MaxIterations"),
        ({"output_schema": 3}, "3"),
    ],
    ids=str,
)
def test_options_of_a_run_are_checked_before_it_starts(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        agent().run("x", **options)
    with pytest.raises(ConfigError, match=told):
        agent(checkpointer=MemoryStore()).resume("t", **options)


@pytest.mark.parametrize("thread_id", ["", 3, b"t", "\ud800"])
def test_a_thread_id_is_a_name(thread_id: Any) -> None:
    with pytest.raises(InputError, match="thread_id"):
        agent().run("x", thread_id=thread_id)


# -- tools ------------------------------------------------------------------------------------------------


def test_two_tools_of_one_name_are_refused_and_both_are_named() -> None:
    @tool(name="add")
    async def other(a: int) -> int:
        """Another."""
        return a

    with pytest.raises(ToolDefinitionError, match=r"two tools are named 'add'.*kit\.add.*other"):
        agent(tools=[add, other])
    agent(tools=[add, add])  # the same one twice harms nobody


def test_a_schema_that_cannot_be_inferred_is_refused_where_it_is_written() -> None:
    class Strange:
        def __init__(self, *args: Any) -> None: ...

    with pytest.raises(ToolDefinitionError, match="where"):

        @tool
        async def look(what: str, where: Strange) -> str:
            """Look."""
            return what

    with pytest.raises(ToolDefinitionError, match="what"):

        @tool
        async def guess(what) -> str:  # type: ignore[no-untyped-def]
            """Guess."""
            return str(what)


def test_what_is_not_a_tool_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="'search'"):
        agent(tools=["search"])
    with pytest.raises(ToolDefinitionError):
        agent(tools=[3])


# -- agents -----------------------------------------------------------------------------------------------


def test_an_unknown_keyword_is_refused_with_the_closest_one() -> None:
    with pytest.raises(UnknownName, match="'max_iterations'"):
        agent(max_iteration=3)
    with pytest.raises(UnknownName, match="'system_prompt'"):
        agent(systemprompt="hi")
    with pytest.raises(LocusError, match="frobnicate"):
        agent(frobnicate=True)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"tool_execution": "parallel"}, "'parallel'"),
        ({"max_iterations": 0}, "0"),
        ({"max_iterations": -1}, "-1"),
        ({"max_iterations": True}, "True"),
        ({"max_iterations": "3"}, "'3'"),
        ({"termination": "MaxIterations"}, "MaxIterations"),
        ({"termination": MaxIterations}, "MaxIterations"),
        ({"confidence_threshold": float("nan")}, "nan"),
        ({"confidence_threshold": 90}, "90"),
        ({"system_prompt": 3}, "system_prompt must be a str, got 3"),
        ({"model_settings": {"temperature": 1}}, "ModelSettings(temperature"),
        ({"conversation_manager": 3}, "view"),
        ({"hooks": 3}, "hooks must be a list of Hook objects, got 3"),
        ({"config": {"plugins": {}}}, "load_config"),
        ({"tool_loop_threshold": -1}, "-1"),
        ({"max_revisions": -1}, "-1"),
        ({"terminal_tools": "submit"}, "submit"),
        ({"token_budget": -5}, "-5"),
        ({"output_schema": 3}, "3"),
    ],
    ids=str,
)
def test_options_out_of_range_are_refused_when_the_agent_is_built(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        agent(**options)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["sumbit"], "unknown terminal tool 'sumbit'; did you mean 'submit'?"),
        (["submit", "zz"], "unknown terminal tool 'zz'; known: search, submit"),
    ],
)
def test_a_terminal_tool_that_the_agent_does_not_have_is_refused_when_it_is_built(names: list[str], says: str) -> None:
    @tool
    async def submit(answer: str) -> str:
        """Hand in the answer."""
        return answer

    @tool
    async def search(query: str) -> str:
        """Search."""
        return query

    with pytest.raises(UnknownName) as refused:
        Agent(ScriptedModel(), tools=[submit, search], terminal_tools=names)
    assert str(refused.value) == says


@pytest.mark.parametrize("none", [None, (), [], frozenset()])
async def test_no_terminal_tools_can_be_said_in_any_way(none: Any) -> None:
    made = Agent(ScriptedModel("hi"), terminal_tools=none)
    result = await made.run("x")
    assert (result.text, result.state.terminal_tools) == ("hi", frozenset())


def test_an_agent_needs_a_model() -> None:
    with pytest.raises(ConfigError, match="no model"):
        Agent()
    with pytest.raises(ConfigError, match="complete"):
        Agent(object())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="gpt"):
        Agent("gpt")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"system_prompt": 3}, "system_prompt must be a str, got 3"),
        ({"name": ["a"]}, r"name must be a str, got \['a'\]"),
        ({"plugins": "audit"}, r"plugins must be a collection of names, got 'audit'; write \['audit'\]"),
        (
            {"terminal_tools": "submit"},
            r"terminal_tools must be a collection .* got 'submit'; write \['submit'\]",
        ),
        (
            {"model_settings": {"temperature": 1}},
            r"must be a ModelSettings, got {.*; write ModelSettings\(temperature=1\)",
        ),
        ({"model_settings": 3}, "model_settings must be a ModelSettings, got 3; write ModelSettings"),
        ({"conversation_manager": 3}, "conversation_manager must be .*, got 3"),
        ({"config": "locus.toml"}, r"config must be what locus.config.load_config\(path\) returns, got 'locus.toml'"),
    ],
)
def test_an_option_of_the_wrong_kind_is_refused_with_its_value_and_what_was_meant(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        agent(**options)


def test_arguments_of_a_run_of_the_wrong_kind_are_refused_where_they_are_given() -> None:
    settings: Any = {"seed": 1}
    with pytest.raises(ConfigError, match=r"write ModelSettings\(seed=1\)"):
        agent().run("x", model_settings=settings)
    with pytest.raises(ConfigError, match=r"write ModelSettings\(seed=1\)"):
        agent(checkpointer=MemoryStore()).resume("x", model_settings=settings)
    metadata: Any = 3
    with pytest.raises(InputError, match="metadata must be a mapping from names to data, got 3"):
        agent().run("x", metadata=metadata)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": float("nan")}, "temperature must be a finite number, 0 or more, got nan"),
        ({"temperature": float("inf")}, "temperature must be .*, got inf"),
        ({"temperature": -0.1}, "temperature must be .*, got -0.1"),
        ({"temperature": "1"}, "temperature must be .*, got '1'"),
        ({"temperature": True}, "temperature must be .*, got True"),
        ({"max_tokens": 0}, "max_tokens must be an integer, 1 or more, got 0"),
        ({"max_tokens": 2.5}, "max_tokens must be .*, got 2.5"),
        ({"seed": "1"}, "seed must be an integer, got '1'"),
    ],
)
def test_numbers_that_no_model_takes_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ModelSettings(**options)


def test_an_agent_cannot_be_changed() -> None:
    one = agent(name="fixed")
    with pytest.raises(AttributeError, match="immutable"):
        one.name = "other"  # type: ignore[misc]


async def test_run_sync_inside_an_event_loop_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match=r"an event loop runs in this one; write `await agent.run\(...\)` here"):
        agent().run_sync("x")


def test_run_sync_runs() -> None:
    result = agent(call("add", a=1), "two", tools=[add]).run_sync("1 + 1?")
    assert result.message == "two"
    assert results(result) == ["2"]


def test_run_sync_does_not_spell_out_what_it_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncio takes the `repr` of a finished main task where SIGINT has Python's own handler, however long it is."""
    spelled: list[Any] = []

    def spell(self: AgentResult[Any]) -> str:
        spelled.append(self)
        return "a result"

    monkeypatch.setattr(AgentResult, "__repr__", spell)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert agent("two").run_sync("1 + 1?").text == "two"
    finally:
        signal.signal(signal.SIGINT, before)

    assert not spelled


# -- checkpoints -------------------------------------------------------------------------------------------


async def test_a_checkpoint_of_a_newer_version_is_refused_and_nothing_is_lost() -> None:
    kept: dict[str, Any] = {}

    def store() -> SnapshotAdapter:
        return SnapshotAdapter(kept.__setitem__, kept.get)

    await agent(checkpointer=store()).run("x", thread_id="t")
    newer = {**kept["t"], "schema": SCHEMA + 1, "a_new_field": {"of": "the future"}}
    kept["t"] = newer

    one = agent("again", checkpointer=store())
    runs: list[Callable[[], Awaitable[Any]]] = [lambda: one.run("y", thread_id="t"), lambda: one.resume("t")]
    for run in runs:
        with pytest.raises(CheckpointTooNew, match=f"{SCHEMA + 1}") as refused:
            await run()
        assert (refused.value.found, refused.value.supported) == (SCHEMA + 1, SCHEMA)
    assert kept["t"] is newer
    # The thread is free again: what refused is the reading, not the lock.
    kept["t"] = {**newer, "schema": SCHEMA}
    del kept["t"]["a_new_field"]
    assert (await one.run("y", thread_id="t")).message == "again"


@pytest.mark.parametrize(
    "damage",
    [
        lambda c: c.pop("schema"),
        lambda c: c.update(schema="one"),
        lambda c: c.update(messages=3),
        lambda c: c.update(iteration=-1),
    ],
    ids=["no version", "odd version", "no messages", "negative iteration"],
)
async def test_a_damaged_checkpoint_is_a_typed_error(damage: Callable[[dict[str, Any]], Any]) -> None:
    result = await agent().run("x")
    checkpoint = result.state.to_checkpoint()
    damage(checkpoint)
    with pytest.raises(CheckpointError):
        AgentState.from_checkpoint(checkpoint)


# -- resuming -------------------------------------------------------------------------------------------------


async def test_resuming_what_is_not_there_is_a_typed_error() -> None:
    one = agent(checkpointer=MemoryStore())
    with pytest.raises(NothingToResume, match="'nowhere'"):
        await one.resume("nowhere", "yes")
    with pytest.raises(ConfigError, match="checkpointer"):
        agent().resume("t", "yes")


async def test_an_answer_nobody_asked_for_is_a_typed_error() -> None:
    one = agent(checkpointer=MemoryStore())
    async for _ in (run := one.run("x", thread_id="t")):
        break
    await run.aclose()
    async for event in (run := one.run("x", thread_id="t")):
        if event.type == "checkpoint":
            break
    await run.aclose()
    with pytest.raises(InterruptMismatch, match="0 questions"):
        await one.resume("t", "yes")
    assert (await one.resume("t")).message == "hi"


@pytest.mark.parametrize(
    ("keyword", "value", "written"),
    [
        ("temperature", 0.2, "model_settings=ModelSettings(temperature=0.2)"),
        ("max_tokens", 100, "model_settings=ModelSettings(max_tokens=100)"),
        ("tool_choice", "auto", "model_settings=ModelSettings(tool_choice='auto')"),
        ("top_p", 0.9, "model_settings=ModelSettings(extras={'top_p': 0.9})"),
        ("reasoning_effort", "low", "model_settings=ModelSettings(extras={'reasoning_effort': 'low'})"),
    ],
)
def test_a_setting_of_the_model_that_is_given_to_the_agent_is_refused_with_the_place_for_it(
    keyword: str, value: Any, written: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(written)):
        Agent(ScriptedModel("Hi."), **{keyword: value})
