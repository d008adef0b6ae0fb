"""What goes into a run and what comes out of it: filters of the prompt, reviews of the answer, repair by schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from tests.loop.hook_kit import WAYS, Crash, failures, wrong
from tests.loop.kit import Recorder, add, assert_valid_history, kinds, of, results

from locus import (
    Accept,
    Agent,
    AgentState,
    Allow,
    Cancel,
    Hook,
    HookFailedEvent,
    IterationEvent,
    Message,
    Reject,
    Revise,
    Role,
    RunStartEvent,
    TerminateEvent,
    ThinkEvent,
    ToolContext,
    ToolProgressEvent,
    tool,
)
from locus.core.journal import REVIEW, Outcome, Transition
from locus.core.messages import Block, MediaBlock, TextBlock, ToolCall, ToolResult
from locus.core.termination import TextMention
from locus.journal import MemoryStore
from locus.plugin import RunContext, hookimpl
from locus_plugin_sqlite import SqliteStore
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


class Want(Hook):
    """Sends an answer back until it contains a word."""

    def __init__(self, word: str, name: str = "want") -> None:
        self.word, self.name = word, name
        self.seen: list[str] = []

    @hookimpl
    async def locus_review_answer(self, answer: Message, state: AgentState, run: RunContext) -> Accept | Revise:
        assert state.messages[-1] is answer
        assert run.state.messages[-1] is answer
        self.seen.append(answer.text)
        return Accept() if self.word in answer.text else Revise(f"Say {self.word}.")


# -- answers ------------------------------------------------------------------------------------------


async def test_an_answer_is_sent_back_with_feedback_until_it_is_accepted() -> None:
    want, recorder = Want("please"), Recorder()
    model = ScriptedModel("give", "please give")
    result = await Agent(model, hooks=[want, recorder]).run("x")
    assert (result.stop_reason, result.message) == ("NoToolCalls", "please give")
    assert want.seen == ["give", "please give"]
    assert [(m.role, m.text) for m in result.state.messages] == [
        (Role.USER, "x"),
        (Role.ASSISTANT, "give"),
        (Role.USER, "Say please."),
        (Role.ASSISTANT, "please give"),
    ]
    assert model.requests[1].messages == result.state.messages[:3]
    assert [e.iteration for e in of(recorder.events, IterationEvent)] == [1, 2]
    assert not result.state.pending_revision
    assert "review" not in result.reports


async def test_only_a_final_answer_is_reviewed() -> None:
    want = Want("done")
    model = ScriptedModel(["Let me add.", call("add", a=1)], "done")
    await Agent(model, tools=[add], hooks=[want]).run("x")
    assert want.seen == ["done"]


async def test_a_revision_may_call_tools_first() -> None:
    want = Want("2")
    model = ScriptedModel("I guess 3", call("add", a=1), "it is 2")
    result = await Agent(model, tools=[add], hooks=[want]).run("x")
    assert (result.message, results(result)) == ("it is 2", ["2"])
    assert want.seen == ["I guess 3", "it is 2"]
    assert_valid_history(result.state.messages)


@pytest.mark.parametrize("most", [0, 1, 2, 5])
async def test_after_the_last_revision_the_answer_is_accepted_and_the_report_says_so(most: int) -> None:
    want = Want("please")
    model = ScriptedModel("give", after="repeat")
    result = await Agent(model, hooks=[want], max_revisions=most).run("x")
    assert (result.stop_reason, result.message) == ("NoToolCalls", "give")
    assert len(model.requests) == len(want.seen) == most + 1
    assert result.state.revisions == most
    assert f"after {most} revisions" in result.reports["review"]
    assert "Say please." in result.reports["review"]


async def test_two_revisions_are_the_default() -> None:
    model = ScriptedModel("give", after="repeat")
    await Agent(model, hooks=[Want("please")]).run("x")
    assert len(model.requests) == 3


async def test_the_next_turn_of_a_thread_has_its_own_revisions() -> None:
    model = ScriptedModel("a", "a please", "b", "b please")
    agent = Agent(model, hooks=[Want("please")], max_revisions=1, checkpointer=MemoryStore())
    assert (await agent.run("x", thread_id="t")).message == "a please"
    result = await agent.run("y", thread_id="t")
    assert result.message == "b please"
    assert "review" not in result.reports


async def test_several_reviewers_are_all_heard_and_their_feedback_is_one_message() -> None:
    hooks = [Want("please", "a"), Want("thanks", "b")]
    model = ScriptedModel("give", "please, thanks")
    result = await Agent(model, hooks=hooks).run("x")
    assert result.state.messages[2].text == "Say please.\n\nSay thanks."
    assert result.message == "please, thanks"


async def test_a_reviewer_may_end_the_run() -> None:
    class Leak(Hook):
        @hookimpl
        def locus_review_answer(self, answer: Message) -> Cancel:
            return Cancel("the answer leaks")

    late = Want("x", "late")
    result = await Agent(ScriptedModel("the key is 42"), hooks=[Leak(), late]).run("x")
    assert result.stop_reason == "Cancelled: the answer leaks"
    assert late.seen == []


async def test_a_revision_counts_as_an_iteration() -> None:
    model = ScriptedModel("give", after="repeat")
    result = await Agent(model, hooks=[Want("please")], max_iterations=2, max_revisions=9).run("x")
    assert (result.stop_reason, len(model.requests)) == ("MaxIterations", 2)
    assert result.message == "give"


async def test_what_the_user_stops_at_must_be_in_an_accepted_answer() -> None:
    model = ScriptedModel("give", "please give")
    agent = Agent(model, hooks=[Want("please")], termination=TextMention("give"), max_iterations=9)
    result = await agent.run("x")
    assert (result.stop_reason, result.message, len(model.requests)) == ("TextMention", "please give", 2)


async def test_a_sent_back_answer_is_shown_as_it_streams_and_the_end_comes_once() -> None:
    recorder = Recorder()
    model = ScriptedModel("give", "please give", chunks=True)
    await Agent(model, hooks=[Want("please"), recorder]).run("x")
    assert [e.text for e in of(recorder.events, ThinkEvent)] == ["give", "please give"]
    assert [e.final_message for e in of(recorder.events, TerminateEvent)] == ["please give"]


async def test_the_review_of_an_agent_without_reviewers_costs_no_step() -> None:
    store = MemoryStore()
    await Agent(ScriptedModel("hi"), checkpointer=store).run("x", thread_id="t")
    assert not [e for e in await store.read("t") if "review" in repr(e.body)]


@pytest.mark.parametrize("how", WAYS)
async def test_a_reviewer_that_goes_wrong_is_skipped_and_reported(how: str) -> None:
    bad, want, recorder = wrong(how, "locus_review_answer"), Want("please"), Recorder()
    model = ScriptedModel("give", "please give")
    result = await Agent(model, hooks=[bad, want, recorder]).run("x")
    assert (result.stop_reason, result.message) == ("NoToolCalls", "please give")
    assert [e.hook for e in of(recorder.events, HookFailedEvent)] == ["locus_review_answer"] * 2
    assert [(f.count, f.quarantined) for f in failures(result)] == [(2, False)]


async def test_a_reviewer_is_out_after_its_third_failure() -> None:
    bad, want = wrong("nonsense", "locus_review_answer", nonsense=Revise("  ")), Want("please")
    model = ScriptedModel(*["give"] * 5, "please give")
    result = await Agent(model, hooks=[bad, want], max_revisions=9).run("x")
    assert result.message == "please give"
    assert bad.calls == 3
    assert [(f.count, f.quarantined) for f in failures(result)] == [(3, True)]


@pytest.mark.parametrize("nonsense", [True, "fine", Allow(), Reject("no"), Accept, Revise])
async def test_what_is_not_a_verdict_does_not_count(nonsense: Any) -> None:
    bad = wrong("nonsense sync", "locus_review_answer", nonsense=nonsense)
    result = await Agent(ScriptedModel("give", "please give"), hooks=[bad, Want("please")]).run("x")
    assert (result.message, bad.calls, len(failures(result))) == ("please give", 2, 1)


async def test_the_same_feedback_is_said_once() -> None:
    hooks = [Want("please", "a"), Want("give", "b"), Want("please", "c")]
    result = await Agent(ScriptedModel("give", "please give"), hooks=hooks).run("x")
    assert result.state.messages[2].text == "Say please."


class Dies(Hook):
    """Reviews answers, in a process that dies of it the first time."""

    alive = False

    @hookimpl
    def locus_review_answer(self, answer: Message) -> None:
        if not self.alive:
            self.alive = True
            raise Crash


@pytest.mark.parametrize("verdict", [Revise("Cite."), None])
async def test_a_verdict_is_on_record_and_nobody_is_asked_again(verdict: Any, tmp_path: Path) -> None:
    reviewer = wrong("nonsense", "locus_review_answer", nonsense=verdict)
    async with SqliteStore(tmp_path / "runs.db") as store:
        agent = Agent(ScriptedModel("a", "b"), hooks=[reviewer, Dies()], checkpointer=store, max_revisions=1)
        with pytest.raises(Crash):
            await agent.run("x", thread_id="t")
        result = await agent.resume("t")
        assert await verdicts(store) == [("bad", verdict), ("Dies", None)] * (1 if verdict is None else 2)

    assert result.message == ("a" if verdict is None else "b")
    assert reviewer.calls == (1 if verdict is None else 2)


async def test_a_reviewers_cancel_is_on_record(tmp_path: Path) -> None:
    reviewer = wrong("nonsense", "locus_review_answer", nonsense=Cancel("it leaks"))
    async with SqliteStore(tmp_path / "runs.db") as store:
        await Agent(ScriptedModel("a"), hooks=[reviewer], checkpointer=store).run("x", thread_id="t")
        assert await verdicts(store) == [("bad", Cancel("it leaks"))]


async def verdicts(store: SqliteStore) -> list[tuple[str, Any]]:
    """What each reviewer has said, as it is on record."""
    outcomes = [e.body for e in await store.read("t") if isinstance(e.body, Outcome)]
    return [(o.step_id.name.split("/")[1], o.value) for o in outcomes if o.step_id.node == REVIEW]


# -- schemas ------------------------------------------------------------------------------------------


@frozen
class Weather:
    """What the answer is to be."""

    city: str
    degrees: int


async def test_an_answer_that_does_not_fit_the_schema_is_repaired() -> None:
    model = ScriptedModel('{"city": "Oslo", "degrees": "cold"}', '{"city": "Oslo", "degrees": -3}')
    result = await Agent(model, output_schema=Weather).run("x")
    assert result.parsed == Weather("Oslo", -3)
    feedback = result.state.messages[2].text
    assert "degrees" in feedback
    assert "output" not in result.reports


async def test_an_answer_that_never_fits_is_kept_unparsed_and_the_report_says_why() -> None:
    model = ScriptedModel("it is cold", after="repeat")
    result = await Agent(model, output_schema=Weather).run("x")
    assert (result.stop_reason, result.message, result.parsed) == ("OutputInvalid", "it is cold", None)
    assert len(model.requests) == 3
    assert "after 2 revisions" in result.reports["review"]
    assert "JSON" in result.reports["output"]


async def test_reviewers_see_only_answers_that_fit_the_schema() -> None:
    want = Want("Oslo")
    model = ScriptedModel("hm", '{"city": "Rome", "degrees": 30}', '{"city": "Oslo", "degrees": -3}')
    result = await Agent(model, output_schema=Weather, hooks=[want]).run("x")
    assert [text[:2] for text in want.seen] == ['{"', '{"']
    assert result.parsed == Weather("Oslo", -3)


async def test_schema_and_reviewers_share_the_revisions() -> None:
    model = ScriptedModel("hm", '{"city": "Rome", "degrees": 30}', after="repeat")
    result = await Agent(model, output_schema=Weather, hooks=[Want("Oslo")], max_revisions=2).run("x")
    assert len(model.requests) == 3
    assert result.parsed == Weather("Rome", 30)
    assert "Say Oslo." in result.reports["review"]


async def test_a_run_may_have_its_own_schema() -> None:
    agent = Agent(ScriptedModel("7", '{"city": "Oslo", "degrees": -3}'), output_schema=Weather)
    assert (await agent.run("x", output_schema=int)).parsed == 7
    assert (await agent.run("x")).parsed == Weather("Oslo", -3)


# -- prompts ------------------------------------------------------------------------------------------


class Mask(Hook):
    """Masks a number."""

    @hookimpl
    async def locus_filter_input(self, prompt: Message, run: RunContext) -> str:
        return prompt.text.replace("XYZZY", "****")


async def test_a_filtered_prompt_is_the_only_one_that_anybody_sees() -> None:
    store, recorder, model = MemoryStore(), Recorder(), ScriptedModel("ok")
    agent = Agent(model, hooks=[Mask(), recorder], checkpointer=store)
    result = await agent.run("my card is XYZZY", thread_id="t")
    assert result.state.messages[0].text == "my card is ****"
    assert of(recorder.events, RunStartEvent)[0].prompt == "my card is ****"
    assert model.requests[0].messages[0].text == "my card is ****"
    assert "XYZZY" not in repr(await store.read("t"))


async def test_each_turn_of_a_thread_is_filtered() -> None:
    model = ScriptedModel("ok", after="repeat")
    agent = Agent(model, hooks=[Mask()], checkpointer=MemoryStore())
    await agent.run("XYZZY", thread_id="t")
    result = await agent.run("again XYZZY", thread_id="t")
    assert [m.text for m in result.state.messages] == ["****", "ok", "again ****", "ok"]


TRANSCRIPT = (
    Message(Role.USER, "my card is XYZZY"),
    Message(Role.ASSISTANT, "I see."),
    Message(Role.USER, "XYZZY it is"),
    Message(Role.USER, "well?"),
)


async def test_each_turn_of_the_users_in_a_transcript_is_filtered_in_order() -> None:
    asked: list[str] = []

    class Count(Hook):
        @hookimpl
        def locus_filter_input(self, prompt: Message) -> None:
            asked.append(prompt.text)

    store, recorder, model = MemoryStore(), Recorder(), ScriptedModel("ok")
    agent = Agent(model, hooks=[Mask(), Count(), recorder], checkpointer=store, system_prompt="Be brief.")
    result = await agent.run(list(TRANSCRIPT), thread_id="t")
    assert asked == ["my card is ****", "**** it is", "well?"]
    assert [m.text for m in result.state.messages[1:]] == ["my card is ****", "I see.", "**** it is", "well?", "ok"]
    assert of(recorder.events, RunStartEvent)[0].prompt == "well?"
    assert "XYZZY" not in repr((model.requests, recorder.events, await store.read("t")))


async def test_nothing_that_was_not_filtered_stays_of_a_transcript_that_is_refused() -> None:
    class Topic(Hook):
        @hookimpl
        def locus_filter_input(self, prompt: Message) -> Cancel | None:
            return Cancel("off topic") if "XYZZY" in prompt.text else None

    store, recorder, model = MemoryStore(), Recorder(), ScriptedModel()
    agent = Agent(model, hooks=[Topic(), recorder], checkpointer=store)
    result = await agent.run([Message(Role.USER, "hello"), *TRANSCRIPT], thread_id="t")
    assert result.stop_reason == "Cancelled: off topic"
    assert model.requests == ()
    withheld = "[withheld: the prompt was refused]"
    assert [m.text for m in result.state.messages] == ["hello", withheld, "I see.", withheld, withheld]
    assert "XYZZY" not in repr((recorder.events, await store.read("t")))


async def test_what_is_not_a_turn_of_the_users_is_not_filtered() -> None:
    class Shout(Hook):
        @hookimpl
        def locus_filter_input(self, prompt: Message) -> str:
            return prompt.text.upper()

    asking = Message(Role.ASSISTANT, ToolCall("1", "add", {"a": 1}))
    given = [Message(Role.USER, "one more?"), asking, Message(Role.TOOL, ToolResult("1", "2", name="add"))]
    result = await Agent(ScriptedModel("two"), tools=[add], hooks=[Shout()]).run(given)
    assert result.state.messages[:3] == (Message(Role.USER, "ONE MORE?"), *given[1:])


async def test_a_resumed_run_has_no_new_prompt_to_filter() -> None:
    asked: list[str] = []

    class Count(Hook):
        @hookimpl
        def locus_filter_input(self, prompt: Message) -> None:
            asked.append(prompt.text)

    class Once(Hook):
        def on_think(self, event: ThinkEvent, run: RunContext) -> None:
            run.cancel("later")

    store = MemoryStore()
    agent = Agent(ScriptedModel("hi", after="repeat"), hooks=[Count(), Once()], checkpointer=store)
    await agent.run("x", thread_id="t")
    await agent.run("y", thread_id="t")
    assert asked == ["x", "y"]


async def test_a_filter_sees_every_block_and_may_take_some_out() -> None:
    class Blind(Hook):
        @hookimpl
        def locus_filter_input(self, prompt: Message) -> Message:
            return Message(Role.USER, tuple(b for b in prompt.content if not isinstance(b, MediaBlock)))

    model = ScriptedModel("ok")
    turn: list[Block] = [TextBlock("look"), MediaBlock("image", url="https://example.org/a.png")]
    await Agent(model, hooks=[Blind()]).run(turn)
    assert model.requests[0].messages[0] == Message(Role.USER, "look")


async def test_a_refused_prompt_ends_the_run_before_the_model_is_asked() -> None:
    class Topic(Hook):
        @hookimpl
        def locus_filter_input(self, prompt: Message) -> Cancel:
            return Cancel("off topic")

    store, recorder, model = MemoryStore(), Recorder(), ScriptedModel()
    agent = Agent(model, hooks=[Topic(), recorder], checkpointer=store)
    result = await agent.run("my card is XYZZY", thread_id="t")
    assert result.stop_reason == "Cancelled: off topic"
    assert model.requests == ()
    assert "XYZZY" not in repr((result.state, recorder.events, await store.read("t")))
    assert kinds(recorder.events)[-1] == "terminate"
    last = [e.body for e in await store.read("t") if isinstance(e.body, Transition)][-1]
    assert last.next_node == "end"


async def test_a_thread_continues_after_a_refused_prompt() -> None:
    class Topic(Hook):
        @hookimpl
        def locus_filter_input(self, prompt: Message) -> Cancel | None:
            return Cancel("off topic") if "card" in prompt.text else None

    agent = Agent(ScriptedModel("hello"), hooks=[Topic()], checkpointer=MemoryStore())
    await agent.run("my card is XYZZY", thread_id="t")
    result = await agent.run("hi", thread_id="t")
    assert result.message == "hello"
    assert "XYZZY" not in repr(result.state)


@pytest.mark.parametrize("how", WAYS)
async def test_a_filter_that_goes_wrong_is_skipped_and_reported(how: str) -> None:
    bad, recorder = wrong(how, "locus_filter_input", nonsense=7), Recorder()
    result = await Agent(ScriptedModel("ok"), hooks=[bad, Mask(), recorder]).run("XYZZY")
    assert (result.stop_reason, result.state.messages[0].text) == ("NoToolCalls", "****")
    assert [e.hook for e in of(recorder.events, HookFailedEvent)] == ["locus_filter_input"]
    assert [f.count for f in failures(result)] == [1]


@pytest.mark.parametrize("nonsense", [True, Reject("no"), Cancel, Message(Role.SYSTEM, "obey")])
async def test_what_is_not_a_turn_of_the_user_does_not_count(nonsense: Any) -> None:
    bad = wrong("nonsense sync", "locus_filter_input", nonsense=nonsense)
    result = await Agent(ScriptedModel("ok"), hooks=[bad, Mask()]).run("XYZZY")
    assert (result.state.messages[0].text, len(failures(result))) == ("****", 1)


async def test_each_filter_gets_what_the_one_before_made_of_the_turn() -> None:
    class Cut(Hook):
        @hookimpl
        async def locus_filter_input(self, prompt: Message) -> Message:
            return Message(Role.USER, prompt.text.replace("****", "a word"))

    class Leaves(Hook):
        @hookimpl
        def locus_filter_input(self, prompt: Message) -> None: ...

    result = await Agent(ScriptedModel("ok"), hooks=[Mask(), Leaves(), Cut()]).run("say XYZZY")
    assert result.state.messages[0] == Message(Role.USER, "say a word")


async def test_every_message_that_a_caller_hands_in_goes_through_the_filter() -> None:
    seeds: list[Any] = [
        Message(Role.USER, "XYZZY"),
        [Message(Role.USER, "XYZZY"), Message(Role.ASSISTANT, "hm"), Message(Role.USER, "again XYZZY")],
        AgentState(messages=(Message(Role.USER, "XYZZY"),)),
    ]
    for seed in seeds:
        model = ScriptedModel("ok")
        await Agent(model, hooks=[Mask()]).run(seed)
        last = [m for m in model.requests[0].messages if m.role is Role.USER][-1]
        assert "XYZZY" not in last.text


# -- what bodies say of their progress ----------------------------------------------------------------


@tool
async def copy(ctx: ToolContext[None]) -> str:
    """Copy a file."""
    await ctx.emit_progress(1, total=2, message="from a secret place")
    await ctx.emit_progress(2, total=2)
    return "copied"


def told(recorder: Recorder) -> list[tuple[float | None, str]]:
    return [(e.progress, e.message) for e in of(recorder.events, ToolProgressEvent)]


class Discreet(Hook):
    @hookimpl
    def locus_filter_progress(self, message: str, call: ToolCall) -> str:
        return message.replace("secret", f"{call.name}'s")


class Silent(Hook):
    """Leaves what it is asked about as it is, and remembers it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @hookimpl
    async def locus_filter_progress(self, message: str, run: RunContext) -> None:
        assert run.run_id
        self.asked.append(message)


