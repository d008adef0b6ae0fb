"""`SearchEngineContract`: what an agent relies on when it searches the web, one test a promise.

A search engine is one method. What makes it fit for an agent is the rest: a query goes where it should and nowhere
else, what comes back is a few plain lines whatever the service sends, and a failure is one error, in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar
from urllib.parse import unquote_plus

import anyio
import anyio.to_thread
import pytest
from attrs import frozen

from locus_testkit.contracts.base import Contract
from locus_testkit.localserver import Answer, LocalServer

__all__ = ["SearchEngineContract", "SearchResult"]

_MANY = 30
#: Characters of a field that is one line of a result.
_LONGEST = 2_000
_HOSTILE_QUERY = 'a&b=c#d?e/../f "g" %20 +h; i\\j <k> ü'


@frozen(kw_only=True)
class SearchResult:
    """What a service has found.

    Args:
        url, title, snippet: of a page, as anybody may have written them.
    """

    url: str
    title: str = ""
    snippet: str = ""


def _results(count: int, about: str = "gallium") -> list[SearchResult]:
    return [
        SearchResult(url=f"https://site.example/{about}/{i}", title=f"{about} {i}", snippet=f"words about {about}, {i}")
        for i in range(count)
    ]


@pytest.mark.anyio
class SearchEngineContract(Contract):
    """The promises of a search engine over HTTP. Subclass it and say how yours is made, and how its service answers.

    Example::

        class TestMyEngine(SearchEngineContract):
            error = SearchFailed

            def make_engine(self, base_url):
                return MyEngine(base_url)

            def make_hasty_engine(self, base_url):
                return MyEngine(base_url, timeout=0.3)

            def answer(self, results):
                return Answer.of({"hits": [{"link": each.url, "name": each.title} for each in results]})
    """

    #: What the engine raises when its service fails.
    error: ClassVar[type[Exception]]
    #: Seconds within which everything ends.
    patience: ClassVar[float] = 30.0

    def make_engine(self, base_url: str) -> Any:
        """The engine under test.

        Args:
            base_url: where its service is.
        """
        raise NotImplementedError(f"{type(self).__name__} must define make_engine(base_url)")

    def make_hasty_engine(self, base_url: str) -> Any:
        """The same with a limit of time that a test can wait for; without this, `make_engine`.

        Args:
            base_url: where its service is.
        """
        return self.make_engine(base_url)

    def answer(self, results: Sequence[SearchResult]) -> Answer:
        """How the service says that it has found these."""
        raise NotImplementedError(f"{type(self).__name__} must define answer(results)")

    @pytest.fixture
    def service(self) -> Iterator[LocalServer]:
        """The service, on loopback."""
        with LocalServer() as server:
            yield server

    async def _search(self, service: LocalServer, query: str = "gallium", limit: int = 5) -> Sequence[Any]:
        engine = self.make_engine(service.url)
        with anyio.fail_after(self.patience):
            found: Sequence[Any] = await engine.search(query, limit)
        return found

    async def _check_failure(self, service: LocalServer, engine: Any = None) -> None:
        """A search fails, and leaves no connection."""
        engine = self.make_engine(service.url) if engine is None else engine
        with pytest.raises(self.error) as caught, anyio.fail_after(self.patience):
            await engine.search("gallium", 5)
        assert str(caught.value).strip(), "an error says what went wrong"
        assert service.wait_until_idle(self.patience), "a connection was left open"

    # -- what is found ----------------------------------------------------------------------------

    async def test_results_come_in_order(self, service: LocalServer) -> None:
        """Address, title and snippet of each result, the best first."""
        wanted = _results(3)
        service.then(self.answer(wanted))
        found = await self._search(service)
        assert [(each.url, each.title) for each in found] == [(each.url, each.title) for each in wanted]
        assert all(isinstance(each.snippet, str) for each in found)
        assert service.wait_until_idle(self.patience)

    @pytest.mark.parametrize("limit", [1, 7])
    async def test_no_more_than_were_asked_for(self, service: LocalServer, limit: int) -> None:
        """A service that sends more than the limit changes nothing."""
        service.then(self.answer(_results(_MANY)))
        found = await self._search(service, limit=limit)
        assert [each.url for each in found] == [each.url for each in _results(limit)]

    async def test_an_empty_answer_is_an_empty_sequence(self, service: LocalServer) -> None:
        """No results are an empty sequence."""
        service.then(self.answer([]))
        assert list(await self._search(service)) == []

    async def test_searches_at_the_same_time_do_not_mix(self, service: LocalServer) -> None:
        """One engine serves many runs."""
        words = [f"word{i}" for i in range(5)]
        service.answering = lambda request: self.answer(
            _results(1, next(each for each in words if each in _text_of(request)))
        )
        engine, found = self.make_engine(service.url), {}

        async def ask(word: str) -> None:
            found[word] = [each.title for each in await engine.search(word, 5)]

        with anyio.fail_after(self.patience):
            async with anyio.create_task_group() as group:
                for word in words:
                    group.start_soon(ask, word)
        assert found == {word: [f"{word} 0"] for word in words}

    # -- what is sent -----------------------------------------------------------------------------

    async def test_a_query_stays_a_query(self, service: LocalServer) -> None:
        """The service gets it as it is, and nothing in it changes what else is asked for, or where."""
        service.answering = lambda _: self.answer([])
        await self._search(service, "plain")
        await self._search(service, _HOSTILE_QUERY)
        plain, hostile = service.received
        assert _HOSTILE_QUERY in _text_of(hostile)
        assert _form(hostile) == _form(plain)

    # -- hostile results --------------------------------------------------------------------------

    @pytest.mark.parametrize(
        "url",
        [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "data:text/html,x",
            "ftp://site.example/",
            "/relative",
            "",
            "http://",
            "http://user:secret@site.example/",
            "https://site.example/\u202egpj",
            "https://site.example/\n2. Another result",
            "https://site.example/" + "a" * 100_000,
        ],
    )
    async def test_an_address_that_cannot_be_opened_is_left_out(self, service: LocalServer, url: str) -> None:
        """Only plain http and https addresses are results, without a user, invisible characters and blanks."""
        good = _results(1)
        service.then(self.answer([SearchResult(url=url, title="bad"), *good]))
        assert [each.url for each in await self._search(service)] == [good[0].url]

    async def test_texts_are_one_visible_line(self, service: LocalServer) -> None:
        """No line looks like another result, no invisible character gets through, and texts are bounded."""
        text = "seen\n\n1. \u202eInjected\x1b[31m\u200b" + "".join(map(chr, range(0xE0041, 0xE0061))) + " x" * 100_000
        service.then(self.answer([SearchResult(url="https://site.example/", title=text, snippet=text)]))
        [found] = await self._search(service)
        for each in (found.title, found.snippet):
            assert len(each) <= _LONGEST
            assert each == "" or each.startswith("seen 1. Injected")
            assert all(character.isprintable() for character in each)

    # -- failures ---------------------------------------------------------------------------------

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503])
    async def test_an_error_of_the_service_is_an_error(self, service: LocalServer, status: int) -> None:
        """Whatever its page says."""
        service.then(self.answer(_results(1)).with_fields(status=status))
        await self._check_failure(service)

    @pytest.mark.parametrize("body", [b"", b"<html>", b"null", b"[1]", b"{", b"\xff\xfe", b"[" * 100_000])
    async def test_an_answer_of_another_shape_is_an_error(self, service: LocalServer, body: bytes) -> None:
        """It is not taken for no results."""
        service.then(Answer(body=body))
        await self._check_failure(service)

    @pytest.mark.parametrize("ending", ["cut", "reset"])
    async def test_a_connection_that_ends_is_an_error(self, service: LocalServer, ending: Any) -> None:
        """Half an answer does not count."""
        service.then(self.answer(_results(3)).with_fields(ending=ending))
        await self._check_failure(service)

    async def test_an_answer_without_an_end_is_an_error(self, service: LocalServer) -> None:
        """It is not read for ever, nor kept."""
        service.then(Answer(body=b" " * 65_536, repeat=10**6, chunked=True))
        await self._check_failure(service)

    async def test_silence_is_an_error(self, service: LocalServer) -> None:
        """The engine has a limit of its own."""
        service.then(Answer(ending="silent"))
        await self._check_failure(service, self.make_hasty_engine(service.url))

    async def test_a_redirect_is_not_followed(self, service: LocalServer) -> None:
        """The service is the user's choice, and where it sends a client is not."""
        with LocalServer(lambda _: self.answer(_results(1))) as other:
            service.then(Answer(status=302, headers={"location": f"{other.url}/"}))
            await self._check_failure(service)
            assert other.connections == 0

    async def test_cancelling_ends_a_search(self, service: LocalServer) -> None:
        """A cancelled caller is free at once, and the engine can be used again."""
        service.then(Answer(ending="silent"), self.answer(_results(1)))
        engine, ended = self.make_engine(service.url), []

        async def ask() -> None:
            ended.append(await engine.search("gallium", 5))

        with anyio.fail_after(self.patience):
            async with anyio.create_task_group() as group:
                group.start_soon(ask)
                await anyio.to_thread.run_sync(service.wait_for, lambda: bool(service.received))
                group.cancel_scope.cancel()
            assert ended == []
            assert service.wait_until_idle(self.patience), "a connection was left open"
            assert len(await engine.search("gallium", 5)) == 1


def _text_of(request: Any) -> str:
    """What a request says, decoded."""
    return unquote_plus(request.path) + unquote_plus(request.body.decode("utf-8", "replace"))


def _form(request: Any) -> tuple[str, str, tuple[str, ...], str]:
    """What a request is beside its query: method, path, names of parameters, host."""
    path, _, query = request.path.partition("?")
    names = tuple(each.partition("=")[0] for each in query.split("&"))
    return request.method, path, names, request.headers.get("host", "")
