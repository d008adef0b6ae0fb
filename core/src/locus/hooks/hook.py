"""`Hook`: the base class for a user's own hooks."""

from __future__ import annotations


class Hook:
    """Observe and steer a run by writing methods; every one is optional and may be sync or async.

    ``on_<event>(self, event)`` is called for each event of that kind (``on_iteration`` gets each
    `IterationEvent`), ``on_event(self, event)`` for all of them, ``on_tool_call(self, call)`` before each tool
    call. A second parameter, whatever its name, receives the run. Each returns a directive or None. A name
    that is not an event is refused when the agent is built. Methods ``locus_*`` that are marked with `hookimpl`
    work as well.

    An async method is awaited before the run goes on, for chunks too: an ``on_event`` that waits at each token slows
    the stream down. A sync method that blocks cannot be stopped: ``hook_timeout`` concerns async ones.

    Set ``guard = True`` on a hook that must not fail open: when it fails, the call it was asked about is
    rejected, and elsewhere the run is cancelled.
    """

    #: Fails closed when True.
    guard: bool = False
    #: Seconds after which an async method counts as failed, or None.
    hook_timeout: float | None = None
    #: A wrapper of the model call that must see the whole answer before chunks are shown.
    buffers: bool = False
    #: ``on_event`` is called for the chunks of an answer, too. With False it does not make the model stream.
    hears_chunks: bool = True
    #: The name in reports; the class name when empty.
    name: str = ""
