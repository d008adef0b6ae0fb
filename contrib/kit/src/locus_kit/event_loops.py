"""`new_event_loop`: an event loop of asyncio, the fastest one that is installed."""

from __future__ import annotations

import asyncio

try:
    import uvloop
except ImportError:  # Windows and PyPy do not have it, and a plugin that does not need it does not bring it
    uvloop = None  # type: ignore[assignment]

__all__ = ["new_event_loop"]


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop of uvloop, whose turns cost about half, or of asyncio where that is not installed."""
    return asyncio.new_event_loop() if uvloop is None else uvloop.new_event_loop()
