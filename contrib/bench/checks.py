"""What the checks of an iteration cost: two states of the kernel, measured in turn, and the ratio between them.

``python contrib/bench/checks.py BEFORE [AFTER]`` takes two folders ``core/src``, for instance of a commit that was
unpacked by ``git archive COMMIT core/src | tar x -C FOLDER``; AFTER is this checkout's unless it is given. Both run in
the environment of this process. It prints for each case

- the instructions of an iteration by callgrind, which must be installed: (a run of 120 - a run of 20) / 100;
- the CPU time in microseconds, of processes that take turns: the median of each, and the median of the ratios of pairs.

The agent is that of `ours.py`, with a tool that has two defaults, and everything else at its own defaults: nothing is
written to a disk. A chunk is measured with a consumer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from locus import Agent, Message, ModelChunkEvent, ModelRequest, ModelResponse, Role, tool
from locus.core.messages import ToolCall
from locus.models import Chunk

#: The arguments of the n-th call.
CASES: dict[str, Any] = {
    "every argument given": lambda n: {"key": f"item-{n}", "limit": 10, "exact": True},
    "two defaults left out": lambda n: {"key": f"item-{n}"},
}
STREAM = "a chunk of 5,000"
CHUNKS = 5_000

_REPEATS, _STREAMS = 40, 3


@tool
async def lookup(key: str, *, limit: int = 10, exact: bool = True) -> str:
    """Look an item up by its key."""
    return f"value of {key}"


class Model:
    """Asks for the tool so many times, then answers, in chunks where somebody listens."""

    name = "bench:scripted"

    def __init__(self, case: str, calls: int) -> None:
        self._arguments, self._left = CASES.get(case), calls

    async def complete(self, request: ModelRequest, on_chunk: Any = None) -> ModelResponse:
        """The next answer."""
        if self._arguments is not None and self._left:
            self._left -= 1
            asked = ToolCall(f"c{self._left}", "lookup", self._arguments(self._left))
            return ModelResponse(message=Message(Role.ASSISTANT, (asked,)), stop_reason="tool_calls")
        if on_chunk is not None:
            for _ in range(CHUNKS):
                await on_chunk(Chunk("word "))
        return ModelResponse(message=Message(Role.ASSISTANT, "done"))


async def _run(case: str, calls: int) -> float:
    """The CPU seconds of one run."""
    agent = Agent(Model(case, calls), tools=[lookup], max_iterations=1_000_000)
    begun = time.process_time()
    if case == STREAM:
        assert sum([1 async for event in agent.run("Go.") if type(event) is ModelChunkEvent]) == CHUNKS
    else:
        assert (await agent.run("Go.")).text == "done"
    return time.process_time() - begun


async def _time(case: str) -> float:
    """Microseconds of CPU for an iteration, or for a chunk."""
    calls, repeats, parts = (0, _STREAMS, CHUNKS) if case == STREAM else (100, _REPEATS, 100)
    await _run(case, calls)
    return median([await _run(case, calls) for _ in range(repeats)]) / parts * 1e6


def _child(kernel: Path, *arguments: str, before: tuple[str, ...] = ()) -> str:
    environment = {**os.environ, "PYTHONPATH": str(kernel), "PYTHONHASHSEED": "0"}
    command = [*before, sys.executable, __file__, *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout  # noqa: S603


def _count(kernel: Path, case: str) -> int:
    """The instructions of an iteration."""
    totals = []
    for calls in (20, 120):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            valgrind = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}")
            _child(kernel, "--run", case, "--calls", str(calls), before=valgrind)
            found = re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.MULTILINE)
            assert found is not None, "callgrind wrote no total"
            totals.append(int(found[1]))
    return (totals[1] - totals[0]) // 100


def _compare(before: Path, after: Path, pairs: int, *, instructions: bool) -> None:
    print("| | before | now | now against before |\n|---|---|---|---|")
    for case in CASES if instructions else ():
        old, new = _count(before, case), _count(after, case)
        print(f"| {case}, instructions | {old:,} | {new:,} | {new / old - 1:+.1%} |", flush=True)
    for case in (*CASES, STREAM):
        times = [tuple(json.loads(_child(each, "--time", case)) for each in (before, after)) for _ in range(pairs)]
        old_time, new_time = (median(column) for column in zip(*times, strict=True))
        ratio = median(new / old for old, new in times) - 1
        print(f"| {case}, µs of CPU | {old_time:.2f} | {new_time:.2f} | {ratio:+.1%} |", flush=True)


def main() -> None:
    """Compare two kernels, or be one of the processes that are compared."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--no-instructions", action="store_true")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--calls", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--time", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        asyncio.run(_run(given.run, given.calls))
    elif given.time:
        print(asyncio.run(_time(given.time)))
    elif given.kernels:
        after = given.kernels[1] if len(given.kernels) > 1 else Path(__file__).parents[2] / "core/src"
        _compare(given.kernels[0].absolute(), after.absolute(), given.pairs, instructions=not given.no_instructions)
    else:
        parser.error("name the folder core/src of the state before")


if __name__ == "__main__":
    main()
