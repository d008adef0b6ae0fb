"""An operation: what a task asks of the worker's thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from locus_kit.waiters import Waiter
    from locus_plugin_sqlite.session import Session

__all__ = ["Operation"]

T = TypeVar("T")


class Operation(Generic[T]):
    """Prepared before the transaction, applied in it, finished after it; applied again when the transaction fails.

    `apply` raises an error of Locus before it has changed anything, or not at all.
    """

    __slots__ = ("atomic", "error", "result", "waiter")

    #: Whether it changes the file. One that does not is answered without one, by `result` as it was made.
    writes = True
    #: Whether it takes part in a transaction with others.
    grouped = True
    #: Whether a power cut after it must not take it back, where the store promises that.
    durable = True

    def __init__(self, result: T) -> None:
        self.result = result
        self.error: BaseException | None = None
        self.waiter: Waiter | None = None
        #: Whether, alone, it needs no transaction: it writes with one statement at most.
        self.atomic = False

    def join(self, other: Operation[Any]) -> bool:
        """Do what another operation asks for as well, if that is the same; the other one is left alone then."""
        return False

    def prepare(self) -> None:
        """What needs no file: it must not hold others up while they wait to write."""

    def apply(self, session: Session) -> None:
        """Read and write."""
        raise NotImplementedError

    def squeeze(self, session: Session) -> None:
        """Do it where the disk was full; what fails with an error of SQLite is undone."""
        session.copy_log()  # then the log begins anew, in the room that it has
        with session.transaction(writes=self.writes, durable=self.durable):
            self.apply(session)

    def finish(self, session: Session) -> None:
        """What is done once it is committed, and must not keep a transaction open."""

    def on_failure(self, session: Session) -> None:
        """What is done where it could not be: `error` says why."""
