"""Asking a person: the run waits, what was done stays done, and the answer reaches the body that asked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from tests.loop.kit import Recorder, add, answers, assert_valid_history, bodies, collect, confirm, kinds, of, results

from locus import (
    Agent,
    Hook,
    Interrupt,
    InterruptEvent,
    Option,
    TerminateEvent,
    ToolCompleteEvent,
    ToolContext,
    ToolStartEvent,
    tool,
)
from locus.core.errors import InterruptMismatch, NothingToResume
from locus.core.events import event_from_json, event_to_json
from locus.core.journal import entry_from_json, entry_to_json
from locus.core.messages import ToolCall
from locus.journal import MemoryStore
from locus.journal.host import JournalHost
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _count_anew() -> Iterator[None]:
    bodies.clear()
    yield
    bodies.clear()


@pytest.mark.parametrize(("question", "options"), [("How many?", [1, 2, 3]), (5, ()), ("Really?", [b"yes"])])
async def test_a_question_that_the_journal_could_not_be_read_with_is_the_tools_error(
    question: Any, options: Any
) -> None:
    @tool
    def choose(ctx: ToolContext[Any]) -> str:
        """Choose."""
        return f"{ctx.interrupt(question, options=options)}"

    store = MemoryStore()
    agent = Agent(ScriptedModel(call("choose"), "Not chosen.", "Again."), tools=[choose], checkpointer=store)

    result = await agent.run("x", thread_id="t")

    assert (result.stop_reason, result.message) == ("NoToolCalls", "Not chosen.")
    assert f"got {question!r} and {options!r}" in results(result)[0]
    assert (await agent.run("y", thread_id="t")).message == "Again."


def test_one_option_is_not_taken_for_its_letters() -> None:
    assert Interrupt("Go on?", "yes").options == ("yes",)


# -- the run waits -----------------------------------------------------------------------------------


async def test_a_question_ends_the_segment_and_keeps_the_siblings_results() -> None:
    recorder = Recorder()
    model = ScriptedModel([call("add", a=1), call("confirm", what="pay"), call("add", a=2)], "paid")
    agent = Agent(model, tools=[add, confirm], hooks=[recorder])

    asked = await agent.run("pay")

    assert asked.stop_reason == "Interrupted"
    assert asked.message == ""
    [question] = asked.interrupts
    assert (question.question, question.tool_name, question.call_id) == ("Shall I pay?", "confirm", "call_1_2")
    assert kinds(recorder.events)[-2:] == ["interrupt", "terminate"]
    assert of(recorder.events, InterruptEvent)[0].interrupt_id == question.interrupt_id
    assert of(recorder.events, TerminateEvent)[0].reason == "Interrupted"

    result = await agent.resume(asked, "yes")

    assert (result.stop_reason, result.message) == ("NoToolCalls", "paid")
    assert results(result) == ["2", "pay: yes", "3"]
    assert bodies == {"add": 2, "confirm": 2}  # siblings once; the one that asked, from its top
    assert len(model.requests) == 2
    assert_valid_history(result.state.messages)


@pytest.mark.parametrize("mode", ["concurrent", "sequential"])
async def test_no_model_call_no_finished_tool_and_no_event_happens_twice(mode: Any) -> None:
    recorder = Recorder()
    turn = [call("add", a=1), call("confirm", what="pay"), call("add", a=2)]
    agent = Agent(ScriptedModel(turn, "done"), tools=[add, confirm], hooks=[recorder], tool_execution=mode)
    asked = await agent.run("x")
    await agent.resume(asked, "yes")

    now = [e for e in recorder.events if not e.replayed]
    assert len([e for e in of(now, ToolCompleteEvent) if e.tool_name == "add"]) == 2
    assert len([e for e in of(now, ToolStartEvent) if e.tool_name == "add"]) == 2
    assert kinds(now).count("model_complete") == 2
    assert kinds(now).count("terminate") == 2  # one a segment
    assert [e.segment for e in of(recorder.events, TerminateEvent)] == [0, 1]
    assert len({e.run_id for e in recorder.events}) == 1


async def test_a_run_that_waits_continues_under_the_same_id_with_all_its_totals() -> None:
    agent = Agent(ScriptedModel(call("confirm", what="pay"), "done"), tools=[confirm])
    asked = await agent.run("x")
    result = await agent.resume(asked, "yes")
    assert result.run_id == asked.run_id
    assert result.usage.total_tokens == 30
    assert result.state.iteration == 1
    assert result.state.started_at == asked.state.started_at


async def test_the_question_of_a_run_with_a_checkpointer_is_answered_by_thread() -> None:
    store = MemoryStore()
    script = ScriptedModel(call("confirm", what="pay"), "done")
    await Agent(script, tools=[confirm], checkpointer=store).run("x", thread_id="t")
    # Another agent object, as after a restart.
    result = await Agent(script, tools=[confirm], checkpointer=store).resume("t", "yes")
    assert (result.message, results(result)) == ("done", ["pay: yes"])


# -- several questions -----------------------------------------------------------------------------------


async def test_two_tools_of_one_turn_may_both_ask() -> None:
    agent = Agent(ScriptedModel([call("confirm", what="pay"), call("confirm", what="ship")], "done"), tools=[confirm])
    asked = await agent.run("x")
    ids = {q.question: q.interrupt_id for q in asked.interrupts}
    assert set(ids) == {"Shall I pay?", "Shall I ship?"}

    result = await agent.resume(asked, {ids["Shall I ship?"]: "no", ids["Shall I pay?"]: "yes"})

    assert results(result) == ["pay: yes", "ship: no"]
    assert bodies["confirm"] == 4


async def test_one_answer_to_two_questions_must_say_to_which() -> None:
    agent = Agent(
        ScriptedModel([call("confirm", what="pay"), call("confirm", what="ship")], "done"),
        tools=[confirm],
        checkpointer=MemoryStore(),
    )
    asked = await agent.run("x", thread_id="t")
    with pytest.raises(InterruptMismatch, match="2 questions are open"):
        await agent.resume("t", "yes")
    with pytest.raises(InterruptMismatch, match="2 questions are open"):
        await agent.resume(asked, "yes")
    near = asked.interrupts[0].interrupt_id + "x"
    with pytest.raises(InterruptMismatch, match="did you mean"):
        await agent.resume("t", {near: "yes"})
    # Nothing was lost by trying.
    result = await agent.resume("t", {q.interrupt_id: "yes" for q in asked.interrupts})
    assert results(result) == ["pay: yes", "ship: yes"]


async def test_questions_can_be_answered_one_at_a_time() -> None:
    agent = Agent(ScriptedModel([call("confirm", what="pay"), call("confirm", what="ship")], "done"), tools=[confirm])
    asked = await agent.run("x")
    pay, ship = sorted(asked.interrupts, key=lambda q: q.question)
    half = await agent.resume(asked, {pay.interrupt_id: "yes"})
    assert half.stop_reason == "Interrupted"
    assert half.interrupts == (ship,)
    # Only a body that has its answer is entered again.
    assert bodies["confirm"] == 3
    result = await agent.resume(half, "no")
    assert results(result) == ["pay: yes", "ship: no"]
    assert bodies["confirm"] == 4


async def test_a_body_that_asks_several_times_gets_its_answers_in_order() -> None:
    @tool
    async def survey(ctx: ToolContext[Any]) -> str:
        """Ask twice."""
        bodies["survey"] += 1
        return f"{ctx.interrupt('first?')}, then {ctx.interrupt('second?')}"

    agent = Agent(ScriptedModel(call("survey"), "done"), tools=[survey])
    one = await agent.run("x")
    two = await agent.resume(one, 1)
    assert [q.question for q in two.interrupts] == ["second?"]
    assert one.interrupts[0].interrupt_id != two.interrupts[0].interrupt_id
    result = await agent.resume(two, 2)
    assert results(result) == ["1, then 2"]
    assert bodies["survey"] == 3


async def test_without_an_answer_the_question_stays_open() -> None:
    agent = Agent(ScriptedModel(call("confirm", what="pay"), "done"), tools=[confirm])
    asked = await agent.run("x")
    still = await agent.resume(asked)
    assert still.stop_reason == "Interrupted"
    assert still.interrupts == asked.interrupts
    assert bodies["confirm"] == 1  # nobody has answered, so there is nothing to enter the body for
    assert results(await agent.resume(still, "yes")) == ["pay: yes"]


# -- ways to ask --------------------------------------------------------------------------------------------


async def test_only_the_offered_answers_are_taken() -> None:
    @tool
    async def pick(ctx: ToolContext[Any]) -> str:
        """Offer a choice."""
        return str(ctx.interrupt("Which?", options=["red", "blue"]))

    agent = Agent(ScriptedModel(call("pick"), "done"), tools=[pick])
    asked = await agent.run("x")
    assert asked.interrupts[0].options == ("red", "blue")
    with pytest.raises(InterruptMismatch, match="'green'"):
        await agent.resume(asked, "green")
    assert results(await agent.resume(asked, "blue")) == ["blue"]


async def test_raising_the_exception_asks_as_well_and_its_answer_is_the_result() -> None:
    @tool
    async def ask(what: str) -> str:
        """Raises."""
        bodies["ask"] += 1
        raise Interrupt(f"{what}?", options=("yes", "no"))

    agent = Agent(ScriptedModel(call("ask", what="pay"), "done"), tools=[ask])
    asked = await agent.run("x")
    assert (asked.interrupts[0].question, asked.interrupts[0].options) == ("pay?", ("yes", "no"))
    result = await agent.resume(asked, "no")
    assert results(result) == ["no"]


@pytest.mark.parametrize("by", ["result", "thread"])
async def test_an_answer_may_be_a_mapping(by: str) -> None:
    @tool
    async def ask(ctx: ToolContext[Any]) -> str:
        """Asks for several values at once."""
        said = ctx.interrupt("where and when?")
        return f"{said['where']}, {said['when']}"

    agent = Agent(ScriptedModel(call("ask"), "done"), tools=[ask], checkpointer=MemoryStore())
    asked = await agent.run("x", thread_id="t")
    result = await agent.resume(asked if by == "result" else "t", {"where": "here", "when": "now"})
    assert results(result) == ["here, now"]


async def test_a_mapping_by_id_answers_by_id_also_where_one_question_is_open() -> None:
    agent = Agent(ScriptedModel(call("confirm", what="pay"), "done"), tools=[confirm], checkpointer=MemoryStore())
    asked = await agent.run("x", thread_id="t")
    result = await agent.resume("t", {asked.interrupts[0].interrupt_id: {"said": "yes"}})
    assert results(result) == ["pay: {'said': 'yes'}"]


async def test_no_answers_at_all_leave_the_question_open() -> None:
    agent = Agent(ScriptedModel(call("confirm", what="pay"), "done"), tools=[confirm], checkpointer=MemoryStore())
    await agent.run("x", thread_id="t")
    assert (await agent.resume("t", {})).stop_reason == "Interrupted"
    assert results(await agent.resume("t", {1: "one"})) == ["pay: {1: 'one'}"]


async def test_an_answer_by_an_id_that_is_not_open_is_not_taken_for_the_answer_to_another_question() -> None:
    turn = [call("confirm", what="pay"), call("confirm", what="ship")]
    agent = Agent(ScriptedModel(turn, "done"), tools=[confirm], checkpointer=MemoryStore(), tool_execution="sequential")
    asked = await agent.run("x", thread_id="t")
    first, second = (q.interrupt_id for q in asked.interrupts)
    await agent.resume("t", {first: "yes"})
    with pytest.raises(InterruptMismatch, match="is already answered; "):
        await agent.resume("t", {first: "yes", second: "no"})
    with pytest.raises(InterruptMismatch, match="did you mean"):
        await agent.resume("t", {second + "x": "no"})
    assert results(await agent.resume("t", {second: "no"})) == ["pay: yes", "ship: no"]


async def test_a_mapping_that_names_no_question_does_not_say_which_of_two_it_answers() -> None:
    turn = [call("confirm", what="pay"), call("confirm", what="ship")]
    agent = Agent(ScriptedModel(turn, "done"), tools=[confirm], checkpointer=MemoryStore())
    asked = await agent.run("x", thread_id="t")
    for thread in ("t", asked):
        with pytest.raises(InterruptMismatch, match="2 questions are open"):
            await agent.resume(thread, {"where": "here"})


async def test_a_sync_body_asks_in_the_same_way() -> None:
    @tool
    def ask(ctx: ToolContext[Any]) -> str:
        """Asks."""
        return f"said {ctx.interrupt('what?')}"

    agent = Agent(ScriptedModel([call("ask"), call("add", a=1)], "done"), tools=[ask, add])
    result = await agent.resume(await agent.run("x"), "so")
    assert results(result) == ["said so", "2"]


async def test_a_question_out_of_a_task_group_of_the_body_is_a_question() -> None:
    @tool
    async def ask(ctx: ToolContext[Any]) -> str:
        """Asks while helpers run."""
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.lowlevel.checkpoint)
            said = ctx.interrupt("what?")
        return f"said {said}"

    agent = Agent(ScriptedModel([call("ask"), call("add", a=1)], "done"), tools=[ask, add])
    asked = await agent.run("x")
    assert [q.question for q in asked.interrupts] == ["what?"]
    assert results(await agent.resume(asked, "so")) == ["said so", "2"]


async def test_except_exception_in_a_body_does_not_swallow_the_question() -> None:
    @tool
    async def ask(ctx: ToolContext[Any]) -> str:
        """Catches too much."""
        try:
            return f"said {ctx.interrupt('what?')}"
        except Exception:  # noqa: BLE001  what careless code does
            return "swallowed"

    agent = Agent(ScriptedModel(call("ask"), "done"), tools=[ask])
    asked = await agent.run("x")
    assert asked.stop_reason == "Interrupted"
    assert results(await agent.resume(asked, "so")) == ["said so"]


@pytest.mark.parametrize("answer", ["allow", True, Option("allow", allow=True)])
async def test_a_hook_can_ask_before_a_call(answer: Any) -> None:
    class Careful(Hook):
        def on_tool_call(self, call: ToolCall) -> Interrupt | None:
            return Interrupt("Add really?") if call.name == "add" else None

    recorder = Recorder()
    agent = Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[Careful(), recorder])
    asked = await agent.run("x")
    assert bodies["add"] == 0
    assert of(recorder.events, ToolStartEvent) == []
    result = await agent.resume(asked, answer)
    assert results(result) == ["2"]
    assert bodies["add"] == 1


async def test_a_person_can_refuse_what_a_hook_asked_about() -> None:
    class Careful(Hook):
        def on_tool_call(self, call: ToolCall) -> Interrupt:
            return Interrupt("Add really?")

    agent = Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[Careful()])
    asked = await agent.run("x")
    assert asked.interrupts[0].options == (Option("allow", allow=True), Option("refuse"))
    with pytest.raises(InterruptMismatch, match=r"'yes' is not an answer to .*; choose one of 'allow', 'refuse'"):
        await agent.resume(asked, "yes")
    result = await agent.resume(asked, "refuse")
    assert results(result) == ["Error: Rejected: a person refused this call: refuse"]
    assert bodies["add"] == 0


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("run", "2"),
        ("always", "2"),
        (True, "2"),
        ("skip", "Error: Rejected: a person refused this call: skip"),
        ("yes", "Error: Rejected: a person refused this call: yes"),
        (False, "Error: Rejected: a person refused this call: yes"),
    ],
)
async def test_the_options_of_a_hook_say_which_answers_let_the_call_run(answer: Any, expected: str) -> None:
    options = ("yes", Option("run", allow=True), Option("always", allow=True), Option("skip"))

    class Careful(Hook):
        def on_tool_call(self, call: ToolCall) -> Interrupt:
            return Interrupt("Add really?", options)

    recorder, store = Recorder(), MemoryStore()
    agent = Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[Careful(), recorder], checkpointer=store)
    asked = await agent.run("x", thread_id="t")
    assert asked.interrupts[0].options == options
    [event] = of(recorder.events, InterruptEvent)
    assert event.options == options
    assert event_to_json(event)["options"] == [
        "yes",
        {"label": "run", "allow": True},
        {"label": "always", "allow": True},
        {"label": "skip"},
    ]
    assert event_from_json(event_to_json(event)) == event
    result = await agent.resume("t", answer)
    assert results(result) == [expected]


async def test_the_options_that_the_person_saw_count_and_not_those_of_the_hook_by_now() -> None:
    class Changing(Hook):
        words = "allow", "refuse"

        def on_tool_call(self, call: ToolCall) -> Interrupt:
            return Interrupt("Add?", (Option(self.words[0], allow=True), Option(self.words[1])))

    hook = Changing()
    agent = Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[hook])
    asked = await agent.run("x")
    hook.words = "refuse", "allow"
    assert results(await agent.resume(asked, "refuse")) == ["Error: Rejected: a person refused this call: refuse"]


async def test_two_options_of_one_label_approve_only_when_both_do() -> None:
    class Careful(Hook):
        def on_tool_call(self, call: ToolCall) -> Interrupt:
            return Interrupt("Add?", (Option("ok", allow=True), Option("ok")))

    agent = Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[Careful()])
    result = await agent.resume(await agent.run("x"), "ok")
    assert results(result) == ["Error: Rejected: a person refused this call: ok"]


async def test_a_body_gets_the_label_that_the_person_chose() -> None:
    @tool
    async def pick(ctx: ToolContext[Any]) -> str:
        """Offer a choice."""
        said = ctx.interrupt("Which?", options=[Option("red", allow=True), "blue"])
        return f"{type(said).__name__} {said}"

    agent = Agent(ScriptedModel(call("pick"), "done", call("pick"), "done"), tools=[pick])
    assert results(await agent.resume(await agent.run("x"), "red")) == ["str red"]
    assert results(await agent.resume(await agent.run("x"), "blue")) == ["str blue"]


async def edit_call(store: MemoryStore, thread_id: str, **arguments: Any) -> MemoryStore:
    """A copy of a thread, as an import makes one, in which the call of the model was edited."""
    bodies_of_copy: list[Any] = []
    for entry in await store.read(thread_id):
        form = entry_to_json(entry.body)
        text = json.dumps(form).replace(json.dumps({"a": 1}), json.dumps(arguments))
        bodies_of_copy.append(entry_from_json(json.loads(text)))
    copy = MemoryStore()
    claim = await copy.claim(thread_id, "importer")
    await copy.append(claim, bodies_of_copy)
    await copy.release(claim)
    return copy


@pytest.mark.parametrize("answered", [True, False])
async def test_the_consent_to_a_call_is_not_taken_over_by_another_one(answered: bool) -> None:
    """An answer counts for the call that the question was about, wherever the conversation was edited since."""

    class Careful(Hook):
        def on_tool_call(self, call: ToolCall) -> Interrupt:
            return Interrupt(f"Add {call.arguments['a']}?")

    def agent(store: MemoryStore) -> Agent[Any, str]:
        model = ScriptedModel(script=lambda request: [call("add", a=1), "done"])
        return Agent[Any, str](model, tools=[add], hooks=[Careful()], checkpointer=store)

    store = MemoryStore()
    await agent(store).run("x", thread_id="t")
    if answered:  # and the process died before the body ran
        host = await JournalHost.open(store, "t", "worker")
        await host.answer(dict.fromkeys(host.open_questions, "allow"))
        await host.release()
    copy = await edit_call(store, "t", a=1000)
    again = await agent(copy).resume("t", None if answered else "allow")
    assert bodies["add"] == 0
    assert [q.question for q in again.interrupts] == ["Add 1000?"]
    assert results(await agent(copy).resume("t", "allow")) == ["1001"]
    untouched = await agent(store).resume("t", None if answered else "allow")
    assert results(untouched) == ["2"]


async def test_a_consent_does_not_cover_a_default_that_has_changed_since() -> None:
    def made(*, dry_run: bool) -> Any:
        async def deploy(name: str, dry: bool = dry_run) -> str:
            """Deploy."""
            bodies["deploy"] += 1
            return f"{name} {dry}"

        return tool(deploy)

    class Careful(Hook):
        def on_tool_call(self, call: ToolCall) -> Interrupt:
            return Interrupt(f"Deploy {dict(call.arguments)}?")

    store = MemoryStore()

    def agent(*, dry_run: bool) -> Agent[Any, str]:
        model = ScriptedModel(script=lambda request: [call("deploy", name="x"), "done"])
        return Agent[Any, str](model, tools=[made(dry_run=dry_run)], hooks=[Careful()], checkpointer=store)

    await agent(dry_run=True).run("x", thread_id="t")
    asked = await agent(dry_run=False).resume("t", "allow")
    assert [q.question for q in asked.interrupts] == ["Deploy {'name': 'x', 'dry': False}?"]
    assert bodies["deploy"] == 0
    assert results(await agent(dry_run=False).resume("t", "allow")) == ["x False"]


async def test_no_text_that_a_tool_returns_is_taken_for_a_question() -> None:
    markers = [
        json.dumps({"__interrupt__": True, "question": "really?"}),
        json.dumps({"type": "interrupt", "interrupt_id": "0/execute/0?0", "question": "q", "options": []}),
        "Interrupt: really?",
        repr(Interrupt("really?")),
    ]

    @tool
    async def echo(n: int) -> str:
        """Returns what looks like a question."""
        return markers[n]

    model = ScriptedModel([call("echo", n=n) for n in range(len(markers))], "done")
    result = await Agent(model, tools=[echo]).run("x")
    assert result.stop_reason == "NoToolCalls"
    assert results(result) == markers


# -- effects before the question -------------------------------------------------------------------------------


async def test_an_effect_in_a_step_before_the_question_happens_once() -> None:
    done: Counter[str] = Counter()

    @tool
    async def order(ctx: ToolContext[Any]) -> str:
        """Reserve, ask, pay."""

        async def reserve() -> str:
            done["reserve"] += 1
            return f"R-{done['reserve']}"

        done["entered"] += 1
        reserved = await ctx.step("reserve", reserve)
        said = ctx.interrupt("Pay?")
        return f"{reserved} {said}"

    agent = Agent(ScriptedModel(call("order"), "done"), tools=[order])
    result = await agent.resume(await agent.run("x"), "yes")
    assert results(result) == ["R-1 yes"]
    assert done == {"entered": 2, "reserve": 1}


async def test_a_step_that_failed_before_the_question_fails_again_without_running() -> None:
    done: Counter[str] = Counter()

    @tool
    async def order(ctx: ToolContext[Any]) -> str:
        """Reserve, ask, pay."""

        async def reserve() -> str:
            done["reserve"] += 1
            raise ConnectionError("lost")

        try:
            await ctx.step("reserve", reserve)
        except Exception as e:  # noqa: BLE001  whatever it is, the person is asked
            return f"{ctx.interrupt('Go on?')}: {'lost' in str(e)}"
        return "reserved"

    agent = Agent(ScriptedModel(call("order"), "done"), tools=[order])
    result = await agent.resume(await agent.run("x"), "yes")
    assert results(result) == ["yes: True"]
    assert done == {"reserve": 1}


async def test_two_steps_of_one_body_need_two_names() -> None:
    @tool
    async def order(ctx: ToolContext[Any]) -> str:
        """Uses a name twice."""

        async def one() -> int:
            return 1

        await ctx.step("s", one)
        await ctx.step("s", one)
        return "never"

    result = await Agent(ScriptedModel(call("order"), "done"), tools=[order]).run("x")
    assert "'s' ran already" in results(result)[0]


async def test_the_key_for_services_is_the_same_when_the_body_runs_again() -> None:
    keys: list[str] = []

    @tool
    async def pay(ctx: ToolContext[Any]) -> str:
        """Pay."""
        keys.append(ctx.idempotency_key)
        return str(ctx.interrupt("Pay?"))

    agent = Agent(ScriptedModel([call("add", a=1), call("pay")], "done"), tools=[pay, add])
    await agent.resume(await agent.run("x"), "yes")
    assert len(keys) == 2
    assert len(set(keys)) == 1


# -- leaving it open ------------------------------------------------------------------------------------------------


async def test_a_new_turn_closes_the_open_question_and_keeps_what_was_done() -> None:
    agent = Agent(
        ScriptedModel([call("confirm", what="pay"), call("add", a=1), call("confirm", what="ship")], "hello"),
        tools=[add, confirm],
        checkpointer=MemoryStore(),
    )
    await agent.run("pay", thread_id="t")
    result = await agent.run("never mind", thread_id="t")

    assert result.message == "hello"
    assert_valid_history(result.state.messages)
    first, second, third = (str(a.content) for a in answers(result.state))
    assert first.startswith("Error: not run")
    assert second == "2"
    assert third.startswith("Error: not run")
    with pytest.raises(NothingToResume):
        await agent.resume("t", "yes")


async def test_an_ended_run_cannot_be_resumed() -> None:
    agent = Agent(ScriptedModel(call("confirm", what="pay"), "done"), tools=[confirm])
    asked = await agent.run("x")
    result = await agent.resume(asked, "yes")
    for old in (asked, result):
        with pytest.raises(NothingToResume, match="NoToolCalls"):
            await agent.resume(old, "yes")


async def test_deps_are_passed_again_to_a_resumed_run() -> None:
    @tool
    async def ask(ctx: ToolContext[str]) -> str:
        """Asks."""
        return f"{ctx.interrupt('what?')} {ctx.deps}"

    agent = Agent[str, str](ScriptedModel(call("ask"), "done"), tools=[ask])
    asked = await agent.run("x", deps="first")
    assert results(await agent.resume(asked, "yes", deps="second")) == ["yes second"]


async def test_questions_stream_when_the_run_is_iterated() -> None:
    agent = Agent(ScriptedModel(call("confirm", what="pay"), "done"), tools=[confirm])
    run = agent.run("x")
    events = await collect(run)
    assert kinds(events)[-2:] == ["interrupt", "terminate"]
    resumed = agent.resume(run.result, "yes")
    assert kinds(await collect(resumed))[0] == "run_start"
    assert results(resumed.result) == ["pay: yes"]


async def test_what_siblings_spent_is_charged_although_the_run_waits() -> None:
    @tool
    async def delegate(ctx: ToolContext[Any]) -> str:
        """Has another agent do it."""
        child = await ctx.run_child(Agent(ScriptedModel("child done")), "do it")
        return str(child.message)

    agent = Agent(ScriptedModel([call("delegate"), call("confirm", what="pay")], "done"), tools=[delegate, confirm])
    asked = await agent.run("x")
    assert asked.usage.total_tokens == 30
    result = await agent.resume(asked, "yes")
    assert result.usage.total_tokens == 45  # two calls of its own and one of the child
