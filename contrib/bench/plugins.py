"""What plugins cost a run: nothing while they are only installed, and what each adds to an iteration when it is on.

`python contrib/bench/plugins.py` needs the kernel, the test kit and the plugins to measure. The runs with
and without a plugin take turns, so that a busy machine slows both; what is printed are medians of the CPU time.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import anyio

from locus import Agent, tool
from locus_testkit import ScriptedModel, call

#: Plugins that are on by a hook of their own, and what switches them on; what asks a model is left to its own README.
CASES: dict[str, Any] = {
    "reflexion": {"judge": "rules", "interval": 2},
    "grounding": True,
    "causal": True,
    "guardrails": True,
    "retry": True,
    "logging": {"level": "ERROR"},
    "telemetry": True,
    "pricing": True,
    "verifier": True,
    "toolsearch": {"threshold": 0},
}

_ASKS = """
import asyncio, json, sys
from locus import Agent
from locus_testkit import ScriptedModel

async def main():
    await Agent(ScriptedModel("done")).run("x")

asyncio.run(main())
print(json.dumps(sorted(name for name in sys.modules if name.startswith("locus_plugin_"))))
"""


@tool(effect="pure")
async def read(n: int) -> str:
    """Read an item."""
    return f"item {n} costs 40 dollars and weighs 3 kg"


def agent(count: int, **plugins: Any) -> Agent[None, str]:
    """An agent that calls its tool ``count`` times."""
    script = [*(call("read", n=n) for n in range(count)), "Item 3 costs 40 dollars."]
    return Agent(ScriptedModel(script=lambda request: script), tools=[read], max_iterations=10**6, **plugins)


async def once(make: Callable[[], Agent[None, str]], count: int) -> float:
    """Seconds of CPU an iteration."""
    one = make()
    gc.collect()
    started = time.process_time()
    await one.run("What does item 3 cost?")
    return (time.process_time() - started) / count


async def measure(name: str, settings: Any, count: int, rounds: int) -> dict[str, Any]:
    """A run with a plugin against one without."""
    with_it: list[float] = []
    without: list[float] = []
    for n in range(rounds + 1):
        one = await once(lambda: agent(count), count)
        other = await once(lambda: agent(count, **{name: settings}), count)
        if n:  # the first round loads what is needed
            without.append(one)
            with_it.append(other)
    anchor, ours = statistics.median(without) * 1e6, statistics.median(with_it) * 1e6
    return {"plugin": name, "without us": round(anchor), "with us": round(ours), "adds us": round(ours - anchor)}


def loaded() -> list[str]:
    """The modules of plugins that a run loads that asks for none of them."""
    asked = subprocess.run([sys.executable, "-c", _ASKS], check=True, capture_output=True, text=True)  # noqa: S603
    found: list[str] = json.loads(asked.stdout)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What plugins cost a run.")
    parser.add_argument("names", nargs="*", help="plugins to measure; default: all that are installed")
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    print("modules of plugins that a run without plugins loads:", loaded() or "none")
    for name in given.names or CASES:
        try:
            found = anyio.run(measure, name, CASES.get(name, True), given.iterations, given.rounds)
        except Exception as e:  # noqa: BLE001 - one that is not installed is not measured
            found = {"plugin": name, "not measured": f"{type(e).__name__}: {e}"[:100]}
        print("  ".join(f"{key} {value}" for key, value in found.items()))


if __name__ == "__main__":
    main()
