"""Calls that a person is asked about: which they are, what is shown, and what each answer does."""

from __future__ import annotations

from typing import Any

import pytest

from locus import Agent, Hook, Reject, ToolContext, ToolStartEvent, tool
from locus.core.errors import ConfigError, InterruptMismatch
from locus.core.messages import ToolCall
from locus.hooks.builtin import ApprovalHook as CompatHook
from locus.journal import MemoryStore
from locus_kit.calls import show_call
from locus_plugin_approval import ApprovalHook, ApprovalReport, ApprovalSettings
from locus_testkit import ScriptedModel, call

from .kit import TOOLS, agent, contents, question, results, write_file

pytestmark = pytest.mark.anyio

WRITE = call("write_file", path="a", contents="b")


# -- which calls ---------------------------------------------------------------------------------------


async def test_a_person_is_asked_before_the_body_runs() -> None:
    result = await agent(WRITE).run("x")
    assert result.stop_reason == "Interrupted"
    assert question(result) == 'May this call run? write_file(path="a", contents="b", mode="w")'
    assert [str(option) for option in result.interrupts[0].options] == ["allow", "reject", "edit", "always"]
    assert contents() == []
    assert result.reports["approval"] == ApprovalReport(asked=1)


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        (True, ["write_file", "remove_file", "reboot"]),
        ({"tools": ("write_file",)}, ["write_file"]),
        ({"tools": ["*_file"]}, ["write_file", "remove_file", "read_file"]),
        ({"tools": ["*"], "except_tools": ["re*"]}, ["write_file"]),
        ({"except_tools": ["*_file"]}, ["reboot"]),
        ({"tools": []}, []),
        (ApprovalSettings(tools=("reboot",)), ["reboot"]),
    ],
)
async def test_the_settings_say_by_patterns_which_calls_are_asked_about(settings: Any, asked: list[str]) -> None:
    turn = [WRITE, call("remove_file", path="a"), call("read_file", path="a"), call("reboot")]
    result = await agent(turn, approval=settings).run("x")
    assert {each.tool_name for each in result.interrupts} == set(asked)


@pytest.mark.parametrize("pattern", ["write_file [!x]", "[W]RITE_FILE", "writ[e]", "[f]ile"])
async def test_a_pattern_is_the_whole_name_in_its_case(pattern: str) -> None:
    assert (await agent(WRITE, approval={"tools": [pattern]}).run("x")).stop_reason == "NoToolCalls"


@pytest.mark.parametrize("setting", ["tools", "except_tools"])
@pytest.mark.parametrize("name", ["wirte_file", "write_file ", "WRITE_FILE", "write", "file"])
def test_a_name_of_no_tool_is_refused_when_the_agent_is_built(setting: str, name: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown tool in approval.{setting} {name!r}"):
        agent(WRITE, approval={setting: ["write_file", name]})
    with pytest.raises(ConfigError, match=f"unknown tool in approval.{setting} {name!r}"):
        Agent(ScriptedModel("x"), tools=[write_file], hooks=[ApprovalHook(ApprovalSettings(**{setting: (name,)}))])


async def test_the_hook_alone_is_the_same() -> None:
    assert CompatHook is ApprovalHook
    settings = ApprovalSettings(tools=("write_file",))
    made = Agent[Any, Any](ScriptedModel(WRITE, "done"), tools=[write_file], hooks=[ApprovalHook(settings)])
    assert (await made.run("x")).stop_reason == "Interrupted"


# -- what is shown -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("two  blanks ", '"two  blanks "'),
        ("a\nb\tc\r", r'"a\nb\tc\r"'),
        ("\x1b[2Jhidden\x00", r'"\u001b[2Jhidden\u0000"'),
        ("txt.\u202egpj", r'"txt.\u202egpj"'),
        ("zero\u200bwidth", r'"zero\u200bwidth"'),
        ("no\u00a0break\u3000wide\u2800braille", r'"no\xa0break\u3000wide\u2800braille"'),
        ('quote" , contents="x', r'"quote\" , contents=\"x"'),
        ("back\\slash", r'"back\\slash"'),
        ("Grüße 漢字", '"Grüße 漢字"'),
        ("x" * 5_000, f'"{"x" * 5_000}"'),
    ],
)
async def test_the_question_shows_exactly_what_will_run(path: str, shown: str) -> None:
    result = await agent(call("write_file", path=path)).run("x")
    assert question(result) == f'May this call run? write_file(path={shown}, contents="", mode="w")'
    await agent(call("write_file", path=path)).resume(result, "allow")
    assert contents() == [(path, "")]


