"""The examples that other programs talk to, kill or open: a job, a server over HTTP, MCP both ways, a notebook."""

from __future__ import annotations

import ast
import inspect
import json
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import anyio
import pytest
import uvicorn
from contrib.examples import chat_server, nightly_job
from mcp import Client
from tests.together.nightly_kill import SCRIPT, fill_ledger
from tests.together.programs import EXAMPLES, Programs

from locus.models import ModelRequest
from locus_plugin_sqlite import SqliteStore
from locus_testkit import ScriptedModel, call

# --- nightly_job.py -----------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["model", "before", "after"])
def test_a_job_that_was_killed_goes_on_and_books_nothing_twice(
    moment: str, programs: Programs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = tmp_path / "ledger.db"
    fill_ledger(ledger)
    killed = subprocess.run(
        [sys.executable, "-m", "tests.together.nightly_kill", moment, str(ledger), str(tmp_path / "jobs.db")],
        cwd=EXAMPLES.parents[1],
        check=False,
        timeout=300,
    )
    assert killed.returncode == -signal.SIGKILL
    assert len(bookings(ledger)) == {"model": 2, "before": 1, "after": 2}[moment]

    model = ScriptedModel(script=lambda request: SCRIPT)
    assert programs.run("nightly_job.py", "2026-03-31", script=model) == 0
    assert capsys.readouterr().out == "Three payments are booked.\n"
    assert [payment for _, payment, _ in bookings(ledger)] == [1, 2, 3]
    asked = [sum(message.role == "assistant" for message in request.messages) for request in model.requests]
    assert asked == [2, 3]  # the turns that are on record are not asked for again

    # And once more, as a timer would: the run has ended, so nothing happens.
    again = ScriptedModel()
    assert programs.run("nightly_job.py", "2026-03-31", script=again) == 0
    assert (again.requests, len(bookings(ledger))) == ((), 3)


def bookings(ledger: Path) -> list[tuple[str, int, str]]:
    with closing(sqlite3.connect(ledger)) as db:
        return list(db.execute("SELECT * FROM bookings ORDER BY payment"))


@pytest.mark.anyio
async def test_what_cannot_be_booked_is_an_error_for_the_model(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    fill_ledger(ledger)
    book = [call("book", payment=payment, account="rent") for payment in (1, 9)]
    model = ScriptedModel(book, call("book", payment=1, account="travel"), "Done.")
    agent = nightly_job.build(model, tmp_path / "jobs.db")
    await nightly_job.run_job(agent, date(2026, 3, 31), nightly_job.Ledger(str(ledger)))
    assert "payment 9 does not exist" in str(model.requests[1].messages)
    assert "payment 1 is booked already" in str(model.requests[2].messages[-1].content)


# --- chat_server.py -----------------------------------------------------------------------------


@contextmanager
def serve(app: Any) -> Iterator[str]:
    """Serve an application by uvicorn on a free port; gives ``http://127.0.0.1:PORT``."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def post(url: str, text: str, request_id: str, token: str = "a-token", thread: str = "ann") -> Any:
    body = json.dumps({"text": text, "request_id": request_id}).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return urlopen(Request(f"{url}/threads/{thread}/turns", body, headers), timeout=60)


def read_events(answer: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The server-sent events of an answer, as they come."""
    kind = ""
    for line in answer:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, json.loads(value)


def test_a_turn_is_streamed_and_a_repeated_post_is_the_same_turn(tmp_path: Path) -> None:
    model = ScriptedModel(call("multiply", a=17, b=4), "It is\n\nevent: 68", "Again?", chunks=True)
    app = chat_server.make_app(chat_server.build(model, tmp_path / "chat.db"), "a-token")
    with serve(app) as url:
        with post(url, "17 * 4?", "1") as answer:
            assert answer.headers["Content-Type"].startswith("text/event-stream")
            events = list(read_events(answer))
        assert events[0] == ("tool", {"name": "multiply"})
        assert "".join(data["text"] for kind, data in events if kind == "text") == "It is\n\nevent: 68"
        assert events[-1] == ("end", {"reason": "NoToolCalls", "text": "It is\n\nevent: 68"})

        with post(url, "17 * 4?", "1") as answer:
            assert list(read_events(answer)) == [events[-1]]
        assert len(model.requests) == 2
        with post(url, "And now?", "2") as answer:
            assert list(read_events(answer))[-1][1]["text"] == "Again?"
        assert "17 * 4?" in str(model.requests[-1].messages)
        with post(url, "17 * 4?", "1") as answer:
            assert [data["code"] for _, data in read_events(answer)] == ["superseded"]


@pytest.mark.parametrize(("token", "text", "status"), [("wrong", "hi", 401), ("a-token", "", 422)])
def test_a_request_without_the_token_or_without_a_text_is_refused(
    token: str, text: str, status: int, tmp_path: Path
) -> None:
    model = ScriptedModel()
    with serve(chat_server.make_app(chat_server.build(model, tmp_path / "chat.db"), "a-token")) as url:
        with pytest.raises(HTTPError) as caught:
            post(url, text, "1", token)
        with caught.value:
            assert caught.value.code == status
    assert model.requests == ()


def test_a_client_that_goes_away_cancels_its_run_and_may_post_it_again(tmp_path: Path) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def first(request: ModelRequest) -> str:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    # The model says a word by a tool call before it hangs, so that the client has seen something.
    model = ScriptedModel(call("multiply", a=1, b=2), first, "Here I am.")
    with serve(chat_server.make_app(chat_server.build(model, tmp_path / "chat.db"), "a-token")) as url:
        answer = post(url, "Hello?", "1")
        assert next(read_events(answer)) == ("tool", {"name": "multiply"})
        with post(url, "Hello?", "1") as second:
            assert [data["code"] for _, data in read_events(second)] == ["busy"]
        assert begun.wait(120)
        answer.close()
        assert ended.wait(120)
        while True:  # the claim is released after the run has ended
            with post(url, "Hello?", "1") as second:
                events = list(read_events(second))
            if events[-1][1].get("code") != "busy":
                break
    assert events[-1] == ("end", {"reason": "NoToolCalls", "text": "Here I am."})
    assert len(model.requests) == 3


# --- mcp_out.py, mcp_in.py ----------------------------------------------------------------------


def test_an_agent_keeps_an_address_book_over_mcp(
    programs: Programs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    questions: list[str] = []

    def allow(prompt: str) -> str:
        questions.append(prompt)
        return "allow"

    monkeypatch.setattr("builtins.input", allow)
    model = ScriptedModel(
        call("people__save_person", name="Ann Lee", mail="ann@home.example"),
        call("people__find_person", name="ann"),
        "Ann Lee is at ann@home.example.",
    )
    assert programs.run("mcp_in.py", "Save Ann Lee, ann@home.example.", "--people", "people.db", script=model) == 0
    assert len(questions) == 1
    assert "people__save_person(" in questions[0]
    assert "ann@home.example" in str(model.requests[2].messages[-1].content)
    assert "people: connected, people__find_person, people__save_person" in capsys.readouterr().out


def rows(people: Path) -> list[Any]:
    with closing(sqlite3.connect(people)) as db:
        return list(db.execute("SELECT * FROM people"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """``mcp_out.py --port 0`` in a process of its own; gives its address."""
    command = [sys.executable, str(EXAMPLES / "mcp_out.py"), str(tmp_path / "people.db"), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield process.stderr.readline().strip()
        finally:
            process.kill()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_tools_are_served_over_http_to_any_client(server: str, tmp_path: Path) -> None:
    async with Client(server) as client:
        listed = {each.name: each for each in (await client.list_tools()).tools}
        saved = await client.call_tool("save_person", {"name": "Bob", "mail": "bob@home.example"})
        found = await client.call_tool("find_person", {"name": "BOB"})
        assert (await client.call_tool("find_person", {"name": 3})).is_error
    assert listed["find_person"].annotations is not None
    assert listed["find_person"].annotations.read_only_hint
    assert not saved.is_error
    assert "bob@home.example" in str(found.content)
    assert rows(tmp_path / "people.db") == [("Bob", "bob@home.example")]


# --- notebook.ipynb -----------------------------------------------------------------------------

NOTEBOOK = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))


def test_a_notebook_is_kept_without_outputs() -> None:
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    code = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert len({cell["id"] for cell in NOTEBOOK["cells"]}) == len(NOTEBOOK["cells"])
    assert sum(len(cell["source"]) for cell in NOTEBOOK["cells"]) < 120


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_cells_of_a_notebook_run_in_their_order_and_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script: list[Any] = [
        call("list_days"),
        call("average", day="Monday"),
        "It was 12.5 degrees.",
        call("average", day="Tuesday"),
    ]
    model = ScriptedModel(*script, "It was 9.8 degrees.")
    async with SqliteStore(tmp_path / "notebook.db") as store:
        names: dict[str, Any] = {"__name__": "__main__"}
        cells = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
        for cell in cells:
            await run_cell(cell, names)
            if cell["metadata"].get("tags") == ["parameters"]:  # as papermill puts its own behind that cell
                names |= {"model": model, "threads": store}
        out = capsys.readouterr().out
        assert "-> average {'day': 'Monday'}\n<- 12.5\nIt was 12.5 degrees." in out
        assert "thread monday" in out
        assert out.endswith("It was 9.8 degrees.\n1 turn there, 2 here\n")

        await run_cell(cells[3], names)
    assert capsys.readouterr().out == "It was 12.5 degrees.\n"
    assert len(model.requests) == 5


async def run_cell(cell: dict[str, Any], names: dict[str, Any]) -> None:
    """Run a cell as Jupyter does, where an ``await`` may be at the top level."""
    compiled = compile("".join(cell["source"]), "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    made = eval(compiled, names)
    if inspect.isawaitable(made):
        await made
