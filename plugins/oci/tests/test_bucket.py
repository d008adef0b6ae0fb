"""The store when the service fails, answers are lost, workers die and others are faster."""

from __future__ import annotations

import contextlib
import importlib
import json
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import anyio
import httpx2
import pytest

import locus_plugin_oci.bucket
from locus import Agent
from locus.core.errors import ConfigError, JournalError, NothingToResume, StoreError, ThreadBusy
from locus.core.journal import Outcome, StepId
from locus.journal.store import Appended, Claim
from locus.models import ModelRequest
from locus.plugins.providers import provide
from locus_plugin_oci import (
    BucketBusy,
    BucketDamaged,
    BucketDenied,
    BucketFailed,
    BucketMissing,
    BucketRefused,
    BucketTooNew,
    BucketUnreachable,
    OCIBucketBackend,
    OciSettings,
    StoreClosed,
)
from locus_plugin_oci.logs import Logs
from locus_testkit import ScriptedModel, call
from locus_testkit.localserver import Answer, LocalServer

from .emulator import Fault
from .kit import Home
from .verification import Keys

pytestmark = pytest.mark.anyio

HEAD = "locus/threads/t"
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def anyio_backend() -> str:
    """The store works in an event loop of its own, whoever asks; the contract asks on both."""
    return "asyncio"


def outcomes(*words: str) -> list[Outcome]:
    return [Outcome(run_id="run", step_id=StepId(0, word), value=word) for word in words]


async def words(store: OCIBucketBackend, thread_id: str = "t", after: int = 0) -> list[Any]:
    return [entry.body.value for entry in await store.read(thread_id, after) if isinstance(entry.body, Outcome)]


async def claim_and_append(store: OCIBucketBackend, *bodies: str, thread_id: str = "t") -> Claim:
    claim = await store.claim(thread_id, "the worker")
    assert await store.append(claim, outcomes(*bodies)) is Appended.OK
    return claim


# -- what it is -----------------------------------------------------------------------------------


async def test_it_is_found_where_programs_look_for_it(home: Home) -> None:
    """Under the fixed import path, and behind the plugin's scheme."""
    assert importlib.import_module("locus.memory.backends").OCIBucketBackend is OCIBucketBackend
    store = provide("checkpointer", "oci:journals/team/runs", settings={"oci": home.settings()})
    assert isinstance(store, OCIBucketBackend)
    async with store:
        await claim_and_append(store, "one")
    assert home.names() == ["team/runs/threads/t"]


async def test_an_append_is_one_request(home: Home) -> None:
    """The head alone, however many bodies; nothing is read."""
    async with home.store() as store:
        claim = await claim_and_append(store, "one")
        before = list(home.bucket.requests)
        assert await store.append(claim, outcomes("two", "three")) is Appended.OK
        assert home.bucket.requests[len(before) :] == [("PUT", "locus/threads/t")]


async def test_appends_at_the_same_time_share_a_request(home: Home) -> None:
    """Tools of one turn record their outcomes together."""
    async with home.store() as store:
        claim = await claim_and_append(store, "one")
        before = home.bucket.count_requests("PUT", "threads/")
        posts = [store.post(claim, outcomes(f"tool-{n}")) for n in range(8)]
        assert {await each.wait() for each in posts} == {Appended.OK}
        assert home.bucket.count_requests("PUT", "threads/") - before <= 4
        assert await words(store) == ["one", *(f"tool-{n}" for n in range(8))]


async def test_what_is_asked_comes_behind_what_was_begun(home: Home) -> None:
    """Though nobody waits for it: reading, listing and looking for work see what was posted and given back."""
    async with home.store() as store:
        claim = await claim_and_append(store, "one")
        begun = store.post(claim, outcomes("two"))
        assert await words(store) == ["one", "two"]
        with anyio.CancelScope() as scope:
            scope.cancel()
            await store.release(claim, NOON)
        assert await store.next_ready(NOON) == "t"
        claim = await store.claim("t", "w")
        last = store.post(claim, outcomes("three"))
        assert [info.head for info in await store.threads()] == [3]
        assert await begun.wait() is await last.wait() is Appended.OK


