"""What reaches a run from outside: signals to its thread, and what a store finds out about its claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus.core.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from locus.core.journal import Answered, Cancelled, Submitted


@frozen(kw_only=True)
class Signal:
    """Something that is to reach a run, whichever process it is in.

    Args:
        body: what is asked for. `Cancelled`: the run is to end; with a ``run_id``, no other run than that.
            `Answered`: a person's answer; an ``interrupt_id`` ``""`` means the one question that is open.
            `Submitted`: the next turn of the thread.
        id: a name for it: a thread is sent each signal of a name once.
        n: its number in the thread, from 1, which the store gives it.
    """

    body: Cancelled | Answered | Submitted
    id: str
    n: int = 0


class Watch:
    """What a store finds out about a claim between two calls. Safe to use from any thread.

    The store calls `lose` when its timer, or a write that it refuses, shows that another claim was made since, and
    `signal` for each signal to the thread. The run that holds the claim sets `on_lost` and `on_signal`.
    """

    __slots__ = ("_signals", "is_lost", "on_lost", "on_signal")

    def __init__(self) -> None:
        self.is_lost = False
        self.on_lost: Callable[[], object] | None = None
        self.on_signal: Callable[[Signal], object] | None = None

    def lose(self) -> None:
        """The claim is lost."""
        self.is_lost = True
        if self.on_lost is not None:
            self.on_lost()

    def signal(self, signal: Signal) -> None:
        """There is a signal; the same one may be shown more than once."""
        if self.on_signal is not None:
            self.on_signal(signal)
