"""Stores that fail where a test says so: what is refused is not stored, and all else is as in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio.lowlevel
import pytest

from locus.core.journal import Body, Outcome, StepId
from locus.journal import Appended, Claim
from locus_testkit import FullStore, InterceptedStore

pytestmark = pytest.mark.anyio


def step(n: int, node: str = "think") -> Body:
    return Outcome(run_id="r", step_id=StepId(n, node, 0), value=n)


async def test_a_function_sees_the_arguments_and_decides_whether_the_work_is_done() -> None:
    seen: list[object] = []

    async def wait(claim: Claim, bodies: list[Body]) -> None:
        await anyio.lowlevel.checkpoint()
        seen.append((claim.thread_id, len(bodies)))

    store = InterceptedStore({"append": wait})
    claim = await store.claim("t", "w")
    assert await store.append(claim, [step(0)]) is Appended.OK
    store.before["append"] = lambda claim, bodies: Appended.FENCED
    assert await store.append(claim, [step(1)]) is Appended.FENCED
    store.before.clear()
    store.after["append"] = lambda claim, bodies: Appended.UNKNOWN
    assert await store.append(claim, [step(2)]) is Appended.UNKNOWN
    assert [entry.body for entry in await store.read("t")] == [step(0), step(2)]
    assert seen == [("t", 1)]


@pytest.mark.parametrize("method", ["claim", "peek", "release", "fork"])
async def test_each_method_can_fail(method: str) -> None:
    def fail(*_: object) -> None:
        raise ConnectionError(method)

    store = InterceptedStore()
    claim = await store.claim("t", "w")
    await store.append(claim, [step(0)])
    store.before[method] = fail  # type: ignore[index]
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "claim": lambda: store.claim("other", "w"),
        "peek": lambda: store.peek("t"),
        "release": lambda: store.release(claim),
        "fork": lambda: store.fork("t", 1, "fork"),
    }
    with pytest.raises(ConnectionError, match=method):
        await calls[method]()
    assert [(info.thread_id, info.holder) for info in await store.threads()] == [("t", "w")]


async def test_a_full_store_takes_nothing_until_it_is_mended() -> None:
    store = FullStore(2)
    claim = await store.claim("t", "w")
    assert await store.append(claim, [step(0)]) is Appended.OK
    for _ in range(2):
        with pytest.raises(OSError, match="no space left on device"):
            await store.append(claim, [step(1)])
    store.mend()
    assert await store.append(claim, [step(2)]) is Appended.OK
    assert [entry.body for entry in await store.read("t")] == [step(0), step(2)]
    assert store.writes == 4


async def test_only_some_entries_count() -> None:
    store = FullStore(1, counts=lambda body: isinstance(body, Outcome) and body.step_id.node == "execute")
    claim = await store.claim("t", "w")
    assert await store.append(claim, [step(0)]) is Appended.OK
    with pytest.raises(OSError, match="no space"):
        await store.append(claim, [step(1), step(2, "execute")])
    with pytest.raises(OSError, match="no space"):
        await store.append(claim, [step(3)])
    assert len(await store.read("t")) == 1
