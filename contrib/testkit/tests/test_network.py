"""No test reaches beyond this machine, however it tries, and whoever tried is named."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from locus import Agent
from locus_testkit import NetworkGuard, NetworkRefused, ScriptedModel, call
from locus_testkit.network import _is_here

pytest_plugins = ["pytester"]

#: For documentation (RFC 5737, RFC 3849): nobody answers there, should the guard fail.
FAR, FAR6, NAME = "192.0.2.1", "2001:db8::1", "guard.example.org"


def connect(family: socket.AddressFamily, host: str) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)
        sock.connect((host, 9))


def connect_ex() -> None:
    with socket.socket() as sock:
        sock.setblocking(False)
        sock.connect_ex((FAR, 9))


def send(far: bytes = b"x") -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(far, (FAR, 9))


def send_message() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendmsg([b"x"], (), 0, (FAR, 9))


WAYS: dict[str, tuple[Callable[[], object], str, str]] = {
    "connect": (lambda: connect(socket.AF_INET, FAR), "connect to", f"{FAR}:9"),
    "connect by name": (lambda: connect(socket.AF_INET, NAME), "connect to", f"{NAME}:9"),
    "connect 6": (lambda: connect(socket.AF_INET6, FAR6), "connect to", f"{FAR6}:9"),
    "connect mapped": (lambda: connect(socket.AF_INET6, f"::ffff:{FAR}"), "connect to", f"::ffff:{FAR}:9"),
    "connect_ex": (connect_ex, "connect to", f"{FAR}:9"),
    "create_connection": (lambda: socket.create_connection((FAR, 9), timeout=1), "connect to", f"{FAR}:9"),
    "sendto": (send, "send to", f"{FAR}:9"),
    "sendmsg": (send_message, "send to", f"{FAR}:9"),
    "getaddrinfo": (lambda: socket.getaddrinfo(NAME, 80), "look up", repr(NAME)),
    "getaddrinfo bytes": (lambda: socket.getaddrinfo(NAME.encode(), 80), "look up", repr(NAME)),
    "gethostbyname": (lambda: socket.gethostbyname(NAME), "look up", repr(NAME)),
    "gethostbyaddr": (lambda: socket.gethostbyaddr(NAME), "look up", repr(NAME)),
    "getnameinfo": (lambda: socket.getnameinfo((FAR, 9), 0), "look up", f"{FAR}:9"),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_out_is_refused_and_says_who_and_where(way: str) -> None:
    attempt, what, where = WAYS[way]
    with NetworkGuard() as guard, pytest.raises(NetworkRefused) as caught:
        attempt()
    assert (caught.value.what, caught.value.where) == (what, where)
    assert guard.refused == [caught.value]
    assert Path(__file__).name in caught.value.who[0]
    assert "test_every_way_out" in str(caught.value)
    assert f"tried to {what} {where}" in str(caught.value)


@pytest.mark.anyio
@pytest.mark.parametrize("host", [FAR, NAME])
async def test_event_loops_are_refused_as_well(host: str) -> None:
    with NetworkGuard() as guard:
        with pytest.raises((NetworkRefused, ExceptionGroup)):
            await anyio.connect_tcp(host, 9)
        assert [each.what for each in guard.refused] == ["connect to" if host == FAR else "look up"]
        assert "test_event_loops_are_refused_as_well" in guard.refused[0].who[-1]


def test_asyncio_datagrams_and_threads_are_refused() -> None:
    def tried() -> None:
        with suppress(NetworkRefused):
            connect_ex()

    async def send() -> None:
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)
        )
        try:
            transport.sendto(b"x", (FAR, 9))
        finally:
            transport.close()

    with NetworkGuard() as guard:
        asyncio.run(send())
        thread = threading.Thread(target=tried, name="worker 7")
        thread.start()
        thread.join()
    assert [each.what for each in guard.refused] == ["send to", "connect to"]
    assert guard.refused[1].who[-2] == "in the thread 'worker 7'"


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST"])
async def test_this_machine_can_be_reached(host: str) -> None:
    async def echo(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.send(await stream.receive())

    with NetworkGuard() as guard:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        async with listener, anyio.create_task_group() as group:
            group.start_soon(listener.serve, echo)
            port = listener.extra(anyio.abc.SocketAttribute.local_port)
            async with await anyio.connect_tcp(host, port) as stream:
                await stream.send(b"hello")
                assert await stream.receive() == b"hello"
            group.cancel_scope.cancel()
    assert not guard.refused


def test_unix_sockets_are_not_concerned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a path of a socket is short
    with NetworkGuard() as guard, socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("s")
        server.listen()
        client.connect("s")
        one, two = socket.socketpair()
        one.close()
        two.close()
    assert not guard.refused


def test_names_of_this_machine() -> None:
    assert all(_is_here(name) for name in ("localhost", "a.localhost", "Localhost.", "", socket.gethostname()))
    assert not any(_is_here(name) for name in ("localhost.example.org", "example.org", "notlocalhost"))


def announce(host: str) -> None:
    """What Python tells before it connects, without connecting."""
    with socket.socket() as sock:
        sys.audit("socket.connect", sock, (host, 9))


@pytest.mark.network
def test_hosts_can_be_allowed_and_the_innermost_guard_counts() -> None:
    with NetworkGuard() as guard:
        with guard.allow(FAR):
            announce(FAR)
        with guard.allow(FAR), pytest.raises(NetworkRefused):
            announce("192.0.2.2")
        assert len(guard.refused) == 1
        with guard.allow(), NetworkGuard() as inner, pytest.raises(NetworkRefused):
            announce(FAR)
        assert (len(guard.refused), len(inner.refused)) == (1, 1)
        with guard.allow():
            announce(FAR)
    announce(FAR)  # and outside of it nothing is refused
    assert len(guard.refused) == 1


def test_nothing_is_listened_to_before_a_guard_is_entered() -> None:
    code = "import locus_testkit.network as n; print(n._heard); n.NetworkGuard().__enter__(); print(n._heard)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[True]"]


# -- in pytest ------------------------------------------------------------------------------------

TESTS = f"""
import socket
import pytest
from locus import Agent
from locus_testkit import NetworkRefused, ScriptedModel, call

