"""A state machine for journal stores: any order of claims, appends, snapshots, releases, forks and restarts.

The contract tests the laws one by one; this finds unforeseen orders of calls. What is right is decided by
a model of the store that is too simple to be wrong: a list of entries a thread, and who may write.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import pytest
from anyio.from_thread import start_blocking_portal
from attrs import define, field
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.strategies import DataObject

from locus.core.errors import ThreadBusy
from locus.core.journal import BLANK, Body, Transition, delta, fold
from locus.core.state import AgentState
from locus.journal import Appended, Claim, JournalStore
from locus_testkit.contracts._samples import NOON, fold_claim, steps_since, texts
from locus_testkit.contracts.store import StoreFeatures
from locus_testkit.strategies import grown_states, states, step_bodies

__all__ = ["JournalStoreMachine"]

_NAMES = ("a", "b", "c")
_THREADS = st.sampled_from(_NAMES)


@define
class _ExpectedThread:
    """What a thread must hold."""

    bodies: list[Body] = field(factory=list)
    writers: list[str] = field(factory=list)
    holder: Claim | None = None
    due: bool = False

    def accept(self, bodies: list[Body]) -> None:
        assert self.holder is not None
        self.bodies += bodies
        self.writers += [self.holder.token] * len(bodies)

    @property
    def state(self) -> AgentState:
        return fold(BLANK, self.bodies)

    @property
    def last_transition(self) -> int:
        """Number of the newest transition, or 0."""
        return max((n for n, body in enumerate(self.bodies, 1) if isinstance(body, Transition)), default=0)


class JournalStoreMachine(RuleBasedStateMachine):
    """Subclass it, say how a store is made, and let pytest find its ``TestCase``.

    Example::

        class Machine(JournalStoreMachine):
            features = StoreFeatures(persistent=True)

            def make_store(self, folder):
                return MyStore(folder / "runs.db")

        TestMyStore = Machine.TestCase
    """

    features: ClassVar[StoreFeatures] = StoreFeatures()
    #: Where the store runs.
    backend: ClassVar[str] = "asyncio"

    def make_store(self, folder: Path) -> JournalStore | Awaitable[JournalStore]:
        """A handle on the store of this run; see `JournalStoreContract.make_store`."""
        raise NotImplementedError(f"{type(self).__name__} needs make_store(self, folder), which gives a journal store")

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        self._portal = self._stack.enter_context(start_blocking_portal(self.backend))
        self._expected: dict[str, _ExpectedThread] = {}
        self._stale: list[Claim] = []
        self._tokens: set[str] = set()
        try:
            self._store = self._open()
        except BaseException:
            self._stack.close()
            raise

    def _open(self) -> JournalStore:
        async def make() -> JournalStore:
            made = self.make_store(self._folder)
            return await made if inspect.isawaitable(made) else made

        return self._portal.call(make)

    def _close(self) -> None:
        close = getattr(self._store, "aclose", None)
        if close is not None:
            self._portal.call(close)

    def _held_threads(self) -> list[str]:
        return [thread for thread, expected in self._expected.items() if expected.holder is not None]

    def _draw_held(self, data: DataObject) -> _ExpectedThread:
        return self._expected[data.draw(st.sampled_from(self._held_threads()))]

    def _forkable(self) -> list[str]:
        if not self.features.forks or not self._store.keeps_history or len(self._expected) == len(_NAMES):
            return []
        return [thread for thread, expected in self._expected.items() if expected.bodies]

    def _do(self, method: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        return self._portal.call(method, *arguments)

    def teardown(self) -> None:
        """Close the store and forget it."""
        self._close()
        self._stack.close()

    # -- what may happen --------------------------------------------------------------------------

    @rule(thread=_THREADS)
    def claim(self, thread: str) -> None:
        """Claim a thread, or get the error that names its holder."""
        expected = self._expected.setdefault(thread, _ExpectedThread())
        if expected.holder is not None:
            with pytest.raises(ThreadBusy):
                self._do(self._store.claim, thread, "another")
            return
        claim: Claim = self._do(self._store.claim, thread, "worker")
        assert claim.token not in self._tokens
        assert claim.head == len(expected.bodies)
        assert fold_claim(claim) == expected.state
        assert steps_since(claim) == expected.bodies[expected.last_transition :]
        self._tokens.add(claim.token)
        expected.holder = claim

    @precondition(lambda self: self._held_threads())
    @rule(steps=st.lists(step_bodies(), min_size=1, max_size=3), data=st.data())
    def append(self, steps: list[Body], data: DataObject) -> None:
        """Record what happens in a node."""
        expected = self._draw_held(data)
        assert self._do(self._store.append, expected.holder, steps) is Appended.OK
        expected.accept(steps)

    @precondition(lambda self: self._held_threads())
    @rule(data=st.data())
    def commit(self, data: DataObject) -> None:
        """Make a transition, the way the loop does with such a store."""
        expected = self._draw_held(data)
        old = expected.state
        new = data.draw(states() if old is BLANK else grown_states(st.just(old), max_steps=2))
        body = Transition(run_id="run", node="think", next_node="think", delta=delta(old, new))
        if self._store.keeps_history:
            assert self._do(self._store.append, expected.holder, [body]) is Appended.OK
        else:
            assert self._do(self._store.snapshot, expected.holder, len(expected.bodies) + 1, new, body) is True
        expected.accept([body])

    @precondition(lambda self: self._stale)
    @rule(data=st.data())
    def append_too_late(self, data: DataObject) -> None:
        """A worker that lost its thread, and does not know it, tries to write."""
        claim = data.draw(st.sampled_from(self._stale))
        assert self._do(self._store.append, claim, texts(2)) is Appended.FENCED
        assert self._do(self._store.renew, claim) is False
        self._do(self._store.release, claim, NOON)

    @precondition(lambda self: self._held_threads())
    @rule(data=st.data())
    def snapshot(self, data: DataObject) -> None:
        """Cache the fold up to the newest transition."""
        expected = self._draw_held(data)
        at = expected.last_transition
        if at and self._store.keeps_history:
            last = expected.bodies[at - 1]
            self._do(self._store.snapshot, expected.holder, at, fold(BLANK, expected.bodies[:at]), last)

    @precondition(lambda self: self._held_threads())
    @rule(due=st.booleans(), data=st.data())
    def release(self, due: bool, data: DataObject) -> None:  # noqa: FBT001  # hypothesis calls it by name
        """Give a thread back, wanting to go on at noon or not."""
        expected = self._draw_held(data)
        assert expected.holder is not None
        self._do(self._store.release, expected.holder, NOON if due else None)
        self._stale.append(expected.holder)
        expected.holder, expected.due = None, due

    @precondition(lambda self: self._forkable())
    @rule(more=st.lists(step_bodies(), max_size=2), data=st.data())
    def fork(self, more: list[Body], data: DataObject) -> None:
        """Let a new thread begin as another one did, whatever either does next."""
        origin = data.draw(st.sampled_from(self._forkable()))
        into = next(name for name in _NAMES if name not in self._expected)
        expected = self._expected[origin]
        at = data.draw(st.integers(1, len(expected.bodies)))
        self._do(self._store.fork, origin, at, into, more)
        own = [entry.writer for entry in self._do(self._store.read, into, at)]
        self._expected[into] = _ExpectedThread([*expected.bodies[:at], *more], [*expected.writers[:at], *own])

    @rule(thread=_THREADS)
    def delete(self, thread: str) -> None:
        """Delete a thread that is not held."""
        expected = self._expected.get(thread)
        if not self.features.delete or (expected is not None and expected.holder is not None):
            return
        assert self._do(self._store.delete, thread) is (expected is not None)
        self._expected.pop(thread, None)

    @rule()
    def reopen(self) -> None:
        """Close the place and open it again, while no thread is held."""
        busy = any(expected.holder is not None for expected in self._expected.values())
        if self.features.persistent and not busy:
            self._close()
            self._store = self._open()

    # -- what must hold ---------------------------------------------------------------------------

    @invariant()
    def journals_are_as_expected(self) -> None:
        """Reading gives what was accepted, chained, and nothing else."""
        if not self._store.keeps_history:
            return
        for thread, expected in self._expected.items():
            entries = self._do(self._store.read, thread)
            assert [entry.body for entry in entries] == expected.bodies
            assert [entry.writer for entry in entries] == expected.writers
            assert [entry.n for entry in entries] == list(range(1, len(entries) + 1))
            assert [entry.parent for entry in entries] == ["", *(entry.id for entry in entries)][: len(entries)]

    @invariant()
    def only_waiting_threads_are_ready(self) -> None:
        """`next_ready` offers a free thread whose time has come, if any."""
        waiting = {t for t, expected in self._expected.items() if expected.due and expected.holder is None}
        found = self._do(self._store.next_ready, NOON)
        assert (found in waiting) if waiting else (found is None)
