"""One connection: requests that fail as soon as it is lost, and the words of JetStream's API.

nats-py has an API of JetStream too; it lacks batched direct gets, and a request of its own waits for its whole time-out
when the connection is lost.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import nats
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from locus_kit.entry_json import from_bytes
from locus_plugin_nats.address import Address
from locus_plugin_nats.errors import NatsRefused, NatsUnreachable, StreamFull
from locus_plugin_nats.settings import NatsSettings

__all__ = ["ApiError", "ConnectionLost", "Wire", "decode_header"]

#: Seconds that a connection gets to end in good order.
_FAREWELL = 2.0

#: Seconds between two attempts to connect, and for one answer before it is asked for again.
_PAUSE, _ANSWER = 0.1, 2.0

#: Errors of JetStream that mean that the server has no room, or that a limit is reached.
_FULL = {10002, 10023, 10028, 10047, 10077}

#: JetStream is not ready, as it is not for a moment after a start or while a leader is elected.
_NOT_READY = {10008, 10009}

_SUBJECT_SEQUENCE = {10071, 10164}


class ConnectionLost(Exception):
    """The connection was lost, or no answer came: whether what was asked for happened is not known."""


class ApiError(Exception):
    """JetStream refused a request.

    Args:
        code: JetStream's number of the error.
        text: its description.
    """

    def __init__(self, code: int, text: str) -> None:
        self.code, self.text = code, text
        super().__init__(f"{text} ({code})")

    @property
    def is_conflict(self) -> bool:
        """Whether another message was stored first."""
        return self.code in _SUBJECT_SEQUENCE

    @property
    def is_missing(self) -> bool:
        """Whether the message or the stream does not exist."""
        return self.code in (10037, 10059)

    @property
    def is_passing(self) -> bool:
        """Whether the same may succeed in a moment."""
        return self.code in _NOT_READY


class Wire:
    """A connection that is made when it is first needed, and again when it was lost. Belongs to one event loop."""

    def __init__(self, address: Address, settings: NatsSettings, on_return: Callable[[], None]) -> None:
        self.address, self.settings = address, settings
        self._on_return = on_return
        self._client: Client | None = None
        self._is_up = asyncio.Event()
        self._error: Exception | None = None
        self._inbox = ""
        self._numbers = itertools.count(1)
        #: What waits for answers: number -> what takes them. None says that the connection was lost.
        self._waiting: dict[str, Callable[[Msg | None], None]] = {}
        self._connecting = asyncio.Lock()

    # -- the connection ---------------------------------------------------------------------------

    @property
    def max_payload(self) -> int:
        """Bytes that a message may have, headers included."""
        return 1024 * 1024 if self._client is None else self._client.max_payload

    @property
    def version(self) -> str:
        """The server's version."""
        return "" if self._client is None else str(self._client.connected_server_version)

    @property
    def has_jetstream(self) -> bool:
        """Whether the server says that it has JetStream."""
        info = {} if self._client is None else self._client._server_info  # noqa: SLF001 - nats-py shows no more of it
        return bool(info.get("jetstream"))

    async def up(self, deadline: float) -> Client:
        """The client, connected.

        Raises:
            NatsUnreachable: it was not by that time.
        """
        client = self._client
        if client is not None and client.is_connected:
            return client
        try:
            async with asyncio.timeout_at(deadline - time.monotonic() + asyncio.get_running_loop().time()):
                async with self._connecting:
                    if self._client is None:
                        self._client = await self._connect()
                await self._is_up.wait()
        except (TimeoutError, nats.errors.Error, OSError) as e:
            raise self.unreachable(e) from None
        return self._client

    async def _connect(self) -> Client:
        client = Client()
        attempt = asyncio.ensure_future(
            client.connect(
                **self.address.options(self.settings),
                name="locus",
                max_reconnect_attempts=-1,
                reconnect_time_wait=_PAUSE,  # type: ignore[arg-type]  # seconds, and nats-py only adds them up
                connect_timeout=2,
                ping_interval=5,
                max_outstanding_pings=2,
                pending_size=0,
                error_cb=self._on_error,
                disconnected_cb=self._on_disconnect,
                reconnected_cb=self._on_reconnect,
            )
        )
        try:
            # nats-py tries for ever, and wrong credentials do not become right.
            while not attempt.done():
                await asyncio.wait((attempt,), timeout=_PAUSE)
                if self._error is not None and _is_refusal(self._error):
                    raise self._error
            await attempt
        except BaseException:
            attempt.cancel()
            # A handshake of TLS that broke off may never end, so nothing here waits for it without a limit.
            await _wait_briefly(attempt, asyncio.ensure_future(client.close()))
            raise
        self._inbox = client.new_inbox()
        await client.subscribe(f"{self._inbox}.*", cb=self._take)
        self._error = None
        self._is_up.set()
        return client

    def unreachable(self, error: BaseException | None = None) -> NatsUnreachable:
        """The error for a server that does not answer."""
        cause = self._error or error
        if cause is not None and _is_refusal(cause):
            return NatsRefused(
                str(self.address),
                "the server does not accept the credentials; give those of [plugins.nats] (user and password, token, "
                "creds or nkey) that it knows",
            )
        why = type(cause).__name__ if cause is not None and not isinstance(cause, TimeoutError) else "no answer"
        return NatsUnreachable(
            str(self.address),
            f"not reachable for {self.settings.patience:g} s ({why}); start the server (`locus nats dev` starts one "
            "here) or correct the address. What was committed is kept, so a run can be resumed then",
        )

    async def _on_error(self, error: Exception) -> None:
        self._error = error

    async def _on_disconnect(self) -> None:
        self._is_up.clear()
        for take in tuple(self._waiting.values()):
            take(None)
        self._waiting.clear()

    async def _on_reconnect(self) -> None:
        self._error = None
        self._on_return()
        self._is_up.set()

    async def close(self) -> None:
        """End the connection."""
        client, self._client = self._client, None
        if client is not None:
            await _wait_briefly(asyncio.ensure_future(client.close()))
        await self._on_disconnect()

    async def tell(self, subject: str) -> None:
        """Publish without storing; it may be lost."""
        client = self._client
        with contextlib.suppress(nats.errors.Error, OSError):
            if client is not None and client.is_connected:
                await client.publish(subject)

    async def listen(self, subject: str, hear: Callable[[Msg], Awaitable[None]]) -> None:
        """Hear of what is published from now on, as long as the connection holds; what is missed is not said again.

        Raises:
            NatsUnreachable: the server does not answer.
        """
        client = await self.up(time.monotonic() + self.settings.patience)
        try:
            await client.subscribe(subject, cb=hear)
        except (nats.errors.Error, OSError) as e:
            raise self.unreachable(e) from None

    # -- asking -----------------------------------------------------------------------------------

    async def _take(self, message: Msg) -> None:
        take = self._waiting.get(message.subject.rsplit(".", 1)[1])
        if take is not None:
            take(message)

    async def _send(
        self, subject: str, payload: bytes, headers: dict[str, str] | None, take: Callable[[Msg | None], None]
    ) -> str:
        client = self._client
        if client is None or not client.is_connected:
            raise ConnectionLost
        number = str(next(self._numbers))
        self._waiting[number] = take
        try:
            await client.publish(subject, payload, f"{self._inbox}.{number}", headers)
        except nats.errors.MaxPayloadError:
            del self._waiting[number]
            raise
        except (nats.errors.Error, OSError) as e:
            self._waiting.pop(number, None)
            raise ConnectionLost from e
        return number

    async def ask(
        self, subject: str, payload: bytes, headers: dict[str, str] | None = None, within: float = _ANSWER
    ) -> Msg:
        """One answer.

        Raises:
            ConnectionLost: none came.
        """
        answer: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()

        def take(message: Msg | None) -> None:
            if answer.done():
                return
            if message is None:
                answer.set_exception(ConnectionLost())
            else:
                answer.set_result(message)

        number = await self._send(subject, payload, headers, take)
        timer = asyncio.get_running_loop().call_later(within, take, None)
        try:
            return await answer
        finally:
            timer.cancel()
            self._waiting.pop(number, None)

    async def ask_many(
        self, subject: str, payload: bytes, is_last: Callable[[Msg], bool], *, own_inbox: bool = False
    ) -> list[Msg]:
        """The answers up to the last one.

        Args:
            subject: what is asked.
            payload: the request.
            is_last: whether an answer is the last one.
            own_inbox: for the messages of a consumer, which keep the subjects they were stored under.

        Raises:
            ConnectionLost: one of them did not come.
        """
        arrived: asyncio.Queue[Msg | None] = asyncio.Queue()
        async with (
            self._make_inbox(subject, payload, arrived) if own_inbox else self._use_inbox(subject, payload, arrived)
        ):
            found: list[Msg] = []
            while not found or not is_last(found[-1]):
                try:
                    async with asyncio.timeout(_ANSWER):
                        message = await arrived.get()
                except TimeoutError:
                    message = None
                if message is None:
                    raise ConnectionLost
                found.append(message)
            return found

    @contextlib.asynccontextmanager
    async def _use_inbox(self, subject: str, payload: bytes, into: asyncio.Queue[Msg | None]) -> AsyncIterator[None]:
        number = await self._send(subject, payload, None, into.put_nowait)
        try:
            yield
        finally:
            self._waiting.pop(number, None)

    @contextlib.asynccontextmanager
    async def _make_inbox(self, subject: str, payload: bytes, into: asyncio.Queue[Msg | None]) -> AsyncIterator[None]:
        client = self._client
        if client is None or not client.is_connected:
            raise ConnectionLost
        inbox, number = client.new_inbox(), str(next(self._numbers))
        try:
            subscription = await client.subscribe(inbox, cb=into.put)
            self._waiting[number] = into.put_nowait
            await client.publish(subject, payload, inbox)
        except (nats.errors.Error, OSError) as e:
            self._waiting.pop(number, None)
            raise ConnectionLost from e
        try:
            yield
        finally:
            self._waiting.pop(number, None)
            with contextlib.suppress(nats.errors.Error, OSError):
                await subscription.unsubscribe()

    async def publish(self, subject: str, payload: bytes, headers: dict[str, str] | None = None) -> int:
        """Store one message; gives its sequence.

        Raises:
            ConnectionLost: it is not known whether it was stored.
            ApiError: it was not.
        """
        return int(_parse(await self.ask(subject, payload, headers))["seq"])

    async def api(self, word: str, **arguments: Any) -> Mapping[str, Any]:
        """One request of JetStream's API, asked again while the server is not ready, and until it was patient.

        Raises:
            ApiError: it was refused.
            NatsUnreachable: no answer came.
        """
        deadline = time.monotonic() + self.settings.patience
        payload = json.dumps(arguments).encode() if arguments else b""
        while True:
            await self.up(deadline)
            try:
                return _parse(await self.ask(f"$JS.API.{word}", payload))
            except ConnectionLost:
                last: Exception | None = None
            except ApiError as e:
                if not e.is_passing:
                    raise
                last = e
            if time.monotonic() >= deadline:
                raise self.unreachable(last)
            await asyncio.sleep(_PAUSE)

    def full(self, error: ApiError) -> StreamFull | None:
        """The error for a server without room, where that is what it said."""
        if error.code not in _FULL:
            return None
        return StreamFull(
            str(self.address),
            f"no room: {error.text}. Nothing was written. Forget ended threads (`locus threads prune`), or raise the "
            "limit of the stream or the server's max_file_store; then resume the run",
        )


