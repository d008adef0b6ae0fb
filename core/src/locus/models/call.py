"""One recorded model call: the attempts of the wrappers around it, their usage, their chunks.

The wrap onion runs inside the recorded step, so a replay runs no wrapper, and the tokens of every attempt are
charged, also of those whose answer a wrapper threw away.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

import anyio
from attrs import astuple, evolve

from locus.core.data import encode_data, register_value
from locus.core.errors import BudgetExceeded, ModelError, NotSerialisable, is_transient
from locus.core.events import ModelChunkEvent, ModelCompleteEvent, ModelErrorEvent
from locus.core.fingerprint import fingerprint, short_hash
from locus.core.frozen import fast_init, frozen, maker
from locus.core.journal import ModelFailed
from locus.core.lazy import Lazy
from locus.core.messages import ASSISTANT, Message, Usage
from locus.models.cut import cut_response
from locus.models.handoff import describe_left_out, make_portable, mark_writer
from locus.models.prices import add_cost
from locus.models.protocol import Chunk, Model, ModelRequest, ModelResponse, ModelSettings, OnChunk, OutputSpec
from locus.tools.call_run import HostedRun
from locus.tools.cancellation import find_exit, is_failure

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager, AsyncExitStack

    from locus.core import codec
    from locus.core.state import AgentState
    from locus.core.step_id import StepId
    from locus.journal.effects import Clock
    from locus.tools.account import Account
    from locus.tools.registry import ToolRegistry
else:
    codec = Lazy("locus.core.codec")


@fast_init
@frozen
class ModelCallResult:
    """The recorded result of a model step.

    Args:
        response: what the onion returned.
        usage: of all attempts together, priced where the price is known.
        attempts: how many calls were made; 0 when a wrapper answered by itself.
        cancelled: the reason of the caller's cancel that cut the answer off (maybe empty), or None. A run that reads it
            from its journal is cancelled by it, too.
    """

    response: ModelResponse
    usage: Usage
    attempts: int
    cancelled: str | None = None


def _to_data(result: ModelCallResult) -> Any:
    data = {"response": codec.encode(result.response), "usage": codec.encode(result.usage), "attempts": result.attempts}
    return data if result.cancelled is None else {**data, "cancelled": result.cancelled}


def _from_data(data: Any) -> ModelCallResult:
    response, usage = codec.decode(data["response"], ModelResponse), codec.decode(data["usage"], Usage)
    return ModelCallResult(response, usage, data["attempts"], data.get("cancelled"))


_result = maker(ModelCallResult)
register_value(ModelCallResult, "locus.called", _to_data, _from_data, plain=True)


@frozen
class ChildUsage:
    """What a child run has spent, recorded as a step of the body that ran it: a resumed run charges it again.

    Args:
        usage: its tokens and dollars.
        thread_id: the child's own thread, or ``""``.
    """

    usage: Usage
    thread_id: str = ""


register_value(
    ChildUsage,
    "locus.spent",
    lambda spent: {"usage": codec.encode(spent.usage), "thread_id": spent.thread_id},
    lambda data: ChildUsage(codec.decode(data["usage"], Usage), data["thread_id"]),
)


def hash_request(request: ModelRequest) -> str:
    """A short hash of what a request asks, the same in every process."""
    digest = blake2b(digest_size=8)
    for message in request.messages:
        digest.update(message.wire("locus.question", _hash))
    about = (tuple(t.name for t in request.tools), request.output and request.output.name)
    digest.update(repr(about).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _hash(message: Message) -> bytes:
    try:
        form = json.dumps(codec.encode(message), sort_keys=True)
    except NotSerialisable:
        form = repr(message)
    return blake2b(form.encode("utf-8", "surrogatepass"), digest_size=16).digest()


_DEFAULT_SETTINGS = ModelSettings()


def request_fingerprint(
    state: AgentState,
    system: Message | None,
    tools: ToolRegistry,
    settings: ModelSettings,
    output: OutputSpec | None,
) -> str:
    """The fingerprint of what all requests of a segment repeat: the system prompt, the tools, the settings, the schema.

    Worked out once a segment, and only where a journal is kept: it is recorded with each answer.

    Args:
        state: what the segment begins with.
        system: the agent's system prompt; it counts where it is the conversation's.
        tools: the agent's tools.
        settings: the agent's, with the run's over them.
        output: the schema of the answer, or None.
    """
    parts = {}
    if system is not None and state.messages and state.messages[0] == system:
        parts["p"] = short_hash(system.text)
    if len(tools):
        parts["t"] = tools.digest
    if settings != _DEFAULT_SETTINGS:
        parts["s"] = short_hash(_json(astuple(settings, recurse=False)))
    if output is not None:
        parts["o"] = short_hash(_json([output.name, output.schema, output.strict]))
    return fingerprint(parts)


def _json(value: Any) -> str:
    try:
        return json.dumps(encode_data(value))
    except NotSerialisable:  # a provider's extras may be anything; an address in a repr would differ in each process
        return json.dumps(value, default=lambda other: type(other).__qualname__, skipkeys=True)


def _sanitise(usage: Usage) -> Usage:
    """The usage without what cannot be: totals of a run only grow, whatever a provider says."""
    cost = usage.cost
    try:
        # Negative when one of them is, and no operation of anything but integers.
        possible = usage.prompt_tokens | usage.completion_tokens | usage.cached_tokens >= 0
    except TypeError:
        possible = False
    if possible and (cost is None or cost >= 0):
        return usage
    return evolve(
        usage,
        prompt_tokens=_whole(usage.prompt_tokens),
        completion_tokens=_whole(usage.completion_tokens),
        cached_tokens=_whole(usage.cached_tokens),
        cost=cost if cost is not None and cost >= 0 else None,
    )


def _whole(tokens: Any) -> int:
    try:
        return max(0, int(tokens))
    except (TypeError, ValueError, OverflowError):  # None, NaN, infinity
        return 0


#: From a request to its answer.
ModelCore = Callable[[ModelRequest], Awaitable[ModelResponse]]
#: What a `PriceSource` takes, and gives in the end.
AskPrice = Callable[[Model, str, Usage, datetime], Awaitable[float | None]]


class ModelRun(HostedRun, Protocol):
    """What a model step needs of the run."""

    @property
    def rates(self) -> tuple[AskPrice | None, float | None]:
        """Who knows prices, or None; and what calls without one are charged, dollars per million tokens, or None."""

    #: The source of time.
    clock: Clock

    def emit_chunk(self, text: str, kind: str, purpose: str) -> Awaitable[Any]:
        """Emit a piece of an answer."""

    #: How many attempts at the Think under way are void.
    attempt: int

    async def emit_restart(self) -> None:
        """Say that what the Think under way has streamed is void."""

    #: What the run and those below it spend from, or None.
    account: Account | None

    def charge(self, usage: Usage) -> None:
        """Charge tokens to the run."""

    @property
    def cancelled(self) -> str | None:
        """The reason of a cancel (maybe empty), or None."""

    def find_exceeded(self, more: Usage | None = None) -> str | None:
        """Why no further model may be asked once that is charged as well, or None."""

    def model_for(self, model: Model | str | None) -> Model:
        """The model that a plugin means."""

    def model_onion(self, core: ModelCore) -> tuple[ModelCore, bool]:
        """The wrappers around a Think call, or the call itself, and whether one must see the whole answer."""


_NOTHING = Usage()


class ModelCall:
    """A model call under way: the core of the onion, called once an attempt."""

    __slots__ = (
        "_answer",
        "_held",
        "_on_chunk",
        "_own",
        "_pieces",
        "attempts",
        "first_chunk",
        "is_cut",
        "model",
        "purpose",
        "replayed",
        "request",
        "run",
        "usage",
    )

    def __init__(self, run: ModelRun, model: Model, request: ModelRequest, purpose: str) -> None:
        #: Who is asked now: the run's own model, unless a wrapper puts another one in its place.
        self.model = self._own = model
        self.run, self.request, self.purpose = run, request, purpose
        self.attempts, self.usage = 0, _NOTHING
        self.replayed = True  # the answer was in the journal already
        self._on_chunk: OnChunk | None = self._take_chunk if run.has_listener(ModelChunkEvent) else None
        self._held: list[Chunk] | None = None
        # What has streamed of the attempt under way.
        self._pieces: list[Chunk] = []
        self.first_chunk = 0.0  # when the first piece of the attempt under way arrived
        self.is_cut = False  # the caller's cancel cut the answer off
        self._answer: Message | None = None

    @property
    def attempt(self) -> int:
        """The number of the attempt under way; 0 for a plugin's own call."""
        return self.run.attempt if self.purpose == "think" else 0

    async def step(self) -> ModelCallResult:
        """The recorded effect: the onion with this call at its core."""
        self.replayed = False
        # A plugin's own call is not wrapped: a wrapper that calls a model would wrap itself.
        onion, buffers = self.run.model_onion(self) if self.purpose == "think" else (self, False)
        if onion is self:
            response = await self.__call__(self.request)
            if not self.is_cut:
                return _result(response, self.usage, 1)
            return ModelCallResult(response, self.usage, 1, self.run.cancelled)
        if buffers and self._on_chunk is not None:
            self._held, self._on_chunk = [], self._hold_chunk
        response = await onion(evolve(self.request, model=self.model))
        if self._held:
            await self._emit_held(self._held, response)
        if self.is_cut:
            # Whatever the wrappers made of it: the answer is not whole, and its calls are not run.
            text = response.message.text
            message = Message(ASSISTANT, text if text.strip() else (), extras=response.message.extras, is_cut=True)
            response = evolve(response, message=message, stop_reason="cancelled")
        return ModelCallResult(response, self.usage, self.attempts, self.run.cancelled if self.is_cut else None)

    async def __call__(self, request: ModelRequest) -> ModelResponse:
        """One attempt.

        Raises:
            ModelError: the model returned no valid response, or missed the deadline.
            BudgetExceeded: what was used by now, here or in other runs of the tree, leaves no room for it; it was not
                made.

        Returns:
            The answer; after the caller's cancel what there is of it, so that wrappers see what will be kept.
        """
        # The loop has asked before the first one.
        if self.attempts and (why := self.run.find_exceeded(self.usage)) is not None:
            raise BudgetExceeded(why)
        self.attempts += 1
        if self.attempts > 1:
            if self._held is not None:
                self._held.clear()
            self._pieces.clear()
            self.first_chunk = 0.0
            await self.run.emit_restart()
        swapped = request.model is not None and request.model is not self._own
        notes: tuple[str, ...] = ()
        if swapped:
            self.model = self.run.model_for(request.model)
            messages = make_portable(request.messages, self.model.name, own=self._own.name)
            notes = describe_left_out(request.messages, messages)
            request = evolve(request, messages=messages)
        else:
            self.model = self._own
        # Other runs of the tree may have spent since the loop asked. From here to the call nothing else runs.
        if self.run.account is not None and (why := self.run.find_exceeded()) is not None:
            raise BudgetExceeded(why)
        cancel = self.run.caller_cancel
        block = cancel.enter()
        seconds, watched = self.run.call_limits.model_seconds, None
        try:
            if request.deadline is None and (seconds is None or (watched := cancel.watch(block, seconds)) is not None):
                response = await self.model.complete(request, self._on_chunk)
            else:
                response = await self._within(request, seconds)
        except BaseException as e:
            is_late = watched is not None and watched.leave() and find_exit(e) is None
            if not cancel.leave(block, e):
                if is_late:
                    raise self._too_late(seconds) from e
                if isinstance(e, ModelError) and e.usage is not None:
                    await self._add_usage(e.usage, "")
                raise
            response = cut_response(request, self._pieces)
            if self.purpose != "think":
                await self._add_usage(response.usage, "")
                raise ModelError(f"the run was cancelled while {self.model.name} answered") from None
            self.is_cut = True
        else:
            if watched is not None:
                watched.leave()
            cancel.leave(block, None)
        if not isinstance(response, ModelResponse):
            raise ModelError(
                f"{self.model.name} returned {type(response).__name__}; Model.complete returns a ModelResponse"
            )
        message = response.message
        if not isinstance(message, Message) or message.role is not ASSISTANT:
            raise ModelError(f"{self.model.name} returned {message!r:.80}; it answers with an assistant message")
        used, (ask_price, unknown) = response.usage, self.run.rates
        if used.cost is None and (ask_price or unknown is not None or getattr(self.model, "price", None) is not None):
            await self._add_usage(used, response.model)
        else:
            self._spend(_sanitise(used))
        if swapped:
            message = mark_writer(message, self.model.name)
            response = evolve(response, message=message, notes=(*notes, *response.notes))
        self._answer = message
        return response

    async def _add_usage(self, used: Usage, answered: str) -> None:
        usage, run = _sanitise(used), self.run
        ask_price, unknown = run.rates
        if ask_price is not None and usage.cost is None:
            usage = evolve(usage, cost=await ask_price(self.model, answered, usage, run.clock.now()))
        self._spend(add_cost(self.model, usage, unknown))

    def _spend(self, usage: Usage) -> None:
        self.usage = usage if self.usage is _NOTHING else self.usage + usage
        if self.run.account is not None:
            self.run.account.add(usage)

    async def _within(self, request: ModelRequest, seconds: float | None) -> ModelResponse:
        left = math.inf if request.deadline is None else max(0.0, request.deadline - anyio.current_time())
        with anyio.move_on_after(left if seconds is None else min(left, seconds)):
            return await self.model.complete(request, self._on_chunk)
        if seconds is not None and seconds < left:
            raise self._too_late(seconds)
        raise ModelError(f"{self.model.name} did not answer within the {left:.3g} s that were left")

    def _too_late(self, seconds: float | None) -> ModelError:
        # The next attempt has as much time.
        return ModelError(f"{self.model.name} did not answer within {seconds:g} s (model_timeout)", retryable=True)

    def _take_chunk(self, chunk: Chunk) -> Awaitable[Any]:
        self.first_chunk = self.first_chunk or time.perf_counter()
        self._pieces.append(chunk)
        return self.run.emit_chunk(chunk.text, chunk.kind, self.purpose) if chunk.text else _done()

    async def _hold_chunk(self, chunk: Chunk) -> None:
        self.first_chunk = self.first_chunk or time.perf_counter()
        self._pieces.append(chunk)
        if self._held is not None and chunk.text:
            self._held.append(chunk)

    async def _emit_held(self, held: list[Chunk], response: ModelResponse) -> None:
        """Show what was held back, or the text that a wrapper put in its place."""
        if response.message == self._answer:
            for chunk in held:
                await self.run.emit_chunk(chunk.text, chunk.kind, self.purpose)
        elif response.message.text:
            await self.run.emit_chunk(response.message.text, "text", self.purpose)


