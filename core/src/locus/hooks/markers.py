"""The two pluggy markers, and the life of a hook: since when it exists, and when it goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pluggy

from locus.core.frozen import frozen
from locus.hooks.table import PROJECT

F = TypeVar("F", bound=Callable[..., Any])

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@frozen(kw_only=True)
class Lifetime:
    """Versions of the plugin API in the life of one hook, each ``(major, minor)``.

    Args:
        since: the first version that has it.
        deprecated_in: implementing it warns from this version on, or None.
        removed_in: the version without it, or None while that is not decided.
        instead: what to implement in its place.
    """

    since: tuple[int, int]
    deprecated_in: tuple[int, int] | None = None
    removed_in: tuple[int, int] | None = None
    instead: str = ""

    def warning(self, hook: str) -> DeprecationWarning | None:
        """What pluggy shows to the implementer of a hook that is going away."""
        if self.deprecated_in is None:
            return None
        gone = "a later version" if self.removed_in is None else "{}.{}".format(*self.removed_in)
        text = "{} is deprecated since plugin API {}.{} and goes with {}".format(hook, *self.deprecated_in, gone)
        return DeprecationWarning(f"{text}; use {self.instead}" if self.instead else text)


def spec(lifetime: Lifetime) -> Callable[[F], F]:
    """Mark a function as the specification of a hook with that life."""

    def mark(function: F) -> F:
        function.locus_lifetime = lifetime  # type: ignore[attr-defined]
        marked: F = hookspec(function, warn_on_impl=lifetime.warning(function.__name__))
        return marked

    return mark
