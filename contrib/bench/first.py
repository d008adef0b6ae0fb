"""What a process costs from its start to the end of its first run, in CPU time.

    python contrib/bench/first.py [rounds]

Three programs take turns, each in a process of its own: Python with asyncio, the kernel's import line, and an agent
with one tool that is built and run once. The modules that only the last one loads are listed by package, slowest first,
as ``-X importtime`` lists them. Trust the ratios: the same program takes twice as long on a busy machine.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections import Counter
from statistics import median

BARE = """
import asyncio
async def main(): pass
asyncio.run(main())
"""

IMPORT = BARE + "from locus import Agent\n"

FIRST = """
import asyncio
from locus import Agent, Message, ModelResponse, Role, ToolCall, tool

class Model:
    name = "bench:scripted"
    asked = 0

    async def complete(self, request, on_chunk=None):
        self.asked += 1
        if self.asked == 1:
            call = ToolCall("1", "lookup", {"key": "item"})
            return ModelResponse(message=Message(Role.ASSISTANT, (call,)), stop_reason="tool_calls")
        return ModelResponse(message=Message(Role.ASSISTANT, "done"))

@tool
async def lookup(key: str) -> str:
    "Look an item up by its key."
    return key

async def main():
    result = await Agent(Model(), tools=[lookup]).run("Look it up.")
    assert result.text == "done" and result.state.iteration == 1, result

asyncio.run(main())
"""

PROGRAMS = {"bare": BARE, "import": IMPORT, "first run": FIRST}


def cpu_ms(program: str) -> float:
    """Milliseconds of CPU that a process takes which runs the program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # A program in development is compiled once, as an installed one is.
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", program], check=True, env=environ)  # noqa: S603 - a program of this file
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def modules(program: str) -> dict[str, int]:
    """Microseconds that each module of a program takes to import, those that it imports left out."""
    command = [sys.executable, "-X", "importtime", "-c", program]
    lines = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - see above
    return {m[2]: int(m[1]) for m in re.finditer(r"import time:\s+(\d+) \|\s+\d+ \| +(\S+)", lines.stderr)}


def main() -> None:
    """Print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    taken: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for number in range(rounds + 1):
        for name, program in PROGRAMS.items():
            spent = cpu_ms(program)
            if number:  # the first round compiles and warms the page cache
                taken[name].append(spent)
    bare = median(taken["bare"])
    for name, spent_ms in taken.items():
        middle = median(spent_ms)
        ratio = f"{middle - bare:+7.1f} ms, {middle / bare:.2f} x bare"
        print(f"{name:10} {middle:7.1f} ms (least {min(spent_ms):.1f}), {ratio}")
    known = modules(BARE)
    loaded = {name: spent_us for name, spent_us in modules(FIRST).items() if name not in known}
    packages: Counter[str] = Counter()
    for name, spent_us in loaded.items():
        packages[".".join(name.split(".")[: 2 if name.startswith("locus.") else 1])] += spent_us
    print(f"{len(loaded)} modules, {sum(loaded.values()) / 1e3:.1f} ms:")
    for name, spent_us in packages.most_common(12):
        print(f"  {name:24} {spent_us / 1e3:6.1f} ms")


if __name__ == "__main__":
    main()
