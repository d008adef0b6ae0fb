"""The onion: what wrappers see, what they may do, and whose error it is."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from locus.core.errors import ModelError, PluginError
from locus.core.state import AgentState
from locus.hooks.dispatch import first_answer, fold, onion
from locus.hooks.hook import Hook
from locus.hooks.manager import HookManager
from locus.hooks.markers import hookimpl
from locus.hooks.table import Impl

pytestmark = pytest.mark.anyio

RUN: Any = object()


def impls(name: str, *hooks: object) -> tuple[Impl, ...]:
    return HookManager.build(hooks=hooks).table.impls(name)


def wrapped(core: Callable[[Any], Awaitable[Any]], *hooks: object, returns: Any = None) -> Callable[[Any], Any]:
    return onion(impls("locus_wrap_model_call", *hooks), core, after=(RUN,), returns=returns)


async def echo(request: Any) -> Any:
    return f"<{request}>"


class Wrap(Hook):
    """Marks what goes in and what comes out."""

    def __init__(self, mark: str) -> None:
        self.name = self.mark = mark

    @hookimpl
    async def locus_wrap_model_call(self, call_next: Any, request: str, run: Any) -> str:
        assert run is RUN
        return f"{self.mark}{await call_next(request + self.mark)}{self.mark}"


async def test_without_wrappers_the_core_is_called_itself() -> None:
    assert wrapped(echo) is echo


async def test_a_sync_wrapper_may_hand_on_what_call_next_gave_it() -> None:
    class Through(Hook):
        @hookimpl
        def locus_wrap_model_call(self, call_next: Any, request: Any) -> Any:
            return call_next(request)

    assert await wrapped(echo, Through())("x") == "<x>"


async def test_an_error_of_a_wrapper_carries_a_note_that_names_it() -> None:
    class Bad(Hook):
        name = "bad"

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: Any) -> Any:
            await call_next(request)
            raise ValueError("boom")

    with pytest.raises(ValueError, match="boom") as caught:
        await wrapped(echo, Wrap("outer"), Bad())("x")

    assert caught.value.__notes__ == ["in hook locus_wrap_model_call of plugin 'bad'"]


async def test_an_error_of_the_core_is_nobodys_fault_on_its_way_out() -> None:
    async def fails(request: Any) -> Any:
        raise ModelError("busy")

    with pytest.raises(ModelError) as caught:
        await wrapped(fails, Wrap("a"), Wrap("b"))("x")

    assert not hasattr(caught.value, "__notes__")


async def test_an_error_that_replaces_the_cores_is_the_wrappers() -> None:
    async def fails(request: Any) -> Any:
        raise ModelError("busy")

    class Translates(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: Any) -> Any:
            try:
                await call_next(request)
            except ModelError as e:
                raise RuntimeError("no luck") from e

    with pytest.raises(RuntimeError) as caught:
        await wrapped(fails, Translates())("x")

    assert caught.value.__notes__ == ["in hook locus_wrap_model_call of plugin 'Translates'"]


@pytest.mark.parametrize("nonsense", [None, 7, "text"])
async def test_a_wrapper_that_returns_nonsense_is_the_nodes_error_and_named(nonsense: Any) -> None:
    class Forgets(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: Any) -> Any:
            await call_next(request)
            return nonsense

    async def core(request: Any) -> AgentState:
        return AgentState()

    with pytest.raises(
        PluginError, match=r"locus_wrap_model_call returned .*; return what call_next returned"
    ) as caught:
        await wrapped(core, Forgets(), returns=AgentState)("x")

    assert caught.value.plugin == "Forgets"


async def test_a_wrapper_that_hangs_past_its_timeout_fails() -> None:
    class Hangs(Hook):
        hook_timeout = 0.01

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: Any) -> Any:
            await call_next(request)
            await anyio.sleep_forever()

    with pytest.raises(TimeoutError, match=r"hook_timeout of 0\.01 s, not counting what it wraps") as caught:
        await wrapped(echo, Hangs())("x")

    assert caught.value.__notes__ == ["in hook locus_wrap_model_call of plugin 'Hangs'"]


async def test_a_wrappers_clock_stands_still_while_the_core_is_at_work() -> None:
    seen: list[float] = []

    async def core(request: Any) -> str:
        seen.append(anyio.current_effective_deadline())
        return "done"

    class Timed(Hook):
        hook_timeout = 60

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: Any) -> Any:
            seen.append(anyio.current_effective_deadline())
            done = await call_next(request)
            seen.append(anyio.current_effective_deadline())
            return done

    started = anyio.current_time()
    assert await wrapped(core, Timed())("x") == "done"

    before, inside, after = seen
    assert inside == math.inf
    assert started + 60 <= before <= after < started + 120


async def test_a_wrapper_that_calls_twice_at_once_is_timed_again_when_both_are_back() -> None:
    seen: list[float] = []
    both = anyio.Event()

    async def core(request: Any) -> str:
        seen.append(anyio.current_effective_deadline())
        if len(seen) == 2:
            both.set()
        await both.wait()
        return "done"

    class Twice(Hook):
        hook_timeout = 60

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: Any) -> Any:
            async with anyio.create_task_group() as group:
                group.start_soon(call_next, request)
                group.start_soon(call_next, request)
            seen.append(anyio.current_effective_deadline())
            return "both"

    assert await wrapped(core, Twice())("x") == "both"
    assert seen[:2] == [math.inf, math.inf]
    assert seen[2] < math.inf


async def test_cancellation_passes_through_a_wrapper_without_a_note() -> None:
    notes: list[Any] = []

    async def core(request: Any) -> Any:
        try:
            await anyio.sleep_forever()
        except BaseException as e:
            notes.append(e)
            raise

    with anyio.move_on_after(0.01) as scope:
        await wrapped(core, Wrap("a"))("x")

    assert scope.cancelled_caught
    assert not getattr(notes[0], "__notes__", None)


# -- nodes -----------------------------------------------------------------------------------------


def node(answer: Any = None, *, raises: Exception | None = None, is_async: bool = False, name: str = "toy") -> Hook:
    def think() -> Any:
        if raises is not None:
            raise raises
        return answer

    class Sync(Hook):
        @hookimpl
        def locus_think(self, state: AgentState, run: Any) -> Any:
            return think()

        @hookimpl
        def locus_reflect(self, state: AgentState) -> AgentState | None:
            return None if answer is None else state.with_error(answer)

    class Async(Hook):
        @hookimpl
        async def locus_think(self, state: AgentState) -> Any:
            return think()

    toy = Async() if is_async else Sync()
    toy.name = name
    return toy


async def kernel(state: AgentState, run: Any) -> AgentState:
    return state.with_error("kernel")


@pytest.mark.parametrize("is_async", [False, True])
async def test_the_first_node_that_answers_wins_and_the_kernels_is_the_last(is_async: bool) -> None:
    mine = AgentState(errors=("mine",))
    silent = node(None, is_async=is_async)

    answered = await first_answer(impls("locus_think", silent, node(mine), node(7)), AgentState(), RUN, kernel)
    left = await first_answer(impls("locus_think", silent), AgentState(), RUN, kernel)

    assert answered is mine
    assert left.errors == ("kernel",)


async def test_a_node_that_nobody_runs_is_an_error() -> None:
    with pytest.raises(PluginError, match="no implementation answered"):
        await first_answer(impls("locus_think", node(None)), AgentState(), RUN)


async def test_a_node_that_fails_or_returns_nonsense_is_named() -> None:
    with pytest.raises(ValueError, match="boom") as caught:
        await first_answer(impls("locus_think", node(raises=ValueError("boom"))), AgentState(), RUN, kernel)
    assert caught.value.__notes__ == ["in hook locus_think of plugin 'toy'"]

    with pytest.raises(PluginError, match="locus_think returned 'done'; return an AgentState, or None"):
        await first_answer(impls("locus_think", node("done")), AgentState(), RUN, kernel)


async def test_an_error_of_the_kernels_own_node_blames_no_plugin() -> None:
    class Kernel:
        @hookimpl
        async def locus_think(self, state: AgentState) -> AgentState:
            raise ValueError("boom")

    table = HookManager.build(kernel=[Kernel()]).table

    with pytest.raises(ValueError, match="boom") as caught:
        await first_answer(table.impls("locus_think"), AgentState(), RUN)
    assert not hasattr(caught.value, "__notes__")


async def test_reflect_is_everybodys_each_on_what_the_one_before_made() -> None:
    folded = await fold(impls("locus_reflect", node("a"), node(None), node("b")), AgentState(), RUN)

    assert folded.errors == ("a", "b")
