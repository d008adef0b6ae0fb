"""One model of the chain, asked until it answers or is given up.

tenacity counts, backs off and jitters; what it waits with is ours, so that a wait ends with the run's deadline and with
its cancellation, and so that a test waits for nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential

from locus.core.errors import BudgetExceeded
from locus.core.messages import MediaBlock, RawBlock, TextBlock, ToolCall
from locus.models import ModelRequest, ModelResponse
from locus.plugin import RunContext
from locus_plugin_retry.breakers import Breakers
from locus_plugin_retry.events import ModelRetryEvent
from locus_plugin_retry.report import count
from locus_plugin_retry.settings import RetrySettings
from locus_plugin_retry.transience import find_wait, may_pass, to_model_error

__all__ = ["EmptyAnswer", "ModelAttempts", "RetriesExhausted", "Sleep"]

Sleep = Callable[[float], Awaitable[None]]

#: How often a wait looks whether the run was cancelled, in seconds.
_LOOK = 0.25


class RetriesExhausted(Exception):
    """A model is given up.

    Args:
        why: in words.
        error: what it raised, or None when it was not asked.
        late: the deadline leaves no time for another model either.
    """

    def __init__(self, why: str, error: Exception | None = None, *, late: bool = False) -> None:
        self.error, self.late = error, late
        super().__init__(why)


class EmptyAnswer(Exception):
    """An answer with neither text nor tool calls.

    Args:
        response: the answer.
    """

    def __init__(self, response: ModelResponse) -> None:
        self.response = response
        super().__init__("an empty answer")


class ModelAttempts:
    """The attempts at one model in one call.

    Args:
        settings: the plugin's.
        breakers: of models.
        ask: asks it once.
        request: what to ask.
        name: the model's.
        run: the run.
        sleep: what waits.
    """

    def __init__(
        self,
        settings: RetrySettings,
        breakers: Breakers,
        ask: Callable[[ModelRequest], Awaitable[ModelResponse]],
        request: ModelRequest,
        name: str,
        run: RunContext,
        sleep: Sleep,
    ) -> None:
        self.settings, self.breakers, self.ask, self.request = settings, breakers, ask, request
        self.name, self.run, self._sleep = name, run, sleep
        self._failure: Exception | None = None
        self._first: Exception | None = None
        self._late = False
        #: Whether a limit of the run leaves no further attempt, at any model.
        self.barred = False

    async def answer(self) -> ModelResponse:
        """What the model answers in the end.

        Raises:
            RetriesExhausted: it failed too often, its breaker is open, or no time is left.
            Empty: it has nothing to say.
            BudgetExceeded: it failed, and a limit of the run leaves no further attempt.
            Exception: what does not pass, as it was raised.
        """
        try:
            try:
                return await self._attempt()  # nearly always the only one, and then it costs no more than itself
            except Exception as e:
                if not self._may_pass(e):
                    raise
                self._first = e
            return await self._retry()
        except (EmptyAnswer, RetriesExhausted):
            raise
        except Exception as e:
            if not may_pass(e):
                raise
            status = getattr(e, "status", None)
            said = type(e).__name__ + (f" with status {status}" if status is not None else "")
            raise RetriesExhausted(f"{self.name} failed: {said}", to_model_error(e, self.name), late=self._late) from e

    async def _retry(self) -> ModelResponse:
        self._jitter = wait_random_exponential(multiplier=self.settings.backoff, max=self.settings.max_backoff)
        return await AsyncRetrying(
            retry=retry_if_exception(self._may_pass),
            wait=self._wait,
            stop=self._enough,
            before_sleep=self._tell,
            sleep=self._pause,
            reraise=True,
        )(self._next)

    async def _next(self) -> ModelResponse:
        first, self._first = self._first, None
        if first is not None:
            raise first  # the attempt that was made before anybody counted
        return await self._attempt()

    async def _attempt(self) -> ModelResponse:
        era = self.breakers.admit(self.name, self.run)
        if era is None:
            count(self.run, refused=1)
            raise self._last_error()
        try:
            response = await self.ask(self.request)
        except BudgetExceeded:
            self.barred = True
            if isinstance(self._failure, EmptyAnswer):
                raise self._failure from None
            raise
        except Exception as e:
            self._failure = e
            if may_pass(e):
                await self.breakers.record(self.name, era, self.run, ok=False)
            raise
        if self.settings.retry_empty and _is_empty(response):
            count(self.run, empty=1)
            await self.breakers.record(self.name, era, self.run, ok=False)
            self._failure = EmptyAnswer(response)
            raise self._failure
        await self.breakers.record(self.name, era, self.run, ok=True)
        return response

    def _last_error(self) -> Exception:
        """What ends this model's part: it opened the breaker itself, or found it open."""
        failure = self._failure
        if isinstance(failure, EmptyAnswer):
            return failure
        return RetriesExhausted(f"the circuit breaker of {self.name} is open", failure)

    def _may_pass(self, error: BaseException) -> bool:
        return self.run.cancelled is None and not self.barred and (isinstance(error, EmptyAnswer) or may_pass(error))

    def _wait(self, state: RetryCallState) -> float:
        return max(self._jitter(state), _requested_wait(state))

    def _enough(self, state: RetryCallState) -> bool:
        if state.attempt_number > self.settings.max_retries:
            return True
        deadline = self.request.deadline
        if deadline is not None and state.upcoming_sleep >= deadline - anyio.current_time():
            self._late = deadline <= anyio.current_time()
            return True
        return _requested_wait(state) > self.settings.max_retry_after

    async def _tell(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome is not None else None
        count(self.run, retries=1)
        await self.run.emit(
            ModelRetryEvent(
                model=self.name,
                attempt=state.attempt_number,
                wait=state.upcoming_sleep,
                error_type="" if isinstance(error, EmptyAnswer) else type(error).__name__,
                status=getattr(error, "status", None),
            )
        )

    async def _pause(self, seconds: float) -> None:
        left = seconds
        while left > 0 and self.run.cancelled is None:
            piece = min(left, _LOOK)
            await self._sleep(piece)
            left -= piece
        count(self.run, waited=seconds - max(0.0, left))
        if self.run.cancelled is not None and self._failure is not None:
            raise self._failure


def _requested_wait(state: RetryCallState) -> float:
    """Seconds that the provider asked to wait."""
    return find_wait(state.outcome.exception() if state.outcome is not None else None)


def _is_empty(response: ModelResponse) -> bool:
    """Whether the answer is empty. One that was cut off, filtered or refused is not: another attempt would be, too."""
    if response.stop_reason in ("cancelled", "length", "filter", "refusal"):
        return False
    for block in response.message.content:
        if isinstance(block, ToolCall | MediaBlock | RawBlock):
            return False
        if isinstance(block, TextBlock) and block.text.strip():
            return False
    return True
