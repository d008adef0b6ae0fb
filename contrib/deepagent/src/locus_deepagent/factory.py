"""`create_deepagent`: an agent for long work, composed from plugins."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, has

from locus import Agent, ConfidenceMet, MaxIterations, TokenLimit, ToolCalled
from locus.core.errors import ConfigError, closest
from locus.models import output_schema as make_output_schema
from locus.tools import ToolRegistry
from locus_deepagent.submission import SubmissionHook, make_submit_tool
from locus_kit.tool_names import make_optional
from locus_plugin_conversation import SummarizingManager
from locus_plugin_provenance import ProvenanceSettings, ToolRule
from locus_plugin_reflexion import ReflexionSettings

if TYPE_CHECKING:
    from locus.core.termination import TerminationCondition
    from locus.models import Model, OutputSchema

__all__ = ["create_deepagent"]

#: The name that the requirement gives the tool; that no tool has it is a mistake only where one almost has.
_SUBMIT: Final = "submit_research"
_ALMOST: Final = 0.8
#: Where the parts offer their names, and which distribution has what a keyword asks for.
_PATH: Final = "locus.deepagent"
_PARTS: Final = {
    "enable_filesystem": "locus-plugin-filesystem",
    "enable_todos": "locus-plugin-todos",
    "memory_files": "locus-plugin-instructions",
    "subagents": "locus-plugin-subagents",
}
#: Keywords that may bring tools when a run begins.
_LATER: Final = frozenset({"mcp", "plugins", "config"})


def create_deepagent(
    *,
    model: Model | str,
    tools: Iterable[object],
    system_prompt: str,
    output_schema: Any = None,
    submit_tool: str = _SUBMIT,
    min_confidence: float = 0.8,
    max_tokens: int = 80_000,
    max_iterations: int = 40,
    reflexion: Any = True,
    grounding: Any = True,
    checkpointer: Any = None,
    enable_filesystem: bool = False,
    backend: Any = None,
    enable_todos: bool = False,
    todo_state: Any = None,
    memory_files: Sequence[str | os.PathLike[str]] | None = None,
    subagents: Sequence[Any] | None = None,
    summarize_after_messages: int | None = None,
    summarize_keep_recent: int = 10,
    **agent_kwargs: Any,
) -> Agent[Any, Any]:
    """An `Agent` that works until it submits an answer of which it is confident, or a limit ends it.

    It ends when `submit_tool` was called and the confidence is at least `min_confidence`; each submission is judged
    right after the call. With ``reflexion=False`` nothing sets a confidence, and the first submission ends the run. An
    answer in plain words ends it too.

    Args:
        model: ``"provider:model"`` or a `Model`.
        tools: what it may call, with the tool that submits.
        system_prompt: who it is, and what it is to submit.
        output_schema: what a submission must be, as for `Agent`; others are refused with every problem and its path.
            ``result.parsed`` is the value. Without a tool that submits, one is made of the schema.
        submit_tool: the name of the tool that submits.
        min_confidence: 0.0 to 1.0.
        max_tokens: of the run.
        max_iterations: of the run.
        reflexion: whether steps are judged, or the settings of the plugin.
        grounding: whether what it says is scored against what its tools said, or the settings of the plugin.
        checkpointer: where threads are kept, as for `Agent`.
        enable_filesystem: whether it gets the six tools for files.
        backend: where they keep files; None = in the run, or where ``filesystem`` says. Not used without
            ``enable_filesystem``.
        enable_todos: whether it gets a list of todos.
        todo_state: a list of yours; None = one of the run. Not used without ``enable_todos``.
        memory_files: files of instructions, such as ``"~/AGENTS.md"``, that come before the system prompt; one that is
            missing is left out.
        subagents: `SubAgentDef` values, to which it may give work with the tool `task`.
        summarize_after_messages: the number of messages from which older ones are summarized; None = never.
        summarize_keep_recent: how many of the newest are then kept as they are.
        agent_kwargs: further keywords of `Agent`; settings of a part, such as ``filesystem={"permissions": [...]}``, go
            with its flag. A ``termination`` is or-ed with the conditions above. ``provenance`` is on unless it is
            given: before a call reaches a target that someone other than the user may have chosen, a person is asked.

    Raises:
        ConfigError: something is misspelled, missing or contradictory; a part that a flag asks for is not installed.
    """
    schema = None if output_schema is None else make_output_schema(output_schema)
    own, note = _with_submit_tool(list(tools), submit_tool, schema, agent_kwargs)
    if enable_filesystem:
        _find("backends", "StateBackend", "enable_filesystem")
        agent_kwargs["filesystem"] = _settings_of("filesystem", agent_kwargs.get("filesystem", True), backend=backend)
    if enable_todos:
        _find("todos", "TodoState", "enable_todos")
        agent_kwargs["todos"] = _settings_of("todos", agent_kwargs.get("todos", True), state=todo_state)
    layers: list[object] = []
    if subagents:
        layers.append(_find("subagent", "task_tool", "subagents")(list(subagents), parent_model=model))
    if memory_files:
        block = _find("memory", "load_agents_md", "memory_files")(memory_files)
        system_prompt = f"{block}\n\n---\n\n{system_prompt}" if block else system_prompt
    if summarize_after_messages is not None:
        if agent_kwargs.get("conversation_manager") is not None:
            raise ConfigError("summarize_after_messages makes a conversation manager, and conversation_manager= is one")
        agent_kwargs["conversation_manager"] = SummarizingManager(
            threshold=summarize_after_messages, keep_recent=summarize_keep_recent
        )
    done: TerminationCondition = ToolCalled(submit_tool)
    if reflexion:
        done = done & ConfidenceMet(min_confidence)
        agent_kwargs["reflexion"] = _judge_submissions(reflexion, make_optional(submit_tool))
    else:
        note = note or f"reflexion is off, so nothing sets a confidence: the first {submit_tool!r} ends the run"
    condition = done | TokenLimit(max_tokens) | MaxIterations(max_iterations)
    given, guard = agent_kwargs.pop("termination", None), agent_kwargs.pop("provenance", True)
    hook = SubmissionHook(submit_tool, condition=repr(done), schema=schema, note=note, tools=layers)
    return Agent(
        model,
        tools=own,
        system_prompt=system_prompt,
        termination=condition if given is None else condition | given,
        checkpointer=checkpointer,
        hooks=[hook, *agent_kwargs.pop("hooks", ())],
        **({"grounding": grounding} if grounding else {}),
        **({} if guard in (None, False) else {"provenance": _allow(guard, submit_tool, own)}),
        **agent_kwargs,
    )


def _find(module: str, name: str, keyword: str) -> Any:
    """A name of a part, under the path where its distribution offers it.

    Raises:
        ConfigError: the distribution is not installed.
    """
    try:
        return getattr(import_module(f"{_PATH}.{module}"), name)
    except ImportError as e:
        raise ConfigError(f"{keyword} needs the distribution {_PARTS[keyword]}, which cannot be used: {e}") from e


def _settings_of(part: str, given: Any, **own: Any) -> Any:
    """The settings of a part that a flag asks for: those that its keyword of `Agent` gives, with an object of ours.

    Args:
        part: its keyword.
        given: what that keyword is; True where it is not given.
        own: the object, by the name of the setting; None = nothing.

    Raises:
        ConfigError: the part is switched off, or the object contradicts a setting.
    """
    if given is False or given is None:
        raise ConfigError(f"enable_{part}=True and {part}={given} contradict each other; leave one of them out")
    own = {name: value for name, value in own.items() if value is not None}
    if not own or not (given is True or isinstance(given, Mapping) or has(type(given))):
        return given  # the kernel says what it must be
    twice = [name for name in own if _setting(given, name) is not None]
    if twice:
        raise ConfigError(f"{part}= has a {twice[0]!r} already; leave it out there, or here")
    if given is True or isinstance(given, Mapping):
        return own if given is True else {**given, **own}
    try:
        return evolve(given, **own)
    except ValueError as e:
        raise ConfigError(f"{part}=: {e}") from e


def _setting(given: Any, name: str) -> Any:
    return given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)


def _with_submit_tool(
    tools: list[object], name: str, schema: OutputSchema[Any] | None, options: Mapping[str, Any]
) -> tuple[list[object], str]:
    """The tools with one that submits, and what is to be said of that.

    Raises:
        ConfigError: none has the name, and it was probably misspelled.
    """
    registry = ToolRegistry.of(tools)
    names, submit = registry.names, registry.get(name)
    if submit is not None:
        # What is submitted reaches the caller alone, unless the tool says that it reaches others.
        if submit.targets is None and submit.egress is None:
            tools = [evolve(submit, targets=(), egress=False) if each is submit else each for each in registry]
        return tools, ""
    if schema is not None:
        return [*tools, make_submit_tool(name, schema)], ""
    if near := closest(name, names, _ALMOST):
        raise ConfigError(f"submit_tool={name!r} names no tool; did you mean {near!r}?")
    if name != _SUBMIT and not options.keys() & _LATER:
        known = ", ".join(map(repr, names)) or "none"
        raise ConfigError(
            f"submit_tool={name!r} must be the name of a tool, got tools named: {known}; add the tool, or give an "
            "output_schema, of which one is made"
        )
    return tools, f"the agent was built without a tool {name!r}: it ends with an answer in plain words, or at a limit"


def _judge_submissions(given: Any, submit_tool: str) -> Any:
    """The settings of reflexion with which each submission is judged.

    Args:
        given: as `create_deepagent` got them.
        submit_tool: a pattern: a plugin may bring the tool, or nothing does, which the report says.
    """
    if given is True:
        return {"after": (submit_tool,)}
    if isinstance(given, Mapping) and not isinstance(given.get("after"), str):
        return {**given, "after": (*given.get("after", ()), submit_tool)}
    if isinstance(given, ReflexionSettings):
        return evolve(given, after=(*given.after, submit_tool))
    return given  # the kernel says what it must be


def _allow(given: Any, submit_tool: str, tools: list[object]) -> Any:
    """The settings of provenance, where a submission by a tool that a plugin may bring is excepted by its name."""
    if given is not True or submit_tool in ToolRegistry.of(tools).names:
        return given
    return ProvenanceSettings(tools={make_optional(submit_tool): ToolRule(mode="allow")})
