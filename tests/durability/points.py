"""The points of a run where its process may die, fall asleep or be overtaken: counted, so that each has its turn."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from threading import Lock
from typing import Literal

from locus_testkit import SimulatedCrash

__all__ = ["How", "Points"]

#: ``"die"``: raise `SimulatedCrash` here and at every later point. ``"kill"``: SIGKILL to this very process.
#: ``"stop"``: SIGSTOP. ``"stall"``: let something else happen meanwhile, then go on as if nothing had.
How = Literal["die", "kill", "stop", "stall"]


#: Whoever is overtaken here has nothing that could be taken from him: he begins a turn of his own.
_UNCLAIMED = ("peek: before", "claim: before")


class Points:
    """Counts the points that a process passes.

    Args:
        at: the number of the point where something happens, from 1; 0 = nowhere.
        how: what happens there.
        stall: what happens there while this process sleeps.
    """

    def __init__(self, at: int = 0, how: How = "die", stall: Callable[[], None] | None = None) -> None:
        self.at, self.how, self._stall = at, how, stall
        self.count, self.dead = 0, False
        #: The name of the point where it happened; "" until then.
        self.hit = ""
        #: The names of the points that were passed.
        self.names: set[str] = set()
        #: Told of the point before it happens, because afterwards may be too late.
        self.told: Callable[[str], None] | None = None
        self._lock = Lock()

    def _due(self, name: str) -> bool:
        with self._lock:
            if self.dead:
                raise SimulatedCrash
            if self.how == "stall" and name in _UNCLAIMED:
                return False
            self.count += 1
            self.names.add(name)
            if self.count != self.at:
                return False
            self.hit = name
        if self.told is not None:
            self.told(name)
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if self.how == "die":
            self.dead = True
            raise SimulatedCrash
        return True

    def alive(self) -> None:
        """Raise `SimulatedCrash` where the process is dead: the dead have no effects."""
        if self.dead:
            raise SimulatedCrash

    def here(self, name: str) -> None:
        """A point where a lock may be held: nothing stalls here, so a stalling plan does not count it."""
        if self.how != "stall":
            self._due(name)

    def reach(self, name: str) -> None:
        """A point where this process may also sleep so long that it is overtaken: it holds no lock here."""
        if self._due(name) and self._stall is not None:
            self._stall()