async def test_prefixes_know_nothing_of_each_other(home: Home) -> None:
    one, two = (OCIBucketBackend("journals", prefix=name, settings=home.settings()) for name in ("a", "a/b"))
    async with one, two:
        await claim_and_append(one, "one")
        assert [info.thread_id for info in await two.threads()] == []
        await claim_and_append(two, "two")
        assert (await words(one), await words(two)) == (["one"], ["two"])


async def test_the_namespace_is_asked_for_once(home: Home) -> None:
    async with home.store(namespace=None) as store:
        await claim_and_append(store, "one")
        assert await words(store) == ["one"]
    assert [each.path for each in home.server.received].count("/n") == 1


# -- answers that are lost, and failures ----------------------------------------------------------


@pytest.mark.parametrize("status", [0, 500, 503])
@pytest.mark.parametrize("done", [True, False], ids=["stored", "not stored"])
async def test_a_failure_by_the_way_is_sent_again_and_stored_once(home: Home, status: int, done: bool) -> None:
    """Whether or not the first try had its effect."""
    async with home.store() as store:
        claim = await claim_and_append(store, "one")
        home.bucket.faults.append(Fault(status=status, done=done))
        assert await store.append(claim, outcomes("two")) is Appended.OK
        assert await store.append(claim, outcomes("three")) is Appended.OK
        assert await words(store) == ["one", "two", "three"]


@pytest.mark.parametrize("done", [True, False], ids=["stored", "not stored"])
async def test_an_append_without_an_answer_is_unknown(home: Home, done: bool) -> None:
    """All answers are lost, and the head cannot be read either; the next claim tells."""
    async with home.store(retries=1) as store:
        claim = await claim_and_append(store, "one")
        home.bucket.faults += [Fault(times=2, status=0, done=done), Fault(times=2, method="GET", status=0)]
        assert await store.append(claim, outcomes("two")) is Appended.UNKNOWN
        assert home.bucket.faults == []
        await store.release(claim)
        again = await store.claim("t", "next")
        wanted = ["one", "two"] if done else ["one"]
        assert [entry.body.value for entry in again.entries if isinstance(entry.body, Outcome)] == wanted


async def test_a_service_that_is_busy_stores_nothing_and_says_so(home: Home) -> None:
    """429 comes before anything is done, so it is no case of not knowing."""
    async with home.store(retries=2) as store:
        claim = await claim_and_append(store, "one")
        home.bucket.faults.append(Fault(times=3, status=429, code="TooManyRequests"))
        with pytest.raises(BucketBusy) as caught:
            await store.append(claim, outcomes("two"))
        assert (caught.value.status, caught.value.code, caught.value.bucket) == (429, "TooManyRequests", "journals")
        assert caught.value.request_id
        assert await store.append(claim, outcomes("three")) is Appended.OK
        assert await words(store) == ["one", "three"]


async def test_nobody_there_is_a_store_error(home: Home) -> None:
    with LocalServer() as gone:
        url = gone.url
    async with home.store(storage_endpoint=url, retries=1) as store:
        with pytest.raises(BucketUnreachable, match="cannot be reached"):
            await store.claim("t", "w")


async def test_who_may_not_and_what_is_not_there_are_distinguished(home: Home, keys: Keys) -> None:
    async with home.store(bucket="elsewhere") as store:
        with pytest.raises(BucketMissing, match="BucketNotFound"):
            await store.read("t")
    home.config.write_text(home.config.read_text().replace("aaaauser", "somebody"))
    async with home.store() as store:
        with pytest.raises(BucketDenied, match="check the profile") as caught:
            await store.claim("t", "w")
    assert "PRIVATE" not in str(caught.value)


