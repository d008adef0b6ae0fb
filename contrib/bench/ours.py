"""Our own framework in the overhead benchmark: everything at its defaults but for the limit on iterations.

`common` is the benchmark's harness (scripted turns, the tool's body, timing); this file lies beside it when it runs.
"""

IMPORT = "from locus import Agent"

from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec

from common import FINAL, PROMPT, Bench, Unsupported, next_chunks, next_turn, tool_body

from locus import Agent, Message, ModelChunkEvent, ModelRequest, ModelResponse, Role, tool
from locus.core.messages import ToolCall
from locus.models import Chunk


class Model:
    name = "bench:scripted"

    async def complete(self, request: ModelRequest, on_chunk=None) -> ModelResponse:
        calls = next_turn()
        if calls is not None:
            blocks = tuple(ToolCall(i, "lookup", args) for i, args in calls)
            return ModelResponse(message=Message(Role.ASSISTANT, blocks), stop_reason="tool_calls")
        pieces = next_chunks()
        if on_chunk is not None:
            for text in pieces:
                await on_chunk(Chunk(text))
        return ModelResponse(message=Message(Role.ASSISTANT, "".join(pieces) or FINAL))


@tool
async def lookup(key: str) -> str:
    """Look an item up by its key."""
    return await tool_body(key)


def build(checkpointer=None):
    """An agent with one tool; shared by every run."""
    return Agent(Model(), tools=[lookup], max_iterations=1_000_000, checkpointer=checkpointer)


@asynccontextmanager
async def durable(store):
    """An agent whose sqlite checkpointer writes to store.db, where the tables are made before, as for the others."""
    if find_spec("locus_plugin_sqlite") is None:
        raise Unsupported("no sqlite plugin")
    sqlite = import_module("locus_plugin_sqlite")  # here, so that a run without checkpoints does not pay for it
    async with sqlite.SqliteStore(store.db) as opened:
        await opened.release(await opened.claim("first", "bench"))
        yield build(checkpointer=opened)


async def run(agent, n):
    result = await agent.run(PROMPT)
    assert result.text == FINAL


async def stream(agent):
    """Run with token streaming; return how many text chunks arrived."""
    return sum([1 async for event in agent.run(PROMPT) if type(event) is ModelChunkEvent])


if __name__ == "__main__":
    Bench("ours", "locus-core", build, run, stream, durable).main()
