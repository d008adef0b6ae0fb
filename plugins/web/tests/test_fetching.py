"""Pages are fetched within bounds of place, time and size, from a site that keeps to none."""

from __future__ import annotations

import contextlib
import gzip
import ssl
from collections.abc import Iterator

import anyio
import anyio.abc
import anyio.streams.tls
import anyio.to_thread
import pytest
import trustme

from locus_plugin_web import Fetcher, FetchFailed, FetchRefused, Page, Visit, WebError, WebSettings
from locus_testkit import NetworkGuard, NetworkRefused
from locus_testkit.hostile import Answer, LocalServer
from locus_testkit.site import LocalSite, hostile_paths

from .kit import Names, fetcher_for

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def site() -> Iterator[LocalSite]:
    with LocalSite() as made:
        yield made


@pytest.fixture(autouse=True)
def _forget(site: LocalSite) -> None:
    site.received.clear()


# -- what comes back -----------------------------------------------------------------------------------


async def test_a_page_is_its_content_in_markdown(site: LocalSite) -> None:
    page = await fetcher_for(site).fetch(site.at("/elements/gallium"))
    assert (page.url, page.title, page.is_whole) == (site.at("/elements/gallium"), "Gallium - The Elements", True)
    assert page.text.startswith("# Gallium\n\nGallium (Ga) is a chemical element")
    assert "| Melting point | 302.91 K |" in page.text
    for around in ("cookies", "Imprint", "See also", "visits", "Search"):
        assert around not in page.text


async def test_links_are_whole(site: LocalSite) -> None:
    page = await fetcher_for(site).fetch(site.at("/elements"))
    assert page.url == site.at("/elements/")
    assert f"- [Gallium]({site.url}/elements/gallium)" in page.text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/plain.txt", "Plain words.\n<b>Not bold.</b>"),
        ("/data.json", '{"metal": "gallium", "melting_point": 302.91}'),
        ("/hostile/untyped", "no type"),
        ("/hostile/empty", ""),
        ("/hostile/charset-meta", "€ Curaçao"),
        ("/hostile/charset-wrong", "Curaçao, Besançon"),
        ("/hostile/charset-unknown", "Curaçao"),
        ("/hostile/charset-utf7", "+ADw-script+AD4-alert(1)+ADw-/script+AD4-"),
    ],
)
async def test_text_is_read_as_it_is_meant(site: LocalSite, path: str, text: str) -> None:
    assert (await fetcher_for(site).fetch(site.at(path))).text == text


_HTML = "<html><title>Tü</title><p>hällo, world"


@pytest.mark.parametrize(
    ("media_type", "coding", "mark"),
    [
        ("text/html", "utf-16-le", "\ufeff"),
        ("text/html", "utf-16-be", "\ufeff"),
        ("text/html; charset=utf-8", "utf-16-le", "\ufeff"),
        (None, "utf-16-be", "\ufeff"),
        (None, "utf-8", "\ufeff"),
        ("text/html; charset=utf-16", "utf-16-le", ""),
        ("text/html; charset=utf-16be", "utf-16-be", ""),
        ("text/html; charset=ucs-2", "utf-16-le", ""),
        ('text/html; charset="Unicode"', "utf-16-le", ""),
    ],
)
async def test_a_page_in_utf16_is_read(media_type: str | None, coding: str, mark: str) -> None:
    with LocalSite() as site:
        site.then(Answer(media_type=media_type, body=(mark + _HTML).encode(coding)))
        page = await fetcher_for(site, robots=False).fetch(site.at("/about"))
    assert (page.title, page.text, page.is_whole) == ("Tü", "hällo, world", True)


@pytest.mark.parametrize(
    ("media_type", "coding", "text"),
    [
        ("text/plain", "utf-8", "words\0" * 9),
        ("text/plain", "utf-32-le", "\ufeffwords"),
        ("text/plain", "utf-32-be", "\ufeffwords"),
        ("text/plain; charset=utf-16", "utf-16-le", "words\0"),
        ("text/plain", "utf-16-le", "words"),
    ],
)
async def test_what_has_zeros_for_characters_is_binary_data(media_type: str, coding: str, text: str) -> None:
    with LocalSite() as site:
        site.then(Answer(media_type=media_type, body=text.encode(coding)))
        with pytest.raises(FetchRefused, match="got binary data"):
            await fetcher_for(site, robots=False).fetch(site.at("/about"))