async def test_a_claim_whose_answer_was_lost_is_given_back(home: Home) -> None:
    """It was made, and nobody can tell: this store gives it back as soon as it can, and nobody waits for ever."""
    async with home.store(retries=0) as store, home.store() as other:
        unreadable = Fault(times=None, method="GET", status=0)
        home.bucket.faults.append(Fault(status=0, done=True, action=lambda: home.bucket.faults.append(unreadable)))
        with pytest.raises(BucketUnreachable):
            await store.claim("t", "lost")
        home.bucket.faults.clear()
        with pytest.raises(ThreadBusy, match="lost"):
            await other.claim("t", "w")
        assert (await store.claim("t", "again")).head == 0


async def test_a_release_that_fails_is_made_up_for(home: Home) -> None:
    async with home.store(retries=0) as store, home.store() as other:
        claim = await claim_and_append(store, "one")
        home.bucket.faults.append(Fault(status=500))
        await store.release(claim)
        with pytest.raises(ThreadBusy):
            await other.claim("t", "w")
        await store.release(await store.claim("another", "w"))
        assert (await other.claim("t", "w")).head == 1


async def test_a_store_that_cannot_begin_says_why(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the certificates of the machine cannot be read; nobody waits for ever."""

    def broken(**options: Any) -> Any:
        raise FileNotFoundError("no certificates")

    monkeypatch.setattr(httpx2, "AsyncClient", broken)
    async with home.store() as store:
        for _ in range(2):
            with pytest.raises(FileNotFoundError, match="no certificates"):
                await store.read("t")


async def test_what_else_is_asked_of_a_closed_store_is_refused(home: Home) -> None:
    store = home.store()
    claim = await claim_and_append(store, "one")
    await store.aclose()
    await store.aclose()
    await store.release(claim)
    with pytest.raises(StoreClosed):
        await store.append(claim, outcomes("two"))
    async with home.store() as other:
        assert (await other.claim("t", "w")).head == 1, "closing gives threads back"
        assert len([name for name in home.bucket.objects if "/pulses/" in name]) == 1


async def test_a_thread_is_given_back_where_no_event_loop_runs(home: Home) -> None:
    """As when a run is closed from outside: what is asked is done, though nobody can wait for it."""
    async with home.store() as store:
        claim = await claim_and_append(store, "one")

        def close() -> None:
            try:
                store.release(claim).send(None)
            except StopIteration:
                return
            raise AssertionError("it waits for something")

        await anyio.to_thread.run_sync(close)
        assert (await store.claim("t", "w")).head == 1


async def test_a_worker_that_somebody_overtakes_in_the_middle_is_fenced(home: Home) -> None:
    """Another store takes the thread between two of its requests."""
    async with home.store() as store, home.store() as other:
        claim = await claim_and_append(store, "one")
        home.bucket.advance(61)
        fresh = await other.claim("t", "other")
        assert await store.append(claim, outcomes("two")) is Appended.FENCED
        assert await other.append(fresh, outcomes("three")) is Appended.OK
        assert await words(store) == ["one", "three"]


def pulses(home: Home) -> list[str]:
    """The ETags of what stores change to say that they live."""
    return [each.etag for name, each in home.bucket.objects.items() if "/pulses/" in name]


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    with anyio.fail_after(10):
        while not holds():  # noqa: ASYNC110  # nobody there could set an event
            await anyio.sleep(0.01)


async def test_a_store_says_that_it_lives_while_it_holds_a_thread(home: Home) -> None:
    """By a timer, also when the service fails in between; and no longer than it holds one."""
    async with home.store(retries=0) as store:
        store._engine.journals.pulse.lease = 0.15  # no setting: the service's clock tells whole seconds
        claim = await claim_and_append(store, "one")
        (first,) = pulses(home)
        await until(lambda: pulses(home) != [first])
        failing = Fault(times=2, name="/pulses/", status=500)
        home.bucket.faults.append(failing)
        await until(lambda: failing not in home.bucket.faults)
        now = pulses(home)
        await until(lambda: pulses(home) != now)
        await store.release(claim)
        await until(lambda: pulses(home) == [])
        claim = await store.claim("t", "again")
        assert len(pulses(home)) == 1
        assert await store.renew(claim)


async def test_of_two_claims_of_a_new_thread_one_wins(home: Home) -> None:
    """Another store makes the thread after this one has seen that there is none."""
    async with home.store() as store, home.store() as other:
        theirs = await claim_and_append(other, "theirs")
        head = home.bucket.objects.pop(HEAD)
        home.bucket.faults.append(Fault(action=lambda: home.bucket.objects.update({HEAD: head})))
        with pytest.raises(ThreadBusy, match="the worker"):
            await store.claim("t", "late")
        assert await other.append(theirs, outcomes("more")) is Appended.OK
        assert await words(store) == ["theirs", "more"]


async def test_a_fork_takes_no_thread_that_is_made_meanwhile(home: Home) -> None:
    async with home.store() as store, home.store() as other:
        await store.release(await claim_and_append(store, "one"))
        theirs = await claim_and_append(other, "theirs", thread_id="fork")
        head = home.bucket.objects.pop("locus/threads/fork")
        home.bucket.faults.append(Fault(action=lambda: home.bucket.objects.update({"locus/threads/fork": head})))
        with pytest.raises(JournalError, match="was just created elsewhere"):
            await store.fork("t", 1, "fork")
        assert await other.append(theirs, outcomes("more")) is Appended.OK
        assert await words(store, "fork") == ["theirs", "more"]


async def test_a_thread_that_is_taken_meanwhile_is_not_deleted(home: Home) -> None:
    async with home.store() as store, home.store() as other:
        await store.release(await claim_and_append(store, "one"))
        free = home.bucket.objects[HEAD]
        theirs = await other.claim("t", "the worker")
        taken = home.bucket.objects[HEAD]
        home.bucket.objects[HEAD] = free
        home.bucket.faults.append(Fault(method="DELETE", action=lambda: home.bucket.objects.update({HEAD: taken})))
        with pytest.raises(ThreadBusy, match="the worker"):
            await store.delete("t")
        assert await other.append(theirs, outcomes("two")) is Appended.OK


async def test_a_thread_that_is_deleted_meanwhile_is_begun_again(home: Home) -> None:
    """The head is gone when it is to be written: the look is repeated."""
    async with home.store() as store:
        await store.release(await claim_and_append(store, "one"))
        home.bucket.faults.append(Fault(action=lambda: home.bucket.objects.pop(HEAD)))
        assert (await store.claim("t", "w")).head == 0


# -- what lies in the bucket ----------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads that hold next to nothing: what takes hundreds of entries elsewhere takes a few here."""
    monkeypatch.setattr(locus_plugin_oci.bucket, "Logs", partial(Logs, tail=600, parts=3))


@pytest.mark.usefixtures("small")
async def test_a_long_thread_is_read_from_everywhere(home: Home) -> None:
    """Its entries lie in objects, and in objects that name objects; each number finds the rest."""
    async with home.store() as store:
        claim = await store.claim("t", "w")
        told = [f"word-{n}" for n in range(40)]
        for at in range(0, 40, 2):
            assert await store.append(claim, outcomes(*told[at : at + 2])) is Appended.OK
        head = json.loads(home.bucket.objects[HEAD].body)
        assert len(head["parts"]) <= 4
        assert any(nested for *_, nested in head["parts"])
        assert len(home.bucket.objects[HEAD].body) < 3000
        entries = await store.read("t")
        assert [entry.n for entry in entries] == list(range(1, 41))
        assert [entry.parent for entry in entries] == ["", *(entry.id for entry in entries[:-1])]
        for after in range(42):
            assert await store.read("t", after) == entries[after:]
        assert (await store.peek("t")) == Claim(thread_id="t", token="", head=40, entries=entries)


@pytest.mark.usefixtures("small")
async def test_forks_share_objects_and_the_last_one_takes_them_along(home: Home) -> None:
    """Whatever is deleted first: what somebody needs stays, and in the end nothing is left."""
    async with home.store() as store:
        claim = await store.claim("t", "w")
        for at in range(24):
            await store.append(claim, outcomes(f"word-{at}"))
        await store.release(claim)
        entries = await store.read("t")
        for at in (1, 7, 13, 23, 24):
            await store.fork("t", at, f"fork-{at}", outcomes("own"))
            made = await store.read(f"fork-{at}")
            assert made[:at] == entries[:at]
            assert made[at].parent == entries[at - 1].id
        await store.fork("fork-23", 20, "grandchild")
        assert await store.delete("t")
        assert await store.delete("fork-23")
        assert await store.read("grandchild") == entries[:20]
        for name in ("fork-1", "fork-7", "fork-24", "fork-13"):
            assert (await store.read(name))[:1] == entries[:1]
            assert await store.delete(name)
        assert await store.read("grandchild") == entries[:20]
        assert await store.delete("grandchild")
        assert home.names() == []


async def test_a_deleted_thread_leaves_nothing(home: Home) -> None:
    async with home.store() as store:
        claim = await claim_and_append(store, "x" * 200_000, "two")
        await store.release(claim, NOON)
        assert len(home.names()) == 3
        assert await store.delete("t")
        assert home.names() == []


async def test_a_time_is_found_without_reading_every_thread(home: Home) -> None:
    """And one that no longer holds is seen through, and forgotten."""
    async with home.store() as store:
        for n in range(7):
            await store.release(await claim_and_append(store, "one", thread_id=f"thread-{n}"))
        await store.release(await store.claim("due", "w"), NOON)
        stale = dict(home.bucket.objects)
        before = len(home.bucket.requests)
        assert await store.next_ready(NOON) == "due"
        assert len(home.bucket.requests) - before == 2
        await store.release(await store.claim("due", "w"))
        assert home.names("due/") == []
        home.bucket.objects |= {name: each for name, each in stale.items() if "due/" in name}
        assert await store.next_ready(NOON) is None
        assert home.names("due/") == []


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", BucketDamaged),
        (b"[]", BucketDamaged),
        (b'{"format": 1}', BucketDamaged),
        (b'{"format": 2, "tail": [], "parts": [], "shares": []}', BucketTooNew),
    ],
)
async def test_what_is_not_a_head_is_refused_and_left_alone(
    home: Home, content: bytes, error: type[StoreError]
) -> None:
    async with home.store() as store:
        await store.release(await claim_and_append(store, "one"))
        home.bucket.objects[HEAD].body = content
        for ask in (store.claim("t", "w"), store.read("t"), store.peek("t")):
            with pytest.raises(error):
                await ask
        assert home.bucket.objects[HEAD].body == content


