"""The spans of one segment of a run: one of the run, one of the iteration under way, one a call."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from attrs import frozen
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanKind, Tracer

from locus import Message, ModelCompleteEvent, RunStartEvent, TerminateEvent, ToolCall, ToolCompleteEvent, Usage
from locus_plugin_telemetry import conventions as c
from locus_plugin_telemetry.content import Content
from locus_plugin_telemetry.failures import FailureLog, HasFailureLog, log_errors
from locus_plugin_telemetry.metrics import Metrics
from locus_plugin_telemetry.spans import Open, error_type

__all__ = ["Kit", "Segment"]


@frozen
class Kit:
    """What all segments of an agent share.

    Args:
        content: writes content, or None if none is wanted.
        measures: the instruments, or None.
    """

    tracer: Tracer
    failures: FailureLog
    content: Content | None = None
    measures: Metrics | None = None


#: Names that a tool may have.
_NAME = re.compile(r"[\w-]{1,64}", re.ASCII)


def _names(model: str) -> tuple[str, str]:
    """The provider and the model of ``"provider:model"``."""
    scheme, colon, name = model.partition(":")
    return (c.PROVIDERS.get(scheme, scheme), name) if colon else (c.OTHER, model)


def _usage(usage: Usage) -> dict[str, int | None]:
    return {
        c.INPUT_TOKENS: usage.prompt_tokens,
        c.OUTPUT_TOKENS: usage.completion_tokens,
        c.CACHE_READ_TOKENS: usage.cached_tokens or None,
        c.CACHE_WRITE_TOKENS: usage.cache_write_tokens or None,
        c.REASONING_TOKENS: usage.reasoning_tokens or None,
    }


def _server(address: str) -> dict[str, str | int]:
    """The host and the port of an address, as far as it says them."""
    try:
        found = urlsplit(address)
        port = found.port or {"https": 443, "http": 80}.get(found.scheme)
    except ValueError:
        return {}
    if not found.hostname:
        return {}
    return {c.SERVER_ADDRESS: found.hostname, **({} if port is None else {c.SERVER_PORT: port})}


class Segment(HasFailureLog):
    """The open spans of one segment.

    Args:
        kit: what all segments share.
        start: the event that begins it.
        before: what the run had spent before.
        links: to the trace of an earlier segment.
    """

    __slots__ = (
        "_before",
        "_kit",
        "_number",
        "_provider",
        "_request_model",
        "base",
        "chat",
        "ended",
        "failures",
        "iteration",
        "linked",
        "news",
        "run",
        "tools",
    )  # fmt: skip

    def __init__(self, kit: Kit, start: RunStartEvent, before: Usage, links: tuple[Link, ...]) -> None:
        self._kit, self.failures, self._before = kit, kit.failures, before
        self.ended, self.linked = False, bool(links)
        self.base = otel_context.get_current()
        self._provider, self._request_model = _names(start.model)
        about = {
            c.OPERATION: c.INVOKE_AGENT,
            **self._model,
            c.AGENT_NAME: start.agent_id or None,
            c.CONVERSATION: start.thread_id,
            c.RUN_ID: start.run_id,
            c.SEGMENT: start.segment,
            c.RESUMED: start.resumed,
        }
        name = f"{c.INVOKE_AGENT} {start.agent_id}" if start.agent_id else c.INVOKE_AGENT
        self.run = Open(kit.tracer, name, self.base, about, kit.failures, links=links)
        self.iteration: Open | None = None
        self._number = -1
        self.chat: Open | None = None
        #: The messages that are new to the model; only if content is wanted.
        self.news: list[Message] = []
        #: Tool calls whose end was not reported yet.
        self.tools: list[Open] = []

    def __del__(self) -> None:
        # A run that was dropped outside of an event loop ends without a word.
        if not getattr(self, "ended", True):
            self.run.over(c.CANCELLED)
            self._rest()

    @property
    def _model(self) -> dict[str, str]:
        return {c.PROVIDER: self._provider, c.REQUEST_MODEL: self._request_model}

    # -- iterations -----------------------------------------------------------------------------------

    def enter(self, number: int | None) -> Open:
        """The span that a node runs in: its iteration's, or the run's where it belongs to none."""
        if number is None or number != self._number:
            self._leave()
        if number is None:
            return self.run
        if self.iteration is None:
            context = trace.set_span_in_context(self.run.span, self.base)
            self.iteration = Open(self._kit.tracer, c.ITERATION, context, {c.NUMBER: number + 1}, self.failures)
            self._number = number
        return self.iteration

    def _leave(self, *, fine: bool = False) -> None:
        if self.iteration is not None:
            self.iteration.close(fine=fine)
            self.iteration = None

    # -- model calls ------------------------------------------------------------------------------------

    def begin_chat(self, attributes: Mapping[str, Any]) -> Open:
        """A model call of Think begins."""
        self._end_chat()  # an attempt without an event
        self.chat = self._chat(self._model, attributes)
        return self.chat

    def _chat(self, model: Mapping[str, str], attributes: Mapping[str, Any], began: int | None = None) -> Open:
        name = f"{c.CHAT} {model[c.REQUEST_MODEL]}"
        about = {c.OPERATION: c.CHAT, **model, **attributes}
        context = otel_context.get_current()
        chat = Open(self._kit.tracer, name, context, about, self.failures, kind=SpanKind.CLIENT, began=began)
        chat.about = model
        return chat

    @log_errors
    def record_call(self, event: ModelCompleteEvent) -> None:
        """Record the answer of a model call."""
        chat = self.chat if event.purpose == "think" else None
        if chat is None:
            # A plugin's own call, which has only this event.
            provider, model = _names(event.model)
            if event.model.partition(":")[1] == "":
                provider = self._provider
            began = time.time_ns() - int(event.duration_ms * 1e6)
            names = {c.PROVIDER: provider, c.REQUEST_MODEL: model}
            chat = self._chat(names, {c.PURPOSE: event.purpose}, began)
        response_model = _names(event.model)[1]
        where = _server(event.address)
        first = None if event.first_chunk_ms is None else event.first_chunk_ms / 1000
        chat.put({c.RESPONSE_ID: event.response_id or None, c.TIME_TO_FIRST_CHUNK: first, **where})
        chat.put({c.REQUEST_STREAM: None if first is None else True})
        chat.put({c.RESPONSE_MODEL: response_model, c.FINISH_REASONS: [event.stop_reason], **_usage(event.usage)})
        chat.put({c.ATTEMPTS: event.attempts if event.attempts > 1 else None, c.COST: event.usage.cost})
        chat.over()
        self._measure_chat(chat, {c.RESPONSE_MODEL: response_model, **where}, event.usage, first)
        if chat is not self.chat or self._kit.content is None:
            self._end_chat(chat)

    @log_errors
    def not_answered(self, purpose: str, error: str, description: str | None) -> None:
        """A model call has failed."""
        chat = self.chat if purpose == "think" else None
        if chat is None:
            chat = self._chat(self._model, {c.PURPOSE: purpose})
        chat.error = error
        chat.over()
        self._measure_chat(chat, {}, None)
        self._end_chat(chat, description)

    def _measure_chat(
        self, chat: Open, about: Mapping[str, str | int], usage: Usage | None, first: float | None = None
    ) -> None:
        measures = self._kit.measures
        if measures is None:
            return
        attributes = {c.OPERATION: c.CHAT, **chat.about, **about}
        context = trace.set_span_in_context(chat.span, chat.context)
        measures.duration(chat.seconds, attributes, chat.error, context)
        if usage is not None:
            measures.tokens(usage, attributes, context)
        if first is not None:
            measures.first_chunk(first, attributes, context)

    def record_answer(self, messages: str) -> None:
        """Record the run's answer; only if content is wanted."""
        if self.chat is not None:
            self.chat.put({c.OUTPUT_MESSAGES: messages})
            self._end_chat()

    def _end_chat(self, chat: Open | None = None, description: str | None = None) -> None:
        chat = chat or self.chat
        if chat is None:
            return
        chat.close(description=description)
        if chat is self.chat:
            self.chat = None

    # -- tool calls --------------------------------------------------------------------------------------

    def begin_tool(self, call: ToolCall) -> Open:
        """A body is about to run."""
        tool = self._tool(call.name, call.id)
        self.tools.append(tool)
        return tool

    def _tool(self, name: str, call_id: str, began: int | None = None, **more: Any) -> Open:
        # A name that a model made up may be any text, and must not name a span.
        shown = name if _NAME.fullmatch(name) else c.OTHER
        about = {
            c.OPERATION: c.EXECUTE_TOOL,
            c.TOOL_NAME: shown,
            c.TOOL_TYPE: c.FUNCTION,
            c.TOOL_CALL_ID: call_id or None,
            **more,
        }
        context = otel_context.get_current()
        tool = Open(self._kit.tracer, f"{c.EXECUTE_TOOL} {shown}", context, about, self.failures, began=began)
        tool.about = (name, call_id)
        return tool

    def leave_tool(self, tool: Open, *, fine: bool) -> None:
        """End the span of a body that no event ends: at a question, or a cancellation."""
        self.tools.remove(tool)
        if fine:
            tool.put({c.INTERRUPTED: True})
        tool.close(fine=fine)

    @log_errors
    def end_tool(self, event: ToolCompleteEvent) -> None:
        """Record the end of a call; one that was refused never began."""
        tool = self._take(event.tool_name, event.call_id)
        started = tool is not None
        if tool is None:
            tool = self._tool(event.tool_name, event.call_id, **{c.STARTED: False})
        tool.over(None if event.error is None else error_type(event.error))
        content, description = self._kit.content, None
        if content is not None:
            tool.put({c.TOOL_ARGUMENTS: content.arguments(event.arguments)})
            if event.result is not None:
                tool.put({c.TOOL_RESULT: content.text(event.result)})
            description = content.text(event.error) if event.error is not None else None
        if self._kit.measures is not None and started:
            about = {c.OPERATION: c.EXECUTE_TOOL, c.TOOL_NAME: event.tool_name}
            context = trace.set_span_in_context(tool.span, tool.context)
            self._kit.measures.duration(tool.seconds, about, tool.error, context)
        tool.close(description=description)

    def _take(self, name: str, call_id: str) -> Open | None:
        """The oldest call of that name whose body has ended: ids of calls need not be unique."""
        for tool in self.tools:
            if tool.about == (name, call_id) and tool.ended:
                self.tools.remove(tool)
                return tool
        return None

    # -- the end -----------------------------------------------------------------------------------------

    def finish(self, event: TerminateEvent) -> None:
        """The segment has ended."""
        name = event.reason.partition(":")[0]
        interrupted = event.ending.is_interrupted
        if event.error is not None:
            self.run.over(error_type(event.error))
        elif event.ending.is_failure:  # without an exception: by what is wrong with the answer
            self.run.over(name)
        elif event.ending.is_cancelled:
            self.run.over(c.CANCELLED)
        self.run.over()
        self._total(event, name)
        if self._kit.measures is not None:
            self._measure_run(self._kit.measures, {c.OPERATION: c.INVOKE_AGENT, **self._model})
        self._rest(description=self._outcome(event), fine=interrupted)

    @log_errors
    def _outcome(self, event: TerminateEvent) -> str | None:
        content = self._kit.content
        if content is None:
            return None
        self.run.put({c.OUTPUT_MESSAGES: content.answer(event.final_message, None, (), "stop")})
        return content.text(event.error) if event.error is not None else None

    @log_errors
    def _measure_run(self, measures: Metrics, about: Mapping[str, str]) -> None:
        context: Context = trace.set_span_in_context(self.run.span, self.base)
        measures.duration(self.run.seconds, about, self.run.error, context)

    def _total(self, event: TerminateEvent, reason: str) -> None:
        before, usage = self._before, event.usage
        self.run.put(
            {
                c.INPUT_TOKENS: max(0, usage.prompt_tokens - before.prompt_tokens),
                c.OUTPUT_TOKENS: max(0, usage.completion_tokens - before.completion_tokens),
                c.STOP_REASON: reason,
                c.ITERATIONS: event.iterations_used,
                c.TOOL_CALLS: event.total_tool_calls,
                c.CONFIDENCE: event.final_confidence,
                c.COST: usage.cost,
            }
        )

    def _rest(self, *, description: str | None = None, fine: bool = False) -> None:
        """End what is open, the innermost first, as the run has ended."""
        error, self.ended = self.run.error, True
        for tool in self.tools:
            tool.over(error)
            tool.close(fine=fine)
        self.tools.clear()
        if self.chat is not None:
            self.chat.over(error)
            self._end_chat()
        if self.iteration is not None:
            self.iteration.over(error)
            self._leave(fine=fine)
        self.run.close(description=description, fine=fine)
