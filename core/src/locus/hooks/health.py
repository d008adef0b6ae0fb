"""What failed in one run, and which hooks are not called any more because of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from locus.core.events import HookFailedEvent
from locus.core.lazy import Lazy
from locus.plugins.report import HookFailure

if TYPE_CHECKING:
    import traceback

    from locus.hooks.table import Impl
else:
    traceback = Lazy("traceback")

__all__ = ["STRIKES", "HookHealth"]

#: After this many failures in a run an isolated hook is not called again.
STRIKES = 3

Emit = Callable[[HookFailedEvent], Awaitable[object]]


class HookHealth:
    """The failures of one run; made by the loop, which passes it to every function of `locus.hooks.dispatch`.

    Args:
        emit: emits the event of a failure; None keeps failures to the report.
    """

    __slots__ = ("_emit", "_failures", "quarantined")

    def __init__(self, emit: Emit | None = None) -> None:
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
