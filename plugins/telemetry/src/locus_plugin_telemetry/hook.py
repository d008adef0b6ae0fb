"""The hook: observers record what happened, wrappers make the right span the current one meanwhile.

Numbers and names come from where they are known; content comes from events alone, because they are made of what every
filter has passed, wherever this plugin is in the order of plugins.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from attrs import evolve
from opentelemetry import metrics, trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, TracerProvider

from locus import (
    AgentState,
    HookFailedEvent,
    InterruptEvent,
    ModelCompleteEvent,
    ModelErrorEvent,
    ModelRestartEvent,
    RunStartEvent,
    TerminateEvent,
    ThinkEvent,
    ToolCacheHitEvent,
    ToolCall,
    ToolCompleteEvent,
)
from locus.models import ModelRequest, ModelResponse
from locus.plugin import Hook, Interrupt, RunContext, StashKey, hookimpl
from locus_plugin_telemetry import conventions as c
from locus_plugin_telemetry.content import Content, is_content_wanted, news
from locus_plugin_telemetry.failures import FailureLog, HasFailureLog, log_errors
from locus_plugin_telemetry.iterations import Payload, trace_iteration
from locus_plugin_telemetry.metrics import Metrics
from locus_plugin_telemetry.propagation import current, parse_traceparent, traceparent
from locus_plugin_telemetry.segment import Kit, Segment
from locus_plugin_telemetry.settings import TelemetrySettings
from locus_plugin_telemetry.spans import error_type

__all__ = ["METADATA", "TelemetryHook"]

#: Where the state keeps whose trace a resumed run links to.
METADATA = "telemetry"

_SEGMENT: StashKey[Segment] = StashKey("telemetry")
_SCOPE = "locus_plugin_telemetry"
_RESUMED = {c.LINK: "resumed"}


class TelemetryHook(Hook, HasFailureLog):
    """Traces and measures the runs of an agent.

    It sets no global provider: it uses the ones it is given, or those that the program has set, now or later.

    Args:
        settings: see `TelemetrySettings`; None = the defaults.
        tracer_provider, meter_provider, content: in place of those of the settings.
    """

    def __init__(
        self,
        settings: TelemetrySettings | None = None,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        content: bool | None = None,
    ) -> None:
        settings = settings or TelemetrySettings()
        self.settings = evolve(
            settings,
            tracer_provider=tracer_provider or settings.tracer_provider,
            meter_provider=meter_provider or settings.meter_provider,
            content=settings.content if content is None else content,
        )
        self.failures = FailureLog()
        self._kit = Kit(
            trace.get_tracer(_SCOPE, None, self.settings.tracer_provider, c.SCHEMA_URL),
            self.failures,
            Content(settings.max_chars) if is_content_wanted(setting=self.settings.content) else None,
            self._measures(),
        )

    @log_errors
    def _measures(self) -> Metrics | None:
        if not self.settings.metrics:
            return None
        return Metrics(metrics.get_meter(_SCOPE, "", self.settings.meter_provider, c.SCHEMA_URL))

    # -- a segment ------------------------------------------------------------------------------------

    @log_errors
    def on_run_start(self, event: RunStartEvent, run: RunContext) -> None:
        """Begin the trace, linked to that of the run's first segment when it is resumed."""
        links: tuple[Link, ...] = ()
        earlier = parse_traceparent(_read_link(run.state, event.run_id)) if self.settings.link else None
        if earlier is not None:
            links = (Link(earlier, _RESUMED),)
        segment = Segment(self._kit, event, run.state.usage, links)
        run.stash[_SEGMENT] = segment
        content = self._kit.content
        if content is not None:
            segment.run.put({c.SYSTEM_INSTRUCTIONS: content.instructions(run.state.messages[:1])})
            if event.prompt:
                segment.run.put({c.INPUT_MESSAGES: content.prompt(event.prompt)})

    @log_errors
    def on_interrupt(self, event: InterruptEvent, run: RunContext) -> None:
        """Note that a person is asked."""
        segment = run.stash.get(_SEGMENT, None)
        if segment is not None:
            about = {c.INTERRUPT_ID: event.interrupt_id, c.TOOL_NAME: event.tool_name or None}
            segment.run.note(c.EVENT_INTERRUPT, about)

    @log_errors
    def on_hook_failed(self, event: HookFailedEvent, run: RunContext) -> None:
        """Note that a hook failed."""
        segment = run.stash.get(_SEGMENT, None)
        if segment is not None:
            about = {c.PLUGIN: event.plugin, c.HOOK: event.hook, c.ERROR_TYPE: error_type(event.error)}
            segment.run.note(c.EVENT_HOOK_FAILED, about)

    @log_errors
    def on_terminate(self, event: TerminateEvent, run: RunContext) -> None:
        """End everything."""
        segment = run.stash.get(_SEGMENT, None)
        if segment is not None:
            segment.finish(event)

    # -- steps of workflows ---------------------------------------------------------------------------------

    async def wrap_iteration(self, call_next: Callable[[], Awaitable[Any]], payload: Payload) -> Any:
        """Run one iteration of a step in a span of its own, for ``locus.workflow.Worker(hooks=[...])``."""
        return await trace_iteration(self._kit, call_next, payload)

    # -- nodes -------------------------------------------------------------------------------------------

    @hookimpl
    async def locus_wrap_node(
        self, call_next: Callable[[AgentState], Awaitable[AgentState]], node: str, state: AgentState, run: RunContext
    ) -> AgentState:
        """Run a node in the span of its iteration."""
        segment = run.stash.get(_SEGMENT, None)
        if self.settings.link and node == "think" and _read_link(state, run.run_id) is None:
            # A step: a resumed or replayed node gets the same text, and with it makes the same state.
            mine = "" if segment is None else self._traceparent(segment) or ""

            async def record() -> str:
                return mine

            recorded = await run.step(METADATA, record, effect="pure")
            state = state.with_metadata(METADATA, {"run_id": run.run_id, "traceparent": recorded})
            if segment is not None and recorded != mine:
                self._link(segment, recorded)  # of a segment that died before it had committed anything
        if segment is None:
            return await call_next(state)
        if self._kit.content is not None and node == "think":
            # Of the state, which is on record, and not of the request, which others may have changed.
            segment.news = news(state.messages)
        with current(segment.enter(None if node == "terminate" else state.iteration).span):
            return await call_next(state)

    @log_errors
    def _traceparent(self, segment: Segment) -> str:
        return traceparent(segment.run.span)

    @log_errors
    def _link(self, segment: Segment, recorded: str) -> None:
        earlier = parse_traceparent(recorded)
        if earlier is not None and not segment.linked:
            segment.run.link(Link(earlier, _RESUMED))
            segment.linked = True

    # -- model calls ---------------------------------------------------------------------------------------

    @hookimpl
    async def locus_wrap_model_call(
        self,
        call_next: Callable[[ModelRequest], Awaitable[ModelResponse]],
        request: ModelRequest,
        run: RunContext,
    ) -> ModelResponse:
        """Ask the model in a span of its own."""
        segment = run.stash.get(_SEGMENT, None)
        if segment is None:
            return await call_next(request)
        chat = segment.begin_chat(self._request(request, segment) or {})
        try:
            with current(chat.span):
                response = await call_next(request)
        except Exception as e:
            chat.over(error_type(e))
            raise
        except BaseException:
            chat.over(c.CANCELLED)
            raise
        chat.over()
        return response

    @log_errors
    def _request(self, request: ModelRequest, segment: Segment) -> dict[str, Any]:
        settings, content = request.settings, self._kit.content
        return {
            c.REQUEST_TEMPERATURE: settings.temperature,
            c.REQUEST_MAX_TOKENS: settings.max_tokens,
            c.REQUEST_SEED: settings.seed,
            c.REQUEST_STOP: settings.stop or None,
            c.OUTPUT_TYPE: "json" if request.output is not None else None,
            c.INPUT_MESSAGES: None if content is None else content.messages(segment.news),
        }

    @log_errors
    def on_model_complete(self, event: ModelCompleteEvent, run: RunContext) -> None:
        """Tell the span of a call what came of it."""
        segment = run.stash.get(_SEGMENT, None)
        if segment is not None and not event.replayed:
            segment.record_call(event)

    @log_errors
    def on_think(self, event: ThinkEvent, run: RunContext) -> None:
        """Put the answer on the span."""
        segment, content = run.stash.get(_SEGMENT, None), self._kit.content
        if segment is not None and content is not None and not event.replayed:
            reason = "tool_call" if event.tool_calls else "stop"
            segment.record_answer(content.answer(event.text, event.reasoning, event.tool_calls, reason))

    @log_errors
    def on_model_error(self, event: ModelErrorEvent, run: RunContext) -> None:
        """Record that a call failed."""
        segment, content = run.stash.get(_SEGMENT, None), self._kit.content
        if segment is not None:
            described = None if content is None else content.text(event.error)
            segment.not_answered(event.purpose, event.error_type, described)

    @log_errors
    def on_model_restart(self, event: ModelRestartEvent, run: RunContext) -> None:
        """Note that the model is asked again."""
        segment = run.stash.get(_SEGMENT, None)
        if segment is not None:
            where = segment.chat or segment.iteration or segment.run
            where.note(c.EVENT_RESTART, {c.ATTEMPT: event.attempt})

    # -- tool calls ----------------------------------------------------------------------------------------

    @hookimpl
    async def locus_wrap_tool_call(
        self, call_next: Callable[[ToolCall], Awaitable[Any]], call: ToolCall, run: RunContext
    ) -> Any:
        """Run a body in a span of its own, which is also the parent of a child run."""
        segment = run.stash.get(_SEGMENT, None)
        if segment is None:
            return await call_next(call)
        tool = segment.begin_tool(call)
        try:
            with current(tool.span):
                outcome = await call_next(call)
        except Exception as e:
            tool.over(error_type(e))
            raise
        except BaseException as e:
            asked = isinstance(e, Interrupt)
            tool.over(None if asked else c.CANCELLED)
            segment.leave_tool(tool, fine=asked)
            raise
        tool.over()
        return outcome

    @log_errors
    def on_tool_complete(self, event: ToolCompleteEvent, run: RunContext) -> None:
        """Tell the span of a call what came of it."""
        segment = run.stash.get(_SEGMENT, None)
        if segment is not None and not event.replayed:
            segment.end_tool(event)

    @log_errors
    def on_tool_cache_hit(self, event: ToolCacheHitEvent, run: RunContext) -> None:
        """Note a call that was answered without its body."""
        segment = run.stash.get(_SEGMENT, None)
        if segment is not None:
            about = {c.TOOL_NAME: event.tool_name, c.TOOL_CALL_ID: event.call_id or None}
            (segment.iteration or segment.run).note(c.EVENT_CACHE_HIT, about)


def _read_link(state: AgentState, run_id: str) -> Any:
    """What the state keeps of the run's first trace, or None; another run of the thread has left its own."""
    kept = state.metadata.get(METADATA)
    return kept.get("traceparent") if isinstance(kept, dict) and kept.get("run_id") == run_id else None
