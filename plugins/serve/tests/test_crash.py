"""A server that is killed under load, and one that is told to leave: no turn is lost, and no effect comes twice."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path

import httpx
import pytest

from .conftest import PATIENCE, Client, ServerEvent, parse_events
from .processes import ServerProcess, find_free_port, until
from .shop import EFFECTS

TURNS = 8


class Caller(threading.Thread):
    """A client that wants one turn, and comes again when it is cut off.

    Args:
        url: of the server.
        name: of the turn's thread.
    """

    def __init__(self, url: str, name: str) -> None:
        super().__init__(daemon=True)
        self.url, self.thread_name = url, name
        self.events: list[ServerEvent] = []
        self.cuts = 0
        self.start()

    def run(self) -> None:
        end = time.monotonic() + PATIENCE
        with Client(base_url=self.url, timeout=PATIENCE, trust_env=False) as client:
            while time.monotonic() < end and not (self.events and self.events[-1].name == "ended"):
                try:
                    self._call(client)
                except httpx.TransportError:
                    self.cuts += 1
                time.sleep(0.05)

    def _call(self, client: Client) -> None:
        path = f"/api/threads/{self.thread_name}"
        if self.events:
            headers = {"Last-Event-ID": self.events[-1].id}
            request = client.build_request("GET", f"{path}/events", headers=headers)
        else:
            body = {"prompt": "Pay.", "request_id": f"turn of {self.thread_name}", "stream": True}
            request = client.build_request("POST", f"{path}/turns", json=body)
        answer = client.send(request, stream=True)
        try:
            if answer.status_code == 200:
                for event in parse_events(answer.iter_lines()):
                    if event.id:
                        self.events.append(event)
        finally:
            answer.close()


def read_ledger(folder: Path) -> Counter[str]:
    """How often each effect happened."""
    path = folder / "ledger"
    return Counter(path.read_text(encoding="utf-8").splitlines() if path.exists() else ())


def has_effects(folder: Path, wanted: int) -> bool:
    """Whether so many effects have happened."""
    return read_ledger(folder).total() >= wanted


def kill_under_load(folder: Path, kills: int) -> None:
    """Kill a server so many times while it works, and check what came of it."""
    port = find_free_port()
    server = ServerProcess(folder, port)
    callers: list[Caller] = []
    for number in range(kills):
        callers += [Caller(server.url, f"order-{number}-{n}") for n in range(TURNS)]
        wanted = number * TURNS * EFFECTS + TURNS * EFFECTS // 2
        until(partial(has_effects, folder, wanted), f"{wanted} effects")
        server.kill()
        server = ServerProcess(folder, port)
        # Those that were not served to the end before the next kill would make it a kill of two loads.
        for caller in callers:
            caller.join(PATIENCE)
    with server, server.client() as client:
        assert server.said.count("Traceback") == 0, server.said
        effects = read_ledger(folder)
        assert max(effects.values()) == 1
        for caller in callers:
            assert not caller.is_alive()
            assert caller.events, "a turn was lost"
            assert (caller.events[-1].name, caller.events[-1].data["text"]) == ("ended", "NoToolCalls")
            # What it has got over all its connections is what is on the journal, each event once and in order.
            assert caller.events == client.read_stream("GET", f"/api/threads/{caller.thread_name}/events")
            assert [each.name for each in caller.events].count("began") == 1
            returned = [each for each in caller.events if each.name == "returned"]
            assert len(returned) == EFFECTS
            run_id = caller.events[0].data["run_id"]
            unknown = sum(each.data.get("is_failure", False) for each in returned)
            done = sum(effects[f"{run_id} {n}"] for n in range(EFFECTS))
            assert EFFECTS - unknown <= done <= EFFECTS
        assert sum(caller.cuts for caller in callers) >= kills, "no kill has cut anybody off"
        assert len(client.get("/api/threads").json()["threads"]) == min(100, kills * TURNS)


def test_a_server_that_is_killed_loses_no_turn_and_repeats_no_effect(tmp_path: Path) -> None:
    kill_under_load(tmp_path, kills=1)


@pytest.mark.proof
def test_a_server_that_is_killed_ten_times_loses_no_turn_and_repeats_no_effect(tmp_path: Path) -> None:
    kill_under_load(tmp_path, kills=10)


def test_a_server_that_leaves_lets_runs_end_and_takes_no_more(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, find_free_port(), agent="waiting") as server, server.client() as client:
        accepted = client.post_json("/api/threads/a/turns", prompt="Go.", wait=False)
        assert accepted.status_code == 202
        until((tmp_path / "waiting").exists, "a run at the gate")
        server.signal(signal.SIGTERM)
        until(lambda: client.get("/healthz").status_code == 503, "a server that drains")
        refused = client.post_json("/api/threads/b/turns", prompt="Go.")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        with client.stream("GET", "/api/threads/a/events") as answer:
            (tmp_path / "gate").touch()
            events = list(parse_events(answer.iter_lines()))
        assert events[-1].name == "ended"
        assert server.wait() == 0


def test_a_server_works_on_uvloop_and_collects_garbage_less_often(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, find_free_port(), agent="tuned") as server, server.client() as client:
        assert client.post_json("/api/threads/a/turns", prompt="Go.").status_code == 200
        messages = client.get("/api/threads/a").json()["messages"]
        assert "uvloop, True, 50000" in [each["text"] for each in messages], messages


def test_a_run_that_does_not_end_in_time_goes_on_with_the_next_server(tmp_path: Path) -> None:
    port = find_free_port()
    with ServerProcess(tmp_path, port, "--drain", "0", agent="waiting") as server, server.client() as client:
        assert client.post_json("/api/threads/a/turns", prompt="Go.", wait=False).status_code == 202
        until((tmp_path / "waiting").exists, "a run at the gate")
        server.signal(signal.SIGTERM)
        until(lambda: client.get("/healthz").status_code == 503, "a server that drains")
        (tmp_path / "gate").touch()
        assert server.wait() == 0
    with ServerProcess(tmp_path, port, agent="waiting") as server, server.client() as client:
        events = client.read_stream("GET", "/api/threads/a/events")
        names = [each.name for each in events if each.id]
        assert names[-1] == "ended"
        assert "resumed" in names
        assert set(read_ledger(tmp_path).values()) == {1}


def test_a_second_signal_leaves_at_once_and_the_next_server_goes_on(tmp_path: Path) -> None:
    port = find_free_port()
    with ServerProcess(tmp_path, port, agent="waiting") as server, server.client() as client:
        assert client.post_json("/api/threads/a/turns", prompt="Go.", wait=False).status_code == 202
        until((tmp_path / "waiting").exists, "a run at the gate")
        server.signal(signal.SIGTERM)
        until(lambda: client.get("/healthz").status_code == 503, "a server that drains")
        server.signal(signal.SIGTERM)
        assert server.wait() == 143
    (tmp_path / "gate").touch()
    with ServerProcess(tmp_path, port, agent="waiting") as server, server.client() as client:
        events = client.read_stream("GET", "/api/threads/a/events")
        assert [each.name for each in events if each.id][-1] == "ended"
        assert set(read_ledger(tmp_path).values()) == {1}
