"""What a model was asked: made again by the agent where one is known, and from the record where none is.

A journal has a model's answer, and of the request a digest: the model's name, how many messages there were, and hashes
of the system prompt, the tools, the settings and the schema. The messages are those of the state before the call, or
what a conversation manager remembers to have shown of them. What cannot be known is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import fields, frozen

from locus.core.errors import JournalError, LocusError
from locus.core.fingerprint import bare, parts_of
from locus.core.journal import ModelFailed, Outcome, Transition
from locus.core.messages import Message, Role, TextBlock, ThinkingBlock, ToolCall, ToolResult, text_of
from locus.core.state import AgentState
from locus.models import ModelRequest, ModelSettings
from locus.plugin import Lazy
from locus_plugin_viewer.journal import find_boundary, read_after, read_some
from locus_plugin_viewer.text import cut, pretty
from locus_plugin_viewer.viewer import Viewer

__all__ = ["ShownMessage", "ShownRequest", "ShownTool", "read_request"]

_timetravel: Any = Lazy("locus.timetravel")
_conversation: Any = Lazy("locus.memory.conversation")

#: Messages of a request that are shown: its newest ones, and a system prompt.
_MESSAGES = 40


@frozen(kw_only=True)
class ShownMessage:
    """A message: its role, text, and the calls, results and other blocks in it, as text."""

    role: str
    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    results: tuple[tuple[str, str, bool], ...] = ()
    others: tuple[str, ...] = ()


@frozen(kw_only=True)
class ShownTool:
    """A tool that was offered: what the model read of it."""

    name: str
    description: str
    parameters: str


@frozen(kw_only=True)
class ShownRequest:
    """A request, with what is known of where each part of it comes from.

    Args:
        source: where the messages come from, in a sentence.
        warnings: in what it may differ from what was sent.
        messages: the newest of them, and the system prompt.
        left_out: how many are not shown here.
        tools: what was offered; None where it is not known.
        facts: a name and what is known, for the rest.
    """

    source: str
    warnings: tuple[str, ...] = ()
    messages: tuple[ShownMessage, ...] = ()
    left_out: int = 0
    tools: tuple[ShownTool, ...] | None = None
    facts: tuple[tuple[str, str], ...] = ()


async def read_request(viewer: Viewer, thread_id: str, n: int) -> ShownRequest:
    """What the model was asked whose answer, or failure, is an entry of a thread.

    Raises:
        JournalError: the thread has no such entry, or that is not of a model call.
    """
    found = await read_some(viewer.store, thread_id, n - 1, 1)
    body = found[0].body if found else None
    is_answer = isinstance(body, Outcome) and getattr(body.value, "response", None) is not None
    if not isinstance(body, Outcome | ModelFailed) or not (is_answer or isinstance(body, ModelFailed)):
        raise JournalError(f"thread {thread_id!r} has no model call as its entry {n}")
    boundary = await find_boundary(viewer.store, thread_id, n - 1)
    before = await viewer.states.at(thread_id, boundary)
    warnings: list[str] = []
    agent = viewer.agent
    if agent is not None and agent.name == before.agent_id:
        try:
            made = await _timetravel.model_requests(viewer.source, thread_id, n, before=before)
        except Exception as e:  # noqa: BLE001 - the agent is a program of its own
            warnings.append(f"The agent could not make it again: {type(e).__name__}: {e}")
        else:
            rebuilt = next((each for each in made if each.step_id == body.step_id), None)
            if rebuilt is not None:
                return _show_rebuilt(rebuilt, body.digest)
            warnings.append("The code of today does not ask this here.")
    if body.step_id.purpose:
        return _show_plugins(body, warnings)
    after = await _state_after(viewer, thread_id, boundary, before)
    return _show_recorded(before, after, body.digest, warnings)


async def _state_after(viewer: Viewer, thread_id: str, boundary: int, before: AgentState) -> AgentState:
    entries = await read_after(viewer.store, thread_id, boundary)
    end = next((entry.n for entry in entries if isinstance(entry.body, Transition)), None)
    return before if end is None else await viewer.states.at(thread_id, end)


# -- made again -----------------------------------------------------------------------------------


def _show_rebuilt(rebuilt: Any, digest: str) -> ShownRequest:
    request: ModelRequest = rebuilt.request
    source = "Made again by the agent's code of today"
    source += "." if rebuilt.changed else "; all that the record has of the request is the same."
    warnings = []
    if rebuilt.changed:
        what = ", ".join(rebuilt.changed)
        warnings.append(f"Not as on record: {what}. The agent was changed since, or its run was called with others.")
    if rebuilt.wrapped_by:
        names = ", ".join(rebuilt.wrapped_by)
        warnings.append(f"It went through wrappers of model calls, which may have sent another one: {names}.")
    output = request.output
    facts = [
        ("Model", bare(digest).rpartition(":")[0]),
        ("Settings", _settings(request)),
        ("Output schema", "none" if output is None else cut(pretty(output.schema), 4_000)),
    ]
    shown, left_out = _select(request.messages)
    tools = tuple(
        ShownTool(
            name=each.name, description=cut(each.description, 2_000), parameters=cut(pretty(each.parameters), 4_000)
        )
        for each in request.tools
    )
    return ShownRequest(
        source=source, warnings=tuple(warnings), messages=shown, left_out=left_out, tools=tools, facts=tuple(facts)
    )


def _settings(request: ModelRequest) -> str:
    every = {each.name: getattr(request.settings, each.name) for each in fields(ModelSettings)}
    given = {name: value for name, value in every.items() if value is not None and value != () and value != {}}
    return pretty(given) if given else "none"


# -- from the record ------------------------------------------------------------------------------


def _show_plugins(body: Outcome | ModelFailed, warnings: Sequence[str]) -> ShownRequest:
    model, _, count = bare(body.digest).rpartition(":")
    source = (
        f"A plugin's request for {body.step_id.purpose!r}, of {_count(count)}. The record has a hash of it, and not "
        "its text; `locus view FILE:AGENT` can show it where the code asks it again."
    )
    return ShownRequest(source=source, warnings=tuple(warnings), facts=(("Model", model),))


def _show_recorded(before: AgentState, after: AgentState, digest: str, warnings: Sequence[str]) -> ShownRequest:
    model, _, count = bare(digest).rpartition(":")
    messages, source = _find_messages(before, after, count)
    shown, left_out = _select(messages)
    parts = parts_of(digest)
    facts = [("Model", model)]
    for letter, name, known in (
        ("t", "Tools", "offered"),
        ("s", "Settings", "given"),
        ("o", "Output schema", "given"),
    ):
        if parts is None:
            facts.append((name, "not on record"))
        elif letter in parts:
            where = "; `locus view FILE:AGENT` shows them" if letter != "o" else "; `locus view FILE:AGENT` shows it"
            facts.append((name, f"{known}, of which the record has a hash, {parts[letter]}{where}"))
        else:
            facts.append((name, "none"))
    hint = "Wrappers of model calls, which some plugins have, may have sent another one."
    return ShownRequest(
        source=source, warnings=(*warnings, hint), messages=shown, left_out=left_out, facts=tuple(facts)
    )


def _find_messages(before: AgentState, after: AgentState, count: str) -> tuple[Sequence[Message], str]:
    """The messages that were sent, as far as the record says, and how it is known."""
    whole, sent = before.messages, _count(count)
    try:
        views = _conversation.recorded_views(whole, after.metadata)
    except LocusError:  # the plugin is not installed
        views = ()
    view = next((each for each in views if str(len(each)) == count), None)
    if view is not None:
        said = f"that a conversation manager has shown, of {len(whole):,} in the state before the call"
        return view, f"From the record: the {sent} {said}."
    if str(len(whole)) == count:
        return whole, f"From the record: the {sent} of the state before the call."
    was = "was" if count == "1" else "were"
    here = f"Which ones it does not say; here is the state before the call, of {len(whole):,}."
    return whole, f"The record says that {sent} {was} sent. {here}"


def _count(count: str) -> str:
    return f"{count} message" if count == "1" else f"{count} messages"


# -- messages -------------------------------------------------------------------------------------


def _select(messages: Sequence[Message]) -> tuple[tuple[ShownMessage, ...], int]:
    newest = tuple(messages[-_MESSAGES:])
    first = messages[: max(0, len(messages) - _MESSAGES)][:1]
    system = tuple(message for message in first if message.role is Role.SYSTEM)
    return tuple(_show(each) for each in (*system, *newest)), len(messages) - len(newest) - len(system)


def _show(message: Message) -> ShownMessage:
    usual = TextBlock | ThinkingBlock | ToolCall | ToolResult
    return ShownMessage(
        role=message.role.value,
        text=cut(message.text),
        calls=tuple((call.name, cut(pretty(call.arguments), 2_000)) for call in message.tool_calls),
        results=tuple((result.name, cut(text_of(result.content)), result.is_error) for result in message.tool_results),
        others=tuple(type(block).__name__ for block in message.content if not isinstance(block, usual)),
    )
