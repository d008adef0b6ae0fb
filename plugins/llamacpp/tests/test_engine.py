"""The engine between an event loop and a blocking server: streaming, cancelling, errors, sharing.

The server here is a double with the call sequence of xllamacpp, so that every moment can be reached;
test_real_model.py asks the real one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from anyio.lowlevel import checkpoint

from locus_kit.pinned import Progress
from locus_plugin_llamacpp import engine as engine_module
from locus_plugin_llamacpp.engine import Engine, close_all, shared_engine
from locus_plugin_llamacpp.errors import BadRequest, EngineClosed, EngineFailed, PromptTooLong, WeightsMissing
from locus_plugin_llamacpp.runtime import EngineOptions

from .doubles import END, PROMPT, Server, delta

pytestmark = pytest.mark.anyio
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "go"}]}
OVERFLOW = {
    "code": 400,
    "message": "request (8030 tokens) exceeds the available context size (2048 tokens), try increasing it",
    "type": "exceed_context_size_error",
    "n_prompt_tokens": 8030,
    "n_ctx": 2048,
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    made = Server()
    monkeypatch.setattr(engine_module, "start_worker", lambda path, options, waits: made)
    yield made
    close_all()


def an_engine(find: Callable[[Progress], Path] = lambda progress: Path("/x.gguf"), slots: int = 1) -> Engine:
    return Engine("llamacpp:x", find, EngineOptions(slots=slots))


async def test_the_answer_is_put_together_with_usage_and_timings(server: Server) -> None:
    answer = await an_engine().chat(BODY)

    assert answer["choices"][0]["message"] == {"role": "assistant", "content": "Hello"}
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 5
    assert answer["timings"]["cache_n"] == 5
    assert server.bodies[0]["stream"] is True
    assert "stream" not in BODY, "the caller's body is not changed"


async def test_chunks_arrive_in_order_in_the_callers_task(server: Server) -> None:
    seen: list[str] = []
    task = anyio.get_current_task().id

    async def take(chunk: dict[str, Any]) -> None:
        assert anyio.get_current_task().id == task
        seen.append(chunk["choices"][0]["delta"]["content"])

    answer = await an_engine().chat(BODY, take)

    assert seen == ["Hel", "lo"]
    assert answer["choices"][0]["message"]["content"] == "Hello"


async def test_native_tool_calls_are_put_together(server: Server) -> None:
    def call(**function: str) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c1", "function": function}]}}]}

    server.script = [call(name="look", arguments='{"at"'), call(arguments=': "sea"}'), END]

    answer = await an_engine().chat(BODY)

    assert answer["choices"][0]["message"]["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "sea"}'}}
    ]


async def test_a_slow_consumer_slows_the_generation(server: Server) -> None:
    server.script, server.endless = [delta("a")], True
    ahead: list[int] = []

    class EnoughError(Exception):
        pass

    async def take(chunk: dict[str, Any]) -> None:
        for _ in range(50):  # time in which a server that does not wait would run ahead
            await checkpoint()
        ahead.append(server.said - len(ahead) - 1)
        if len(ahead) == 10:
            raise EnoughError

    with pytest.raises(EnoughError):
        await an_engine().chat(BODY, take)
    assert max(ahead) <= 1


async def test_what_the_callback_raises_stops_the_generation_and_is_raised(server: Server) -> None:
    server.endless = True

    class OddError(Exception):
        pass

    async def take(chunk: dict[str, Any]) -> None:
        raise OddError

    with pytest.raises(OddError):
        await an_engine().chat(BODY, take)
    assert (server.running, server.stopped) == (0, 1)


async def test_cancelling_stops_the_generation_before_the_caller_continues(server: Server) -> None:
    server.endless = True

    async def take(chunk: dict[str, Any]) -> None:
        scope.cancel()

    with anyio.CancelScope() as scope:
        await an_engine().chat(BODY, take)

    assert scope.cancelled_caught
    assert (server.running, server.stopped) == (0, 1)


async def test_cancelling_does_not_wait_for_a_batch_of_the_prompt_and_frees_the_slot_behind_it(server: Server) -> None:
    reads, read = server.handle_chat_completions, threading.Event()

    def read_slowly(body: dict[str, Any], callback: Callable[[dict[str, Any]], bool]) -> Any:
        server.began.set()
        read.wait(10)  # as while a batch is computed: nobody is called back
        return reads(body, callback)

    server.handle_chat_completions = read_slowly  # type: ignore[method-assign]
    engine = an_engine()
    async with anyio.create_task_group() as group:
        group.start_soon(engine.chat, BODY)
        await to_thread.run_sync(server.began.wait)
        group.cancel_scope.cancel()
    assert not server.bodies  # the batch is still being computed
    read.set()
    with anyio.fail_after(5):
        assert (await engine.chat(BODY))["choices"][0]["message"]["content"] == "Hello"
    assert server.running == 0
    assert [server.stopped, server.most] == [1, 1]


async def test_cancelling_without_a_listener_stops_the_generation_as_well(server: Server) -> None:
    server.endless = True
    engine = an_engine()

    async with anyio.create_task_group() as group:
        group.start_soon(engine.chat, BODY)
        await to_thread.run_sync(server.began.wait)
        group.cancel_scope.cancel()

    assert (server.running, server.stopped) == (0, 1)
    server.endless = False
    assert (await engine.chat(BODY))["choices"][0]["message"]["content"] == "Hello"


async def test_a_request_that_waits_for_its_turn_can_be_cancelled(server: Server) -> None:
    server.endless = True
    engine = an_engine()

    async with anyio.create_task_group() as group:
        group.start_soon(engine.chat, BODY)
        await to_thread.run_sync(server.began.wait)
        with anyio.move_on_after(0) as scope:
            await engine.chat(BODY)
        assert scope.cancelled_caught
        assert len(server.bodies) == 1
        group.cancel_scope.cancel()


@pytest.mark.parametrize("slots", [1, 2])
async def test_no_more_requests_run_at_a_time_than_there_are_slots(server: Server, slots: int) -> None:
    engine = an_engine(slots=slots)
    answers: list[str] = []

    async def ask() -> None:
        answers.append((await engine.chat(BODY, pause))["choices"][0]["message"]["content"])

    async def pause(chunk: dict[str, Any]) -> None:
        await checkpoint()

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(ask)

    assert answers == ["Hello"] * 6
    assert server.most <= slots


def test_two_event_loops_share_an_engine_without_meeting_in_it(server: Server) -> None:
    engine, answers = an_engine(), list[str]()

    async def ask() -> None:
        for _ in range(5):
            answers.append((await engine.chat(BODY))["choices"][0]["message"]["content"])

    threads = [
        threading.Thread(target=anyio.run, args=(ask,), kwargs={"backend": backend}) for backend in ("asyncio", "trio")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == ["Hello"] * 10
    assert server.most == 1


# ----------------------------------------------------------------- errors


@pytest.mark.parametrize("form", ["chunk", "reply"])
async def test_an_overflow_carries_both_numbers_in_either_form(server: Server, form: str) -> None:
    server.script = [{"error": OVERFLOW}] if form == "chunk" else []
    server.reply = None if form == "chunk" else {"error": OVERFLOW}

    with pytest.raises(PromptTooLong) as caught:
        await an_engine().chat(BODY)
    assert (caught.value.n_prompt, caught.value.n_ctx) == (8030, 2048)
    assert caught.value.provider == "llamacpp"


async def test_a_request_that_the_server_refuses_is_a_bad_request(server: Server) -> None:
    server.raises = ValueError("Expected 'messages' to be an array")

    with pytest.raises(BadRequest, match="Expected 'messages'"):
        await an_engine().chat(BODY)


async def test_other_failures_of_the_server_are_its_own(server: Server) -> None:
    server.raises = RuntimeError("out of memory")
    with pytest.raises(EngineFailed, match="out of memory"):
        await an_engine().chat(BODY)

    server.raises, server.script = None, [{"error": {"code": 500, "message": "boom"}}]
    with pytest.raises(EngineFailed, match="boom"):
        await an_engine().chat(BODY)

    server.script = [PROMPT]
    with pytest.raises(EngineFailed, match="without a result"):
        await an_engine().chat(BODY)


async def test_weights_that_are_missing_are_reported_and_looked_for_again(server: Server) -> None:
    found: list[Path] = []

    def find(progress: Progress) -> Path:
        if not found:
            raise WeightsMissing("x", "nothing is installed")
        return found[0]

    engine = an_engine(find)
    with pytest.raises(WeightsMissing):
        await engine.chat(BODY)
    found.append(Path("/x.gguf"))
    assert not engine.is_loaded
    await engine.chat(BODY)
    assert engine.is_loaded


async def test_preparing_loads_once_and_shows_progress(server: Server) -> None:
    seen: list[tuple[int, int]] = []
    loads: list[int] = []

    def find(progress: Progress) -> Path:
        loads.append(1)
        progress(1, 2)
        return Path("/x.gguf")

    engine = an_engine(find)
    await engine.prepare(lambda *at: seen.append(at))
    await engine.prepare(lambda *at: seen.append(at))
    await engine.chat(BODY)

    assert engine.is_loaded
    assert (loads, seen) == ([1], [(1, 2)])


async def test_cancelling_while_the_weights_are_fetched_gives_up_the_fetch(server: Server) -> None:
    started = threading.Event()
    given_up: list[bool] = []

    def find(progress: Progress) -> Path:
        started.set()
        try:
            while True:
                progress(0, 1)
        except BaseException:
            given_up.append(True)
            raise

    async with anyio.create_task_group() as group:
        group.start_soon(an_engine(find).prepare)
        await to_thread.run_sync(started.wait)
        group.cancel_scope.cancel()

    assert given_up == [True]


async def test_cancelling_while_the_file_is_read_gives_up_the_load(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = threading.Event()

    def read_for_ever(path: Path, check: Callable[[], None]) -> None:
        reading.set()
        while True:
            check()

    monkeypatch.setattr(engine_module, "read_ahead", read_for_ever)
    engine = an_engine()
    async with anyio.create_task_group() as group:
        group.start_soon(engine.prepare)
        await to_thread.run_sync(reading.wait)
        group.cancel_scope.cancel()

    assert not engine.is_loaded


# ----------------------------------------------------------------- closing and sharing


async def test_closing_stops_what_runs_and_refuses_what_comes(server: Server) -> None:
    server.endless = True
    engine = an_engine()
    raised: list[str] = []

    async def ask() -> None:
        with pytest.raises(EngineClosed) as caught:
            await engine.chat(BODY)
        raised.append(str(caught.value))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await to_thread.run_sync(server.began.wait)
        await to_thread.run_sync(engine.close)

    assert server.stopped == 1
    assert not engine.is_loaded
    assert "llamacpp:x" in raised[0]
    with pytest.raises(EngineClosed):
        await engine.chat(BODY)
    engine.close()


async def test_equal_keys_and_options_share_an_engine(server: Server) -> None:
    def find(progress: Progress) -> Path:
        return Path("/x.gguf")

    first = shared_engine("a", "llamacpp:a", find)

    assert shared_engine("a", "llamacpp:a", find) is first
    assert shared_engine("b", "llamacpp:b", find) is not first
    assert shared_engine("a", "llamacpp:a", find, EngineOptions(n_ctx=512)) is not first
    first.close()
    assert shared_engine("a", "llamacpp:a", find) is not first


async def test_an_engine_is_not_used_in_a_forked_process(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = an_engine()
    await engine.chat(BODY)
    monkeypatch.setattr(os, "getpid", lambda: -1)

    with pytest.raises(EngineFailed, match="forked"):
        await engine.chat(BODY)
