"""The breakers of one kind, by name: made when a name is first met; their changes are emitted as events."""

from __future__ import annotations

from threading import Lock

from locus.plugin import RunContext
from locus_plugin_retry.breaker import Breaker
from locus_plugin_retry.events import CircuitBreakerEvent
from locus_plugin_retry.settings import BreakerSettings

__all__ = ["Breakers"]


class Breakers:
    """The circuit breakers of models, of tools, or of the loop.

    Args:
        kind: ``"model"``, ``"tool"`` or ``"loop"``.
        settings: of each; None = no breakers: everything is admitted.
    """

    def __init__(self, kind: str, settings: BreakerSettings | None) -> None:
        self.kind, self.settings = kind, settings
        self._breakers: dict[str, Breaker] = {}
        self._lock = Lock()

    def admit(self, name: str, run: RunContext) -> int | None:
        """What a call says when it is over, or None: it must not begin."""
        breaker = self._of(name)
        return 0 if breaker is None else breaker.admit(run.clock.monotonic())

    def era(self, name: str) -> int:
        """What a call that was admitted elsewhere says when it is over."""
        breaker = self._of(name)
        return 0 if breaker is None else breaker.era

    def seconds_left(self, name: str, run: RunContext) -> float:
        """Seconds until a call is admitted again; 0.0 when one is."""
        breaker = self._of(name)
        return 0.0 if breaker is None else breaker.seconds_left(run.clock.monotonic())

    async def record(self, name: str, era: int, run: RunContext, *, ok: bool) -> None:
        """A call is over; tells when that opened or closed the breaker."""
        breaker = self._of(name)
        if breaker is None or not breaker.record(era, run.clock.monotonic(), ok=ok):
            return
        cooldown = 0.0 if ok else breaker.settings.cooldown
        await run.emit(CircuitBreakerEvent(kind=self.kind, name=name, is_open=not ok, cooldown=cooldown))

    def _of(self, name: str) -> Breaker | None:
        if self.settings is None:
            return None
        breaker = self._breakers.get(name)
        if breaker is None:
            with self._lock:
                breaker = self._breakers.setdefault(name, Breaker(self.settings))
        return breaker
