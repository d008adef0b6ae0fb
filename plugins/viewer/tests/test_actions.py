"""What a page changes: answers, cancels, forks, and runs that go on here or in another process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from locus.journal import JournalHost, MemoryStore
from locus_testkit import call

from .servers import Served, serving
from .shop import fill, make_agent, make_graph


def ask(served: Served) -> JournalHost:
    found: JournalHost = served.run(lambda: JournalHost.peek(served.viewer.store, "run-5"))
    return found


def until(condition: Callable[[], Any]) -> None:
    """Wait for what another thread does."""
    give_up = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.02)


@pytest.fixture
def with_agent() -> Iterator[Served]:
    """A viewer that knows the agent, whose next answer ends the run."""
    with serving(MemoryStore, agent=make_agent("It is refunded.")) as served:
        served.run(lambda: fill(served.viewer.store))
        yield served


def test_an_answer_is_left_in_the_store_for_a_worker(served: Served, browser: httpx.Client) -> None:
    (question,) = ask(served).open_questions
    form = {"id": "run-5", "question": question, "answer": "yes"}
    answer = browser.post("/thread/answer", data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, "/thread?id=run-5")
    (signal,) = served.run(lambda: served.viewer.store.signals("run-5"))  # type: ignore[attr-defined]
    assert (signal.body.interrupt_id, signal.body.answer) == (question, "yes")
    for path in ("/thread", "/thread/status"):
        page = browser.get(path, params={"id": "run-5"}).text
        assert "Answered: yes." in page
        assert 'name="answer"' not in page
    assert browser.post("/thread/answer", data=form).status_code == 400  # it was answered before


@pytest.mark.parametrize("changed", [{"answer": "maybe"}, {"question": "9/execute/9"}, {"id": "nobody"}])
def test_an_answer_that_fits_nothing_is_refused(served: Served, browser: httpx.Client, changed: dict[str, str]) -> None:
    (question,) = ask(served).open_questions
    form = {"id": "run-5", "question": question, "answer": "yes", **changed}
    assert browser.post("/thread/answer", data=form).status_code in (400, 404)
    assert served.run(lambda: served.viewer.store.signals("run-5")) == ()  # type: ignore[attr-defined]


def test_with_its_agent_a_run_goes_on_with_the_answer(with_agent: Served) -> None:
    (question,) = ask(with_agent).open_questions
    with with_agent.client() as client:
        client.post("/thread/answer", data={"id": "run-5", "question": question, "answer": "no"})
        until(lambda: ask(with_agent).open_node is None)
        text = client.get("/thread", params={"id": "run-5"}).text
    assert "the person said no" in text
    assert "It is refunded." in text


def test_a_run_with_two_questions_goes_on_when_both_are_answered() -> None:
    store = MemoryStore()
    with serving(lambda: store, agent=make_agent("Both are refunded.")) as served, served.client() as client:
        asks = make_agent([call("refund", order=1), call("refund", order=2)], store=store)
        served.run(lambda: asks.run("Refund both.", thread_id="both"))
        host: JournalHost = served.run(lambda: JournalHost.peek(store, "both"))
        first, second = host.open_questions
        client.post("/thread/answer", data={"id": "both", "question": first, "answer": "yes"})
        assert served.run(lambda: JournalHost.peek(store, "both")).open_node == "execute"
        client.post("/thread/answer", data={"id": "both", "question": second, "answer": "no"})
        until(lambda: served.run(lambda: JournalHost.peek(store, "both")).open_node is None)
        text = client.get("/thread", params={"id": "both"}).text
    assert "the person said yes" in text
    assert "the person said no" in text
    assert "Both are refunded." in text


def test_an_agent_whose_own_code_fails_does_not_end_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a bug of the program")

    with serving(MemoryStore, agent=make_agent("Done.")) as served, served.client() as client:
        served.run(lambda: fill(served.viewer.store))
        monkeypatch.setattr(type(served.viewer.agent), "resume", fail)
        client.post("/thread/resume", data={"id": "run-5"})
        until(lambda: served.viewer.failures)
        assert "RuntimeError: a bug of the program" in client.get("/thread", params={"id": "run-5"}).text


def test_a_cancel_ends_the_run_that_waits(with_agent: Served) -> None:
    with with_agent.client() as client:
        client.post("/thread/cancel", data={"id": "run-5", "reason": "a mistake"})
        until(lambda: ask(with_agent).open_node is None)
        assert "Cancelled: a mistake" in client.get("/thread", params={"id": "run-5"}).text
        assert client.post("/thread/cancel", data={"id": "run-5"}).status_code == 404  # it has ended


def test_a_resume_that_fails_says_why_on_the_page(with_agent: Served) -> None:
    with with_agent.client() as client:
        client.post("/thread/resume", data={"id": "run-1"})
        until(lambda: with_agent.viewer.failures)
        assert "NothingToResume" in client.get("/thread", params={"id": "run-1"}).text


def test_without_its_agent_a_run_is_not_resumed_here(served: Served, browser: httpx.Client) -> None:
    answer = browser.post("/thread/resume", data={"id": "run-5"})
    assert answer.status_code == 400
    assert "locus view FILE:AGENT" in answer.text


def test_a_fork_begins_with_what_was_done_up_to_an_entry(served: Served, browser: httpx.Client) -> None:
    answer = browser.post("/thread/fork", data={"id": "run-1", "n": "5"})
    made = dict(httpx.URL(answer.headers["location"]).params)["id"]
    assert made.startswith("run-1~")
    text = browser.get("/thread", params={"id": made}).text
    assert "find_order" in text
    assert "8450 cents charged" not in text
    assert 'href="/thread?id=run-1"' in text


def test_a_condition_is_explained_where_the_agent_is_known(with_agent: Served) -> None:
    with with_agent.client() as client:
        text = client.get("/thread/state", params={"id": "run-1", "n": "5"}).text
    assert "MaxIterations: 1 of 20 iterations" in text


def test_a_replay_says_that_the_code_does_what_is_on_record(with_agent: Served) -> None:
    with with_agent.client() as client:
        assert "5 transitions came out as recorded" in client.get("/thread/replay", params={"id": "run-4"}).text


def test_a_graph_is_drawn_with_what_ran_and_what_is_next_and_goes_on_with_an_answer() -> None:
    store = MemoryStore()
    graph = make_graph(store)
    with serving(lambda: store, agent=graph) as served, served.client() as client:
        served.run(lambda: graph.run({}, thread_id="flow"))
        drawn = client.get("/thread/graph", params={"id": "flow"}).text
        assert '<g class="ran"><rect' in drawn
        assert drawn.index('class="ran"') < drawn.index("collect") < drawn.index('class="next"')
        assert "&lt;review&gt;" in drawn
        assert "<review>" not in drawn
        page = client.get("/thread", params={"id": "flow"}).text
        assert "Are these all?" in page
        (question,) = served.run(lambda: JournalHost.peek(store, "flow")).open_questions
        client.post("/thread/answer", data={"id": "flow", "question": question, "answer": "yes"})
        until(lambda: served.run(lambda: JournalHost.peek(store, "flow")).open_node is None)
        assert "GraphEnd" in client.get("/thread", params={"id": "flow"}).text
        assert 'class="next"' not in client.get("/thread/graph", params={"id": "flow"}).text


def test_without_a_graph_none_is_drawn(browser: httpx.Client) -> None:
    assert browser.get("/thread/graph", params={"id": "run-1"}).status_code == 400
