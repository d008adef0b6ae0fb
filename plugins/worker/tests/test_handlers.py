"""A worker with handlers, on a store in memory: slots, leases, ends, and how it leaves."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import pytest

from locus.core.errors import ConfigError, StoreError
from locus.core.journal import Submitted
from locus.core.messages import Message, Role
from locus.journal import MemoryStore, Offer
from locus_plugin_worker import Back, Done, Job, Notice, Worker

pytestmark = pytest.mark.anyio

#: Seconds after which what should have happened has not.
PATIENCE = 20.0


async def submit(store: MemoryStore, *threads: str, queue: str = "q", **options: Any) -> None:
    for thread in threads:
        body = Submitted(run_id=thread, prompt=Message(Role.USER, "go"), queue=queue)
        assert await store.submit(thread, [body], queue=queue, **options)


class Log:
    """What a worker said, by kind."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []

    def __call__(self, notice: Notice) -> None:
        self.notices.append(notice)

    def __getitem__(self, kind: str) -> list[str]:
        return [each.thread_id for each in self.notices if each.kind == kind]


Handler = Callable[[Job], Awaitable[Any]]


async def work(store: Any, handlers: Mapping[str, Handler], **options: Any) -> Log:
    """Work until nothing is left."""
    log = Log()
    with anyio.fail_after(PATIENCE):
        await Worker(handlers, store, on_notice=log, **options).run(until_idle=True)
    return log


async def test_what_is_offered_is_run_and_ended() -> None:
    store, ran = MemoryStore(), []
    await submit(store, "a", "b", "c")

    async def handle(job: Job) -> None:
        ran.append((job.thread_id, job.queue, job.delivered))

    log = await work(store, {"q": handle})

    assert sorted(ran) == [("a", "q", 1), ("b", "q", 1), ("c", "q", 1)]
    assert sorted(log["done"]) == ["a", "b", "c"]
    assert await store.queues() == ()


async def test_nothing_is_taken_that_no_slot_is_free_for() -> None:
    store, most, now = MemoryStore(), 0, 0
    await submit(store, *"abcdef")

    async def handle(job: Job) -> None:
        nonlocal most, now
        now += 1
        held = (await store.depth("q")).held
        most = max(most, now, held)
        await anyio.sleep(0.01)
        now -= 1

    await work(store, {"q": handle}, slots=2)

    assert most == 2


async def test_an_offer_is_extended_while_its_job_runs_longer_than_its_lease() -> None:
    store, ran = MemoryStore(lease=0.15), 0
    await submit(store, "a")

    async def handle(job: Job) -> None:
        nonlocal ran
        ran += 1
        await anyio.sleep(0.6)

    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(work, store, {"q": handle})

    assert ran == 1


async def test_a_handler_that_fails_is_offered_its_job_again_later() -> None:
    store, tries = MemoryStore(), 0
    await submit(store, "a")

    async def handle(job: Job) -> None:
        nonlocal tries
        tries += 1
        raise ValueError("no")

    log = await work(store, {"q": handle})

    (back,) = [each for each in log.notices if each.kind == "back"]
    assert (tries, back.is_failure, back.text, back.seconds) == (1, True, "ValueError: no", 1.0)
    assert (await store.depth("q")).sleeping == 1


async def test_a_handler_may_send_its_job_to_another_queue() -> None:
    store, ran = MemoryStore(), []
    await submit(store, "a")

    async def first(job: Job) -> Back:
        return Back(queue="next")

    async def second(job: Job) -> Done:
        ran.append(job.queue)
        return Done(text="all right")

    log = await work(store, {"q": first, "next": second})

    assert ran == ["next"]
    assert [each.text for each in log.notices if each.kind == "done"] == ["all right"]


async def test_queues_of_a_pattern_are_found_and_none_waits_for_another() -> None:
    store, order = MemoryStore(), []
    await submit(store, *(f"a{n}" for n in range(6)), queue="tenant:a")
    await submit(store, "b0", queue="tenant:b")
    await submit(store, "x", queue="elsewhere")

    async def handle(job: Job) -> None:
        order.append(job.thread_id)

    worker = Worker({"q": handle, "tenant:a": handle, "tenant:b": handle}, store, queues=["tenant:*"], slots=1)
    with anyio.fail_after(PATIENCE):
        await worker.run(until_idle=True)

    assert "x" not in order
    assert order.index("b0") <= 3


