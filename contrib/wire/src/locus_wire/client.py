"""`Client`: requests to one provider, each within its deadline, each failure one typed error.

It follows no redirect and sends a key to no other host. A cancelled call closes its connection.
"""

from __future__ import annotations

import base64
import inspect
import re
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import anyio
import httpx2
from attrs import evolve, field, frozen

from locus.core import EMPTY, FrozenDict, freeze
from locus.core.errors import ConfigError, ModelError
from locus_wire.bodies import json_value
from locus_wire.encodings import CutOff
from locus_wire.errors import ConnectionLost, TooLate, Unreachable
from locus_wire.failures import bad_answer, drop_secrets, read_error, request_id, shorten, status_error, stream_error
from locus_wire.headers import find_header_fault
from locus_wire.keys import Key, hide_secrets
from locus_wire.pools import Pools, Session
from locus_wire.replies import LARGEST_ANSWER, LARGEST_ERROR, Body, headers_of, open_body
from locus_wire.streams import (
    ErrorInAnswer,
    Event,
    JsonLines,
    Malformed,
    ServerSentEvents,
    Stream,
    TooLarge,
    check_shape,
)

__all__ = ["Client", "Endpoint", "Outgoing", "Sign", "Take"]

T = TypeVar("T")

#: Seconds that the rest of a stream gets after its last event, so that its connection can be used again.
_LINGER = 0.5

#: Text long enough to be a token, anywhere: signatures contain a session's token in the middle.
_TOKEN = re.compile(r"[\w.~+/=-]{17,}")

#: Takes one event of a stream; True = the answer is complete.
Take = Callable[[Event], Awaitable[bool]]


