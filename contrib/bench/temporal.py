"""What an agent costs on Temporal, as ratios to plain activities on the same server, in the same minutes.

`python contrib/bench/temporal.py` needs the kernel, the test kit, the kit and `plugins/temporal[server]`, and starts
its own server on this machine. Anchor and subject take turns, so that a busy machine slows both; what is printed are
medians. `--quick` takes a quarter of the time, `--json` is for programs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.worker import Worker

from locus import Agent, tool
from locus_plugin_temporal import AgentTask, AgentWorkflow, DevServer, LocusPlugin
from locus_testkit import ScriptedModel, call

FIELDS = ("what", "anchor", "ours", "ratio", "goal")

#: Calls of the tool in a run: each is an activity, and so is each call of the model.
CALLS = 40


@activity.defn
async def plain(n: int, asked: str) -> str:
    """As many bytes as an effect of an agent has, both ways."""
    return "x" * 400


# Without the sandbox, so that the anchor does not pay for loading this module in it.
@workflow.defn(sandboxed=False)
class Plain:
    """Activities, one after another."""

    @workflow.run
    async def run(self, count: int) -> int:
        for n in range(count):
            await workflow.execute_activity(
                plain,
                args=[n, "x" * 250],
                start_to_close_timeout=timedelta(seconds=60),
                heartbeat_timeout=timedelta(seconds=10),
                retry_policy=RetryPolicy(maximum_attempts=1),
            )
        return count


def agent() -> Agent[Any, Any]:
    """An agent with a tool that may run once only, and which it calls so many times."""

    @tool(effect="once")
    async def read(n: int) -> str:
        """Read an item."""
        return "x" * 100

    def turns(request: Any) -> list[Any]:
        first = next(m.text for m in request.messages if m.role == "user")
        return [*(call("read", n=n) for n in range(int(first))), "done"]

    return Agent(ScriptedModel(script=turns, ids="per_turn"), tools=[read], name="reader", max_iterations=10**6)


async def timed(client: Client, queue: str, name: str, kind: Any, argument: Any) -> float:
    """Seconds that a workflow takes."""
    began = time.perf_counter()
    await client.execute_workflow(kind, argument, id=name, task_queue=queue)
    return time.perf_counter() - began


async def measure(address: str, rounds: int) -> list[dict[str, str]]:
    """The table."""
    client = await Client.connect(address, plugins=[LocusPlugin([agent()])])
    steps = 2 * CALLS + 1
    raw, ours, growth = [], [], []

    async def run(name: str, calls: int) -> float:
        task = AgentTask(agent="reader", prompt=str(calls), history_limit=10**6)
        return await timed(client, "q", name, AgentWorkflow.run, task)

    async with Worker(client, task_queue="q", workflows=[Plain], activities=[plain]):
        await timed(client, "q", "warm-plain", Plain.run, 3)
        await run("warm-ours", 3)
        for n in range(rounds):
            raw.append(await timed(client, "q", f"plain-{n}", Plain.run, steps) / steps)
            ours.append(await run(f"ours-{n}", CALLS) / steps)
        for n in range(max(1, rounds // 3)):
            short, long = await run(f"short-{n}", CALLS), await run(f"long-{n}", 4 * CALLS)
            growth.append((long - short) / (3 * CALLS) / (short / CALLS))
        sizes = []
        for name in ("short-0", "long-0"):
            history = await client.get_workflow_handle(name).fetch_history()
            sizes.append((len(history.events), sum(each.ByteSize() for each in history.events)))
    events, size = ((sizes[1][i] - sizes[0][i]) / (3 * CALLS) for i in (0, 1))
    left, right = statistics.median(raw) * 1e3, statistics.median(ours) * 1e3
    shown = [
        (
            "an effect of an agent, to a plain activity",
            f"{left:.2f} ms",
            f"{right:.2f} ms",
            f"{right / left:.2f}",
            "1.5",
        ),
        (f"an iteration after {CALLS}, to one before", "", "", f"{statistics.median(growth):.2f}", "1.2"),
        ("events of history an iteration, of two effects", "12", f"{events:.1f}", "", ""),
        ("bytes of history an iteration", "", f"{size:,.0f}", "", ""),
    ]
    return [dict(zip(FIELDS, each, strict=True)) for each in shown]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with DevServer() as server:
        table = asyncio.run(measure(server.address, 3 if options.quick else 12))
    if options.json:
        print(json.dumps(table, indent=1))
        return
    for line in (dict(zip(FIELDS, FIELDS, strict=True)), *table):
        print(f"{line['what']:<50} {line['anchor']:>10} {line['ours']:>10} {line['ratio']:>6} {line['goal']:>5}")


if __name__ == "__main__":
    main()
