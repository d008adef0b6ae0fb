"""Routes generated states while the clock, randomness, files, sockets and the environment are forbidden.

Run as a program by `test_router_laws.py` (``python -m tests.property.purity_probe``): an audit hook cannot
be removed, so it must not outlive the probe. The audit hook sees files, sockets and processes; clocks,
randomness and reading the environment raise no audit event, so a profile function looks at every call. Before
it trusts its own silence, the probe commits each offence once and must be caught. It prints the number of
routes and the offences that it recognises.
"""

from __future__ import annotations

import gc
import os
import random
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.strategies_core import START, states
from tests.property.test_router_laws import routers

from locus.core.messages import Message, Role
from locus.core.state import AgentState
from locus.loop.router import Node, Router

FORBIDDEN_EVENTS = ("open", "socket.", "os.", "subprocess.", "import", "shutil.", "time.", "urllib.")
FORBIDDEN_MODULES = {
    "time": "clock",
    "_random": "random",
    "random": "random",
    "posix": "system",
    "nt": "system",
}
# The file as the code object names it: some versions freeze modules of the standard library.
FORBIDDEN_FILES = {
    type(os.environ).__getitem__.__code__.co_filename: "environment",
    random.Random.randint.__code__.co_filename: "random",
}

armed = False
offences: list[str] = []


def audit(event: str, args: tuple[Any, ...]) -> None:
    if armed and event.startswith(FORBIDDEN_EVENTS):
        offences.append(event.partition(".")[0])


def profile(frame: FrameType, event: str, arg: Any) -> None:
    if event == "call" and frame.f_code.co_filename in FORBIDDEN_FILES:
        offences.append(FORBIDDEN_FILES[frame.f_code.co_filename])
    elif event == "c_call":
        owner = getattr(arg, "__self__", None)
        module = getattr(arg, "__module__", None) or getattr(type(owner), "__module__", "")
        if module in FORBIDDEN_MODULES:
            offences.append(FORBIDDEN_MODULES[module])
        elif arg.__name__ in ("now", "utcnow", "today") and isinstance(owner, type):
            offences.append("clock")


def forbidden(act: Callable[[], object]) -> list[str]:
    """What an act did that is forbidden."""
    global armed
    offences.clear()
    gc.disable()  # hypothesis times the garbage collector
    armed = True
    sys.setprofile(profile)
    try:
        act()
    finally:
        sys.setprofile(None)
        armed = False
        gc.enable()
    return list(offences)


def look_up_the_environment() -> str | None:
    return os.environ.get("HOME")


def open_a_file() -> None:
    with Path(__file__).open(encoding="utf-8"):
        pass


def open_a_socket() -> None:
    socket.socket().close()


OFFENCES: dict[str, list[Callable[[], object]]] = {
    "clock": [time.time, time.monotonic, lambda: type(START).now(START.tzinfo)],
    "random": [random.random, lambda: random.randint(1, 6), lambda: random.Random(1)],
    "open": [open_a_file],
    "socket": [open_a_socket],
    "environment": [look_up_the_environment],
}

routed = 0


@settings(max_examples=400, derandomize=True, database=None, deadline=None, suppress_health_check=tuple(HealthCheck))
@given(routers, states(), st.sampled_from(["", "done"]))
def probe(router: Router, state: AgentState, answer: str) -> None:
    global routed
    for seen in (state, state.with_message(Message(Role.ASSISTANT, answer))):
        for node in Node:
            found = forbidden(lambda node=node, seen=seen: router(node, seen))  # type: ignore[misc]
            assert not found, f"router({node!r}, ...) with {router!r} did {found}"
            routed += 1


def main() -> None:
    sys.addaudithook(audit)
    caught = [name for name, acts in OFFENCES.items() if all(name in forbidden(act) for act in acts)]
    probe()
    print(routed, ",".join(caught))  # noqa: T201 - its output is its answer


if __name__ == "__main__":
    main()
