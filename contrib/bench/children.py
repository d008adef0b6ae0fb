"""How much generated trees of runs spend beyond their limits, in model calls, and how many calls begin beyond them.

`python contrib/bench/children.py` needs the kernel, the test kit and the tests of this checkout, whose generator of
trees it uses. The trees have children one after another and at the same time, children of children, limits of tokens
and of dollars at any level, retries, and judges that ask a model about each call; they run on asyncio and on trio in
turn. `--trees N` takes another number of them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from random import Random

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.property.budget_world import Meter, agent_of, grow


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=1000)
    trees: int = parser.parse_args().trees
    runs = reached = late = most = 0
    worst = 0.0
    for seed in range(trees):
        node = grow(Random(seed))  # noqa: S311 - trees, not secrets
        meter = Meter(node.max_tokens, node.max_dollars)

        async def run() -> None:
            await agent_of(node, meter).run("go")  # noqa: B023 - it is awaited within the round

        anyio.run(run, backend=("asyncio", "trio")[seed % 2])
        runs, reached, late = runs + node.size, reached + (meter.then is not None), late + meter.late
        if meter.then:
            most, worst = max(most, len(meter.then)), max(worst, meter.on_top / max(meter.then))
    print(f"{trees} trees that can have {runs} runs; in {reached} the limit of the first run was reached")
    print(f"calls begun beyond it: {late}")
    print(f"calls under way when it was reached: at most {most}")
    print(f"spent on top: at most what {worst:.2f} calls spend")


if __name__ == "__main__":
    main()
