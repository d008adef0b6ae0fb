"""One at a time on each thread, in order, and nothing is kept of those who have left."""

from __future__ import annotations

import asyncio

from locus_plugin_nats.turns import Queued, Turn


def test_those_who_wait_come_in_order_and_other_threads_do_not_wait() -> None:
    async def main() -> None:
        queued: dict[str, Queued] = {}
        done: list[str] = []

        async def work(name: str, key: str) -> None:
            async with Turn(queued, key):
                for _ in range(3):
                    await asyncio.sleep(0)
                done.append(name)

        async with Turn(queued, "a"):
            tasks = [asyncio.create_task(work(f"a{n}", "a")) for n in range(3)]
            await work("b", "b")
            assert (done, queued["a"].count) == (["b"], 4)
        await asyncio.gather(*tasks)
        assert done == ["b", "a0", "a1", "a2"]
        assert queued == {}

    asyncio.run(main())


def test_one_who_is_cancelled_or_fails_leaves_the_turn_to_the_next() -> None:
    async def main() -> None:
        queued: dict[str, Queued] = {}
        done: list[str] = []

        async def work(name: str) -> None:
            async with Turn(queued, "a"):
                done.append(name)
                raise ValueError(name)

        async with Turn(queued, "a"):
            tasks = [asyncio.create_task(work(name)) for name in ("first", "second", "third")]
            await asyncio.sleep(0)
            tasks[0].cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(each) for each in ended] == [asyncio.CancelledError, ValueError, ValueError]
        assert done == ["second", "third"]
        assert queued == {}

    asyncio.run(main())
