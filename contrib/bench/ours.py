"""Our own framework in the overhead benchmark: everything at its defaults but for the limit on iterations.

`common` is the benchmark's harness (scripted turns, the tool's body, timing); this file lies beside it when it runs.
"""

IMPORT = "from locus import Agent"

from contextlib import asynccontextmanager

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
    """An agent whose sqlite checkpointer writes to store.db."""
    try:
        agent = build(checkpointer=f"sqlite:{store.db}")
    except Exception as e:
        raise Unsupported(f"no sqlite plugin: {e}") from e
    yield agent


async def run(agent, n):
    result = await agent.run(PROMPT)
    assert result.text == FINAL


async def stream(agent):
    """Run with token streaming; return how many text chunks arrived."""
    return sum([1 async for event in agent.run(PROMPT) if type(event) is ModelChunkEvent])


if __name__ == "__main__":
    Bench("ours", "locus-core", build, run, stream, durable).main()
