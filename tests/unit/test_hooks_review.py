"""Reviewers of answers and filters of prompts."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from locus.core.directives import Accept, Allow, Cancel, Continue, Interrupt, Reject, Retry, Revise
from locus.core.errors import CheckpointError
from locus.core.events import HookFailedEvent
from locus.core.messages import Message, Role
from locus.core.state import AgentState
from locus.hooks.health import HookHealth
from locus.hooks.hook import Hook
from locus.hooks.manager import HookManager
from locus.hooks.markers import hookimpl
from locus.hooks.review import filter_input, from_data, review, to_data
from locus.hooks.table import Impl

pytestmark = pytest.mark.anyio

RUN: Any = object()
ANSWER = Message(Role.ASSISTANT, "42")
PROMPT = Message(Role.USER, "my card is 1234")
STATE = AgentState(messages=(ANSWER,))


def hook(act: Callable[[], Any], *, is_async: bool = False, **fields: Any) -> Hook:
    """A hook that reviews and filters by calling a function."""

    class Sync(Hook):
        @hookimpl
        def locus_review_answer(self, answer: Message) -> Any:
            return act()

        @hookimpl
        def locus_filter_input(self, prompt: Message, run: Any) -> Any:
            return act()

    class Async(Hook):
        @hookimpl
        async def locus_review_answer(self, answer: Message, state: AgentState, run: Any) -> Any:
            assert (answer, state, run) == (ANSWER, STATE, RUN)
            return act()

        @hookimpl
        async def locus_filter_input(self, prompt: Message) -> Any:
            return act()

    toy = Async() if is_async else Sync()
    for name, value in fields.items():
        setattr(toy, name, value)
    return toy


def boom() -> Any:
    raise ValueError("boom")


def impls(name: str, *hooks: object) -> tuple[Impl, ...]:
    return HookManager.build(hooks=hooks).table.impls(name)


async def reviewed(*hooks: Hook, health: HookHealth | None = None, step: Any = None) -> Any:
    return await review(impls("locus_review_answer", *hooks), ANSWER, STATE, RUN, health or HookHealth(), step)


async def filtered(*hooks: Hook, health: HookHealth | None = None) -> Any:
    return await filter_input(impls("locus_filter_input", *hooks), PROMPT, RUN, health or HookHealth())


class Ear:
    """Collects what `HookHealth` tells."""

    def __init__(self) -> None:
        self.heard: list[HookFailedEvent] = []

    async def __call__(self, event: HookFailedEvent) -> None:
        self.heard.append(event)


# -- answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_answer_stands_when_nobody_objects(is_async: bool) -> None:
    assert await reviewed() == Accept()
    assert await reviewed(hook(lambda: None, is_async=is_async), hook(Accept, is_async=is_async)) == Accept()


async def test_the_feedback_of_all_reviewers_is_joined_and_said_once() -> None:
    hooks = [hook(lambda: Revise("Cite."), is_async=True), hook(Accept), hook(lambda: Revise("Shorter."))]

    assert await reviewed(*hooks, hook(lambda: Revise("Cite."))) == Revise("Cite.\n\nShorter.")


async def test_a_reviewer_that_cancels_has_the_last_word() -> None:
    later: list[int] = []
    hooks = (hook(lambda: Revise("x")), hook(lambda: Cancel("leaked")), hook(lambda: later.append(1)))

    assert await reviewed(*hooks) == Cancel("leaked")
    assert later == []


@pytest.mark.parametrize("nonsense", [True, "fine", Allow(), Reject("no"), Accept, Revise, Revise(" ")])
async def test_a_reviewer_that_fails_is_skipped_reported_and_out_after_the_third_time(nonsense: Any) -> None:
    ear, calls = Ear(), []

    def act() -> Any:
        calls.append(1)
        return nonsense

    health = HookHealth(ear)
    table = impls("locus_review_answer", hook(act, name="bad"), hook(lambda: Revise("x")))
    for _ in range(5):
        assert await review(table, ANSWER, STATE, RUN, health) == Revise("x")

    assert len(calls) == 3
    assert ear.heard[-1].quarantined


async def test_each_verdict_is_a_step_and_a_recorded_one_stands_without_asking() -> None:
    recorded: dict[str, Any] = {}
    asked: list[str] = []

    async def step(name: str, fn: Callable[[], Awaitable[dict[str, Any]]]) -> Any:
        if name not in recorded:
            asked.append(name)
            recorded[name] = await fn()
        return recorded[name]

    hooks = (hook(lambda: Revise("Cite."), name="cite"), hook(Accept, name="ok"), hook(boom, name="bad"))

    assert await reviewed(*hooks, step=step) == Revise("Cite.")
    assert asked == ["review/cite/0", "review/ok/1", "review/bad/2"]
    assert recorded["review/cite/0"] == {"type": "revise", "feedback": "Cite."}
    changed = (hook(boom, name="cite"), hook(boom, name="ok"), hook(boom, name="bad"))
    assert await reviewed(*changed, step=step) == Revise("Cite.")
    assert len(asked) == 3


def test_every_answer_has_a_plain_form_that_reads_back() -> None:
    question = Interrupt("sure?", ("yes", "no"))
    for answer in (Accept(), Revise("x"), Cancel("y"), Reject("z"), Retry(), Continue(), Allow(), question):
        assert from_data(json.loads(json.dumps(to_data(answer)))) == answer


def test_a_form_that_is_no_answer_is_refused() -> None:
    with pytest.raises(CheckpointError, match="'maybe' is not an answer of a hook"):
        from_data({"type": "maybe"})


# -- prompts ---------------------------------------------------------------------------------------


async def test_a_prompt_goes_through_unchanged_when_nobody_touches_it() -> None:
    assert await filtered() is PROMPT
    assert await filtered(hook(lambda: None), hook(lambda: None, is_async=True)) is PROMPT


async def test_each_filter_gets_what_the_one_before_made_of_it() -> None:
    class Shout(Hook):
        @hookimpl
        def locus_filter_input(self, prompt: Message) -> str:
            return prompt.text.upper()

    class Cut(Hook):
        @hookimpl
        async def locus_filter_input(self, prompt: Message) -> Message:
            return Message(Role.USER, prompt.text.replace("1234", "****"))

    assert await filtered(Cut(), Shout()) == Message(Role.USER, "MY CARD IS ****")


@pytest.mark.parametrize("nonsense", [7, True, Reject("no"), Cancel, Message(Role.SYSTEM, "obey")])
async def test_a_filter_that_fails_is_skipped_and_reported(nonsense: Any) -> None:
    ear = Ear()

    got = await filtered(hook(lambda: nonsense, name="bad"), hook(lambda: "clean"), health=HookHealth(ear))

    assert got == Message(Role.USER, "clean")
    assert [event.plugin for event in ear.heard] == ["bad"]


@pytest.mark.parametrize("family", ["review", "filter"])
async def test_cancellation_passes_through(family: str) -> None:
    class Slow(Hook):
        guard = True

        @hookimpl
        async def locus_review_answer(self) -> None:
            await anyio.sleep_forever()

        @hookimpl
        async def locus_filter_input(self) -> None:
            await anyio.sleep_forever()

    passed = False
    with anyio.move_on_after(0.01):
        await (reviewed(Slow()) if family == "review" else filtered(Slow()))
        passed = True

    assert not passed
