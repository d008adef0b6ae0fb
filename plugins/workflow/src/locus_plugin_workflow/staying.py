"""`Stay`: a worker stays with a step for a while, iteration after iteration, under the one claim that it has.

A hand-over through the queue costs a take, a claim, a release and the end of an offer, and a step whose iterations are
short would cost little else. While a worker stays, each iteration is what it is without that: its payload, time-out,
attempts, span and entries are its own, the one before it is stored before its handler is entered, and every write is
refused to a worker that has lost the step. Only who runs it is not asked anew. What wants to reach the step need not
wait for long: a signal, a worker that leaves, a delay, a retry or a sleep end the stay, and so does its time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import anyio
from attrs import define, field

__all__ = ["STAY", "Stay", "Waiting"]

#: Seconds for which a worker stays with a step that is an agent, unless it has another number.
STAY = 0.5


class Waiting(Protocol):
    """Something that a handler keeps open between two iterations."""

    async def leave(self) -> object:
        """End it in good order, so that any worker may go on with it."""

    async def abandon(self) -> None:
        """End it now."""


@define(eq=False)
class Stay:
    """The stay of a worker with a step.

    Args:
        seconds: how long; 0: each iteration goes through the queue.
        is_leaving: whether the worker takes no more.
    """

    seconds: float
    is_leaving: Callable[[], bool]
    #: What is open between two iterations.
    waiting: Waiting | None = None
    _is_ended: bool = False
    _until: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._until = anyio.current_time() + self.seconds

    @property
    def is_over(self) -> bool:
        """Whether the next iteration goes through the queue."""
        return self._is_ended or anyio.current_time() >= self._until or self.is_leaving()

    def end(self, *_: object) -> None:
        """Something wants to reach the step, which is read when it is taken. Safe from any thread."""
        self._is_ended = True

    async def leave(self) -> None:
        """End in good order what is open."""
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            await waiting.leave()

    async def abandon(self) -> None:
        """End what is open now."""
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            await waiting.abandon()
