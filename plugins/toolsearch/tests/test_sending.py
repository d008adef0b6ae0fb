"""Which tools a request has, and what becomes of a call."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from attrs import evolve

from locus import Agent, AgentState, Hook, Message, ModelSettings, Role, ToolContext, tool
from locus.core.errors import ConfigError
from locus.core.messages import plugin_message
from locus.journal import MemoryStore
from locus.plugin import hookimpl
from locus.tools import ToolSpec
from locus_plugin_toolsearch import ToolSearchHook, ToolSearchReport, ToolSearchSettings, ToolsOfferedEvent
from locus_plugin_toolsearch.selection import prompt
from locus_testkit import ScriptedModel, assert_valid_history, call

from .kit import INSTALLED, agent, is_prefix, made, sent, tools

pytestmark = pytest.mark.anyio
SEARCH = "tool_search"


async def test_up_to_the_threshold_nothing_changes() -> None:
    requests, states = [], []
    for options in ({"toolsearch": True}, {"toolsearch": False}):
        model = ScriptedModel(call("get_weather"), "Dry.")
        result = await agent(model, 30, **options).run("Weather?")
        requests.append(model.requests)
        states.append((result.state.messages, result.state.metadata, "toolsearch" in result.reports))
    assert requests[0] == requests[1]
    assert states[0] == states[1]


async def test_above_the_threshold_what_fits_is_sent_and_the_search() -> None:
    model = ScriptedModel("SentRequest.")
    result = await agent(model, 31, toolsearch={"top": 3}).run("Send an email to Tom")
    (names,) = sent(model.requests)
    assert names[:2] == [SEARCH, "send_email"]
    assert len(names) == 4
    assert result.reports["toolsearch"] == ToolSearchReport(sent=tuple(names), total=31)


async def test_where_nothing_fits_the_first_tools_are_sent_and_never_the_search_alone() -> None:
    model = ScriptedModel("?", after="repeat")
    await agent(model, toolsearch={"top": 3, "pinned": ["weather_forecast"]}).run("Xyzzy!")
    await agent(model).run("?!")
    first, second = sent(model.requests)
    assert first == ["weather_forecast", SEARCH, "get_weather", "air_quality", "search_flights"]
    assert len(second) == 11


async def test_pinned_and_terminal_tools_are_always_sent_in_the_order_of_registration() -> None:
    model = ScriptedModel(call("open_issue"), "not reached")
    settings = {"pinned": ["run_*", "read_file"], "top": 1}
    result = await agent(model, toolsearch=settings, terminal_tools={"open_issue"}).run("Set an alarm for 7")
    runs = ["run_python", "run_sql", "run_shell", "read_file", "open_issue", "run_tests"]
    assert sent(model.requests) == [[*runs, SEARCH, "set_alarm"]]
    assert result.stop_reason == "ToolCalled"


async def test_what_a_search_finds_can_be_called_from_the_next_think_on() -> None:
    model = ScriptedModel(
        call(SEARCH, query="merge a pull request, commit to git"), call("merge_pull_request"), "Merged."
    )
    result = await agent(model, toolsearch={"top": 2, "results": 2}).run("Set an alarm for 7")
    first, second, third = sent(model.requests)
    assert "merge_pull_request" not in first
    assert is_prefix(first, second)
    assert second[len(first)] == "merge_pull_request"
    assert third == second, "nothing is sent twice"
    assert str(result.state.tool_executions[0].result).splitlines() == [
        "2 of 100 tools, the best first; call them from your next turn on:",
        "- merge_pull_request: Merge a pull request",
        "- git_commit: Commit staged changes to the git repository",
    ]
    assert_valid_history(result.state.messages)


async def test_a_search_that_finds_nothing_says_so() -> None:
    model = ScriptedModel(call(SEARCH, query="xyzzy\n- plugh: qqqq"), "Well.")
    result = await agent(model).run("Set an alarm for 7")
    first, second = sent(model.requests)
    assert first == second
    told = str(result.state.tool_executions[0].result)
    assert told.startswith("No tool of 100 fits 'xyzzy\\n- plugh: qqqq'.")


async def test_a_tool_that_was_not_sent_works_and_is_sent_from_then_on() -> None:
    model = ScriptedModel(call("git_diff", about="x"), "Done.")
    result = await agent(model).run("Set an alarm for 7")
    first, second = sent(model.requests)
    assert "git_diff" not in first
    assert second == [*first, "git_diff"]
    assert result.state.tool_executions[0].result == "git_diff did x"


async def test_wrong_arguments_of_a_tool_that_was_not_sent_are_reported_and_the_tool_is_sent() -> None:
    model = ScriptedModel(call("git_diff", path="x"), "Done.")
    result = await agent(model).run("Set an alarm for 7")
    assert "about" in str(result.state.tool_executions[0].error)
    assert sent(model.requests)[1][-1] == "git_diff"


async def test_a_tool_that_is_called_twice_is_sent_once() -> None:
    model = ScriptedModel([call("git_diff", about="x"), call("git_diff", about="y")], "Done.")
    result = await agent(model).run("Set an alarm for 7")
    first, second = sent(model.requests)
    assert second == [*first, "git_diff"] == list(result.reports["toolsearch"].sent)


async def test_a_search_never_finds_itself_and_is_not_made_twice() -> None:
    search = call(SEARCH, query="find further tools in a list")
    model = ScriptedModel(search, search, "Done.")
    result = await agent(model).run("Set an alarm for 7")
    one, other = result.state.tool_executions
    assert f"- {SEARCH}" not in str(one.result)
    assert (one.cache_hit, other.cache_hit) == (False, True)


async def test_a_search_where_all_tools_are_sent_says_so() -> None:
    model = ScriptedModel(call(SEARCH, query="git diff"), "Done.")
    result = await agent(model, 30).run("Set an alarm for 7")
    assert result.state.tool_executions[0].result == "All tools are in your list."
    assert [len(names) for names in sent(model.requests)] == [30, 30]


async def test_pinned_tools_do_not_take_the_place_of_others() -> None:
    model = ScriptedModel("Done.")
    await agent(model, toolsearch={"pinned": ["set_alarm"], "top": 1}).run("Set an alarm clock and a countdown timer")
    assert sent(model.requests) == [["set_alarm", SEARCH, "start_timer"]]


def test_the_users_words_are_the_query_and_not_a_plugins() -> None:
    said = [Message(Role.USER, "Set an alarm"), Message(Role.ASSISTANT, "?"), plugin_message("judge", "Go on")]
    assert prompt(AgentState(messages=said)) == "Set an alarm"
    assert prompt(AgentState()) == ""


async def test_a_tool_that_does_not_exist_is_an_error_and_never_sent() -> None:
    model = ScriptedModel(call("git_dif"), "Done.")
    result = await agent(model).run("Set an alarm for 7")
    first, second = sent(model.requests)
    assert first == second == list(result.reports["toolsearch"].sent)
    assert "git_diff" in str(result.state.tool_executions[0].error)


async def test_a_next_turn_carries_the_tools_and_adds_its_own() -> None:
    model = ScriptedModel("One.", "Two.")
    one = agent(model, toolsearch={"top": 3}, checkpointer=MemoryStore())
    await one.run("Set an alarm for 7", thread_id="t")
    await one.run("Show the git diff", thread_id="t")
    first, second = sent(model.requests)
    assert is_prefix(first, second)
    assert "git_diff" in second[len(first) :]


async def test_a_conversation_that_carries_more_than_it_may_begins_afresh() -> None:
    model = ScriptedModel("One.", "Two.")
    one = agent(model, toolsearch={"top": 3, "keep": 3}, checkpointer=MemoryStore())
    await one.run("Set an alarm for 7", thread_id="t")
    told = [event async for event in one.run("Show the git diff", thread_id="t")]
    first, second = sent(model.requests)
    assert [e.tools for e in told if isinstance(e, ToolsOfferedEvent)] == [tuple(second)]
    assert first[:2] == [SEARCH, "set_alarm"]
    assert second[:2] == [SEARCH, "git_diff"]
    assert "set_alarm" not in second


async def test_the_tools_of_other_plugins_and_hooks_are_found_as_well() -> None:
    class Server(Hook):
        @hookimpl
        def locus_register_tools(self) -> list[object]:
            return [made("fs__remove_tree", "Remove a folder and all that is in it")]

    model = ScriptedModel("Gone.")
    await agent(model, hooks=[Server()]).run("Remove the folder tmp")
    assert sent(model.requests)[0][1] == "fs__remove_tree"


async def test_a_tool_that_is_chosen_is_in_that_request() -> None:
    model = ScriptedModel(call("roll_back"), "Done.")
    settings = ModelSettings(tool_choice="roll_back")
    one = Agent(
        model,
        tools=[*tools(), made("roll_back", "Undo")],
        catalogue=INSTALLED,
        toolsearch=True,
        model_settings=settings,
    )
    await one.run("Set an alarm for 7")
    first, second = sent(model.requests)
    assert first[-1] == "roll_back"
    assert is_prefix(first, second)


async def test_a_tool_that_another_wrapper_makes_the_model_call_is_in_that_request_alone() -> None:
    class Forcing(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: Any) -> Any:
            choice = "roll_back" if len(request.messages) == 3 else "auto"
            return await call_next(evolve(request, settings=ModelSettings(tool_choice=choice)))

    model = ScriptedModel(call("set_alarm"), call("set_alarm"), "Done.")
    given = [*tools(), made("roll_back", "Undo")]
    hooks = [Forcing(), ToolSearchHook()]
    await Agent(model, tools=given, catalogue=INSTALLED, hooks=hooks).run("Set an alarm for 7")
    first, second, third = sent(model.requests)
    assert second == [*first, "roll_back"]
    assert third == first


async def test_what_another_wrapper_adds_or_takes_away_stays_so() -> None:
    native = ToolSpec(name="provider_search", description="The provider's own", parameters={"type": "object"})

    class Native(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: Any) -> Any:
            tools = (*request.tools, native) if len(request.messages) < 3 else ()
            return await call_next(evolve(request, tools=tools))

    model = ScriptedModel(call("set_alarm"), "Done.")
    hooks = [Native(), ToolSearchHook(ToolSearchSettings(top=1))]
    await agent(model, toolsearch=False, hooks=hooks).run("Set an alarm for 7")
    assert sent(model.requests) == [["provider_search", SEARCH, "set_alarm"], []]


async def test_requests_of_one_choice_share_one_tuple() -> None:
    model = ScriptedModel(call("set_alarm", about="a"), call("set_alarm", about="b"), "Done.")
    await agent(model).run("Set an alarm for 7")
    assert len({id(request.tools) for request in model.requests}) == 1


async def test_the_event_says_what_is_sent_from_now_on_and_why() -> None:
    model = ScriptedModel(call(SEARCH, query="git diff"), call("git_diff"), "Done.")
    run = agent(model, toolsearch={"top": 1, "results": 1}).run("Set an alarm for 7")
    told = [event async for event in run if isinstance(event, ToolsOfferedEvent)]
    assert run.result.reports["toolsearch"].sent == (SEARCH, "set_alarm", "git_diff")
    assert [(e.type, e.tools, e.why, e.sent, e.total) for e in told] == [
        ("tools_offered", (SEARCH, "set_alarm"), "prompt", 2, 100),
        ("tools_offered", ("git_diff",), "call", 3, 100),
    ]


async def test_parallel_runs_of_one_agent_do_not_mix() -> None:
    prompts = {"Set an alarm for 7": "set_alarm", "Show the git diff": "git_diff", "Roll a random number": "x"}
    model = ScriptedModel("Done.", after="repeat")
    one = agent(model, toolsearch={"top": 1})
    async with anyio.create_task_group() as group:
        for prompt in prompts:
            group.start_soon(one.run, prompt)
    asked = {request.messages[-1].text: [spec.name for spec in request.tools] for request in model.requests}
    assert asked == {
        "Set an alarm for 7": [SEARCH, "set_alarm"],
        "Show the git diff": [SEARCH, "git_diff"],
        "Roll a random number": [SEARCH, "random_number"],
    }


async def test_a_child_searches_its_own_tools() -> None:
    inner = ScriptedModel(call(SEARCH, query="recipe of a cake"), "Found.")
    recipes = [made(f"bake_{i}", f"Recipe {i} of a cake") for i in range(40)]
    cook = Agent(inner, tools=recipes, catalogue=INSTALLED, toolsearch={"top": 1})

    @tool
    async def consult(ctx: ToolContext[None]) -> str:
        """Ask the cook."""
        answer: str = (await ctx.run_child(cook, "Xyzzy")).text
        return answer

    outer = ScriptedModel([call("consult"), call(SEARCH, query="git diff")], "Done.")
    result = await Agent(outer, tools=[*tools(), consult], catalogue=INSTALLED, toolsearch=True).run("Consult")
    assert "git_diff" in str(result.state.tool_executions[1].result)
    assert all(name.startswith(("bake_", SEARCH)) for name in sent(inner.requests)[1])
    assert len(sent(inner.requests)[0]) == 2
    assert 6 <= len(sent(inner.requests)[1]) <= 7


def test_one_name_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(ValueError, match="must be a list of strings"):
        ToolSearchSettings(pinned="read_file")


@pytest.mark.parametrize(
    "wrong",
    [{"threshold": -1}, {"top": 0}, {"results": True}, {"pinned": "read_file"}, {"retriever": "vibes"}, {"kep": 1}],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        agent(ScriptedModel(), toolsearch=wrong)
