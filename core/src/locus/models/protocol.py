"""The Model protocol: one method, one request, one response; streaming is a callback, not another path.

`get_model` finds a model by ``"provider:model"``, where the provider is the name of a plugin.

A provider is whatever has a ``name`` and an async ``complete``. Cancelling the awaiting task must end the
call and close what it opened.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, runtime_checkable

from attrs import Attribute, field, fields

from locus.core.errors import ConfigError, PluginError
from locus.core.frozen import EMPTY, FrozenDict, fast_init, freeze, frozen
from locus.core.labels import Label
from locus.core.lazy import Lazy
from locus.core.messages import Message, ToolCall, Usage
from locus.core.protocols import has_all_of
from locus.tools.definition import ToolSpec

if TYPE_CHECKING:
    from locus.plugins import providers
    from locus.plugins.discovery import Catalogue
else:
    providers = Lazy("locus.plugins.providers")

#: Why a model stopped: it was done, asks for tools, reached the length limit, was stopped by the provider's filter, or
#: refused to answer. ``"cancelled"``: the caller cancelled the run in the middle of the answer; no provider says that.
StopReason = Literal["stop", "tool_calls", "length", "filter", "refusal", "other", "cancelled"]

#: The purpose of a model call that reads text which is not trusted.
QUARANTINED = "quarantined"

#: ``"auto"``, ``"none"``, ``"required"``, or the name of the tool that must be called.
ToolChoice = str


_STOP_REASONS = frozenset(get_args(StopReason))


def _known_stop_reason(given: StopReason) -> StopReason:
    if given not in _STOP_REASONS:
        raise ValueError(f"stop_reason must be one of {', '.join(sorted(_STOP_REASONS))}, got {given!r}")
    return given


def _must_be(what: str, is_valid: Callable[[Any], bool]) -> Callable[[Any, Attribute[Any], Any], None]:
    def check(_: Any, attribute: Attribute[Any], value: Any) -> None:
        if value is not None and (isinstance(value, bool) or not is_valid(value)):
            raise ValueError(f"{attribute.name} must be {what}, got {value!r}")

    return check


@frozen(kw_only=True)
class ModelSettings:
    """How a model is to answer; what is None is left to the provider.

    Args:
        temperature: 0.0 and up.
        max_tokens: the most tokens of one answer, 1 or more.
        tool_choice: see `ToolChoice`.
        seed: for providers that can repeat an answer.
        stop: texts that end the answer.
        extras: provider-specific settings, passed on verbatim.

    Raises:
        ValueError: a setting is not a number, or out of range.
    """

    temperature: float | None = field(
        default=None,
        validator=_must_be("a finite number, 0 or more", lambda v: isinstance(v, int | float) and 0 <= v < math.inf),
    )
    max_tokens: int | None = field(
        default=None, validator=_must_be("an integer, 1 or more", lambda v: isinstance(v, int) and v >= 1)
    )
    tool_choice: ToolChoice | None = None
    seed: int | None = field(default=None, validator=_must_be("an integer", lambda v: isinstance(v, int)))
    stop: tuple[str, ...] = ()
    extras: FrozenDict[str, Any] = field(default=EMPTY, converter=freeze)

    def over(self, weaker: ModelSettings) -> ModelSettings:
        """These settings, with what they leave open taken from ``weaker``."""
        return ModelSettings(
            temperature=weaker.temperature if self.temperature is None else self.temperature,
            max_tokens=weaker.max_tokens if self.max_tokens is None else self.max_tokens,
            tool_choice=weaker.tool_choice if self.tool_choice is None else self.tool_choice,
            seed=weaker.seed if self.seed is None else self.seed,
            stop=self.stop or weaker.stop,
            extras={**weaker.extras, **self.extras},
        )


#: What people give an agent that is for the model, and that providers name as their interfaces do.
_EXTRAS = frozenset({"frequency_penalty", "presence_penalty", "reasoning_effort", "top_k", "top_p"})


def show_setting(name: str, value: object) -> str:
    """How a setting of the model is written, for messages: ``ModelSettings(...)``; ``""`` if it is not one."""
    if name in (each.name for each in fields(ModelSettings)):
        return f"ModelSettings({name}={value!r:.60})"
    return f"ModelSettings(extras={{{name!r}: {value!r:.60}}})" if name in _EXTRAS else ""


@frozen(kw_only=True)
class OutputSpec:
    """The JSON Schema that the final answer must follow."""

    name: str
    schema: FrozenDict[str, Any] = field(converter=freeze)
    strict: bool = True


@fast_init
@frozen(kw_only=True)
class ModelRequest:
    """One model call.

    Args:
        messages: the conversation, system prompt first; what a conversation manager left of it.
        tools: the tools on offer, in a stable order.
        settings: how to answer.
        output: the schema of the final answer, or None for free text.
        deadline: seconds on the caller's monotonic clock (`anyio.current_time`) by which the call must
            end, or None.
        purpose: ``"think"``, or why a plugin asks.
        model: the model that answers. A wrapper of the call finds the run's own here, and may put another one in its
            place, ``"provider:model"`` or a `Model`; None = the run's own. Providers need not look at it.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    settings: ModelSettings = ModelSettings()
    output: OutputSpec | None = None
    deadline: float | None = None
    purpose: str = "think"
    model: Model | str | None = field(default=None, eq=False, repr=False)


