"""One loaded model, shared by every run of the process, asked from asyncio or trio.

llama.cpp blocks and calls back from its own threads. Space of designs: abandon the worker thread when
the caller is cancelled (it would go on generating and hold the model), or have it joined. Here it is
joined: a cancelled caller sets a flag, the callback answers "stop" at the next token or the next batch
of the prompt, the thread returns, and only then does the cancellation go on. So the model is never busy
for a lost caller, and no thread outlives its request. llama.cpp itself is in another process, see `worker_process`.

A request holds one of the engine's slots. Within an event loop a capacity limiter queues the requests
fairly and without threads; between event loops of different threads a semaphore does.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import os
import threading
from collections.abc import Awaitable, Callable, Hashable
from pathlib import Path
from typing import Any

import anyio
from anyio import from_thread, to_thread
from anyio.lowlevel import RunVar
from anyio.streams.memory import MemoryObjectSendStream
from attrs import Factory, define

from locus_kit.pinned import Progress, silent
from locus_plugin_llamacpp.answers import Answer
from locus_plugin_llamacpp.errors import BadRequest, EngineClosed, EngineFailed
from locus_plugin_llamacpp.progress import Waiting, wait_silently
from locus_plugin_llamacpp.runtime import EngineOptions, read_ahead
from locus_plugin_llamacpp.worker_process import WorkerServer, start_worker

__all__ = ["Engine", "OnRaw", "close_all", "shared_engine"]

#: Takes a chunk in OpenAI's form, as it arrives, in the caller's task.
OnRaw = Callable[[dict[str, Any]], Awaitable[None]]

#: Seconds that a cancelled request waits for its generation to stop, and between two looks at that.
_STOPPING, _LOOKING = 0.25, 0.005

_POLL = 0.1  # seconds; only used while requests of two event loops wait for one slot
_CLOSE_TIMEOUT = 30.0  # seconds; a request in flight ends within a batch


class _StoppedError(Exception):
    """Ends a job whose caller is gone; never leaves this module."""


@define(eq=False)
class _Job:
    """One request on its way through the worker thread."""

    body: dict[str, Any] | None
    chunks: MemoryObjectSendStream[dict[str, Any]] | None
    progress: Progress
    waiting: Waiting
    stop: threading.Event = Factory(threading.Event)
    working: threading.Event = Factory(threading.Event)
    answer: Answer = Factory(Answer)
    failure: BaseException | None = None


class Engine:
    """A model that is loaded when it is first asked, and then stays.

    Args:
        label: its name in messages.
        find: gives the file to load; blocking, called in a worker thread with a `Progress`.
        options: how to load it.
    """

    def __init__(self, label: str, find: Callable[[Progress], Path], options: EngineOptions) -> None:
        self.label = label
        self._find, self._options = find, options
        self._server: Any = None
        self._pid = 0
        self._closing = False
        self._slots = threading.Semaphore(options.slots)
        self._loading = threading.Lock()
        self._limiters: RunVar[anyio.CapacityLimiter] = RunVar("locus_plugin_llamacpp.limiter")

    @property
    def is_loaded(self) -> bool:
        """Whether the model is in memory."""
        return self._server is not None

    async def prepare(self, progress: Progress = silent, waiting: Waiting = wait_silently) -> None:
        """Load the model now rather than with the first request. Cancelling the caller ends the load.

        Args:
            progress: shown while a packaged model is fetched, the first time.
            waiting: shown while the file is loaded.

        Raises:
            ModelError: the weights or the engine failed.
        """
        await self._run(_Job(None, None, progress, waiting), None)

    async def chat(
        self,
        body: dict[str, Any],
        on_chunk: OnRaw | None = None,
        *,
        progress: Progress = silent,
        waiting: Waiting = wait_silently,
    ) -> dict[str, Any]:
        """One chat completion. Cancelling the caller stops the generation, and waits a moment for it to stop.

        llama.cpp can only stop after a batch of the prompt, which may take seconds; its slot is busy until then.

        Args:
            body: a request in OpenAI's form; streaming is arranged here.
            on_chunk: awaited with each chunk that carries a piece of the answer, in order; a slow one
                slows the generation. What it raises stops the generation and is raised here.
            progress: shown while a packaged model is fetched, the first time.
            waiting: shown while the file is loaded, by the first request.

        Returns:
            The completion in OpenAI's form, with ``usage`` (``prompt_tokens_details.cached_tokens``
            included) and llama.cpp's ``timings``.

        Raises:
            PromptTooLong: the prompt exceeds the window.
            BadRequest: llama.cpp refuses the request.
            ModelError: the weights or the engine failed.
        """
        streamed = {
            **body,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,  # a callback for each batch of the prompt: the chance to stop there
        }
        job = _Job(streamed, None, progress, waiting)
        await self._run(job, on_chunk)
        return job.answer.whole()

    def close(self) -> None:
        """Stop what is running and free the memory. Blocking, from any thread; a second call does nothing."""
        self._closing = True
        held = 0
        while held < self._options.slots and self._slots.acquire(timeout=_CLOSE_TIMEOUT):
            held += 1
        if held == self._options.slots:
            server, self._server = self._server, None
            if isinstance(server, WorkerServer):
                server.close()
        # Else a callback of the user hangs: freeing the model under a running request would crash the process.
        if held:
            self._slots.release(held)

    # ------------------------------------------------------------- the caller's side: async

    async def _run(self, job: _Job, on_chunk: OnRaw | None) -> None:
        send, receive = anyio.create_memory_object_stream[dict[str, Any]](0)
        if on_chunk is not None:
            job.chunks = send
        raised: list[BaseException] = []

        async def work() -> None:
            with send:
                try:
                    await to_thread.run_sync(self._work, job, limiter=self._limiter(), abandon_on_cancel=True)
                except anyio.get_cancelled_exc_class():
                    job.stop.set()
                    with anyio.move_on_after(_STOPPING, shield=True):
                        while job.working.is_set():  # noqa: ASYNC110  # an abandoned thread sets no event
                            await anyio.sleep(_LOOKING)
                    raise
                except _StoppedError:
                    raised.append(EngineClosed(self.label))  # a caller that is gone does not see it
                except Exception as error:  # noqa: BLE001 - raised below, outside of the task group
                    raised.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(work)
            try:
                async for chunk in receive:
                    assert on_chunk is not None
                    await on_chunk(chunk)
            except anyio.get_cancelled_exc_class():
                raise
            except BaseException as error:  # noqa: BLE001 - raised below, outside of the task group
                raised.insert(0, error)
            finally:
                job.stop.set()
                receive.close()
        if raised:
            raise raised[0]

    def _limiter(self) -> anyio.CapacityLimiter:
        try:
            return self._limiters.get()
        except LookupError:
            made = anyio.CapacityLimiter(self._options.slots)
            self._limiters.set(made)
            return made

    # ------------------------------------------------------------- the worker's side: one thread a request

    def _work(self, job: _Job) -> None:
        job.working.set()
        try:
            while not self._slots.acquire(timeout=_POLL):
                self._check(job)
            try:
                server = self._ensure_loaded(job)
                if job.body is not None:
                    self._generate(server, job)
            finally:
                self._slots.release()
        finally:
            job.working.clear()

    def _check(self, job: _Job) -> None:
        if job.stop.is_set() or self._closing:
            raise _StoppedError

    def _ensure_loaded(self, job: _Job) -> Any:
        def report_progress(done: int, total: int) -> None:
            self._check(job)
            job.progress(done, total)

        def report_waiting(seconds: float) -> None:
            self._check(job)
            job.waiting(seconds)

        while not self._loading.acquire(timeout=_POLL):
            self._check(job)
        try:
            self._check(job)
            if self._server is None or getattr(self._server, "has_ended", False):
                self._server = None
                path = self._find(report_progress)
                self._check(job)
                read_ahead(path, lambda: self._check(job))
                self._server, self._pid = start_worker(path, self._options, report_waiting), os.getpid()
                job.waiting(None)
        finally:
            self._loading.release()
        if self._pid != os.getpid():
            raise EngineFailed(
                f"{self.label} was loaded before this process was forked, and the two cannot share it; "
                "load it after forking, or start processes with the 'spawn' method"
            )
        return self._server

    def _generate(self, server: Any, job: _Job) -> None:
        def take(chunk: dict[str, Any]) -> bool:
            # llama.cpp swallows what a callback raises, so nothing may leave this function.
            try:
                self._take(chunk, job)
            except BaseException as error:  # noqa: BLE001 - raised when the call has returned
                job.failure = error
                return True
            return False

        try:
            reply = server.handle_chat_completions(job.body, take)
        except ValueError as error:
            raise BadRequest(str(error)) from error
        except RuntimeError as error:
            raise EngineFailed(f"llama.cpp failed: {error}") from error
        if isinstance(reply, dict) and "error" in reply:
            job.answer.add(reply)
        if job.failure is None:
            return
        gone = (anyio.BrokenResourceError, anyio.ClosedResourceError, concurrent.futures.CancelledError)
        if job.stop.is_set() or isinstance(job.failure, gone) or not isinstance(job.failure, Exception):
            raise _StoppedError
        raise job.failure

    def _take(self, chunk: dict[str, Any], job: _Job) -> None:
        self._check(job)
        if job.answer.add(chunk) and job.chunks is not None:
            from_thread.run(job.chunks.send, chunk)


_engines: dict[Hashable, Engine] = {}
_engines_lock = threading.Lock()


_DEFAULTS = EngineOptions()


def shared_engine(
    key: Hashable, label: str, find: Callable[[Progress], Path], options: EngineOptions = _DEFAULTS
) -> Engine:
    """The one engine of this process for (``key``, ``options``); made, not loaded, when it is new.

    Args:
        key: what ``find`` finds: equal keys, equal files.
        label: see `Engine`.
        find: see `Engine`.
        options: see `EngineOptions`.
    """
    with _engines_lock:
        engine = _engines.get((key, options))
        if engine is None or engine._closing:  # noqa: SLF001 - the registry and its engines are one thing
            engine = _engines[key, options] = Engine(label, find, options)
        return engine


@atexit.register
def close_all() -> None:
    """Close every engine of the process: at its end a model that still generates would crash it."""
    with _engines_lock:
        engines = list(_engines.values())
        _engines.clear()
    for engine in engines:
        engine.close()
