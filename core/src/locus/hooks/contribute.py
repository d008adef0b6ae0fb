"""What plugins contribute through ``locus_register_...``: collected once, checked, with its provenance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from locus.core.errors import HookSpecError
from locus.core.events import Event, register_event
from locus.core.frozen import frozen
from locus.hooks.table import Impl

__all__ = ["Contribution", "Contributions", "contributed_by"]

# `Hook.on_event` hears everything and `Hook.on_tool_call` decides: an event of that name could not be heard.
_RESERVED = frozenset({"event", "tool_call"})


@frozen
class Contribution:
    """One contributed value and who contributed it."""

    plugin: str
    value: Any


@frozen(kw_only=True)
class Contributions:
    """All that the plugins of one agent contribute, in the order of the plugins.

    Args:
        tools: made with `locus.tools.definition`.
        events: event classes; they are registered already.
        conditions: classes of termination conditions.
        reflect_policies: pure functions ``(state) -> str | None``, or-ed into the router.
        prices: functions ``(model, answered, usage, at) -> dollars | None``.
    """

    tools: tuple[Contribution, ...] = ()
    events: tuple[Contribution, ...] = ()
    conditions: tuple[Contribution, ...] = ()
    reflect_policies: tuple[Contribution, ...] = ()
    prices: tuple[Contribution, ...] = ()


def contributed_by(impl: Impl) -> tuple[Contribution, ...]:
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
    check = _CHECKS.get(impl.hook)
    for value in values:
        if check is not None:
            check(impl, value)
    return tuple(Contribution(impl.plugin, value) for value in values)


def _values(impl: Impl, returned: Any) -> tuple[Any, ...]:
    if returned is None:
        return ()
    if not isinstance(returned, Iterable) or isinstance(returned, str | bytes | Mapping):
        if hasattr(returned, "close"):  # a coroutine that nobody awaits would warn
            returned.close()
        raise HookSpecError(impl.plugin, f"{impl.hook} returned {returned!r:.80}; return a list, or None")
    return tuple(returned)


def _event(impl: Impl, value: Any) -> None:
    if not (isinstance(value, type) and issubclass(value, Event)):
        raise HookSpecError(impl.plugin, f"{impl.hook} returned {value!r:.80}; return classes derived from Event")
    try:
        register_event(value)
    except ValueError as e:
        raise HookSpecError(impl.plugin, f"{impl.hook}: {e}; name the class otherwise") from e
    if value.type in _RESERVED:
        raise HookSpecError(impl.plugin, f"{impl.hook}: the event type {value.type!r} is reserved; rename the class")


def _condition(impl: Impl, value: Any) -> None:
    if not isinstance(value, type):
        raise HookSpecError(impl.plugin, f"{impl.hook} returned {value!r:.80}; return classes of conditions")


def _policy(impl: Impl, value: Any) -> None:
    if not callable(value) or isinstance(value, type):
        raise HookSpecError(impl.plugin, f"{impl.hook} returned {value!r:.80}; return functions (state) -> str | None")


def _price(impl: Impl, value: Any) -> None:
    if not callable(value) or isinstance(value, type):
        raise HookSpecError(
            impl.plugin,
            f"{impl.hook} returned {value!r:.80}; return functions (model, answered, usage, at) -> float | None",
        )


_CHECKS: dict[str, Callable[[Impl, Any], None]] = {
    "locus_register_events": _event,
    "locus_register_conditions": _condition,
    "locus_register_reflect_policies": _policy,
    "locus_register_prices": _price,
}