async def test_a_packed_page_that_is_cut_off_is_not_called_whole() -> None:
    words = " ".join(map(str, range(9_000)))
    packed = gzip.compress(words.encode())
    with LocalSite() as site:
        fetcher, headers = fetcher_for(site, robots=False), {"content-encoding": "gzip"}
        for body in (packed[: len(packed) // 2], packed[:-4]):
            site.then(Answer(media_type="text/plain", headers=headers, body=body))
            page = await fetcher.fetch(site.at("/about"))
            assert page.text
            assert words.startswith(page.text)
            assert not page.is_whole
        # Nothing of it came.
        site.then(Answer(media_type="text/plain", headers=headers, body=packed[:5]))
        with pytest.raises(FetchFailed, match="CutOff: it is cut off after 5 packed bytes"):
            await fetcher.fetch(site.at("/about"))


async def test_all_members_of_a_packed_page_are_read() -> None:
    body = gzip.compress(b"hello ") + gzip.compress(b"world")
    with LocalSite() as site:
        site.then(Answer(media_type="text/plain", headers={"content-encoding": "gzip"}, body=body))
        page = await fetcher_for(site, robots=False).fetch(site.at("/about"))
    assert (page.text, page.is_whole) == ("hello world", True)


async def test_rules_of_which_some_are_lost_are_not_followed_as_if_they_were_all() -> None:
    packed = gzip.compress(b"User-agent: *\nDisallow: /private\n" + b"#" * 99 + b"\nUser-agent: locus\nDisallow: /\n")
    with LocalSite() as site:
        site.then(Answer(media_type="text/plain", headers={"content-encoding": "gzip"}, body=packed[:-12]))
        with pytest.raises(FetchFailed, match="CutOff"):
            await fetcher_for(site).fetch(site.at("/about"))


@pytest.mark.parametrize(("path", "kept"), [("hidden", "Gallium."), ("invisible", "Gallium melts.")])
async def test_what_a_reader_does_not_see_the_model_does_not_read(site: LocalSite, path: str, kept: str) -> None:
    page = await fetcher_for(site).fetch(site.at(f"/hostile/{path}"))
    assert page.text == f"# A page\n\n{kept}"


# -- what is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("to-ssh", "port 22 is not allowed"),
        ("to-metadata", r"169\.254\.169\.254 is not on the public internet"),
        ("to-file", "begins with http"),
        ("to?http://user:secret@site.example/", "without a user name"),
        ("to?http://127.0.0.1/", r"127\.0\.0\.1 is not on the public internet"),
        ("to?http://[::ffff:127.0.0.1]/", "not on the public internet"),
        ("to?http://[64:ff9b::7f00:1]/", "not on the public internet"),
        ("to?//localhost/", "cannot be found|not on the public internet"),
        ("image", "got the type image/png"),
        ("binary", "got binary data"),
    ],
)
async def test_a_page_may_not_lead_elsewhere_or_be_something_else(site: LocalSite, path: str, said: str) -> None:
    with pytest.raises(WebError, match=said) as caught:
        await fetcher_for(site, robots=False).fetch(site.at(f"/hostile/{path}"))
    assert "secret" not in str(caught.value)
    assert site.paths == [f"/hostile/{path}"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("round", "redirected more than 5 times"),
        ("self", "redirected more than 5 times"),
        ("to-nowhere", "status 302"),
        ("endless", "larger than 5,000,000 bytes"),
        ("huge", "larger than 5,000,000 bytes"),
        ("gzip-bomb", "unpack to more than|larger than"),
        ("packed-twice", "encoded 2 times"),
        ("not-gzip", "DecodingError"),
        ("cut", "RemoteProtocolError"),
        ("reset", "ReadError"),
        ("no-status", "RemoteProtocolError"),
        ("long-header", "RemoteProtocolError"),
        ("nothing", "status 404"),
    ],
)
async def test_a_broken_page_is_one_error(site: LocalSite, path: str, said: str) -> None:
    with pytest.raises(FetchFailed, match=said):
        await fetcher_for(site).fetch(site.at(f"/hostile/{path}"))
    assert site.wait_until_idle()