async def test_an_object_that_is_missing_or_damaged_says_which(home: Home) -> None:
    async with home.store() as store:
        await store.release(await claim_and_append(store, "x" * 200_000))
        (name,) = home.names("logs/")
        whole = home.bucket.objects.pop(name)
        with pytest.raises(BucketDamaged, match=name.removeprefix("locus/")):
            await store.read("t")
        with pytest.raises(BucketDamaged):
            await store.claim("t", "w")
        whole.body = whole.body[:-9]
        home.bucket.objects[name] = whole
        with pytest.raises(BucketDamaged, match="not what was written"):
            await store.read("t")
        assert [info.holder for info in await store.threads()] == [None], "a claim that failed holds nothing"


_PAGE = Answer(media_type="text/html", body=b"<html><title>Sign in</title></html>", headers={"etag": "e"})


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (_PAGE, BucketDamaged),
        (Answer(media_type="text/html", body=b"hello"), BucketDamaged),
        (Answer(status=302, headers={"location": "https://elsewhere.example/"}), BucketRefused),
        (Answer(status=400, body=b"no"), BucketRefused),
        (Answer(status=500, media_type="text/html", body=b"<p>" * 99), BucketFailed),
        (Answer(status=0, body=b"220 mail.example ESMTP\r\n", ending="cut"), BucketUnreachable),
        (Answer(body=b"{", ending="reset"), BucketUnreachable),
        (Answer(body=b"{", ending="silent"), BucketUnreachable),
        (Answer(body=(b" ",), repeat=3000, pause=0.01, chunked=True), BucketUnreachable),
    ],
    ids=["page", "no etag", "redirect", "refused", "failed", "no HTTP", "reset", "silence", "drip"],
)
async def test_whatever_a_hostile_service_says_is_one_typed_error(
    home: Home, answer: Answer, error: type[StoreError]
) -> None:
    """... that shows neither a page nor a signature; and what is asked later works."""
    # Only what is waited for in vain must be given up soon; a busy machine may take its time for all else.
    in_vain = answer.ending == "silent" or answer.pause > 0
    async with home.store(retries=0, storage_timeout=0.5 if in_vain else 30.0) as store:
        assert await store.read("t") == ()
        for ask in (store.read, lambda _: store.threads()):
            home.server.then(answer)
            with pytest.raises(error) as caught:
                await ask("t")
            shown = f"{caught.value!r} {vars(caught.value)}"
            assert "<p>" not in shown
            assert "Signature" not in shown
            assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
        assert await store.read("t") == ()


