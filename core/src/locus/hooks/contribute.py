"""What plugins contribute through ``locus_register_...``: collected once, checked, with its provenance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from locus.core.errors import HookSpecError
from locus.core.events import Event, register_event
from locus.core.frozen import frozen
from locus.hooks.table import Impl

__all__ = ["EVENTS", "Contribution", "collect_from"]

#: The hook that is asked before the others: these may be about the events that it registers.
EVENTS = "locus_register_events"

# `Hook.on_event` hears everything and `Hook.on_tool_call` decides: an event of that name could not be heard.
_RESERVED = frozenset({"event", "tool_call"})


@frozen
class Contribution:
    """One contributed value and who contributed it."""

    plugin: str
    value: Any


def collect_from(impl: Impl) -> tuple[Contribution, ...]:
    """What one implementation of a ``locus_register_...`` hook contributes.

    Raises:
        HookSpecError: it raised, or returned what was not asked for.
    """
    try:
        returned = impl.call()
        values = _values(impl, returned)
    except HookSpecError:
        raise
    except Exception as e:
        raise HookSpecError(impl.plugin, f"{impl.hook} raised {type(e).__name__}: {e}") from e
    fits, expected = _EXPECTED.get(impl.hook, (_is_anything, ""))
    for value in values:
        if not fits(value):
            raise HookSpecError(impl.plugin, f"{impl.hook} returned {value!r:.80}; return {expected}")
        if impl.hook == EVENTS:
            _register(impl, value)
    return tuple(Contribution(impl.plugin, value) for value in values)


def _values(impl: Impl, returned: Any) -> tuple[Any, ...]:
    if returned is None:
        return ()
    if not isinstance(returned, Iterable) or isinstance(returned, str | bytes | Mapping):
        if hasattr(returned, "close"):  # a coroutine that is not awaited would warn
            returned.close()
        raise HookSpecError(impl.plugin, f"{impl.hook} returned {returned!r:.80}; return a list, or None")
    return tuple(returned)


def _register(impl: Impl, event_type: type[Event]) -> None:
    try:
        register_event(event_type)
    except ValueError as e:
        raise HookSpecError(impl.plugin, f"{impl.hook}: {e}; name the class otherwise") from e
    if event_type.type in _RESERVED:
        raise HookSpecError(
            impl.plugin, f"{impl.hook}: the event type {event_type.type!r} is reserved; rename the class"
        )


def _is_anything(value: object) -> bool:
    return True


def _is_event(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Event)


def _is_class(value: object) -> bool:
    return isinstance(value, type)


def _is_function(value: object) -> bool:
    return callable(value) and not isinstance(value, type)


_EXPECTED: dict[str, tuple[Callable[[object], bool], str]] = {
    EVENTS: (_is_event, "classes derived from Event"),
    "locus_register_conditions": (_is_class, "classes of conditions"),
    "locus_register_reflect_policies": (_is_function, "functions (state) -> str | None"),
    "locus_register_prices": (_is_function, "functions (model, answered, usage, at) -> float | None"),
}
