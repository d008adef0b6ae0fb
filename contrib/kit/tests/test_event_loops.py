"""The event loop that a server and a store's thread work on."""

from __future__ import annotations

import asyncio
import sys

import pytest

from locus_kit import event_loops
from locus_kit.event_loops import new_event_loop


async def add(left: int, right: int) -> int:
    await asyncio.sleep(0)
    return left + right


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="uvloop is for CPython")
def test_it_is_one_of_uvloop_where_that_is_installed() -> None:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        assert type(runner.get_loop()).__module__ == "uvloop"
        assert runner.run(add(1, 2)) == 3


def test_it_is_one_of_asyncio_where_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loops, "uvloop", None)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        assert type(runner.get_loop()).__module__.startswith("asyncio")
        assert runner.run(add(1, 2)) == 3
