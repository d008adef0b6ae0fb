"""The commands in one process, on a store that both sides of it share."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from plugins.cli.tests.conftest import Locus, vouch

from locus.core.errors import ConfigError
from locus.core.journal import Body, Paused
from locus.journal import MemoryStore
from locus_plugin_sqlite import SqliteStore
from locus_plugin_worker import Worker

#: A store that a test looks into beside the commands.
FILE = ("--checkpointer", "runs.db")


@pytest.fixture
def store(here: Path) -> tuple[str, str]:
    """``--checkpointer`` and a store in memory, which the commands of a test share, and no other test has."""
    return "--checkpointer", f"toy:{here.parent.name}"


def bodies(thread_id: str) -> list[Body]:
    """What `FILE` has of a thread."""

    async def read() -> list[Body]:
        async with SqliteStore(FILE[1]) as store:
            return [entry.body for entry in await store.read(thread_id)]

    return anyio.run(read)


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_what_is_submitted_is_run_by_a_worker(locus: Locus, store: tuple[str, str]) -> None:
    submitted = locus("submit", "Charge it.", "--agent", "shop:agent", *store)
    thread = submitted.out.strip()

    assert (submitted.status, submitted.out) == (0, f"{thread}\n")
    assert [line.partition(":")[0] for line in submitted.lines] == ["locus", "locus"]
    assert f"locus worker shop:agent {' '.join(store)}" in submitted.err
    assert f"locus runs watch {thread} {' '.join(store)}" in submitted.err

    (queued,) = rows(locus("runs", "--json", *store).out)
    assert (queued["state"], queued["agent"], queued["title"]) == ("queued", "shop", "Charge it.")
    (depth,) = rows(locus("queues", "--json", *store).out)
    assert (depth["queue"], depth["ready"], depth["held"], depth["workers"]) == ("shop", 1, 0, 0)
    assert "no worker looks at shop" in locus("queues", *store).err

    worked = locus("worker", "shop:agent", "--until-idle", *store)
    assert worked.status == 0
    assert f"take    {thread} in shop" in worked.out
    assert f"done    {thread}" in worked.out

    (ended,) = rows(locus("runs", "--json", *store).out)
    assert (ended["thread_id"], ended["state"]) == (thread, "ended")
    assert locus("queues", "--json", *store).out == ""


def test_a_worker_tells_programs_what_it_does(locus: Locus, store: tuple[str, str]) -> None:
    thread = json.loads(locus("submit", "Charge it.", "-a", "shop:agent", "--json", *store).out)["thread_id"]

    notices = rows(locus("worker", "shop:agent", "--until-idle", "--json", *store).out)

    assert [each["kind"] for each in notices] == ["started", "taken", "done", "stopped"]
    assert [each["thread_id"] for each in notices] == ["", thread, thread, ""]


def test_a_run_is_watched_to_its_end(locus: Locus, store: tuple[str, str]) -> None:
    thread = locus("submit", "Charge it.", "-a", "shop:agent", *store).out.strip()
    locus("worker", "shop:agent", "--until-idle", *store)

    watched = locus("runs", "watch", thread, *store)

    assert watched.status == 0
    assert watched.out.splitlines() == [
        "submitted: Charge it.",
        "began: Charge it.",
        "-> charge(cents=5)",
        "<- charge: 5 cents charged",
        "It is paid.",
        "ended: NoToolCalls",
    ]
    kinds = [each["kind"] for each in rows(locus("runs", "watch", thread, "--json", *store).out)]
    assert kinds == ["queued", "began", "called", "returned", "said", "ended"]
    shown = locus("runs", *store, "show", thread)
    assert shown.out.splitlines()[0] == f"run {thread}: ended"
    assert "  <- charge: 5 cents charged" in shown.out


def test_a_run_that_ended_cannot_be_cancelled_answered_or_tried_again(locus: Locus, store: tuple[str, str]) -> None:
    thread = locus("submit", "Charge it.", "-a", "shop:agent", *store).out.strip()
    locus("worker", "shop:agent", "--until-idle", *store)

    for arguments, said in (
        (["cancel", thread], "has ended with NoToolCalls"),
        (["answer", thread, "yes"], "asks nothing now"),
        (["retry", thread], f"`locus submit --thread {thread} PROMPT` takes the next turn"),
    ):
        done = locus("runs", *arguments, *store)
        assert (done.status, done.out, len(done.lines)) == (2, "", 1), arguments
        assert said in done.err


def test_a_thread_that_is_not_there_is_one_line_that_names_the_nearest(locus: Locus, store: tuple[str, str]) -> None:
    locus("submit", "Charge it.", "-a", "shop:agent", "--thread", "order-17", *store)

    for command in ("show", "watch", "cancel", "retry"):
        done = locus("runs", command, "ordre-17", *store)
        assert (done.status, done.out, len(done.lines)) == (2, "", 1), command
        assert "did you mean 'order-17'?" in done.err


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("shop", "expected FILE.py:NAME, such as shop.py:agent, or MODULE:NAME, got 'shop'"),
        ("shop:agnet", "shop has no 'agnet'; did you mean shop:agent?"),
        ("shpo:agent", "module 'shpo' not found; did you mean shop?"),
        (
            "shop:price",
            "shop 'price' is int, not an Agent; agents in it: 'agent', 'asking', 'dated', 'deadly', 'many', 'nameless'",
        ),
        ("shop:nameless", "write Agent(..., name='nameless')"),
        ("shop:broken", "shop:broken: broken() failed: ValueError: no price list"),
        ("shpo.py:agent", "file not found: 'shpo.py'"),
    ],
)
def test_an_agent_that_cannot_be_had_is_one_line_that_says_what_to_write(
    locus: Locus, store: tuple[str, str], source: str, said: str
) -> None:
    for arguments in (["submit", "x", "-a", source], ["worker", source, "--until-idle"]):
        done = locus(*arguments, *store)
        assert (done.status, done.out, len(done.lines)) == (2, "", 1), done
        assert said in done.err


@pytest.mark.parametrize("source", ["shop:made", "shop.py:agent", "./shop.py:agent"])
def test_an_agent_is_named_by_module_file_or_function(locus: Locus, store: tuple[str, str], source: str) -> None:
    assert locus("submit", "Charge it.", "-a", source, *store).status == 0
    assert " done " in locus("worker", source, "--until-idle", *store).out


def test_a_program_that_fails_at_import_is_one_line(locus: Locus, store: tuple[str, str], here: Path) -> None:
    (here / "bad.py").write_text("import nowhere_at_all\n")
    done = locus("submit", "x", "-a", "bad:agent", *store)
    sys.modules.pop("bad", None)

    assert (done.status, len(done.lines)) == (2, 1)
    assert "bad cannot be loaded: No module named 'nowhere_at_all'" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["submit", "Check", "it", "-a", "shop:agent"],
            "expected one PROMPT, got 2 words; put it in quotes: 'Check it'",
        ),
        (["submit", "", "-a", "shop:agent"], "Missing argument 'PROMPT'"),
        (["submit", "x"], "Missing option '-a' / '--agent'"),
        (
            ["submit", "x", "-a", "shop:agent", "--in", "soon"],
            "'soon' is not a length of time; write 90s, 15min, 2h or 1d",
        ),
        (["submit", "x", "-a", "shop:agent", "--priority", "3"], "3 is not in the range 0<=x<=2"),
        (["worker"], "Missing argument 'MODULE:NAME...'"),
        (["worker", "shop:agent", "--slots", "0"], "0 is not in the range x>=1"),
        (["worker", "shop:agent", "--until-idle", "--drain", "nan"], "'--drain': 'nan' is not a number of seconds"),
        (
            ["worker", "shop:agent", "--until-idle", "--stuck-after", "NaN"],
            "'--stuck-after': 'NaN' is not a number of seconds",
        ),
        (["runs", "--state", "lost"], "'lost' is not one of"),
        (["runs", "wach", "t"], "No such command 'wach'"),
        (["runs", "answer", "t"], "Missing argument '[QUESTION=]TEXT...'"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    locus: Locus, store: tuple[str, str], arguments: list[str], said: str
) -> None:
    done = locus(*arguments, *store)

    assert (done.status, done.out, len(done.lines)) == (2, "", 1), done
    assert said in done.err


def test_a_store_without_queues_is_one_line(locus: Locus) -> None:
    for arguments in (["submit", "x", "-a", "shop:agent"], ["worker", "shop:agent"], ["runs"], ["queues"], ["workers"]):
        done = locus(*arguments, "--checkpointer", "toy:newer")
        assert (done.status, done.out, len(done.lines)) == (2, "", 1), done
        assert "toy:newer keeps conversations and no queues" in done.err


def test_empty_lists_say_what_to_do(locus: Locus, store: tuple[str, str]) -> None:
    assert "`locus submit` begins one" in locus("runs", *store).err
    assert "nothing is queued" in locus("queues", *store).err
    assert "`locus worker MODULE:NAME` starts one" in locus("workers", *store).err


def test_a_run_that_is_to_begin_later_sleeps_until_then(locus: Locus, store: tuple[str, str]) -> None:
    locus("submit", "Charge it.", "-a", "shop:agent", "--in", "2h", *store)

    worked = locus("worker", "shop:agent", "--until-idle", *store)

    (depth,) = rows(locus("queues", "--json", *store).out)
    assert (depth["ready"], depth["sleeping"]) == (0, 1)
    assert " take " not in worked.out


def test_the_commands_are_there_without_being_switched_on(locus: Locus) -> None:
    for command in ("submit", "worker", "runs", "queues", "workers"):
        done = locus(command, "--help")
        assert (done.status, done.err) == (0, "")
        assert all(f"{option} " in done.out for option in ("--checkpointer", "--json", "--config", "--help"))


def test_a_question_of_a_run_is_answered_from_the_command_line(locus: Locus, store: tuple[str, str]) -> None:
    thread = locus("submit", "Charge it.", "-a", "shop:asking", *store).out.strip()
    locus("worker", "shop:asking", "--until-idle", *store)

    watched = locus("runs", "watch", thread, *store)
    assert watched.status == 3
    assert "asks (0/execute/0" in watched.out
    assert f"locus runs answer {thread} {' '.join(store)} ANSWER" in watched.err
    assert rows(locus("runs", "--state", "waiting", "--json", *store).out)[0]["thread_id"] == thread

    refused = locus("runs", "answer", thread, "maybe", *store)
    assert (refused.status, len(refused.lines)) == (2, 1)
    assert "'maybe' is not an answer to 'Charge it?'; choose one of yes, no" in refused.err

    answered = locus("runs", "answer", thread, "yes", *store)
    assert (answered.status, answered.out) == (0, "")
    assert "sent and not taken up yet: an answer: yes" in locus("runs", "show", thread, *store).out
    again = locus("runs", "answer", thread, "no", *store)
    assert (again.status, "was answered before" in again.err) == (2, True)

    locus("worker", "shop:asking", "--until-idle", *store)
    ended = locus("runs", "watch", thread, *store)
    assert ended.status == 0
    assert "<- ask: the person said yes" in ended.out
    assert "<- charge: 7 cents charged" in ended.out


def test_a_run_that_no_worker_has_is_cancelled_by_the_next_one(locus: Locus, store: tuple[str, str]) -> None:
    thread = locus("submit", "Charge it.", "-a", "shop:asking", *store).out.strip()
    locus("worker", "shop:asking", "--until-idle", *store)

    assert locus("runs", "cancel", thread, "--reason", "too dear", *store).status == 0
    locus("worker", "shop:asking", "--until-idle", *store)

    ended = locus("runs", "watch", thread, *store)
    assert ended.out.splitlines()[-1] == "ended: Cancelled: too dear"
    assert "charge" not in ended.out


def test_a_queued_run_is_cancelled_before_it_has_done_anything(locus: Locus, store: tuple[str, str]) -> None:
    thread = locus("submit", "Charge it.", "-a", "shop:agent", *store).out.strip()
    locus("runs", "cancel", thread, *store)

    locus("worker", "shop:agent", "--until-idle", *store)

    ended = locus("runs", "watch", thread, *store)
    assert "ended: Cancelled" in ended.out
    assert "charge" not in ended.out


def test_the_next_turn_of_a_thread_is_submitted_like_the_first(locus: Locus, store: tuple[str, str]) -> None:
    for n in range(3):
        submitted = locus("submit", f"Charge {n}.", "-a", "shop:agent", "--thread", "t", *store)
        assert (submitted.status, submitted.out) == (0, "t\n")

    locus("worker", "shop:agent", "--until-idle", *store)

    began = [line for line in locus("runs", "watch", "t", *store).out.splitlines() if line.startswith("began: ")]
    assert began == ["began: Charge 0.", "began: Charge 1.", "began: Charge 2."]


def test_a_full_queue_refuses_a_run_with_numbers(locus: Locus, store: tuple[str, str], here: Path) -> None:
    submit = ("submit", "Go.", "-a", "shop:agent", *store)
    assert locus(*submit, "--max-depth", "1").status == 0
    refused = locus(*submit, "--max-depth", "1")
    assert refused.status == 1
    assert "queue 'shop' is full: 1 waiting, max_depth=1" in refused.err
    (here / "locus.toml").write_text("[plugins.worker]\nmax_depth = 2\n")
    vouch(here)
    assert locus(*submit).status == 0
    assert "max_depth=2" in locus(*submit).err
    assert locus(*submit, "--max-depth", "3").status == 0


def test_runs_are_listed_by_the_queue_that_they_were_submitted_to(locus: Locus, store: tuple[str, str]) -> None:
    threads = [
        locus("submit", "Go.", "-a", "shop:agent", "--queue", queue, *store).out.strip()
        for queue in ("tenant:a", "tenant:b")
    ]
    assert [thread in locus("runs", "--queue", "tenant:a", *store).out for thread in threads] == [True, False]
    assert "no such runs" in locus("runs", "--queue", "tenant:c", *store).err
    assert locus("worker", "shop:agent", "--queue", "tenant:*", "--until-idle", *store).status == 0
    ended = locus("runs", "--queue", "tenant:b", "--state", "ended", *store).out
    assert [thread in ended for thread in threads] == [False, True]


def test_a_run_is_bound_to_a_version_that_the_agent_must_have(locus: Locus, store: tuple[str, str]) -> None:
    refused = locus("submit", "Go.", "-a", "shop:agent", "--pin", *store)
    assert (refused.status, "give the agent a version=" in refused.err) == (2, True)
    made = locus("submit", "Go.", "-a", "shop:dated", "--pin", "--json", *store)
    assert json.loads(made.out)["queue"] == "agent.dated@3"
    assert "agent.dated@3" in locus("queues", *store).out
    assert locus("worker", "shop:dated", "--until-idle", *store).status == 0
    assert "dated" in locus("runs", "--state", "ended", *store).out


def test_the_worker_that_a_submitted_run_needs_looks_into_its_queue(locus: Locus, store: tuple[str, str]) -> None:
    submitted = locus("submit", "Go.", "-a", "shop:agent", "--thread", "t", "--queue", "the other", *store)
    assert f"locus worker shop:agent --queue 'the other' {' '.join(store)}" in submitted.err
    assert f"start `locus worker MODULE:NAME --queue 'the other' {' '.join(store)}`" in locus("queues", *store).err

    # The next turn goes where the thread is queued, whatever it asks for.
    for more in ([], ["--queue", "a third"]):
        again = locus("submit", "Go.", "-a", "shop:agent", "--thread", "t", *more, *store)
        assert f"locus worker shop:agent --queue 'the other' {' '.join(store)}" in again.err

    locus("worker", "shop:agent", "--queue", "the other", "--until-idle", *store)
    assert rows(locus("runs", "--json", *store).out)[0]["state"] == "ended"


@pytest.mark.parametrize("queue", ["tenant:*", "a[b]"])
def test_a_queue_that_looks_like_a_pattern_is_written_as_the_name_that_it_is(
    locus: Locus, store: tuple[str, str], queue: str
) -> None:
    submitted = locus("submit", "Go.", "-a", "shop:agent", "--queue", queue, *store)

    command = submitted.lines[0].partition("locus worker ")[2]
    escaped = command.partition("'")[2].partition("'")[0]
    assert locus("worker", "shop:agent", "--queue", escaped, "--until-idle", *store).status == 0
    assert rows(locus("runs", "--json", *store).out)[0]["state"] == "ended"


def test_a_run_that_is_bound_to_another_version_says_which_worker_it_needs(
    locus: Locus, store: tuple[str, str], shop: Path
) -> None:
    submitted = locus("submit", "Go.", "-a", "shop:dated", "--thread", "t", "--pin", *store)
    assert f"a worker runs it: locus worker shop:dated {' '.join(store)}" in submitted.err
    assert "with version 3 of its agent dated" in locus("queues", *store).err

    shop.write_text(shop.read_text().replace('version="3"', 'version="10"'))
    sys.modules.pop("shop")
    again = locus("submit", "Go.", "-a", "shop:dated", "--thread", "t", *store)

    assert "a worker whose 'dated' has version '3' runs it" in again.err


def test_a_run_that_is_queued_is_not_tried_again(locus: Locus) -> None:
    locus("submit", "Charge it.", "-a", "shop:agent", "--thread", "t", *FILE)
    before = bodies("t")

    done = locus("runs", "retry", "t", *FILE)

    assert (done.status, done.out, len(done.lines)) == (2, "", 1)
    assert "the run of 't' is queued already; a worker runs it, and `locus runs watch t" in done.err
    assert bodies("t") == before
    shown = locus("runs", "show", "t", *FILE).out
    assert shown.startswith("run t: queued\n")
    assert "sent and not taken up yet" not in shown


def test_a_run_that_waits_for_an_answer_is_not_tried_again(locus: Locus) -> None:
    locus("submit", "Charge it.", "-a", "shop:asking", "--thread", "t", *FILE)
    locus("worker", "shop:asking", "--until-idle", *FILE)
    before = bodies("t")

    done = locus("runs", "retry", "t", *FILE)

    assert (done.status, done.out, len(done.lines)) == (2, "", 1)
    assert f"waits for an answer; `locus runs answer t {' '.join(FILE)} ANSWER` gives it" in done.err
    locus("runs", "answer", "t", "yes", *FILE)
    assert "was sent its answer already" in locus("runs", "retry", "t", *FILE).err
    assert bodies("t") == before
    assert locus("runs", "show", "t", *FILE).out.startswith("run t: waiting\n")


def test_a_run_that_is_at_work_is_not_tried_again(locus: Locus) -> None:
    locus("submit", "Charge it.", "-a", "shop:agent", "--thread", "t", *FILE)

    async def retry_meanwhile() -> Any:
        async with SqliteStore(FILE[1]) as store:
            await store.claim("t", "the first worker")
            return await anyio.to_thread.run_sync(lambda: locus("runs", "retry", "t", *FILE))

    done = anyio.run(retry_meanwhile)

    assert (done.status, done.out, len(done.lines)) == (2, "", 1)
    assert "is at work now" in done.err
    assert "`locus runs watch t" in done.err


def test_a_run_that_is_tried_again_is_not_shown_as_cancelled(locus: Locus) -> None:
    locus("submit", "Charge it.", "-a", "shop:agent", "--thread", "t", *FILE)

    async def set_aside() -> None:
        async with SqliteStore(FILE[1]) as store:
            claim = await store.claim("t", "a worker")
            await store.append(claim, [Paused(run_id="run", segment=1, kind="dead_letter", reason="it died")])
            await store.release(claim)

    anyio.run(set_aside)

    assert locus("runs", "retry", "t", *FILE).status == 0

    shown = locus("runs", "show", "t", *FILE).out
    assert "sent and not taken up yet: another try" in shown
    assert "cancel" not in shown
    assert json.loads(locus("runs", "show", "t", "--json", *FILE).out)["signals"] == ["another try"]
    locus("worker", "shop:agent", "--until-idle", *FILE)
    assert locus("runs", "show", "t", *FILE).out.startswith("run t: ended\n")


@pytest.mark.parametrize("limits", [{"drain": float("nan")}, {"stuck_after": float("nan")}, {"stuck_after": 0.0}])
def test_a_worker_of_a_program_refuses_limits_that_are_not_a_number_of_seconds(limits: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(limits))} must be"):
        Worker({"q": lambda job: None}, MemoryStore(), **limits)  # type: ignore[arg-type]