@pytest.mark.parametrize("path", ["slow", "silent"])
async def test_a_page_may_not_take_longer_than_it_may(site: LocalSite, path: str) -> None:
    with pytest.raises(FetchFailed, match=r"took longer than 0\.5 seconds"):
        await fetcher_for(site, timeout=0.5).fetch(site.at(f"/hostile/{path}"))
    assert site.wait_until_idle()


@pytest.mark.parametrize(
    "path", [each for each in hostile_paths() if each.rpartition("/")[2] not in ("slow", "silent", "instructions")]
)
async def test_every_hostile_page_ends_and_leaves_no_connection(site: LocalSite, path: str) -> None:
    with anyio.fail_after(60):
        try:
            page = await fetcher_for(site, timeout=50.0).fetch(site.at(path))
        except WebError as e:
            said = str(e)
        else:
            said = page.title
            assert len(page.text) <= 3_000_000
    assert len(said) <= 1_000
    assert site.wait_until_idle()


async def test_cancelling_ends_a_fetch_at_once(site: LocalSite) -> None:
    fetcher = fetcher_for(site, robots=False)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(fetcher.fetch, site.at("/hostile/silent"))
            await anyio.to_thread.run_sync(site.wait_for, lambda: bool(site.received))
            group.cancel_scope.cancel()
    assert site.wait_until_idle()


# -- names and addresses --------------------------------------------------------------------------------


async def test_a_name_is_resolved_once_and_the_address_that_was_judged_is_connected_to(site: LocalSite) -> None:
    # The second answer is where a name that changes its mind would lead.
    names = Names(site_example=[["127.0.0.1"], ["127.0.0.2"]])
    fetcher = fetcher_for(site, names, allow=(f"site.example:{site.port}",), robots=False)
    page = await fetcher.fetch(f"http://site.example:{site.port}/elements/gallium")
    assert page.title.startswith("Gallium")
    assert names.asked == ["site.example"]
    assert site.received[0].headers["host"] == f"site.example:{site.port}"


async def test_a_name_that_becomes_private_later_is_never_followed_there(no_network: NetworkGuard) -> None:
    with LocalSite() as site:
        names = Names(rebinding_example=[["8.8.8.8"], ["127.0.0.1"]])
        fetcher = Fetcher(WebSettings(robots=False), resolve=names)
        # The connection that is refused by the test is the one that was to be made: to the address that was judged.
        with contextlib.suppress(NetworkRefused, ExceptionGroup):
            await fetcher.fetch("http://rebinding.example/")
        assert {(each.what, each.where) for each in no_network.refused} == {("connect to", "8.8.8.8:80")}
        no_network.refused.clear()
        assert names.asked == ["rebinding.example"]
        assert site.connections == 0


async def test_each_redirect_is_judged_anew(site: LocalSite) -> None:
    names = Names(site_example=[["127.0.0.1"]], inner_example=[["10.0.0.1"]])
    fetcher = fetcher_for(site, names, allow=(f"site.example:{site.port}",), robots=False)
    with pytest.raises(FetchRefused, match=r"inner\.example is not on the public internet \(10\.0\.0\.1\)"):
        await fetcher.fetch(f"http://site.example:{site.port}/hostile/to?http://inner.example/")
    assert names.asked == ["site.example", "inner.example"]


async def test_the_next_address_is_tried_where_one_does_not_answer(site: LocalSite) -> None:
    names = Names(site_example=[["127.0.0.2", "127.0.0.1"]])
    fetcher = fetcher_for(site, names, allow=(f"site.example:{site.port}",), robots=False)
    assert (await fetcher.fetch(f"http://site.example:{site.port}/about")).title.startswith("About")


