"""The keywords of `Agent`, ``run`` and ``resume``: each declared, documented and checked here and nowhere else.

A new keyword of `Agent` is a parameter and a field in this module, and then a field of `AgentOptions` wherever it is
used; nothing in between passes it on by name. A mistake in a value is reported where it was made, in the call, and
not in the middle of a run. Type checkers report most of them; these checks are for everybody else, so they know the
mistakes that people make and say what was probably meant.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar

from attrs import Attribute, field, fields

from locus.core.errors import ConfigError, InputError, UnknownName
from locus.core.frozen import frozen
from locus.core.lazy import Lazy
from locus.tools.call_run import CallLimits

if TYPE_CHECKING:
    from datetime import datetime

    # With defaults, ``Agent(...)`` needs no annotation; Python 3.13 has them at run time too.
    from typing_extensions import TypeVar as DefaultTypeVar

    from locus.config import Config
    from locus.core import messages
    from locus.core.termination import TerminationCondition
    from locus.hooks.context import ConversationManager
    from locus.journal.effects import Clock, Effects
    from locus.journal.store import JournalStore
    from locus.models import protocol
    from locus.models.output import OutputSchema
    from locus.models.protocol import Model, ModelSettings
    from locus.plugins.discovery import Catalogue
    from locus.plugins.manifest import Plugin

    Deps = DefaultTypeVar("Deps", default=Any)
    Out = DefaultTypeVar("Out", default=Any)
else:
    messages = Lazy("locus.core.messages")
    protocol = Lazy("locus.models.protocol")
    Deps = TypeVar("Deps")
    Out = TypeVar("Out")

Check = Callable[[Any, "Attribute[Any]", Any], None]


# -- checks ------------------------------------------------------------------------------------------


def _must_be(what: str, is_valid: Callable[[Any], bool]) -> Check:
    def check(_: Any, attribute: Attribute[Any], value: Any) -> None:
        if not is_valid(value):
            raise ConfigError(f"{attribute.name} must be {what}, got {value!r:.80}")

    return check


def _has(*methods: str) -> Callable[[Any], bool]:
    """Whether a value is None, or has these methods."""
    return lambda value: value is None or all(callable(getattr(value, name, None)) for name in methods)


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _check_settings(_: Any, __: Any, value: Any) -> None:
    if value is not None and not isinstance(value, protocol.ModelSettings):
        meant = ", ".join(f"{key}={each!r}" for key, each in value.items()) if isinstance(value, dict) else "..."
        raise ConfigError(
            f"model_settings must be a ModelSettings, got {value!r:.80}; write ModelSettings({meant:.80})"
        )


def _check_names(_: Any, attribute: Attribute[Any], value: Any) -> None:
    if isinstance(value, str):  # an iterable of strings: each of its letters would be a name
        raise ConfigError(f"{attribute.name} must be a collection of names, got {value!r}; write [{value!r}]")


def _check_faults(_: Any, attribute: Attribute[Any], value: Any) -> None:
    _check_names(_, attribute, value)
    for name in value:
        if name not in messages.ANSWER_FAULTS:
            raise UnknownName("stop reason in retry_on", name, messages.ANSWER_FAULTS)


def _check_not_settings(_: Any, __: Any, value: Mapping[str, Any]) -> None:
    for name, given in value.items():
        if meant := protocol.show_setting(name, given):
            raise ConfigError(f"{name} is a setting of the model; write Agent(..., model_settings={meant})")


def _check_metadata(_: Any, __: Any, value: Any) -> None:
    if value is not None and not isinstance(value, Mapping):
        raise InputError(f"metadata must be a mapping from names to data, got {value!r:.80}")


_optional_text = _must_be("a str", lambda value: value is None or isinstance(value, str))


_optional_name = _must_be(
    "a str that is not empty", lambda value: value is None or (isinstance(value, str) and value != "")
)


_optional_count = _must_be("an integer of at least 1, or None", lambda value: value is None or _is_count(value, 1))
_optional_seconds = _must_be(
    "a number of seconds greater than 0, or None",
    lambda value: value is None or (type(value) in (int, float) and value > 0),
)


class _Count(int):
    """A default, which can be told from an equal number that is given."""

    __slots__ = ()


_PER_TURN, _AT_ONCE = _Count(128), _Count(16)
#: Seconds. A float is an object of its own, too.
_SECONDS = float("600")


# -- an agent ----------------------------------------------------------------------------------------


@frozen(kw_only=True)
class AgentOptions:
    """What an agent is built from; the fields are the keywords of `Agent`.

    Raises:
        ConfigError: a value of the wrong kind or out of range, with the keyword and what it takes.
    """

    model: str | Model | None = None
    tools: Iterable[object] = ()
    system_prompt: str | None = field(default=None, validator=_optional_text)
    name: str | None = field(default=None, validator=_optional_text)
    version: str | None = field(default=None, validator=_optional_text)
    termination: TerminationCondition | None = None
    max_iterations: int | None = None
    stop_on_text: bool = True
    terminal_tools: Collection[str] | None = field(default=(), validator=_check_names)
    token_budget: int | None = None
    confidence_threshold: float = field(
        default=0.8,
        validator=_must_be(
            "a number from 0.0 to 1.0", lambda value: isinstance(value, int | float) and 0.0 <= value <= 1.0
        ),
    )
    tool_loop_threshold: int = 3
    tool_execution: str = field(
        default="concurrent",
        validator=_must_be("'concurrent' or 'sequential'", lambda value: value in ("concurrent", "sequential")),
    )
    max_tool_calls_per_turn: int | None = field(default=_PER_TURN, validator=_optional_count)
    max_concurrent_tools: int | None = field(default=_AT_ONCE, validator=_optional_count)
    max_depth: int = field(
        default=16,
        validator=_must_be("an integer from 0 to 32", lambda value: _is_count(value, 0) and value <= 32),
    )
    model_timeout: float | None = field(default=_SECONDS, validator=_optional_seconds)
    tool_timeout: float | None = field(default=None, validator=_optional_seconds)
    max_revisions: int = field(
        default=2, validator=_must_be("an integer of at least 0", lambda value: _is_count(value, 0))
    )
    retry_on: Iterable[str] = field(default=(), validator=_check_faults)
    output_schema: Any = None
    model_settings: ModelSettings | None = field(default=None, validator=_check_settings)
    conversation_manager: ConversationManager | None = field(
        default=None, validator=_must_be("an object with `async view(state, run)`", _has("view"))
    )
    checkpointer: JournalStore | str | os.PathLike[str] | None = None
    hooks: Sequence[object] = field(
        default=(), validator=_must_be("a list of Hook objects", lambda value: isinstance(value, Iterable))
    )
    plugins: Sequence[str | Plugin] = field(default=(), validator=_check_names)
    config: Config | None = field(
        default=None, validator=_must_be("what locus.config.load_config(path) returns", _has("plugin_request"))
    )
    catalogue: Catalogue | None = None
    clock: Clock | None = None
    effects: Effects | None = field(
        default=None, validator=_must_be("an object with `run`, `now` and `new_id`", _has("run", "now", "new_id"))
    )
    #: What the kernel does not know by itself: names of plugins, and keywords that their manifests declare.
    plugin_keywords: Mapping[str, Any] = field(factory=dict, validator=_check_not_settings)

    def limit_calls(self, configured: Mapping[str, Any]) -> CallLimits:
        """The limits of calls.

        Args:
            configured: values to use instead of the defaults, by keyword.
        """

        def chosen(name: str) -> Any:
            value = getattr(self, name)
            return configured.get(name, value) if value is getattr(_DEFAULTS, name).default else value

        return CallLimits(
            per_turn=chosen("max_tool_calls_per_turn"),
            at_once=1 if self.tool_execution == "sequential" else chosen("max_concurrent_tools"),
            tool_seconds=chosen("tool_timeout"),
            model_seconds=chosen("model_timeout"),
            levels=self.max_depth,
        )

    @classmethod
    def keywords(cls) -> tuple[str, ...]:
        """The keywords that the kernel knows; for the nearest one to an unknown keyword."""
        return tuple(each.name for each in fields(cls) if each.name != "plugin_keywords")


_DEFAULTS = fields(AgentOptions)


class AgentKeywords(Generic[Deps, Out]):
    """The base of `Agent` that declares its keywords."""

    __slots__ = ()

    def __init__(
        self,
        model: str | Model | None = None,
        *,
        tools: Iterable[object] = (),
        system_prompt: str | None = None,
        name: str | None = None,
        version: str | None = None,
        termination: TerminationCondition | None = None,
        max_iterations: int | None = None,
        stop_on_text: bool = True,
        terminal_tools: Collection[str] | None = (),
        token_budget: int | None = None,
        confidence_threshold: float = 0.8,
        tool_loop_threshold: int = 3,
        tool_execution: Literal["concurrent", "sequential"] = "concurrent",
        max_tool_calls_per_turn: int | None = _PER_TURN,
        max_concurrent_tools: int | None = _AT_ONCE,
        max_depth: int = 16,
        model_timeout: float | None = _SECONDS,
        tool_timeout: float | None = None,
        max_revisions: int = 2,
        retry_on: Iterable[str] = (),
        output_schema: type[Out] | OutputSchema[Out] | Mapping[str, Any] | None = None,
        model_settings: ModelSettings | None = None,
        conversation_manager: ConversationManager | None = None,
        checkpointer: JournalStore | str | os.PathLike[str] | None = None,
        hooks: Sequence[object] = (),
        plugins: Sequence[str | Plugin] = (),
        config: Config | None = None,
        catalogue: Catalogue | None = None,
        clock: Clock | None = None,
        effects: Effects | None = None,
        **options: Any,
    ) -> None:
        """Build an agent.

        Args:
            model: ``"provider:model"`` or a `Model`; taken from ``config`` when left out.
            tools: functions, `Tool` values, or objects whose methods are tools.
            system_prompt: the instructions that precede the conversation.
            name: a stable name, ``state.agent_id``.
            version: of the agent, recorded with what is submitted to it and with the runs that it begins of that.
            termination: when to stop; or-ed with ``max_iterations``, ``terminal_tools`` and ``NoToolCalls``.
            max_iterations: short for ``MaxIterations(n)``: exactly n model calls at most.
            stop_on_text: False lets the agent go on after an answer without tool calls.
            terminal_tools: names of tools whose successful call ends the run.
            token_budget: what ``TokenLimit()`` compares with; when given, that condition is or-ed in.
            confidence_threshold: what ``ConfidenceMet()`` compares with, 0.0 to 1.0.
            tool_loop_threshold: how many identical consecutive calls make a loop.
            tool_execution: ``"concurrent"``, or ``"sequential"``: one after another.
            max_tool_calls_per_turn: how many calls of one turn are made; the others get an error result. None = all.
            max_concurrent_tools: how many bodies may be under way at once; None = all of a turn.
            max_depth: how many levels of child runs there may be below a run of it, 0 to 32; 0 = no children.
            model_timeout: seconds that one attempt at the model may take, streaming included; None = any time.
            tool_timeout: seconds that a body may take whose tool has no timeout of its own; None = any time.
            max_revisions: how often reviewers and the output schema may send a run's answers back.
            retry_on: what sends an answer back to the model, once in a run, in place of ending it: ``"Truncated"``,
                ``"ContentFiltered"``, ``"Refused"``, ``"EmptyAnswer"``, ``"OutputInvalid"``.
            output_schema: the type of the final answer; ``result.parsed`` has it.
            model_settings: how the model is to answer.
            conversation_manager: keeps long conversations inside the model's window.
            checkpointer: where journals are kept: a `JournalStore`, ``"scheme:rest"`` of a plugin, or a path whose
                suffix an installed plugin takes. Without one a journal lives as long as its `AgentResult`.
            hooks: `Hook` objects, or objects with `hookimpl` methods.
            plugins: names of installed plugins, or manifests.
            config: settings read by `locus.config.load_config`; the library reads no file by itself.
            catalogue: the plugins to choose from, in place of the installed ones; for tests.
            clock: the source of time, for tests.
            effects: where model calls and tools take place, and the times and ids that are recorded: an engine's
                durable steps; None = in this process.
            options: a plugin's name (``True``, or its settings as a dict or object), or a keyword that a plugin's
                manifest declares.

        Raises:
            ConfigError: something is misspelled, missing or contradictory.
            PluginError: a plugin that was asked for cannot be used.
        """
        given = locals()
        self._build(AgentOptions(**{name: given[name] for name in AgentOptions.keywords()}, plugin_keywords=options))

    def _build(self, options: AgentOptions) -> None:
        raise NotImplementedError


# -- a run -------------------------------------------------------------------------------------------


class _Keywords(TypedDict, Generic[Deps], total=False):
    deps: Deps | None
    model_settings: ModelSettings | None
    termination: TerminationCondition | None


class RunKeywords(_Keywords[Deps], total=False):
    """The keywords of ``run`` and ``run_sync``; ``output_schema`` is declared there, because it decides the type."""

    thread_id: str | None
    request_id: str | None
    metadata: Mapping[str, Any] | None


class ResumeKeywords(_Keywords[Deps], total=False):
    """The keywords of ``resume``, beside ``output_schema``."""

    max_attempts: int | None
    yield_after: int | None


class SubmitKeywords(TypedDict, total=False):
    """The keywords of ``submit``."""

    thread_id: str | None
    request_id: str | None
    metadata: Mapping[str, Any] | None
    queue: str | None
    priority: Literal[0, 1, 2]
    not_before: datetime | None
    max_depth: int | None
    pin: bool


@frozen(kw_only=True)
class RunOptions:
    """What one call of ``run`` or ``resume`` says beside its prompt or its thread; the fields are their keywords.

    Raises:
        ConfigError: a value of the wrong kind or out of range.
        InputError: the metadata is not a mapping.
    """

    deps: Any = None
    model_settings: ModelSettings | None = field(default=None, validator=_check_settings)
    output_schema: Any = None
    termination: TerminationCondition | None = None
    thread_id: str | None = None
    request_id: str | None = field(default=None, validator=_optional_name)
    metadata: Mapping[str, Any] | None = field(default=None, validator=_check_metadata)
    max_attempts: int | None = field(
        default=None,
        validator=_must_be(
            "an integer of at least 1, or None for no limit", lambda value: value is None or _is_count(value, 1)
        ),
    )

    yield_after: int | None = field(default=None, validator=_optional_count)

    def __attrs_post_init__(self) -> None:
        if self.request_id is not None and self.thread_id is None:
            raise ConfigError(f"request_id={self.request_id!r} names a turn of a thread; give the run its thread_id")


@frozen(kw_only=True)
class SubmitOptions:
    """What one call of ``submit`` says beside its prompt; the fields are its keywords.

    Raises:
        ConfigError: a value of the wrong kind or out of range.
        InputError: the metadata is not a mapping.
    """

    thread_id: str | None = None
    request_id: str | None = field(default=None, validator=_optional_name)
    metadata: Mapping[str, Any] | None = field(default=None, validator=_check_metadata)
    queue: str | None = field(default=None, validator=_optional_name)
    priority: int = field(default=0, validator=_must_be("0, 1 or 2", lambda value: value in (0, 1, 2)))
    not_before: datetime | None = field(
        default=None,
        validator=_must_be(
            "a datetime with a time zone", lambda value: value is None or getattr(value, "tzinfo", None) is not None
        ),
    )
    max_depth: int | None = field(default=None, validator=_optional_count)
    pin: bool = field(default=False, validator=_must_be("True or False", lambda value: type(value) is bool))
