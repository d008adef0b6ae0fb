"""A server that cannot be reached is reported after `patience`, whatever was asked."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable

import anyio
import pytest

from locus_plugin_postgres import PostgresStore, PostgresUnreachable

pytestmark = pytest.mark.anyio

#: Bounds what would wait for minutes; nothing here has to beat it.
_HANGS = 60.0


@pytest.mark.parametrize("asked", ["threads", "delete", "fork"])
async def test_a_call_that_may_take_long_does_not_wait_long_for_a_server_that_is_away(asked: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"postgres://ann@127.0.0.1:{taken.getsockname()[1]}/shop"
        async with PostgresStore(url, patience=0.3) as store:
            calls: dict[str, Callable[[], Awaitable[object]]] = {
                "threads": store.threads,
                "delete": lambda: store.delete("t"),
                "fork": lambda: store.fork("t", 1, "u"),
            }
            with anyio.fail_after(_HANGS), pytest.raises(PostgresUnreachable, match=r"could not be reached for 0\.3 s"):
                await calls[asked]()
