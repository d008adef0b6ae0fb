"""The page "from one machine to many": its commands, and the worker that has the run is killed before one's eyes."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from plugins.cli.tests.conftest import Locus, vouch
from plugins.cli.tests.warm import Warm, WarmServer
from plugins.worker.tests.processes import PATIENCE, hold_third_call, until

pytestmark = pytest.mark.proof

HERE = Path(__file__).parent.parent


def block(comment: str, page: Path) -> str:
    found = re.search(rf"<!-- {re.escape(comment)} -->\n```\w+\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None, comment
    return found[1]


def commands() -> list[str]:
    return [line.removeprefix("$ ") for line in block("recorded-run", HERE / "README.md").splitlines()]


def test_threads_move_to_a_server_and_a_killed_worker_is_followed_by_another(
    here: Path, environment: dict[str, str], warm_server: WarmServer, locus: Locus
) -> None:
    held = here / "held"
    (here / "shop.py").write_text(hold_third_call(block("file: shop.py", HERE.parent / "worker" / "README.md"), held))
    # So that the page need not wait for the lease of every day.
    (here / "locus.toml").write_text("[plugins.nats]\nlease = 1.0\n")
    vouch(here)
    serve, copy, one, two, watch = commands()
    with ExitStack() as stack:
        stack.callback(sys.modules.pop, "shop", None)  # other tests have another program of that name
        assert locus("submit", "Check the orders.", "--agent", "shop:agent", "--thread", "orders").status == 0
        begin = starter(stack, here, environment, warm_server)
        server = begin(serve.replace("4222", "0"), "server")
        stack.callback(server.wait, PATIENCE)  # it ends the server that it has started
        stack.callback(server.send_signal, signal.SIGTERM)
        until(lambda: "Ctrl-C ends it" in said("server"), "a server")
        address = said("server").split()[0]

        def to_it(command: str) -> str:
            assert "nats://db1:4222" in command
            return command.replace("nats://db1:4222", address)

        copied = locus(*shlex.split(to_it(copy))[1:])
        assert (copied.status, copied.out) == (0, "orders\n"), copied
        workers = {name: begin(to_it(command), name) for name, command in (("one", one), ("two", two))}
        watcher = begin(to_it(watch), "watcher")
        until(lambda: "<- check: order 2" in said("watcher"), f"two orders: {[said(n) for n in (*workers, 'watcher')]}")
        (has,) = [name for name in workers if " take " in said(name)]
        workers[has].send_signal(signal.SIGKILL)
        workers[has].wait(PATIENCE)
        held.unlink()
        assert watcher.wait(PATIENCE) == 0, said("watcher")
        for worker in workers.values():
            worker.kill()
            worker.wait(PATIENCE)

    lines = said("watcher").splitlines()
    assert lines[-1] == "ended: NoToolCalls"
    assert "goes on" in lines
    returned = [line for line in lines if line.startswith("<- check")]
    assert len(returned) == len(set(returned)) == 5


def said(name: str) -> str:
    return Path(name).read_text(encoding="utf-8")


def starter(
    stack: ExitStack, here: Path, environment: dict[str, str], warm_server: WarmServer
) -> Callable[[str, str], Warm]:
    """Starts a command of the page, whose output goes to a file; what still runs in the end is killed."""

    def begin(command: str, name: str) -> Warm:
        program, *arguments = shlex.split(command)
        assert program == "locus"
        with Path(os.devnull).open("rb") as nothing, (here / name).open("wb") as out:
            streams = (nothing.fileno(), out.fileno(), out.fileno())
            started = warm_server.start(arguments, streams=streams, folder=here, environment=environment)
        stack.callback(started.wait, PATIENCE)
        stack.callback(started.kill)
        return started

    return begin
