"""Tools of other people's programs: an agent that works with an address book over MCP.

    python contrib/examples/mcp_in.py "What is Ann's mail address?" --people people.db

It needs the plugins mcp, approval and that of the model. The server is `mcp_out.py`, started for this run and ended
with it; any other one goes into `servers` in the same way. The definitions of its tools are recorded when it is first
used, and a tool that has changed since is held back.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from locus import Agent, TokenLimit

SERVER = Path(__file__).with_name("mcp_out.py")


def name_server(people: str) -> dict[str, Any]:
    """The settings of the server that `mcp_out.py` is.

    Args:
        people: the SQLite file with the people.
    """
    return {
        "command": sys.executable,
        "args": [str(SERVER), people],
        # It is ours, so what it says of its tools is believed: one only reads, the other can be repeated. Of strangers
        # leave this out: their calls then happen once at most, and their results are untrusted.
        "trust": True,
        "labels": {"find_*": {"reads": "own"}},
        "timeout": 20.0,
        "required": True,
    }


def build(model: Any, servers: Mapping[str, Any], lock: str | None = None) -> Agent[Any, Any]:
    """Make the agent.

    Args:
        model: ``"provider:name"``, or a model.
        servers: by name, as the setting ``servers`` of the plugin mcp has them.
        lock: the folder with the accepted definitions of tools; None = in the user's state folder.
    """
    return Agent(
        model,
        name="people",
        system_prompt="You keep an address book. Look people up before you answer. Be brief.",
        mcp={"servers": servers, "lock": lock or True, "max_tools": 20},
        # A tool of a server is under the server's name, and takes part in everything that tools do.
        approval={"tools": ("*__save_*",)},
        termination=TokenLimit(20_000),
        max_iterations=6,
    )


def main(text: str, agent: Agent[Any, Any]) -> None:
    """Handle one request, and ask in the terminal before something is saved."""
    result = agent.run_sync(text)
    while result.interrupts:
        asked = result.interrupts[0]
        answer = input(f"{asked.question} [allow/reject] ")
        result = asyncio.run(agent.resume(result, "allow" if answer == "allow" else "reject"))
    print(result.text or f"{result.stop_reason}: {result.detail}")
    for server in result.reports["mcp"].servers:
        print(f"{server.server}: {server.status}, {', '.join(server.tools)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Ask an address book that is served over MCP.")
    parser.add_argument("text")
    parser.add_argument("--people", default="people.db", help="the SQLite file of the server")
    parser.add_argument("--model", default=os.environ.get("LOCUS_MODEL", "llamacpp:qwen2.5-coder-1.5b"))
    args = parser.parse_args()
    main(args.text, build(args.model, {"people": name_server(args.people)}))