async def test_progress_is_filtered_in_order_before_it_is_emitted() -> None:
    recorder, silent = Recorder(), Silent()
    await Agent(ScriptedModel(call("copy"), "done"), tools=[copy], hooks=[recorder, Discreet(), silent]).run("x")
    assert silent.asked == ["from a copy's place"]
    assert told(recorder) == [(1, "from a copy's place"), (2, "")]


async def test_progress_that_nobody_hears_is_not_filtered() -> None:
    silent = Silent()
    await Agent(ScriptedModel(call("copy"), "done"), tools=[copy], hooks=[silent]).run("x")
    assert silent.asked == []


@pytest.mark.parametrize("how", WAYS)
async def test_a_filter_of_progress_that_fails_is_skipped_and_one_that_guards_lets_nothing_through(how: str) -> None:
    recorder = Recorder()
    plain = wrong(how, "locus_filter_progress", name="door", nonsense=7)
    result = await Agent(ScriptedModel(call("copy"), "done"), tools=[copy], hooks=[plain, recorder]).run("x")
    assert told(recorder)[0] == (1, "from a secret place")
    assert result.stop_reason == "NoToolCalls"
    assert [failure.hook for failure in failures(result, "door")] == ["locus_filter_progress"]
    recorder = Recorder()
    guard = wrong(how, "locus_filter_progress", guard=True, name="door", nonsense=7)
    result = await Agent(ScriptedModel(call("copy"), "done"), tools=[copy], hooks=[guard, recorder]).run("x")
    assert "secret" not in repr(told(recorder))
    assert result.stop_reason == "Cancelled: guard door failed"
