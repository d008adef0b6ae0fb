"""A submitted run and its worker in processes that are killed in their writes; run as ``python -m`` with a folder.

Prints what the undisturbed run comes to, how many processes died, and what is wrong after a death.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

from locus import Agent, tool
from locus.core.errors import NothingToResume
from locus.core.journal import END, START, Submitted, Transition
from locus_plugin_sqlite import SqliteStore
from locus_testkit import ScriptedModel, call
from locus_testkit.kills import Killed, every_kill, let_die


class DoneFirst(SqliteStore):
    """Broken on purpose: an offer is over as soon as it is made."""

    async def take(self, *arguments: Any, **options: Any) -> Any:
        offer = await super().take(*arguments, **options)
        if offer is not None:
            await offer.done()
        return offer


async def work(folder: Path, kind: type[SqliteStore]) -> Any:
    """Hand a run in, and be its worker until nothing is left to do."""

    @tool
    async def pay(amount: int) -> str:
        """Pay, once."""
        with (folder / "ledger").open("a") as file:
            file.write(f"pay {amount}\n")
        return f"paid {amount}"

    store: Any
    # An offer of a process that has died comes back after the lease.
    async with kind(folder / "runs.db", sync="normal", lease=0.3) as store:
        agent = Agent(
            ScriptedModel(script=lambda _: [call("pay", amount=1), call("pay", amount=2), "All is paid."]),
            tools=[pay],
            checkpointer=store,
        )
        await agent.submit("Pay.", thread_id="t", request_id="only", queue="q")
        while (depth := await store.depth("q")).ready or depth.held or depth.sleeping:
            offer = await store.take(["q"], "worker", wait=5)
            if offer is None:
                continue
            try:
                result = await agent.resume(offer.thread_id, yield_after=1, max_attempts=9)
            except NothingToResume:
                await offer.done()
                continue
            await (offer.back() if result.is_open else offer.done())
        bodies = [entry.body for entry in await store.read("t")]
        signals = len(await store.signals("t"))
    made = [body for body in bodies if isinstance(body, Transition)]
    ends = [(body.node, body.next_node) for body in made if body.node == START or body.next_node == END]
    told = [body.why for body in made if body.next_node == END]
    return [ends, told, sum(isinstance(body, Submitted) for body in bodies), len(made), signals]


async def go(folder: Path) -> Any:
    """With a store that keeps the laws."""
    return await work(folder, let_die(SqliteStore))


async def go_wrong(folder: Path) -> Any:
    """With one that is broken."""
    return await work(folder, let_die(DoneFirst))


def problems(kill: Killed) -> list[str]:
    """What is wrong after a death and what followed it."""
    found = [] if kill.result == kill.wanted else [f"the run came to {kill.result}"]
    lines = (kill.folder / "ledger").read_text().splitlines() if (kill.folder / "ledger").exists() else []
    found += [f"{line} {times} times" for line, times in Counter(lines).items() if times > 1]
    return [f"write {kill.at}{', stored' if kill.stored else ''}: {each}" for each in found]


def main(folder: Path, stride: int, control: str = "") -> None:
    """Kill at every which write; with a third argument, with a store that is broken on purpose."""
    kills = list(islice(every_kill(folder, go_wrong if control else go, stride=stride), 8 if control else None))
    wrong = [each for kill in kills for each in problems(kill)]
    json.dump({"wanted": kills[0].wanted, "deaths": sum(kill.died for kill in kills), "wrong": wrong}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