async def test_a_drained_worker_takes_no_more_and_lets_its_job_give_way() -> None:
    store, ran = MemoryStore(), []
    await submit(store, "a", "b")

    async def handle(job: Job) -> Back:
        ran.append(job.thread_id)
        worker.drain()
        await job.leaving.wait()
        return Back(text="yielded")

    log = Log()
    worker = Worker({"q": handle}, store, slots=1, on_notice=log)
    with anyio.fail_after(PATIENCE):
        await worker.run()

    assert len(ran) == 1
    assert (await store.depth("q")).ready == 2
    assert [each.kind for each in log.notices] == ["started", "taken", "draining", "back", "stopped"]


async def test_what_does_not_give_way_is_cancelled_and_given_back() -> None:
    store = MemoryStore()
    ended: list[str] = []
    await submit(store, "a")

    async def handle(job: Job) -> None:
        worker.drain()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(job.thread_id)

    worker = Worker({"q": handle}, store, drain=0.05)
    with anyio.fail_after(PATIENCE):
        await worker.run()

    assert ended == ["a"]
    assert (await store.depth("q")).ready == 1


async def test_a_worker_that_is_cancelled_gives_back_what_it_has() -> None:
    store, began = MemoryStore(), anyio.Event()
    await submit(store, "a")

    async def handle(job: Job) -> None:
        began.set()
        await anyio.sleep_forever()

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(Worker({"q": handle}, store).run)
            await began.wait()
            group.cancel_scope.cancel()

    assert (await store.depth("q")).ready == 1


class Failing(MemoryStore):
    """A store whose queue fails in some looks."""

    def __init__(self, *fails: int) -> None:
        super().__init__()
        self.looks, self.fails = 0, fails

    async def take(self, *arguments: Any, **options: Any) -> Offer | None:
        self.looks += 1
        if self.looks in self.fails:
            raise StoreError("the disk is away")
        return await super().take(*arguments, **options)


async def test_a_store_that_fails_for_a_while_is_asked_again() -> None:
    store, ran = Failing(2, 3), []
    await submit(store, "a", "b")

    async def handle(job: Job) -> None:
        ran.append(job.thread_id)

    log = await work(store, {"q": handle}, slots=1)

    assert sorted(ran) == ["a", "b"]
    assert [each.text for each in log.notices if each.kind == "error"] == ["the disk is away"] * 2


async def test_a_store_that_cannot_be_used_at_all_is_an_error() -> None:
    class Gone(MemoryStore):
        async def queues(self) -> tuple[str, ...]:
            raise StoreError("the disk is away")

    with pytest.raises(StoreError, match="the disk is away"):
        await work(Gone(), {"q": _nothing})


async def test_a_loop_that_does_not_turn_is_noticed_and_its_offers_go_to_others() -> None:
    store, said = MemoryStore(lease=0.1), Log()
    await submit(store, "a")
    renewals: list[Callable[[], bool]] = []
    store.renew_while = renewals.append  # type: ignore[attr-defined]  # a store with leases of its own
    alive: list[bool] = []

    async def handle(job: Job) -> None:
        time.sleep(0.7)  # noqa: ASYNC251  this is what it is about
        alive.append(renewals[0]())
        stolen = await store.take(["q"], "another")
        assert stolen is not None
        await stolen.done()

    worker = Worker({"q": handle}, store, stuck_after=0.2, on_notice=said)
    with anyio.fail_after(PATIENCE):
        await worker.run(until_idle=True)

    assert [each.kind for each in said.notices if each.is_failure] == ["stuck"]
    assert alive == [False]


async def _nothing(job: Job) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ({}, {}, "expected the names of queues"),
        ({"q": _nothing}, {"slots": 0}, "slots must be an integer of at least 1, got 0"),
        ({"q": _nothing}, {"drain": -1.0}, "drain must be 0 or more seconds, got -1.0"),
        ([3], {}, "expected agents, or a mapping from queues to handlers, got 3"),
    ],
)
async def test_what_is_wrong_is_said_before_anything_runs(given: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Worker(given, MemoryStore(), **options)


async def test_a_store_without_queues_is_refused() -> None:
    class Plain:
        keeps_history = True

    with pytest.raises(ConfigError, match="Plain keeps no queues"):
        Worker({"q": _nothing}, Plain())  # type: ignore[arg-type]  # this is what it is about