async def _wait_briefly(*tasks: asyncio.Future[Any]) -> None:
    """Let them end, and say nothing of how they did; a task that goes on is left alone."""
    ended, _ = await asyncio.wait(tasks, timeout=_FAREWELL)
    for each in ended:
        if not each.cancelled():
            each.exception()  # asyncio logs an exception that was never looked at


def _is_refusal(error: BaseException) -> bool:
    """Whether the server does not accept the credentials: nats-py has a class for some of the cases."""
    said = str(error).lower()
    return isinstance(error, nats.errors.AuthorizationError) or "authorization" in said or "authentication" in said


def _parse(message: Msg) -> dict[str, Any]:
    """The JSON of an answer.

    Raises:
        ApiError: it says what went wrong.
    """
    if message.headers and message.headers.get("Status") == "503":
        raise ApiError(10008, "JetStream does not answer")
    found: dict[str, Any] = from_bytes(message.data)
    error = found.get("error")
    if error is not None:
        raise ApiError(int(error.get("err_code", 0)), str(error.get("description", error.get("code", ""))))
    return found


def decode_header(text: str) -> dict[str, str]:
    """The headers of a stored message, as the API gives them: base64 of the lines of the protocol."""
    lines = base64.b64decode(text).decode("ascii", "replace").split("\r\n")[1:]
    return dict(line.split(": ", 1) for line in lines if ": " in line)