def out():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", ("{FAR}", 9))

def test_raises():
    out()

def test_swallows():
    try:
        out()
    except BaseException:
        pass

def test_swallowed_by_a_run():
    def look():
        "Look."
        out()
    assert Agent(ScriptedModel(call("look"), "Done."), tools=[look]).run_sync("Look.").text == "Done."

@pytest.fixture
def before():
    try:
        out()
    except NetworkRefused:
        pass

def test_fixture(before):
    pass

@pytest.mark.network
def test_marked(before):
    socket.getaddrinfo("{FAR}", 1)

@pytest.mark.network("192.0.2.2")
def test_marked_for_another():
    out()

@pytest.mark.usefixtures("no_network")
@pytest.mark.network
def test_asks_for_it():
    try:
        out()
    except NetworkRefused:
        pass

def test_clears(no_network):
    with pytest.raises(NetworkRefused):
        out()
    no_network.refused.clear()

def test_stays_here():
    socket.getaddrinfo("localhost", 1)
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    plugins = ("-p", "anyio", "-p", "locus_testkit", "-p", "no:cacheprovider")
    pytester.makepyfile(TESTS)
    # In a process of its own: one in this process would forget what of the kernel was imported meanwhile.
    return pytester.runpytest_subprocess("--disable-plugin-autoload", "--strict-markers", *plugins, *arguments)


def test_an_ini_file_guards_every_test_that_is_not_marked(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nlocus_network = loopback\n")
    result = run(pytester)
    # The fixture of a test that asks for the guard fails at its end.
    result.assert_outcomes(passed=4, failed=4, errors=2)
    for name in ("raises", "swallows", "swallowed_by_a_run", "marked_for_another"):
        result.stdout.fnmatch_lines([f"FAILED *::test_{name}*"])
    assert result.stdout.str().count("E       locus_testkit.network.NetworkRefused: ") == 6
    for name in ("fixture", "asks_for_it"):
        result.stdout.fnmatch_lines([f"ERROR *::test_{name}*"])


def test_without_it_only_the_fixture_refuses(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from locus_testkit import network

        def test_plain():
            assert not network._guards

        def test_fixture(no_network):
            assert network._guards == [no_network]
        """
    )
    plugins = ("-p", "anyio", "-p", "locus_testkit", "-p", "no:cacheprovider")
    # In a process of its own: this one may be guarded.
    pytester.runpytest_subprocess("--disable-plugin-autoload", *plugins).assert_outcomes(passed=2)


def test_a_misspelled_option_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nlocus_network = no\n")
    result = run(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*locus_network must be 'any' or 'loopback', got 'no'*"])


def test_a_run_that_swallows_it_says_so_to_the_model_too() -> None:
    def look() -> str:
        """Look."""
        send()
        return "sent"

    with NetworkGuard() as guard:
        result = Agent(ScriptedModel(call("look"), "Done."), tools=[look]).run_sync("Look.")
    assert "tests reach this machine only" in str(result.state.tool_executions[0].error)
    assert len(guard.refused) == 1