async def test_an_invalid_namespace_is_refused(home: Home) -> None:
    async with home.store(namespace=None) as store:
        for answer in (_PAGE, Answer.of({"not": "text"})):
            home.server.then(answer)
            with pytest.raises(BucketDamaged, match="storage_endpoint"):
                await store.read("t")
        assert await store.read("t") == ()


@pytest.mark.parametrize("wrong", [{"lease": 1.0}, {"retries": -1}, {"timeout": 0.0}, {"api": "soap"}])
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        OciSettings(**wrong)


@pytest.mark.parametrize(("bucket", "prefix"), [("a/b", "x"), ("", "x"), ("b", "../x"), ("b", "x\n"), ("b", "x" * 500)])
def test_invalid_names_are_refused(bucket: str, prefix: str) -> None:
    with pytest.raises(ConfigError):
        OCIBucketBackend(bucket, prefix=prefix)


# -- runs -----------------------------------------------------------------------------------------


async def test_a_run_survives_the_death_of_its_worker_at_each_write(home: Home) -> None:
    """The process dies with each of its requests that change something, lost or stored; another process goes on."""
    effects: list[str] = []

    def answer(request: ModelRequest) -> Any:
        return "The end." if request.messages[-1].tool_results else call("act", name="it")

    deaths, at = 0, 0
    while True:
        at += 1
        for stored in (False, True):
            thread, before = f"thread-{at}-{stored}", len(effects)

            def act(name: str) -> str:
                """Do something that must not be done twice."""
                effects.append(name)
                return "done"

            home.bucket.dies_at(at, stored=stored)
            store = home.store(retries=0)
            try:
                ended = await _agent(store, answer, act).run("Go.", thread_id=thread)
            except JournalError:
                deaths += 1
                ended = None
            died = home.bucket.revive()
            home.bucket.advance(61)
            async with home.store() as other:
                if ended is None and await other.peek(thread) is not None:
                    with contextlib.suppress(NothingToResume):
                        ended = await _agent(other, answer, act).resume(thread)
                held = await other.peek(thread)
                assert ended is None or ended.text == "The end."
                assert ended is not None or held is None or died
                assert len(effects) - before <= 1
            await store.aclose()
        if not died:
            break
    assert deaths >= 8


def _agent(store: OCIBucketBackend, answer: Any, act: Any) -> Agent[Any, Any]:
    return Agent(ScriptedModel(answer, after="repeat"), tools=[act], checkpointer=store)
