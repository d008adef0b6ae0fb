"""What a reader walks through for one tool call: the modules that it enters, and how often the path changes module.

``python contrib/bench/structure.py`` runs an agent with one tool, everything else at its defaults, without a journal on
disk, and after a warm-up records each function of the kernel that is entered during the second iteration of a run:
from the model's answer that asks for the tool to the model's next answer. It prints

- the number of modules entered, and the number of times that the path changes from one module to another;
- the frames of the kernel between ``await agent.run()`` and the first line of a node;
- the modules, in the order in which they are entered.

Comprehensions and generator expressions count as a part of the function that contains them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import locus
from locus import Agent, Message, Role, tool
from locus.core.messages import ToolCall
from locus.models import ModelRequest, ModelResponse

__all__ = ["frames_to_a_node", "path_of_one_call"]

KERNEL = Path(locus.__file__).parent

#: How many tool calls the model asks for before it answers; the one in the middle is recorded.
CALLS = 6


@tool
async def lookup(key: str) -> str:
    """Look an item up by its key."""
    return f"value of {key}"


class Model:
    """Asks for the tool a few times, and calls ``between`` at each answer."""

    name = "bench:scripted"

    def __init__(self, between: Callable[[int], None]) -> None:
        self._between = between
        self._asked = 0

    async def complete(self, request: ModelRequest, on_chunk: object = None) -> ModelResponse:
        """The next answer."""
        self._asked += 1
        at = self._asked
        answer: Any = "done" if at > CALLS else (ToolCall(f"c{at}", "lookup", {"key": f"k{at}"}),)
        response = ModelResponse(message=Message(Role.ASSISTANT, answer))
        self._between(at)
        return response


def _module(code: Any) -> str | None:
    path = Path(code.co_filename)
    if not path.is_relative_to(KERNEL):
        return None  # attrs' generated methods, the standard library, this script
    return path.relative_to(KERNEL).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")


def path_of_one_call() -> list[str]:
    """The module of each function of the kernel that one tool call enters, in order, after a warm-up."""
    entered: list[str] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and not frame.f_code.co_name.startswith("<"):
            module = _module(frame.f_code)
            if module is not None:
                entered.append(module)

    def between(at: int) -> None:
        if at == CALLS // 2:
            sys.setprofile(profile)
        elif at == CALLS // 2 + 1:
            sys.setprofile(None)

    async def main() -> None:
        await Agent(Model(lambda _: None), tools=[lookup]).run("Look.")
        await Agent(Model(between), tools=[lookup]).run("Look.")

    asyncio.run(main())
    return entered


def frames_to_a_node() -> list[str]:
    """The functions of the kernel between ``await agent.run()`` and the first line of a node, the node included."""
    found: list[str] = []

    def trace(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == "think" and _module(frame.f_code) == "loop.nodes" and not found:
            at: FrameType | None = frame
            while at is not None:
                module = _module(at.f_code)
                if module is not None:
                    found.append(f"{module}.{at.f_code.co_qualname}")
                at = at.f_back

    async def main() -> None:
        agent = Agent(Model(lambda _: None), tools=[lookup])
        sys.setprofile(trace)
        try:
            await agent.run("Look.")
        finally:
            sys.setprofile(None)

    asyncio.run(main())
    return found[::-1]


def main() -> None:
    """Print both."""
    path = path_of_one_call()
    changes = sum(before != after for before, after in pairwise(path))
    modules = list(dict.fromkeys(path))
    frames = frames_to_a_node()
    print(f"one tool call: {len(modules)} modules, {changes} changes of module, {len(path)} functions")
    print(f"frames from `await agent.run()` to a node: {len(frames)}: {' > '.join(frames)}")
    for module in modules:
        print(f"  {module:32} {path.count(module)}")


if __name__ == "__main__":
    main()
