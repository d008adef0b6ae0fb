"""A search engine that keeps its promises, and those that break one each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlsplit

import anyio
import anyio.abc
from attrs import frozen

from locus_kit.invisible import remove_invisible
from locus_testkit import SearchEngineContract, SearchResult
from locus_testkit.hostile import Answer

__all__ = ["BROKEN", "Complete", "Failed", "contract_of"]


class Failed(Exception):
    """A search failed."""


@frozen
class Hit:
    """What an engine gives."""

    url: str
    title: str
    snippet: str


class Complete:
    """An engine on plain sockets, for a service that answers with a list of JSON."""

    limit_of_size = 1_000_000

    def __init__(self, base_url: str, limit_of_time: float = 30.0) -> None:
        self.url, self.limit_of_time = urlsplit(base_url), limit_of_time

    async def search(self, query: str, limit: int) -> Sequence[Any]:
        try:
            with anyio.fail_after(self.limit_of_time):
                status, body = await self.ask(f"/?q={self.escape(query)}")
            self.check(status)
            found = [each for each in self.read(body) if self.is_plain(each["url"])]
        except (
            OSError,
            TimeoutError,
            ValueError,
            LookupError,
            TypeError,
            RecursionError,
            anyio.BrokenResourceError,
        ) as e:
            raise Failed(repr(e)) from None
        return [Hit(each["url"], self.line(each["title"]), self.line(each["snippet"])) for each in found[:limit]]

    async def ask(self, path: str) -> tuple[int, bytes]:
        stream = await anyio.connect_tcp(self.url.hostname or "", self.url.port or 80)
        try:
            await stream.send(f"GET {path} HTTP/1.1\r\nhost: {self.url.netloc}\r\n\r\n".encode())
            return await self.receive(stream)
        finally:
            await anyio.aclose_forcefully(stream)

    async def receive(self, stream: anyio.abc.ByteStream) -> tuple[int, bytes]:
        data = b""
        while b"\r\n\r\n" not in data:
            data += await self.more(stream)
        head, _, body = data.partition(b"\r\n\r\n")
        if b"content-length: " not in head:
            while len(body) < self.limit_of_size:
                body += await self.more(stream)
            raise ValueError("too large")
        size = int(head.partition(b"content-length: ")[2].split()[0])
        while len(body) < size:
            body += await self.more(stream)
        return int(head.split()[1]), body

    async def more(self, stream: anyio.abc.ByteStream) -> bytes:
        try:
            return await stream.receive()
        except anyio.EndOfStream:
            raise ValueError("it ended early") from None

    def escape(self, query: str) -> str:
        return quote(query, safe="")

    def check(self, status: int) -> None:
        if status != 200:
            raise ValueError(f"status {status}")

    def read(self, body: bytes) -> list[Any]:
        found = json.loads(body)
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise TypeError("not a list of results")
        return found

    def is_plain(self, url: str) -> bool:
        parts = urlsplit(url)
        is_short = len(url) < 2_000 and remove_invisible(url) == url and not any(map(str.isspace, url))
        return is_short and parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc

    def line(self, text: str) -> str:
        return " ".join(remove_invisible(text).split())[:500]


class _Unescaped(Complete):
    def escape(self, query: str) -> str:
        return query.replace(" ", "+")


class _Unlimited(Complete):
    async def search(self, query: str, limit: int) -> Sequence[Any]:
        return await super().search(query, 1_000)


class _Reversed(Complete):
    def read(self, body: bytes) -> list[Any]:
        return super().read(body)[::-1]


class _AnyAddress(Complete):
    def is_plain(self, url: str) -> bool:
        return True


class _AnyText(Complete):
    def line(self, text: str) -> str:
        return text


class _Careless(Complete):
    def check(self, status: int) -> None:
        pass


class _NothingForGarbage(Complete):
    def read(self, body: bytes) -> list[Any]:
        try:
            return super().read(body)
        except (ValueError, TypeError, RecursionError):
            return []


class _FailsWhenNothingIsFound(Complete):
    def read(self, body: bytes) -> list[Any]:
        found = super().read(body)
        if not found:
            raise ValueError("nothing")
        return found


class _HalfIsEnough(Complete):
    async def more(self, stream: anyio.abc.ByteStream) -> bytes:
        try:
            return await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return b" " * 10_000


class _Patient(Complete):
    def __init__(self, base_url: str, limit_of_time: float = 30.0) -> None:
        super().__init__(base_url)


class _Insatiable(Complete):
    limit_of_size = 10**12


class _Follows(Complete):
    async def ask(self, path: str) -> tuple[int, bytes]:
        status, body = await super().ask(path)
        if status == 302:
            self.url = self.url._replace(netloc=self.location)
            return await super().ask(path)
        return status, body

    async def receive(self, stream: anyio.abc.ByteStream) -> tuple[int, bytes]:
        data = await stream.receive()
        if b"location: " in data:
            self.location = urlsplit(data.partition(b"location: ")[2].split()[0].decode()).netloc
            return 302, b""
        body = data.partition(b"\r\n\r\n")[2]
        return int(data.split()[1]), body


class _Mixes(Complete):
    async def search(self, query: str, limit: int) -> Sequence[Any]:
        self.query = query
        await anyio.sleep(0.01)
        return await super().search(self.query, limit)


class _LeavesConnections(Complete):
    kept: list[Any] = []  # noqa: RUF012  # that is what is wrong with it

    async def ask(self, path: str) -> tuple[int, bytes]:
        stream = await anyio.connect_tcp(self.url.hostname or "", self.url.port or 80)
        self.kept.append(stream)
        await stream.send(f"GET {path} HTTP/1.1\r\nhost: {self.url.netloc}\r\n\r\n".encode())
        return await self.receive(stream)


class _Uncancellable(Complete):
    async def ask(self, path: str) -> tuple[int, bytes]:
        with anyio.move_on_after(1.5, shield=True):
            return await super().ask(path)
        raise ValueError("too late")


#: By engine, the promises that it breaks.
BROKEN: dict[type[Complete], tuple[str, ...]] = {
    _Unescaped: ("test_a_query_stays_a_query",),
    _Unlimited: ("test_no_more_than_were_asked_for",),
    _Reversed: ("test_results_come_in_order",),
    _AnyAddress: ("test_an_address_that_cannot_be_opened_is_left_out",),
    _AnyText: ("test_texts_are_one_visible_line",),
    _Careless: ("test_an_error_of_the_service_is_an_error",),
    _NothingForGarbage: ("test_an_answer_of_another_shape_is_an_error",),
    _FailsWhenNothingIsFound: ("test_an_empty_answer_is_an_empty_sequence",),
    _HalfIsEnough: ("test_a_connection_that_ends_is_an_error",),
    _Patient: ("test_silence_is_an_error",),
    _Insatiable: ("test_an_answer_without_an_end_is_an_error",),
    _Follows: ("test_a_redirect_is_not_followed",),
    _Mixes: ("test_searches_at_the_same_time_do_not_mix",),
    _LeavesConnections: ("test_results_come_in_order",),
    _Uncancellable: ("test_cancelling_ends_a_search",),
}


def contract_of(kind: type[Complete]) -> SearchEngineContract:
    """The contract for an engine."""

    class Made(SearchEngineContract):
        error = Failed
        patience = 1.0

        def make_engine(self, base_url: str) -> Any:
            return kind(base_url)

        def make_hasty_engine(self, base_url: str) -> Any:
            return kind(base_url, 0.3)

        def answer(self, results: Sequence[SearchResult]) -> Answer:
            return Answer.of([{"url": r.url, "title": r.title, "snippet": r.snippet} for r in results])

    return Made()