@frozen(kw_only=True)
class Outgoing:
    """A request that is about to be sent, for those who sign it.

    Args:
        method: ``"POST"`` or ``"GET"``.
        url: the whole address.
        headers: what will be sent, by lower-case names, apart from what the signer adds.
        body: the bytes.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = field(default=b"", repr=False)


#: Returns the headers that authenticate, sync or async. It may raise a `ModelError`; the headers are never shown.
Sign = Callable[[Outgoing], Mapping[str, str] | Awaitable[Mapping[str, str]]]


@frozen(kw_only=True)
class Endpoint:
    """Where a provider is and how it is asked.

    Args:
        provider: its scheme, for errors.
        base_url: ``"https://host/v1"``; paths are put behind it. A user and a password in it are sent in a header,
            where the signer gives none of that name.
        headers: sent with each request; no keys.
        query: sent with each request.
        sign: gives the headers that authenticate; None = none are sent.
        remedy: what to do about a key that is refused, in words.
        timeout: seconds for one call from its beginning to the end of its answer.
        connect_timeout: seconds to make a connection.
        silence: seconds without a byte after which an answer is given up.
        connections: the most at a time in one event loop.

    Raises:
        ConfigError: ``base_url`` is not an http or https address, or has a query; a header cannot be sent.
    """

    provider: str
    base_url: str = field(repr=lambda url: repr(_redact(url)))
    headers: FrozenDict[str, str] = field(default=EMPTY, converter=freeze, repr=False)
    query: FrozenDict[str, str] = field(default=EMPTY, converter=freeze, repr=False)
    sign: Sign | None = field(default=None, repr=False, eq=False)
    remedy: str = ""
    timeout: float = 600.0
    connect_timeout: float = 10.0
    silence: float = 300.0
    connections: int = 64

    def __attrs_post_init__(self) -> None:
        try:
            url = httpx2.URL(self.base_url)
        except (httpx2.InvalidURL, TypeError):
            url = None
        if url is None or url.scheme not in ("http", "https") or not url.host:
            raise ConfigError(
                f"base_url of {self.provider} must be an address like 'https://host/v1', got {_redact(self.base_url)!r}"
            )
        if url.query or url.fragment:
            raise ConfigError(
                f"base_url of {self.provider} is {_redact(self.base_url)!r} with a '?' or a '#' behind it; leave out "
                "what follows: paths are put behind a base_url"
            )
        for name, value in self.headers.items():
            if fault := find_header_fault(name, value):
                raise ConfigError(f"{self.provider}: {fault}")

    @classmethod
    def with_key(cls, key: Key, base_url: str, *, header: str = "authorization", scheme: str = "Bearer ") -> Endpoint:
        """An endpoint that takes a key in a header.

        Args:
            key: read for each request.
            base_url: see `Endpoint`.
            header: ``"authorization"``, ``"x-api-key"``, ``"api-key"``.
            scheme: what is written before the key, ``"Bearer "`` or ``""``.
        """

        def sign(_: Outgoing) -> Mapping[str, str]:
            return write(key.find())

        async def ask(_: Outgoing) -> Mapping[str, str]:
            return write(await key.ask())

        def write(text: str | None) -> Mapping[str, str]:
            return {} if text is None else {header: f"{scheme}{text}"}

        return cls(provider=key.provider, base_url=base_url, sign=ask if key.is_async else sign, remedy=key.remedy)

    def with_options(self, **changes: Any) -> Endpoint:
        """The same with other fields."""
        return evolve(self, **changes)


class Client:
    """Asks one provider. One client serves any number of runs, threads and event loops at a time.

    Args:
        endpoint: where and how.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._pools = Pools(
            secure=httpx2.URL(endpoint.base_url).scheme == "https",
            connections=endpoint.connections,
            connect_timeout=endpoint.connect_timeout,
            silence=endpoint.silence,
        )

    @property
    def address(self) -> str:
        """Where requests go, without a path and a password: ``"https://host:8080"``."""
        url = httpx2.URL(self.endpoint.base_url)
        return f"{url.scheme}://{url.netloc.decode('ascii')}"

    def check_key(self) -> None:
        """Find out before the first request whether there is a key. Nothing is sent, and an async signer is not asked.

        Raises:
            KeyMissing: no key was found.
        """
        sign = self.endpoint.sign
        if sign is not None and not inspect.iscoroutinefunction(sign):
            headers = sign(Outgoing(method="GET", url=self.endpoint.base_url, headers={}))
            if inspect.iscoroutine(headers):
                headers.close()

    def __repr__(self) -> str:
        return f"Client({self.endpoint!r})"

    def session(self) -> Session:
        """An async context manager that keeps connections open for the calls within; it does not open any."""
        return self._pools.session()

    async def post(
        self,
        path: str,
        body: bytes,
        read: Callable[[Any], T],
        *,
        deadline: float | None = None,
        headers: Mapping[str, str] = EMPTY,
    ) -> T:
        """Send JSON, and read JSON.

        Args:
            path: behind ``base_url``, with its slash.
            body: the bytes; see `locus_wire.bodies`.
            read: makes of the JSON what is returned. It may raise `Malformed` and `ErrorInAnswer`, or fail on a missing
                field.
            deadline: on the clock of `anyio.current_time`, or None.
            headers: further ones.

        Raises:
            ModelError: see `locus_wire.errors`.
        """
        exchange = _Exchange(self.endpoint, "POST", path, body, headers)
        return await self._exchange(exchange, lambda http: exchange.whole(http, read), deadline)

    async def get(
        self,
        path: str,
        read: Callable[[Any], T],
        *,
        deadline: float | None = None,
        headers: Mapping[str, str] = EMPTY,
    ) -> T:
        """Read JSON. The arguments are those of `post`.

        Raises:
            ModelError: see `locus_wire.errors`.
        """
        exchange = _Exchange(self.endpoint, "GET", path, b"", headers)
        return await self._exchange(exchange, lambda http: exchange.whole(http, read), deadline)

    async def events(
        self,
        path: str,
        body: bytes,
        take: Take,
        *,
        deadline: float | None = None,
        headers: Mapping[str, str] = EMPTY,
        ended: Callable[[], bool] | None = None,
    ) -> Mapping[str, str]:
        """Send JSON, and read server-sent events.

        Args:
            path: see `post`, as the others. The answer is read as events if it begins like them, whatever its content
                type; some servers call them plain text.
            body: the bytes.
            deadline: on the clock of `anyio.current_time`, or None.
            headers: further ones.
            ended: asked when the stream ends without a last event: whether the answer is complete nevertheless.
            take: gets each event in turn, and returns True for the one that completes the answer. It may raise
                `Malformed` and `ErrorInAnswer`; any other error is raised here, once the connection is closed.

        Returns:
            The headers of the response, by lower-case names.

        Raises:
            ConnectionLost: the stream ended before the answer was complete.
            ModelError: see `locus_wire.errors`.
        """
        exchange = _Exchange(self.endpoint, "POST", path, body, {**headers, "accept": "text/event-stream"})
        kinds = ("text/event-stream",)
        return await self._exchange(
            exchange, lambda http: exchange.stream(http, ServerSentEvents, kinds, take, ended, begins=_EVENTS), deadline
        )

    async def lines(
        self,
        path: str,
        body: bytes,
        take: Take,
        *,
        deadline: float | None = None,
        headers: Mapping[str, str] = EMPTY,
    ) -> Mapping[str, str]:
        """Send JSON, and read lines of JSON objects, each one an event. Everything else is as with `events`."""
        exchange = _Exchange(self.endpoint, "POST", path, body, headers)
        kinds = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/json")
        return await self._exchange(
            exchange, lambda http: exchange.stream(http, JsonLines, kinds, take, begins=_LINES), deadline
        )

    async def _exchange(
        self, exchange: _Exchange, ask: Callable[[httpx2.AsyncClient], Awaitable[T]], deadline: float | None
    ) -> T:
        """One exchange within its time; a failure of the transport becomes the error that it is, and shows no key."""
        provider, now = self.endpoint.provider, anyio.current_time()
        limit = now + self.endpoint.timeout
        asked = deadline is not None and deadline < limit
        with anyio.CancelScope(deadline=deadline if asked and deadline is not None else limit) as scope:
            if scope.deadline > now:  # else the deadline has passed
                try:
                    try:
                        async with self.session() as session:
                            return await ask(session.http)
                    except httpx2.HTTPError as e:
                        raise self._transport_error(e, exchange.secrets) from e
                except ModelError as e:
                    raise drop_secrets(e, exchange.secrets)  # noqa: B904 - it is the very one that was caught
        if asked:
            raise TooLate(f"{provider} did not answer before the deadline", provider=provider, retryable=False)
        raise TooLate(
            f"{provider} did not answer within {self.endpoint.timeout:g} s (the setting timeout)",
            provider=provider,
            retryable=True,
        )

    def _transport_error(self, error: httpx2.HTTPError, secrets: tuple[str, ...]) -> ModelError:
        provider, where = self.endpoint.provider, _redact(self.endpoint.base_url)
        what = shorten(hide_secrets(str(error), secrets)) or type(error).__name__
        if isinstance(error, httpx2.ConnectTimeout):
            waited = self.endpoint.connect_timeout
            return Unreachable(
                f"{provider}: {where} did not accept a connection within {waited:g} s; check base_url and the network",
                provider=provider,
                retryable=True,
            )
        if isinstance(error, httpx2.TimeoutException):
            return TooLate(
                f"{provider} sent nothing for {self.endpoint.silence:g} s (the setting silence)",
                provider=provider,
                retryable=True,
            )
        if isinstance(error, httpx2.ConnectError | httpx2.ProxyError | httpx2.UnsupportedProtocol):
            # A certificate that is not trusted will not be trusted the next time either.
            lasting = _is_caused_by(error, ssl.SSLCertVerificationError)
            return Unreachable(
                f"{provider}: no connection to {where}: {what}; check base_url and the network",
                provider=provider,
                retryable=not lasting,
            )
        if isinstance(error, httpx2.DecodingError):
            return bad_answer(provider, f"the answer cannot be unpacked: {what}", retryable=True)
        if isinstance(error, httpx2.LocalProtocolError):
            return Unreachable(f"{provider}: the request cannot be sent: {what}", provider=provider, retryable=False)
        return ConnectionLost(
            f"{provider}: the connection broke before the answer was whole: {what}", provider=provider, retryable=True
        )


