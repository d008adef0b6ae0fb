"""What the loop calls: for each hook a tuple of ready callables, for each event class the tuple of its listeners.

Built once per agent; `HookHealth` is made once per run, and counts what failed in it. Without a listener, every
question is one dict look-up that finds an empty tuple.
"""

from __future__ import annotations

import sys
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from attrs import evolve, field

from locus.core.events import Event, HookFailedEvent, ModelChunkEvent
from locus.core.frozen import frozen
from locus.core.lazy import Lazy
from locus.plugins.report import HookFailure

if TYPE_CHECKING:
    import traceback
    from collections.abc import Awaitable, Callable, Collection, Mapping
else:
    traceback = Lazy("traceback")

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
        is_inherited: it holds in the children of a run as well.
        is_from_above: it holds in this run because it does in the run above; its session brings no tools here.
        source: the object that it is a method of, or the module.
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
    is_inherited: bool = False
    is_from_above: bool = False
    source: object = None
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

    def with_guards_of(self, above: HookTable, without: Collection[str]) -> HookTable:
        """The hooks of a child of another run: the guards and deciders of that hold here as well, before its own.

        Args:
            above: the hooks of the run above, with those that it has from further above.
            without: the names of those that do not hold. An object that is a guard of both is called once.
        """
        merged = dict(self.hooks)
        for hook, impls in above.hooks.items():
            mine = self.hooks.get(hook, ())
            guards = tuple(
                evolve(impl, is_from_above=True)
                for impl in impls
                if impl.is_inherited
                and impl.plugin not in without
                and all(impl.source is not own.source for own in mine)
            )
            if guards:
                merged[hook] = (*guards, *mine)
        return self if merged == self.hooks else HookTable(merged, self.prices)

    def with_listener(self, name: str, hear: Callable[[Event], None], *, hears_chunks: bool = False) -> HookTable:
        """The same hooks, with a function that hears every event; in the children of a run as well."""
        impl = Impl(
            call=lambda event, run: hear(event),
            plugin=name,
            hook=_ANY_EVENT,
            is_inherited=True,
            source=hear,
            hears_chunks=hears_chunks,
            order=(sys.maxsize, 0, 0),
        )
        return HookTable({**self.hooks, _ANY_EVENT: (*self.impls(_ANY_EVENT), impl)}, self.prices)

    def impls(self, hook: str) -> tuple[Impl, ...]:
        """The implementations of one hook, in the order in which they are called."""
        return self.hooks.get(hook, ())


#: The table of an agent without hooks.
NO_HOOKS = HookTable()

#: After this many failures in a run an isolated hook is not called again.
STRIKES = 3


class HookHealth:
    """What failed in one run, and which hooks are not called any more because of it.

    Made by the loop, which passes it to every function of `locus.hooks.dispatch`.

    Args:
        emit: emits the event of a failure; None keeps failures to the report.
    """

    __slots__ = ("_emit", "_failures", "quarantined")

    def __init__(self, emit: Callable[[HookFailedEvent], Awaitable[object]] | None = None) -> None:
        self._emit = emit
        self._failures: dict[Impl, HookFailure] = {}
        #: Implementations that are not called again in this run.
        self.quarantined: frozenset[Impl] = frozenset()

    @property
    def failures(self) -> tuple[HookFailure, ...]:
        """One entry for each hook that failed, in the order of the first failures."""
        return tuple(self._failures.values())

    def record(self, impl: Impl, error: BaseException, *, isolated: bool) -> HookFailedEvent:
        """Count a failure.

        Args:
            impl: what failed.
            error: what it raised; gets a note that names the plugin and the hook.
            isolated: the run goes on as if it had not been called, so it is quarantined in the end. Guards
                are not, nor is what fails closed.

        Returns:
            The event to emit, see `emit`.
        """
        error.add_note(f"in hook {impl.hook} of plugin {impl.plugin!r}")
        known = self._failures.get(impl)
        count = 1 if known is None else known.count + 1
        quarantined = isolated and not impl.guard and count >= STRIKES
        text = f"{type(error).__name__}: {error}"
        self._failures[impl] = HookFailure(
            plugin=impl.plugin,
            hook=impl.hook,
            error=text if known is None else known.error,
            count=count,
            quarantined=quarantined,
            trace="".join(traceback.format_exception(error)) if known is None else known.trace,
        )
        if quarantined:
            self.quarantined |= {impl}
        return HookFailedEvent(plugin=impl.plugin, hook=impl.hook, error=text, quarantined=quarantined)

    async def emit(self, failed: list[HookFailedEvent] | None) -> None:
        """Emit what was recorded, oldest first."""
        if failed and self._emit is not None:
            for event in failed:
                await self._emit(event)