async def test_the_name_of_an_argument_cannot_pretend_to_be_two() -> None:
    asked = ToolCall("1", "free", {'a="1", b': "2", "c": "3"})
    assert show_call(asked) == r'free("a=\"1\", b"="2", c="3")'


# -- answers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["allow", True])
async def test_an_allowed_call_runs_once_as_it_was_shown(answer: Any) -> None:
    made = agent(WRITE)
    result = await made.resume(await made.run("x"), answer)
    assert contents() == [("a", "b")]
    assert results(result) == ["wrote a"]
    assert result.state.tool_executions[0].answer == "allow"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("reject", "Error: Rejected: a person refused this call: reject"),
        (False, "Error: Rejected: a person refused this call: reject"),
        ({"reason": "write it to /tmp"}, "Error: Rejected: a person refused this call: write it to /tmp"),
        ({"reason": "allow"}, "Error: Rejected: a person refused this call: allow"),
    ],
)
async def test_the_model_reads_why_a_call_was_rejected(answer: Any, said: str) -> None:
    made = agent(WRITE)
    result = await made.resume(await made.run("x"), answer)
    assert contents() == []
    assert results(result) == [said]
    assert result.stop_reason == "NoToolCalls"


class Hears(Hook):
    """Keeps the start of each body."""

    def __init__(self) -> None:
        self.started: list[dict[str, Any]] = []

    def on_tool_start(self, event: ToolStartEvent) -> None:
        self.started.append(dict(event.arguments))


async def test_edited_arguments_are_what_runs_is_recorded_and_is_shown() -> None:
    hears = Hears()
    made = agent(WRITE, hooks=[hears])
    result = await made.resume(await made.run("x"), {"arguments": {"path": "c", "contents": "d"}})
    assert contents() == [("c", "d")]
    assert hears.started == [{"path": "c", "contents": "d", "mode": "w"}]
    execution = result.state.tool_executions[0]
    assert dict(execution.arguments) == {"path": "c", "contents": "d", "mode": "w"}
    assert execution.answer == {"arguments": {"path": "c", "contents": "d"}}
    assert results(result) == [
        '[A person changed the arguments of this call to {"path": "c", "contents": "d", "mode": "w"}]\nwrote c'
    ]
    # The turn of the model goes back to its provider as it came.
    (asked,) = [c for m in result.state.messages for c in m.tool_calls]
    assert dict(asked.arguments) == {"path": "a", "contents": "b"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"path": 3, "contents": "d"}, "path"),
        ({"contents": "d"}, "path"),
        ({"path": "c", "colour": "red"}, "colour"),
        ({}, "path"),
    ],
)
async def test_edited_arguments_that_do_not_fit_are_asked_for_again(arguments: dict[str, Any], problem: str) -> None:
    made = agent(WRITE)
    again = await made.resume(await made.run("x"), {"arguments": arguments})
    assert again.stop_reason == "Interrupted"
    assert question(again).startswith('May this call run? write_file(path="a", contents="b", mode="w")\n')
    assert "The arguments that you gave do not fit: the arguments of write_file are wrong" in question(again)
    assert problem in question(again).partition("\n")[2]
    assert contents() == []
    third = await made.resume(again, {"arguments": {"path": 4}})
    assert third.stop_reason == "Interrupted"
    result = await made.resume(third, {"arguments": {"path": "c"}})
    assert contents() == [("c", "")]
    assert result.stop_reason == "NoToolCalls"


@pytest.mark.parametrize(
    "answer",
    [
        "yes",
        "ALLOW",
        "allow ",
        "",
        1,
        0,
        "edit",
        ["allow"],
        {"allow": True},
        {"arguments": "all"},
        {"arguments": None},
        {"arguments": {"path": "c"}, "reason": "x"},
        {"reason": 3},
        {"edit": {"path": "c"}},
    ],
    ids=repr,
)
async def test_what_is_not_an_answer_is_asked_again_and_allows_nothing(answer: Any) -> None:
    made = agent(WRITE)
    asked = await made.run("x")
    with pytest.raises(InterruptMismatch):
        await made.resume(asked, answer)
    assert contents() == []
    await made.resume(asked, "allow")
    assert contents() == [("a", "b")]


async def test_a_call_without_parameters_cannot_be_edited() -> None:
    made = agent(call("reboot"))
    asked = await made.run("x")
    assert [str(option) for option in asked.interrupts[0].options] == ["allow", "reject", "always"]
    with pytest.raises(InterruptMismatch):
        await made.resume(asked, {"arguments": {}})