@fast_init
@frozen(kw_only=True)
class ModelResponse:
    """What the model answered.

    Args:
        message: the assistant turn, verbatim: it goes back to the provider as it is.
        usage: tokens of this call.
        stop_reason: why the model stopped.
        model: the model that answered, as the provider names it.
        notes: what people should know about the call: such as what of the conversation could not be sent.
        label: whose words may be in it, of a quarantined call; None of others, whose label is the context's.
        id: what the provider calls this answer, or ``""``.
    """

    message: Message
    usage: Usage = Usage()
    # A word of a provider's own, taken as it came, would pass as an answer that is whole.
    stop_reason: StopReason = field(default="stop", converter=_known_stop_reason)
    model: str = ""
    notes: tuple[str, ...] = field(default=(), converter=tuple[str, ...])
    label: Label | None = None
    id: str = ""

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls it asks for."""
        return self.message.tool_calls


def check_quarantined(request: ModelRequest, purpose: str) -> None:
    """Refuse a request of a quarantined call that could have an effect, or be answered by any text.

    Args:
        request: what is asked.
        purpose: what for.

    Raises:
        ValueError: it has tools, or no output schema.
    """
    if purpose != QUARANTINED:
        return
    offered = [spec.name for spec in request.tools]
    if offered or request.settings.extras.get("tools"):
        raise ValueError(f"a quarantined call must have no tools, got {', '.join(offered) or 'some in extras'}")
    if request.output is None:
        raise ValueError("a quarantined call must have an output schema; set ModelRequest(output=OutputSpec(...))")


@fast_init
@frozen
class Chunk:
    """A piece of an answer as it streams.

    Args:
        text: the piece.
        kind: ``"text"``, ``"reasoning"`` or ``"tool_call"`` (JSON text of arguments).
        usage: what the provider has counted of this call by now, or None. It counts where the answer is cut off. A
            chunk without a text is not shown.
    """

    text: str
    kind: str = "text"
    usage: Usage | None = None


OnChunk = Callable[[Chunk], Awaitable[None]]


@frozen(kw_only=True)
class Price:
    """Dollars per million tokens.

    Args:
        prompt: tokens of the request that were not read from a cache.
        completion: tokens of the answer.
        cached: tokens read from a cache; None = as ``prompt``.
        cache_write: tokens written to a cache; None = as ``prompt``.
    """

    prompt: float
    completion: float
    cached: float | None = None
    cache_write: float | None = None

    def of(self, usage: Usage) -> float:
        """Dollars of one usage."""
        fresh = usage.prompt_tokens - usage.cached_tokens - usage.cache_write_tokens
        cached = self.prompt if self.cached is None else self.cached
        write = self.prompt if self.cache_write is None else self.cache_write
        return (
            fresh * self.prompt
            + usage.cached_tokens * cached
            + usage.cache_write_tokens * write
            + usage.completion_tokens * self.completion
        ) / 1_000_000


@runtime_checkable
class Model(Protocol):
    """What Think calls.

    A model may also have

    - ``address: str``, where its requests go, such as ``"https://host"``, for those who watch,
    - ``price: Price | None`` (dollars; without it ``CostLimit`` cannot work),
    - ``session() -> AbstractAsyncContextManager``: what its calls share, such as connections. A run holds one open
      while it goes on, on the event loop that makes the calls; entering it must be quick and connect to nothing, since
      a run need not ask its model. Several are open at a time, and `complete` works without one, too.
    """

    @property
    def name(self) -> str:
        """``"provider:model"``, for people and for logs."""

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        """Answer one request.

        Args:
            request: what to answer.
            on_chunk: where pieces of the answer go as they arrive, in order, each awaited; None asks for
                the whole answer only. The response is the same either way.

        Raises:
            ModelError: the call failed; it says whether it may be tried again.
        """


#: The same: what ``model=`` takes beside a name, and what `get_model` gives.
ModelProtocol = Model


def get_model(
    model: Model | str, *, catalogue: Catalogue | None = None, settings: Mapping[str, Any] | None = None
) -> Model:
    """The model behind a name; a `Model` is returned as it is.

    Args:
        model: ``"provider:model"``, or a `Model`.
        catalogue: the installed plugins; a fresh scan when None.
        settings: by plugin name: a dict of the provider's settings, or an instance of its settings class.

    Raises:
        ConfigError: the name has no provider, or is neither a name nor a model.
        UnknownName: no installed plugin provides it; the nearest one is named.
        PluginError: the plugin cannot be used.
    """
    if isinstance(model, str):
        made: Any = providers.provide("model", model, catalogue=catalogue, settings=settings or EMPTY)
        if not has_all_of(made, Model):
            raise PluginError(model.partition(":")[0], f"its factory must make a Model, got {made!r:.80}")
        found: Model = made
        return found
    if isinstance(model, type) or not has_all_of(model, Model):
        raise ConfigError(
            f"model must be 'provider:model', or an object with a name and a complete method, got {model!r:.80}"
        )
    return model
