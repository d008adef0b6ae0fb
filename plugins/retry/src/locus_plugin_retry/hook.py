"""`ModelRetryHook`: a model call until it succeeds, as often as it may be made, by whom it may be made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from attrs import evolve

from locus.core.errors import BudgetExceeded, JournalError, ModelError
from locus.core.messages import ToolCall
from locus.models import Model, ModelRequest, ModelResponse, describe_left_out, get_writer, make_portable
from locus.plugin import Decision, Event, Hook, Reject, RunContext, StashKey, hookimpl
from locus_plugin_retry.attempts import EmptyAnswer, ModelAttempts, RetriesExhausted, Sleep
from locus_plugin_retry.breakers import Breakers
from locus_plugin_retry.events import CircuitBreakerEvent, ModelFallbackEvent, ModelRetryEvent
from locus_plugin_retry.iterations import Iterations
from locus_plugin_retry.report import NAME, count
from locus_plugin_retry.settings import BreakerSettings, RetrySettings

__all__ = ["ModelRetryHook"]

_MIXED: StashKey[bool] = StashKey("retry.mixed")


class ModelRetryHook(Hook):
    """Asks a model again when its failure may pass, then the fallback models; circuit breakers.

    The breakers belong to this object: all runs that have it as a hook, one after another or side by side, share them.

    Args:
        settings: all of them; None = `RetrySettings()`.
        max_retries, backoff, max_backoff, fallback, model_breaker, tool_breaker, loop_breaker: in place of the
            settings' own.
        sleep: what waits, a function of seconds; `anyio.sleep`, except in tests.
    """

    name = NAME

    def __init__(
        self,
        settings: RetrySettings | None = None,
        *,
        max_retries: int | None = None,
        backoff: float | None = None,
        max_backoff: float | None = None,
        fallback: tuple[str | Model, ...] | list[str | Model] | str | None = None,
        model_breaker: BreakerSettings | None = None,
        tool_breaker: BreakerSettings | None = None,
        loop_breaker: BreakerSettings | None = None,
        sleep: Sleep = anyio.sleep,
    ) -> None:
        given = {
            "max_retries": max_retries,
            "backoff": backoff,
            "max_backoff": max_backoff,
            "fallback": fallback,
            "model_breaker": model_breaker,
            "tool_breaker": tool_breaker,
            "loop_breaker": loop_breaker,
        }
        changes: Any = {name: value for name, value in given.items() if value is not None}
        self.settings = evolve(RetrySettings() if settings is None else settings, **changes)
        self._sleep = sleep
        self._models = Breakers("model", self.settings.model_breaker)
        self._tools = Breakers("tool", self.settings.tool_breaker)
        self._loop = Iterations(self.settings.loop_breaker)
        # Only where they have something to do: unused listeners and wrappers would cost time.
        if self.settings.tool_breaker is not None:
            self.locus_decide_tool_call = _make_decide_hook(self._tools)
            self.locus_wrap_tool_call = _make_wrap_hook(self._tools)
        if self.settings.loop_breaker is not None:
            self.on_iteration, self.on_tool_complete = self._loop.on_iteration, self._loop.on_tool_complete
            self.on_terminate = self._loop.on_terminate

    @hookimpl
    def locus_register_events(self) -> list[type[Event]]:
        """The plugin's own events."""
        return [ModelRetryEvent, ModelFallbackEvent, CircuitBreakerEvent]

    @hookimpl
    async def locus_wrap_model_call(
        self,
        call_next: Callable[[ModelRequest], Awaitable[ModelResponse]],
        request: ModelRequest,
        run: RunContext,
    ) -> ModelResponse:
        """One call, by the first model of the chain that answers."""
        try:
            return await self._chain(call_next, request, run)
        except Exception:
            self._loop.model_failed(run)
            raise

    async def _chain(
        self,
        call_next: Callable[[ModelRequest], Awaitable[ModelResponse]],
        request: ModelRequest,
        run: RunContext,
    ) -> ModelResponse:
        empty: ModelResponse | None = None
        failure: Exception | None = None
        story: list[str] = []
        chain = (request.model, *self.settings.fallback)
        for place, model in enumerate(chain):
            name = _name(model)
            asked, notes = _legal(request, name, run) if not place else (evolve(request, model=model), ())
            if place:
                await run.emit(ModelFallbackEvent(model=_name(chain[place - 1]), fallback=name, reason=story[-1]))
            asking = ModelAttempts(self.settings, self._models, call_next, asked, name, run, self._sleep)
            try:
                response = await asking.answer()
            except RetriesExhausted as e:
                story.append(str(e))
                failure = e.error or failure
                if run.cancelled is not None or e.late:
                    break
            except EmptyAnswer as e:
                story.append("its answers are empty")
                empty = e.response
                if run.cancelled is not None or asking.barred:
                    break
            except BudgetExceeded:
                if empty is None:
                    raise
                break
            except JournalError:
                raise  # no failure of the model: this worker must not go on
            except Exception as e:
                if not place:
                    raise  # the request is at fault, or the program: another model would hide it
                story.append(f"{name} failed: {type(e).__name__}")
                failure = e
                if run.cancelled is not None:
                    break
            else:
                if place:
                    run.stash[_MIXED] = True
                    count(run, fallbacks=(name,))
                return evolve(response, notes=(*notes, *response.notes)) if notes else response
        if failure is not None and empty is None:
            for told in story[:-1]:
                failure.add_note(f"before: {told}")
            raise failure
        if empty is not None:
            return empty
        waits = [self._models.seconds_left(_name(model), run) for model in chain]
        raise ModelError("; ".join(story), retryable=True, retry_after=min(waits))


def _name(model: Any) -> str:
    return model if isinstance(model, str) else str(getattr(model, "name", ""))


def _legal(request: ModelRequest, name: str, run: RunContext) -> tuple[ModelRequest, tuple[str, ...]]:
    """The request without what fallback models of other providers have signed in earlier turns, and notes on that."""
    mixed = run.stash.get(_MIXED, None)
    if mixed is None:  # looked for once in a segment of a run: later turns are known
        mixed = run.stash[_MIXED] = any(get_writer(message) is not None for message in request.messages)
    if not mixed:
        return request, ()
    messages = make_portable(request.messages, name, own=name)
    return evolve(request, messages=messages), describe_left_out(request.messages, messages)


def _make_decide_hook(tools: Breakers) -> Callable[..., Awaitable[Decision | None]]:
    @hookimpl
    async def locus_decide_tool_call(call: ToolCall, run: RunContext) -> Decision | None:
        """Reject a call of a tool whose breaker is open."""
        if tools.admit(call.name, run) is not None:
            return None
        count(run, refused=1)
        left = tools.seconds_left(call.name, run)
        return Reject(
            f"the tool {call.name} has failed again and again and is not called for another {left:.0f} s; "
            "do without it, or say that it does not work"
        )

    return locus_decide_tool_call


def _make_wrap_hook(tools: Breakers) -> Callable[..., Awaitable[Any]]:
    @hookimpl
    async def locus_wrap_tool_call(
        call_next: Callable[[ToolCall], Awaitable[Any]], call: ToolCall, run: RunContext
    ) -> Any:
        """Count what a body came to."""
        era = tools.era(call.name)
        outcome = await call_next(call)
        await tools.record(call.name, era, run, ok=outcome.execution.error is None)
        return outcome

    return locus_wrap_tool_call
