"""One recorded model call: the attempts of the wrappers around it, their usage, their chunks.

The wrap onion runs inside the recorded step, so a replay runs no wrapper, and the tokens of every attempt are
charged, also of those whose answer a wrapper threw away.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import anyio
from attrs import evolve, frozen

from locus.core.codec import decode, encode, register_value
from locus.core.directives import Directive
from locus.core.errors import ModelError
from locus.core.events import Event, ModelChunkEvent, ModelCompleteEvent, ModelErrorEvent
from locus.core.messages import Usage
from locus.hooks.dispatch import onion
from locus.hooks.table import Impl
from locus.models.protocol import Chunk, Model, ModelRequest, ModelResponse, OnChunk, Price
from locus.tools.cancellation import is_foreign_cancellation

__all__ = ["Called", "Calling", "ModelRun", "model_step", "price_of"]


@frozen
class Called:
    """The recorded result of a model step.

    Args:
        response: what the onion returned.
        usage: of all attempts together, priced where the price is known.
        attempts: how many calls were made; 0 when a wrapper answered by itself.
    """

    response: ModelResponse
    usage: Usage
    attempts: int


def _to_data(called: Called) -> Any:
    return {"response": encode(called.response), "usage": encode(called.usage), "attempts": called.attempts}


def _from_data(data: Any) -> Called:
    return Called(decode(data["response"], ModelResponse), decode(data["usage"], Usage), data["attempts"])


register_value(Called, "locus.called", _to_data, _from_data)


def price_of(model: Model, usage: Usage) -> Usage:
    """The usage with its dollars, where the provider or the model's price tells them."""
    if usage.cost is not None:
        return usage
    price: Price | None = getattr(model, "price", None)
    return usage if price is None else evolve(usage, cost=price.of(usage))


class Calling:
    """A model call under way: the core of the onion, called once an attempt.

    Args:
        model: the model.
        on_chunk: where chunks go, or None when nobody listens.
        restarted: told before each further attempt, with its number.
        buffers: a wrapper must see the whole answer, so hold the chunks until it passed.
    """

    __slots__ = ("_buffers", "_held", "_model", "_on_chunk", "_restarted", "attempts", "usage")

    def __init__(
        self,
        model: Model,
        on_chunk: OnChunk | None,
        restarted: Callable[[int], Awaitable[None]],
        *,
        buffers: bool,
    ) -> None:
        self._model, self._on_chunk, self._restarted, self._buffers = model, on_chunk, restarted, buffers
        self._held: list[Chunk] = []
        self.attempts, self.usage = 0, Usage()

    async def __call__(self, request: ModelRequest) -> ModelResponse:
        """One attempt.

        Raises:
            ModelError: it failed; whatever the model raised is the cause.
        """
        self.attempts += 1
        if self.attempts > 1:
            self._held.clear()
            await self._restarted(self.attempts - 1)
        response = await self._within(request)
        if not isinstance(response, ModelResponse):
            raise ModelError(
                f"{self._model.name} returned {type(response).__name__}; Model.complete returns a ModelResponse"
            )
        usage = price_of(self._model, response.usage)
        self.usage = usage if self.attempts == 1 else self.usage + usage
        return response

    async def _within(self, request: ModelRequest) -> ModelResponse:
        chunk = self._hold if self._buffers and self._on_chunk is not None else self._on_chunk
        if request.deadline is None:
            return await self._model.complete(request, chunk)
        left = request.deadline - anyio.current_time()
        with anyio.move_on_after(max(0.0, left)) as scope:
            return await self._model.complete(request, chunk)
        if scope.cancelled_caught:
            raise ModelError(f"{self._model.name} did not answer within the {max(0.0, left):.3g} s that were left")
        raise ModelError(f"{self._model.name} gave no answer")  # pragma: no cover - a scope ends or returns

    async def _hold(self, chunk: Chunk) -> None:
        self._held.append(chunk)

    async def passed(self, response: ModelResponse) -> None:
        """Show what was held back, or the text that a wrapper put in its place."""
        if self._on_chunk is None or not self._held:
            return
        if "".join(c.text for c in self._held if c.kind == "text") == response.message.text:
            for chunk in self._held:
                await self._on_chunk(chunk)
        elif response.message.text:
            await self._on_chunk(Chunk(response.message.text))


class ModelRun(Protocol):
    """What a model step needs of the run."""

    @property
    def host(self) -> Any:
        """Where steps are recorded."""
        ...

    def hears(self, event: type[Event]) -> bool:
        """Whether anybody listens."""
        ...

    async def tell(self, event: Event) -> Directive | None:
        """Emit an event."""
        ...

    async def restarted(self, attempt: int, purpose: str = "think") -> None:
        """Say that earlier attempts are void."""
        ...

    def charge(self, usage: Usage) -> None:
        """Charge tokens to the run."""
        ...

    def model_wraps(self) -> tuple[tuple[Impl, ...], bool]:
        """The wrappers of a Think call, and whether one must see the whole answer."""
        ...


async def model_step(
    run: ModelRun,
    request: ModelRequest,
    model: Model,
    *,
    step_id: str,
    purpose: str = "think",
    attempt: int = 0,
) -> tuple[ModelResponse, Usage]:
    """One model call as a step of the run: the answer, and the usage of all attempts at it.

    Raises:
        ModelError: it failed; whatever was raised is the cause, and what it used is charged.
    """

    async def on_chunk(chunk: Chunk) -> None:
        number = attempt + calling.attempts - 1
        await run.tell(ModelChunkEvent(text=chunk.text, kind=chunk.kind, purpose=purpose, attempt=number))

    async def restarted(number: int) -> None:
        await run.restarted(attempt + number, purpose)

    # A plugin's own call is not wrapped: a wrapper that calls a model would wrap itself.
    wraps, buffers = run.model_wraps() if purpose == "think" else ((), False)
    calling = Calling(model, on_chunk if run.hears(ModelChunkEvent) else None, restarted, buffers=buffers)

    async def effect() -> Called:
        around = onion(wraps, calling, after=(run,), returns=ModelResponse) if wraps else calling
        response = await around(request)
        await calling.passed(response)
        return Called(response, calling.usage, calling.attempts)

    began = time.perf_counter()
    try:
        called: Called = await run.host.step(step_id, effect, "model", f"{model.name}:{len(request.messages)}")
    except BaseException as e:
        if not isinstance(e, Exception) and not is_foreign_cancellation(e):
            raise
        error = e if isinstance(e, ModelError) else _model_error(model, e)
        if calling.attempts > 1:
            run.charge(calling.usage)
        await _tell_error(run, error, model, purpose, attempt)
        if error is e:
            raise
        raise error from e
    if run.hears(ModelCompleteEvent):
        await run.tell(
            ModelCompleteEvent(
                model=called.response.model or model.name,
                purpose=purpose,
                usage=called.usage,
                stop_reason=called.response.stop_reason,
                duration_ms=(time.perf_counter() - began) * 1000,
                attempts=called.attempts,
            )
        )
    return called.response, called.usage


async def _tell_error(run: ModelRun, error: ModelError, model: Model, purpose: str, attempt: int) -> None:
    if run.hears(ModelErrorEvent):
        await run.tell(
            ModelErrorEvent(
                model=model.name,
                purpose=purpose,
                error=str(error),
                error_type=type(error).__name__,
                retryable=error.retryable,
                attempt=attempt,
            )
        )


def _model_error(model: Model, error: BaseException) -> ModelError:
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ModelError(f"{model.name} failed: {what}", retryable=isinstance(error, TimeoutError | OSError))
