"""An append whose answer was lost is resolved: it was stored once, or another claim came first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import anyio
import pytest

from locus import Agent, tool
from locus.core.errors import Fenced
from locus.core.journal import Body, Outcome, StepId
from locus.journal import Appended
from locus_plugin_nats import DevServer, NatsSettings, NatsStore
from locus_testkit import ScriptedModel, call, never
from locus_testkit.freezing import freeze_process, thaw_process

from .proxy import Loss, Proxy
from .streams import expire_lease, set_patience

pytestmark = pytest.mark.anyio


def step(n: int) -> Body:
    return Outcome(run_id="run", step_id=StepId(0, "step", n), value=f"value {n}")


@pytest.fixture
def proxy(server: DevServer) -> Iterator[Proxy]:
    with Proxy(server.port, lambda subject: ".j." in subject and subject.endswith(".e")) as made:
        yield made


@pytest.fixture
def settings(prefix: str) -> NatsSettings:
    return NatsSettings(prefix=prefix, patience=5)


@pytest.mark.parametrize("losses", [["answer"], ["publish"], ["answer", "answer"], ["publish", "answer"]], ids="-".join)
async def test_append_whose_answer_was_lost_is_stored_once(
    proxy: Proxy, settings: NatsSettings, losses: list[Loss]
) -> None:
    """Whether the publish was lost or its answer, the append is reported as stored, and is there once."""
    async with NatsStore(f"nats://127.0.0.1:{proxy.port}", settings) as store:
        claim = await store.claim("t", "w")
        assert await store.append(claim, [step(1)]) is Appended.OK
        proxy.losses[:] = losses
        assert await store.append(claim, [step(2)]) is Appended.OK
        assert proxy.lost == losses
        assert await store.append(claim, [step(3)]) is Appended.OK
        assert [entry.body for entry in await store.read("t")] == [step(1), step(2), step(3)]


async def test_publish_that_was_lost_while_another_worker_claimed_is_fenced(
    server: DevServer, proxy: Proxy, settings: NatsSettings
) -> None:
    """The append is refused, and what the successor writes is all there is."""
    async with NatsStore(f"nats://127.0.0.1:{proxy.port}", settings) as here, NatsStore(server.url, settings) as there:
        stale = await here.claim("t", "w")
        await expire_lease(here)
        proxy.losses[:] = ["publish"]
        posted = here.post(stale, [step(1)])
        fresh = await there.claim("t", "another")
        assert await there.append(fresh, [step(2)]) is Appended.OK
        verdict = await posted.wait()
        stored = [entry.body for entry in await there.read("t")]
        assert (verdict, stored) in ((Appended.FENCED, [step(2)]), (Appended.OK, [step(1), step(2)]))


async def test_stored_append_of_a_claim_that_was_lost_meanwhile_is_reported_as_stored(
    server: DevServer, proxy: Proxy, settings: NatsSettings
) -> None:
    """The successor's claim came behind the entry, and shows it; the next append is refused."""
    async with NatsStore(f"nats://127.0.0.1:{proxy.port}", settings) as here, NatsStore(server.url, settings) as there:
        stale = await here.claim("t", "w")
        await expire_lease(here)
        proxy.losses[:] = ["answer"]
        assert await here.append(stale, [step(1)]) is Appended.OK
        fresh = await there.claim("t", "another")
        assert [entry.body for entry in fresh.entries] == [step(1)]
        assert await here.append(stale, [step(2)]) is Appended.FENCED
        assert len(await there.read("t")) == 1


async def test_claim_whose_write_was_not_answered_is_over_at_once(
    own_server: DevServer, settings: NatsSettings
) -> None:
    """Its holder hears of it, it writes nothing more, and the thread is free when the server is back."""
    async with NatsStore(own_server.url, settings) as store:
        claim = await store.claim("t", "w")
        await set_patience(store, 3.0)
        with frozen(own_server):
            assert await store.append(claim, [step(1)]) is Appended.UNKNOWN
            assert claim.watch.is_lost
        await set_patience(store, 30)
        assert not await store.renew(claim)
        assert await store.append(claim, [step(2)]) is Appended.FENCED
        fresh = await store.claim("t", "another")
        assert [entry.body for entry in fresh.entries] in ([], [step(1)])


async def test_run_is_cancelled_while_its_model_answers_when_a_write_was_not_answered(
    own_server: DevServer, settings: NatsSettings
) -> None:
    """The write was under way beside the call, whose answer could not be recorded."""
    async with NatsStore(own_server.url, settings) as store:
        frost = ExitStack()

        @tool(effect="pure")
        async def freeze() -> str:
            """Have the server answer nothing from now on."""
            await set_patience(store, 3.0)
            frost.enter_context(frozen(own_server))
            return "frozen"

        model = ScriptedModel(call("freeze"), never)
        agent = Agent(model, tools=[freeze], checkpointer=store)
        with frost, anyio.fail_after(60), pytest.raises(Fenced):
            await agent.run("Go.", thread_id="t")
        assert len(model.requests) == 2
        await set_patience(store, 30)


@contextmanager
def frozen(server: DevServer) -> Iterator[None]:
    """A server that takes what it is sent, and answers nothing."""
    assert server.process is not None
    freeze_process(server.process.pid)
    try:
        yield
    finally:
        thaw_process(server.process.pid)
