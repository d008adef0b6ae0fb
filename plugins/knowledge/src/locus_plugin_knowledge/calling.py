"""Providers' methods, sync or async, as one kind."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable
from functools import partial
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any

from locus.tools import call_in_thread
from locus_plugin_knowledge.protocol import ItemRef

__all__ = ["call_method", "list_items"]


async def call_method(method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What a method returns; a synchronous one is called in a worker thread."""
    if iscoroutinefunction(method):
        return await method(*arguments, **named)
    if isasyncgenfunction(method):
        return method(*arguments, **named)
    return await call_in_thread(partial(method, *arguments, **named))


async def list_items(found: Any, most: int) -> list[ItemRef]:
    """The items that a provider discovered, each key once.

    Args:
        found: what `discover` returned: an iterable or an async one.
        most: how many there may be.

    Raises:
        TypeError: it is something else, or holds something else than `ItemRef`s.
        ValueError: there are more.
    """
    items: dict[str, ItemRef] = {}

    def add(item: Any) -> None:
        if not isinstance(item, ItemRef):
            raise TypeError(f"discover() must give ItemRefs, got {item!r:.80}")
        items.setdefault(item.key, item)
        if len(items) > most:
            raise ValueError(
                f"discover() found more than {most:,} items; narrow the query, or raise scan(max_items=...)"
            )

    if isinstance(found, AsyncIterable):
        async for item in found:
            add(item)
    elif isinstance(found, Iterable) and not isinstance(found, str | bytes):
        for item in found:
            add(item)
    else:
        raise TypeError(f"discover() must give an iterable of ItemRefs, got {found!r:.80}")
    return list(items.values())