async def test_what_another_guard_rejects_is_not_reached_by_an_edit() -> None:
    class Fence(Hook):
        guard = True

        def on_tool_call(self, asked: ToolCall) -> Reject | None:
            return Reject("not there") if asked.arguments.get("path") == "/etc/passwd" else None

    made = agent(WRITE, hooks=[Fence()])
    result = await made.resume(await made.run("x"), {"arguments": {"path": "/etc/passwd"}})
    assert contents() == []
    assert results(result) == ["Error: Rejected: not there"]


async def test_an_edit_into_a_call_that_was_made_already_is_not_made_twice() -> None:
    made = agent(call("pay", cents=5), call("pay", cents=7))
    second = await made.resume(await made.run("x"), "allow")
    result = await made.resume(second, {"arguments": {"cents": 5}})
    assert contents() == [("pay", "5")]
    assert result.state.tool_executions[1].cache_hit


async def test_of_two_equal_calls_the_one_that_is_not_edited_is_asked_about_by_itself() -> None:
    made = agent([call("pay", cents=5), call("pay", cents=5)])
    second = await made.resume(await made.run("x"), {"arguments": {"cents": 1}})
    assert question(second) == "May this call run? pay(cents=5)"
    await made.resume(second, "allow")
    assert contents() == [("pay", "1"), ("pay", "5")]


# -- always --------------------------------------------------------------------------------------------


async def test_always_holds_for_the_tool_in_this_run() -> None:
    made = agent(WRITE, call("write_file", path="b"), call("remove_file", path="b"))
    second = await made.resume(await made.run("x"), "always")
    assert contents() == [("a", "b"), ("b", "")]
    assert question(second) == 'May this call run? remove_file(path="b")'
    assert second.reports["approval"].always == ("write_file",)


async def test_always_ends_with_the_run() -> None:
    made = agent(WRITE, "enough", WRITE, checkpointer=MemoryStore())
    asked = await made.run("x", thread_id="t")
    await made.resume("t", "always")
    again = await made.run("and again", thread_id="t")
    assert asked.interrupts
    assert again.stop_reason == "Interrupted"


async def test_always_in_one_run_says_nothing_about_another_one() -> None:
    made = agent(WRITE, WRITE)
    first, other = await made.run("x"), await made.run("y")
    await made.resume(first, "always")
    assert (await made.resume(other, "allow")).stop_reason == "Interrupted"


async def test_a_question_that_is_open_already_wants_an_answer_of_its_own() -> None:
    made = agent([WRITE, call("write_file", path="b")])
    asked = await made.run("x")
    first, second = sorted(asked.interrupts, key=lambda each: each.interrupt_id)
    half = await made.resume(asked, {first.interrupt_id: "always"})
    assert [each.interrupt_id for each in half.interrupts] == [second.interrupt_id]
    result = await made.resume(half, {second.interrupt_id: "reject"})
    assert contents() == [("a", "b")]
    assert result.stop_reason == "NoToolCalls"


async def test_a_child_asks_for_itself_whatever_its_parent_has_always_allowed() -> None:
    child = Agent[Any, Any](ScriptedModel(WRITE, WRITE, "child done"), tools=[*TOOLS])

    @tool
    async def delegate(ctx: ToolContext[Any]) -> str:
        """Let a child write."""
        return str((await ctx.run_child(child, "write")).text)

    made = agent(WRITE, call("delegate"), tools=[*TOOLS, delegate], approval={"tools": ["write_file"]})
    in_child = await made.resume(await made.run("x"), "always")
    assert question(in_child) == 'May this call run? write_file(path="a", contents="b", mode="w")'
    result = await made.resume(in_child, "always")
    assert result.stop_reason == "NoToolCalls"
    assert contents() == [("a", "b")] * 3


async def test_the_call_of_a_child_can_be_edited_and_rejected() -> None:
    child = Agent[Any, Any](ScriptedModel(WRITE, WRITE, "child done"), tools=[*TOOLS])

    @tool
    async def delegate(ctx: ToolContext[Any]) -> str:
        """Let a child write."""
        return str((await ctx.run_child(child, "write")).text)

    made = agent(call("delegate"), tools=[*TOOLS, delegate], approval={"tools": ["write_file"]})
    wrong = await made.resume(await made.run("x"), {"arguments": {"path": 3}})
    assert "do not fit" in question(wrong)
    again = await made.resume(wrong, {"arguments": {"path": "z"}})
    result = await made.resume(again, {"reason": "no"})
    assert contents() == [("z", "")]
    assert results(result) == ["child done"]