async def _done() -> None:
    """Nothing to await."""


async def model_step(
    run: ModelRun,
    request: ModelRequest,
    model: Model,
    *,
    step_id: StepId,
    purpose: str = "think",
    request_fingerprint: str = "",
) -> tuple[ModelResponse, Usage, bool]:
    """One model call as a step of the run: the answer, the usage of all attempts at it, and whether it was recorded.

    The fingerprint of what the run's requests have in common is recorded with the answer.

    Raises:
        ModelError: it failed; whatever was raised is the cause, and what it used is charged.
    """
    call = ModelCall(run, model, request, purpose)
    began = time.perf_counter()
    digest = f"{model.name}:{len(request.messages)}{request_fingerprint}"
    try:
        result: ModelCallResult = await run.host.step(step_id, call.step, "model", digest)
    except BaseException as e:
        if not is_failure(e) or run.host.stop_error is not None:
            raise  # no failure of the model: this worker must not go on, another one may
        error = failed_call(model, e)
        used = call.usage if call.usage is not _NOTHING else None
        if used is not None:
            run.charge(used)
        if not call.replayed:
            failed = ModelFailed(
                run_id=run.host.run_id,
                step_id=step_id,
                digest=digest,
                error_type=type(error).__name__,
                error=str(error),
                retryable=error.retryable,
                usage=used,
            )
            run.host.defer(failed)
        if step_id not in run.host.retried_steps:
            await _emit_error(run, error, call)
        if error is e:
            raise
        raise error from e
    if result.cancelled is not None:
        run.cancel(result.cancelled)
    if run.has_listener(ModelCompleteEvent):
        await run.emit(
            ModelCompleteEvent(
                model=result.response.model or call.model.name,
                purpose=purpose,
                usage=result.usage,
                stop_reason=result.response.stop_reason,
                duration_ms=(time.perf_counter() - began) * 1000,
                attempts=result.attempts,
                notes=result.response.notes,
                response_id=result.response.id,
                first_chunk_ms=(call.first_chunk - began) * 1000 if call.first_chunk else None,
                address=getattr(call.model, "address", ""),
                replayed=call.replayed,
            )
        )
    return result.response, result.usage, call.replayed


