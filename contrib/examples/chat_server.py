"""An agent behind HTTP: FastAPI, one thread a conversation, the answer streamed as server-sent events.

    CHAT_TOKEN=secret python contrib/examples/chat_server.py --port 8000
    curl -N -H "Authorization: Bearer secret" -H "Content-Type: application/json" \
      -d '{"text": "What is 17 * 4?", "request_id": "1"}' http://127.0.0.1:8000/threads/ann/turns

It needs fastapi, uvicorn, and the plugins sqlite and that of the model. A client that goes away cancels its run; a POST
that is repeated with its request_id is the same turn, and goes on with one that was cut. It listens on loopback alone:
a proxy in front of it terminates TLS.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
from collections.abc import AsyncIterator
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, Field

from locus import Agent, ModelChunkEvent, TerminateEvent, TokenLimit, ToolStartEvent, tool
from locus.core.errors import LocusError, RequestSuperseded, ThreadBusy


class Turn(BaseModel):
    """What a client posts."""

    text: str = Field(min_length=1, max_length=20_000)
    request_id: str = Field(min_length=1, max_length=100)


@tool(effect="pure")
def multiply(a: float, b: float) -> float:
    """Multiply two numbers."""
    return a * b


def build(model: Any, threads: Any) -> Agent[Any, Any]:
    """Make the agent, which serves any number of runs at a time.

    Args:
        model: ``"provider:name"``, or a model.
        threads: where conversations are kept, such as ``"sqlite:chat.db"``.
    """
    limits = TokenLimit(20_000)
    return Agent(model, name="chat", tools=[multiply], checkpointer=threads, termination=limits, max_iterations=8)


def encode_event(kind: str, **data: Any) -> str:
    """One server-sent event; JSON has no line ends, so no text can begin another event."""
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"


async def stream_turn(agent: Agent[Any, Any], thread_id: str, turn: Turn) -> AsyncIterator[str]:
    """Run a turn, and yield what happens as it happens; leaving this iterator cancels the run."""
    run = agent.run(turn.text, thread_id=thread_id, request_id=turn.request_id)
    ended = False
    try:
        async for event in run:
            match event:
                case ModelChunkEvent(kind="text", text=text):
                    yield encode_event("text", text=text)
                case ToolStartEvent(tool_name=name):
                    yield encode_event("tool", name=name)
                case TerminateEvent(reason=reason, final_message=text):
                    ended = True
                    yield encode_event("end", reason=reason, text=text)
        if not ended:  # the turn was made before: its result, without its events
            yield encode_event("end", reason=run.result.stop_reason, text=run.result.text)
    except ThreadBusy:
        yield encode_event("error", code="busy", text="another turn of this conversation is under way")
    except RequestSuperseded:
        yield encode_event("error", code="superseded", text="a later turn has followed this one")
    except LocusError:  # its text is for the log of the server
        yield encode_event("error", code="failed", text="the turn failed; post it again with the same request_id")
        raise


def make_app(agent: Agent[Any, Any], token: str) -> FastAPI:
    """The application.

    Args:
        agent: answers.
        token: what clients send as ``Authorization: Bearer TOKEN``; who has it may go on with any thread.
    """
    app = FastAPI(title="chat")

    def check(sent: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]) -> None:
        if not secrets.compare_digest(sent.credentials.encode(), token.encode()):
            raise HTTPException(401, "wrong token")

    @app.post("/threads/{thread_id}/turns", dependencies=[Depends(check)])
    async def post_turn(thread_id: str, turn: Turn) -> StreamingResponse:
        return StreamingResponse(stream_turn(agent, thread_id, turn), media_type="text/event-stream")

    return app


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serve an agent over HTTP on this machine; the token is CHAT_TOKEN.")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--threads", default="sqlite:chat.db", help="where conversations are kept")
    parser.add_argument("--model", default=os.environ.get("LOCUS_MODEL", "llamacpp:qwen2.5-coder-1.5b"))
    args = parser.parse_args()
    if not os.environ.get("CHAT_TOKEN"):
        parser.error("set CHAT_TOKEN to the token that clients must send")
    served = make_app(build(args.model, args.threads), os.environ["CHAT_TOKEN"])
    uvicorn.run(served, host="127.0.0.1", port=args.port)