#: How lines of JSON begin.
_LINES = re.compile(rb"\{").match

#: How server-sent events begin, whatever a server calls them; and how many bytes tell.
_EVENTS = re.compile(rb"(?:\xef\xbb\xbf)?(?:data|event|id|retry)?:").match
_PEEKED = 9


class _Exchange:
    """One request and its response."""

    def __init__(self, endpoint: Endpoint, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        url = httpx2.URL(endpoint.base_url.rstrip("/") + path)
        if endpoint.query:
            url = url.copy_merge_params(dict(endpoint.query))
        self._user: dict[str, str] = {}
        if url.userinfo:  # HTTP clients log addresses
            pair = f"{url.username}:{url.password}".encode()
            self._user = {"authorization": f"Basic {base64.b64encode(pair).decode()}"}
            url = url.copy_with(userinfo=b"")
        plain = {"accept": "application/json", **endpoint.headers, **headers}
        if body:
            plain["content-type"] = "application/json"
        plain = {name.lower(): value for name, value in plain.items()}
        self._outgoing = Outgoing(method=method, url=str(url), headers=plain, body=body)
        self.secrets: tuple[str, ...] = ()

    async def whole(self, http: httpx2.AsyncClient, read: Callable[[Any], T]) -> T:
        async with open_body(http, await self._sign_request(http)) as body:
            response = await self._accept(body)
            headers = headers_of(response)
            data = await body.upto(LARGEST_ANSWER)
            if len(data) > LARGEST_ANSWER:
                raise self._bad_answer(headers, f"the answer has more than {LARGEST_ANSWER:,} bytes")
            value = self._json(data, headers)
        with self._read(headers), check_shape():
            return read(value)

    async def stream(
        self,
        http: httpx2.AsyncClient,
        read: Callable[[Body, int], Stream],
        kinds: tuple[str, ...],
        take: Take,
        ended: Callable[[], bool] | None = None,
        *,
        begins: Callable[[bytes], object],
    ) -> Mapping[str, str]:
        async with open_body(http, await self._sign_request(http)) as body:
            response = await self._accept(body)
            headers = headers_of(response)
            if _media_type(headers) not in kinds and not begins(await body.peek(_PEEKED)):
                await self._no_stream(body, headers, kinds[0])
            stream = read(body, LARGEST_ANSWER)
            with self._read(headers):
                while (event := await stream.next()) is not None:
                    if await take(event):
                        await self._rest(stream)
                        return headers
                if ended is not None and ended():
                    return headers
        raise ConnectionLost(
            f"{self._endpoint.provider}: the stream ended before the answer was complete",
            provider=self._endpoint.provider,
            status=response.status_code,
            request_id=request_id(headers, self.secrets),
            retryable=True,
        )

    async def _sign_request(self, http: httpx2.AsyncClient) -> httpx2.Request:
        """The request, with its authentication."""
        outgoing, sign = self._outgoing, self._endpoint.sign
        proof: Mapping[str, str] = self._user
        if sign is not None:
            given = sign(outgoing)
            proof = {**proof, **(await given if isinstance(given, Awaitable) else given)}
        self.secrets = tuple(word for value in proof.values() for word in _secrets(value))
        if self._user:
            self.secrets += (httpx2.URL(self._endpoint.base_url).password,)
        headers = {**outgoing.headers, **proof}
        for name, value in headers.items():
            if not (name.isascii() and value.isascii() and value.isprintable()):
                provider = self._endpoint.provider
                # What the layers below say of it would show the value.
                raise Unreachable(
                    f"{provider}: the header {name!r} contains a character that is not allowed there, such as a line "
                    "break or a letter with an accent; look at the key and the headers in the settings",
                    provider=provider,
                    retryable=False,
                )
        return http.build_request(outgoing.method, outgoing.url, content=outgoing.body or None, headers=headers)

    @contextmanager
    def _read(self, headers: Mapping[str, str]) -> Iterator[None]:
        """What is wrong with an answer, as the error that it is."""
        try:
            yield
        except TooLarge as e:
            raise self._bad_answer(headers, f"{e}; no answer is that long") from e
        except Malformed as e:
            raise self._bad_answer(headers, str(e), retryable=True) from e
        except ErrorInAnswer as e:
            raise self._error_in_answer(e.body, headers) from e

    async def _rest(self, stream: Stream) -> None:
        """Read what little follows the last event: only then can the connection be used again."""
        with anyio.move_on_after(_LINGER), suppress(TooLarge, CutOff):  # the answer itself is complete
            while await stream.next() is not None:
                pass

    async def _accept(self, body: Body) -> httpx2.Response:
        response = body.response
        if 200 <= response.status_code < 300:
            return response
        headers = headers_of(response)
        data = await body.upto(LARGEST_ERROR, may_be_cut=True)  # the status says more than a damaged text
        raise status_error(
            self._endpoint.provider,
            response.status_code,
            read_error(data[:LARGEST_ERROR], _media_type(headers)),
            headers=headers,
            remedy=self._endpoint.remedy,
            secrets=self.secrets,
        )

    async def _no_stream(self, body: Body, headers: Mapping[str, str], wanted: str) -> None:
        """What comes in the place of a stream may be an error with the status of an answer."""
        data = await body.upto(LARGEST_ERROR)
        if len(data) <= LARGEST_ERROR and _media_type(headers).endswith("json"):
            self._json(data, headers)
        kind = _media_type(headers) or "nothing that says what it is"
        quoted = shorten(hide_secrets(read_error(data[:LARGEST_ERROR], kind).message, self.secrets))
        raise self._bad_answer(
            headers, f'asked for {wanted}, got {kind}: "{quoted}"; compare base_url with its documentation'
        )

    def _json(self, data: bytes, headers: Mapping[str, str]) -> Any:
        try:
            value = json_value(data)
        except ValueError as e:
            kind = _media_type(headers)
            if kind.endswith("json") and data.strip():
                raise self._bad_answer(
                    headers, f"the answer is not complete JSON ({shorten(str(e))})", retryable=True
                ) from e
            quoted = shorten(hide_secrets(read_error(data[:LARGEST_ERROR], kind).message, self.secrets))
            what = f'{kind or "an answer without a type"}: "{quoted}"' if quoted else "an empty answer"
            raise self._bad_answer(
                headers, f"asked for JSON, got {what}; compare base_url with its documentation"
            ) from e
        if isinstance(value, Mapping) and value.get("error"):
            raise self._error_in_answer(value, headers)
        return value

    def _error_in_answer(self, body: Mapping[str, Any] | str, headers: Mapping[str, str]) -> ModelError:
        """The error that a body with the status of an answer is."""
        remedy, secrets = self._endpoint.remedy, self.secrets
        return stream_error(self._endpoint.provider, body, headers=headers, remedy=remedy, secrets=secrets)

    def _bad_answer(self, headers: Mapping[str, str], what: str, *, retryable: bool = False) -> ModelError:
        return bad_answer(
            self._endpoint.provider, what, status=200, headers=headers, retryable=retryable, secrets=self.secrets
        )


def _secrets(proof: str) -> tuple[str, ...]:
    """The parts of an authentication header that must not be quoted: all of it, its last word, and tokens within it."""
    return (proof, proof.rpartition(" ")[2], *_TOKEN.findall(proof))


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_caused_by(error: BaseException | None, kind: type[BaseException]) -> bool:
    while error is not None:
        if isinstance(error, kind):
            return True
        error = error.__cause__ or error.__context__
    return False


def _redact(url: str) -> str:
    """An address without its user, password and query."""
    head, slashes, rest = str(url).partition("://")
    host, slash, path = rest.partition("/")
    return f"{head}{slashes}{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}"
