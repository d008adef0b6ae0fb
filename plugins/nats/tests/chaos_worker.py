"""A worker of the takeover test: a process that runs whatever thread is free until all have ended.

It is started with the address, the prefix, the lease, the folder of effects, the threads and their calls. It prints one
line for each tool that it is in, and for each write that was refused.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import anyio

from locus import Agent
from locus.core.errors import Fenced, JournalError, LocusError, NothingToResume, ThreadBusy
from locus.tools import tool
from locus_plugin_nats import NatsSettings, NatsStore, session
from locus_testkit import ScriptedModel, call

#: Statuses of a thread that is to be left alone.
_LEFT = {"running", "ended", "failed", "dead_letter"}


def build_agent(store: NatsStore, effects: Path, thread: str, calls: int) -> Agent[None, str]:
    """An agent whose tool leaves a line in a file, and may run once only."""
    me = os.getpid()

    @tool(effect="once")
    async def act(n: int) -> str:
        """Have an effect."""
        with effects.open("a", encoding="utf-8") as file:
            file.write(f"{thread} {n} {me}\n")
        print(f"in {thread} {n}", flush=True)  # noqa: T201 - the test listens
        await anyio.sleep(0.03)
        return f"{n} by {me}"

    turns: list[Any] = [[f"said by {me}", call("act", n=n)] for n in range(calls)]
    model = ScriptedModel(script=lambda request: [*turns, f"done by {me}"], after="repeat")
    return Agent(model, tools=[act], checkpointer=store, max_iterations=calls + 10)


async def work(options: argparse.Namespace) -> None:
    """Run and resume until every thread has ended."""
    threads = [f"t{n}" for n in range(options.threads)]
    settings = NatsSettings(prefix=options.prefix, lease=options.lease)
    async with NatsStore(options.url, settings) as store:
        while True:
            found = {info.thread_id: info.status for info in await store.threads()}
            if all(found.get(thread) == "ended" for thread in threads):
                return
            free = [thread for thread in threads if found.get(thread) not in _LEFT]
            for thread in free:
                agent = build_agent(store, options.effects, thread, options.calls)
                try:
                    if found.get(thread) in (None, "new"):
                        await agent.run("Do it.", thread_id=thread)
                    else:
                        await agent.resume(thread)
                except Fenced:
                    print(f"fenced {thread}", flush=True)  # noqa: T201
                except (ThreadBusy, NothingToResume):
                    pass
                except (JournalError, LocusError) as e:
                    print(f"error {thread} {e!r}", flush=True)  # noqa: T201
                break
            await anyio.sleep(0.02)


async def _look_at_nothing(_: session.Session) -> None:
    """Find no lost claim."""


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url")
    parser.add_argument("--prefix")
    parser.add_argument("--lease", type=float)
    parser.add_argument("--effects", type=Path)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--calls", type=int)
    parser.add_argument("--fence", choices=("on", "off"), default="on")
    options = parser.parse_args()
    if options.fence == "off":
        # The control: the server compares nothing, and nobody looks whether a claim is lost.
        session._FENCE = session._FENCE_SUBJECT = "X-Nothing"
        deaf: Any = session.Session
        deaf.look_after = _look_at_nothing
    anyio.run(work, options)


if __name__ == "__main__":
    main()