async def test_neither_proxies_nor_passwords_of_the_environment_count(
    site: LocalSite, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("home")
    (folder / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    with LocalServer() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.setenv("NETRC", str(folder / ".netrc"))
        await fetcher_for(site).fetch(site.at("/about"))
        assert proxy.connections == 0
    assert all("authorization" not in each.headers for each in site.received)


async def test_a_cookie_is_not_kept() -> None:
    with LocalSite(robots="") as site:
        site.then(Answer(media_type="text/plain", headers={"set-cookie": "id=1"}, body=""))
        site.then(Answer(status=302, headers={"set-cookie": "id=1", "location": "/plain.txt"}))
        visit = Visit()
        await fetcher_for(site).fetch(site.at("/about"), visit)
        await fetcher_for(site).fetch(site.at("/plain.txt"), visit)
        assert len(site.received) > 2
        assert all("cookie" not in each.headers for each in site.received)


async def test_a_certificate_is_checked_for_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    served, trusted = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("site.example").configure_cert(served)
    authority.configure_trust(trusted)
    seen: list[str | None] = []
    served.sni_callback = lambda _socket, name, _context: seen.append(name)

    async def serve(stream: anyio.abc.SocketStream) -> None:
        try:
            secure = await anyio.streams.tls.TLSStream.wrap(stream, ssl_context=served, server_side=True)
            await secure.receive()
            await secure.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nhi")
        except (anyio.BrokenResourceError, anyio.EndOfStream, ssl.SSLError):
            pass  # the client does not trust the certificate
        finally:
            await anyio.aclose_forcefully(stream)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        for name, right in (("site.example", True), ("other.example", False)):
            settings = WebSettings(allow=(f"{name}:{port}",), robots=False)
            names = Names(site_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])
            fetcher = Fetcher(settings, resolve=names, tls=trusted)
            if right:
                assert (await fetcher.fetch(f"https://{name}:{port}/")).text == "hi"
            else:
                with pytest.raises(FetchFailed, match="certificate"):
                    await fetcher.fetch(f"https://{name}:{port}/")
        group.cancel_scope.cancel()
    assert seen == ["site.example", "other.example"]


# -- robots.txt, and what a run remembers ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/private/diary", False), ("/private/open", True), ("/notes.tmp", False), ("/hostile/to?/private/diary", False)],
)
async def test_robots_txt_is_followed_at_each_redirect(site: LocalSite, path: str, allowed: bool) -> None:
    if allowed:
        assert isinstance(await fetcher_for(site).fetch(site.at(path)), Page)
        return
    with pytest.raises(FetchRefused, match=r"robots\.txt of 127\.0\.0\.1 does not allow"):
        await fetcher_for(site).fetch(site.at(path))
    assert path.partition("?")[2] or site.paths == ["/robots.txt"]
    assert await fetcher_for(site, robots=False).fetch(site.at(path))


@pytest.mark.parametrize(
    ("answer", "allowed"),
    [
        (Answer(status=404), True),
        (Answer(status=403), True),
        (Answer(status=503), False),
        (Answer(media_type="text/plain", body="User-agent: locus\nDisallow: /"), False),
        (Answer(media_type="text/html", body="<h1>Not found</h1>"), True),
        (Answer(media_type="text/plain", body=b"#" * 600_000 + b"\nUser-agent: *\nDisallow: /"), True),
        (Answer(media_type="text/plain", body=b"User-agent: *\nDisallow: /*" + b"a*" * 200_000 + b"b"), True),
        (Answer(status=302, headers={"location": "/private/robots.txt"}), True),
    ],
    ids=["none", "closed", "failing", "forbids", "a page", "cut", "expensive", "moved"],
)
async def test_a_site_without_rules_allows_and_one_that_fails_does_not(answer: Answer, allowed: bool) -> None:
    with LocalSite() as site:
        site.then(answer)
        if allowed:
            await fetcher_for(site).fetch(site.at("/about"))
        else:
            with pytest.raises(FetchRefused, match=r"robots\.txt"):
                await fetcher_for(site).fetch(site.at("/about"))


async def test_a_run_asks_for_the_rules_and_for_a_page_once(site: LocalSite) -> None:
    fetcher, visit = fetcher_for(site), Visit()
    for path in ("/about", "/about", "/plain.txt", "/about"):
        await fetcher.fetch(site.at(path), visit)
    assert site.paths == ["/robots.txt", "/about", "/plain.txt"]
    for path in ("/elements/gold", "/elements/iron", "/elements/tin"):
        await fetcher.fetch(site.at(path), visit)
    assert len(visit.pages) == Fetcher.remembered