async def _emit_error(run: ModelRun, error: ModelError, call: ModelCall) -> None:
    if run.has_listener(ModelErrorEvent):
        await run.emit(
            ModelErrorEvent(
                model=call.model.name,
                purpose=call.purpose,
                error=str(error),
                error_type=type(error).__name__,
                retryable=error.retryable,
                attempt=call.attempt,
            )
        )


def failed_call(model: Model, error: BaseException) -> ModelError:
    """The failure of a call: whatever was raised, as the error of the model."""
    if isinstance(error, ModelError):
        return error
    if isinstance(error, BudgetExceeded):
        return ModelError(str(error))
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ModelError(f"{model.name} failed: {what}", retryable=is_transient(error))


# -- sessions ------------------------------------------------------------------------------------------


async def open_session(model: Model, stack: AsyncExitStack, patience: float) -> None:
    """Open the session of a model, where it has one, and have the stack close it, within ``patience`` seconds."""
    offered = getattr(model, "session", None)
    if offered is not None:
        session: AbstractAsyncContextManager[object] = offered()
        await session.__aenter__()
        stack.push_async_exit(partial(_close_session, session, patience))


async def _close_session(
    session: AbstractAsyncContextManager[object], patience: float, _: object, error: BaseException | None, __: object
) -> None:
    if isinstance(error, GeneratorExit):
        return
    # What the session was used for does not depend on it: not on a connection that cannot be closed, or not in time.
    with anyio.move_on_after(patience, shield=True), contextlib.suppress(Exception):
        await session.__aexit__(None, None, None)
