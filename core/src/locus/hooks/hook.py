"""`Hook`: the base class for a user's own hooks, and the `Stash` in which hooks keep values for one run."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
D = TypeVar("D")


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


class StashKey(Generic[T]):
    """The key of one value; make it once, at module level. Two keys are never equal."""

    __slots__ = ("name",)

    def __init__(self, name: str = "") -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"StashKey({self.name!r})"


class Stash:
    """Typed storage of plugins for one run; it lives as long as the run and is never saved."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[StashKey[Any], Any] = {}

    def __setitem__(self, key: StashKey[T], value: T) -> None:
        self._values[key] = value

    def __getitem__(self, key: StashKey[T]) -> T:
        return cast("T", self._values[key])

    def __delitem__(self, key: StashKey[T]) -> None:
        del self._values[key]

    def __contains__(self, key: StashKey[T]) -> bool:
        return key in self._values

    def get(self, key: StashKey[T], default: D) -> T | D:
        """The value, or a default."""
        return cast("T | D", self._values.get(key, default))

    def setdefault(self, key: StashKey[T], default: T) -> T:
        """The value; without one, the default is stored and returned."""
        return cast("T", self._values.setdefault(key, default))
