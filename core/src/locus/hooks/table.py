"""What the loop calls: for each hook a tuple of ready callables, for each event class the tuple of its listeners.

Built once per agent. Without a listener, every question is one dict look-up that finds an empty tuple.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from attrs import field

from locus.core.events import Event, ModelChunkEvent
from locus.core.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["NO_HOOKS", "PROJECT", "HookTable", "Impl", "observer_hook"]

#: What every hook's name begins with, and pluggy's project name. Permanent API: changing it would silently switch
#: off every plugin.
PROJECT = "locus"


def observer_hook(event_type: str) -> str:
    """The name of the hook that gets one kind of event, by the event's `type` tag."""
    return f"{PROJECT}_on_{event_type}"


_ANY_EVENT = observer_hook("event")


@frozen(kw_only=True, eq=False)
class Impl:
    """One implementation of one hook, ready to be called. Two are never equal.

    Args:
        call: takes all arguments of the hook by position, whichever of them the implementation names.
        plugin: the plugin's name, or the hook's that was passed in code.
        hook: the hook's name.
        guard: it fails closed.
        is_async: ``call`` returns an awaitable.
        timeout: seconds after which an async call counts as failed.
        buffers: as a wrapper of the model call it must see the whole answer before chunks are shown.
        hears_chunks: as a listener of every event it is called for the chunks of an answer, too.
        order: its place among all implementations of all hooks.
    """

    call: Callable[..., Any]
    plugin: str
    hook: str
    guard: bool = False
    is_async: bool = False
    timeout: float | None = None
    buffers: bool = False
    hears_chunks: bool = True
    order: tuple[int, int, int] = (0, 0, 0)


class _Listeners(dict[type[Event], tuple[Impl, ...]]):
    """Observers by event class; an entry is worked out when it is first asked for."""

    __slots__ = ("_hooks",)

    def __init__(self, hooks: Mapping[str, tuple[Impl, ...]]) -> None:
        super().__init__()
        self._hooks = hooks

    def __missing__(self, event_type: type[Event]) -> tuple[Impl, ...]:
        general = self._hooks.get(_ANY_EVENT, ())
        if event_type is ModelChunkEvent:
            general = tuple(impl for impl in general if impl.hears_chunks)
        own = observer_hook(event_type.type)
        specific = self._hooks.get(own, ()) if own != _ANY_EVENT else ()
        # The sort is stable: of one hook, the method for the event's own kind comes first.
        found = tuple(sorted((*specific, *general), key=attrgetter("order")))
        self[event_type] = found
        return found


@frozen(eq=False)
class HookTable:
    """The compiled hooks of one agent; safe to share between all its runs.

    Args:
        hooks: implementations by hook name, in the order in which they are called.
        prices: sources of prices of model calls, each contributed through ``locus_register_prices``.
    """

    hooks: Mapping[str, tuple[Impl, ...]] = field(factory=dict)
    prices: tuple[Impl, ...] = ()
    #: The listeners of an event, by its class: ``table.listeners[type(event)]`` is one look-up.
    listeners: Mapping[type[Event], tuple[Impl, ...]] = field(init=False, repr=False)
    #: A wrapper of the model call must see the whole answer before chunks are shown.
    buffers: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "listeners", _Listeners(self.hooks))
        wrappers = self.hooks.get("locus_wrap_model_call", ())
        object.__setattr__(self, "buffers", any(impl.buffers for impl in wrappers))

    def observers(self, event_type: type[Event]) -> tuple[Impl, ...]:
        """The listeners of events of this class: its own hook and `locus_on_event`, merged in order."""
        return self.listeners[event_type]

    def impls(self, hook: str) -> tuple[Impl, ...]:
        """The implementations of one hook, in the order in which they are called."""
        return self.hooks.get(hook, ())


#: The table of an agent without hooks.
NO_HOOKS = HookTable()
