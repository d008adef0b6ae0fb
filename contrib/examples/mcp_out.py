"""Tools for other people's programs: an address book, served over MCP to any client on this machine.

    python contrib/examples/mcp_out.py people.db              # on standard input and output: the client starts it
    python contrib/examples/mcp_out.py people.db --port 8000  # over HTTP, at http://127.0.0.1:8000/mcp

It needs the plugin mcp. A client of the first kind has in its configuration:

    {"mcpServers": {"people": {"command": "python", "args": ["contrib/examples/mcp_out.py", "people.db"]}}}

A client sees names, descriptions and schemas, and that `find_person` only reads. `mcp_in.py` is a client.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import sys
from contextlib import closing

from attrs import frozen

from locus import ToolContext, tool
from locus_plugin_mcp.serving import serve


@frozen
class People:
    """The address book."""

    path: str

    def open(self) -> sqlite3.Connection:
        """Connect; the caller closes. Each call has a connection of its own, because calls run side by side."""
        db = sqlite3.connect(self.path)
        db.execute("CREATE TABLE IF NOT EXISTS people (name TEXT PRIMARY KEY, mail TEXT NOT NULL)")
        return db


@tool(effect="pure", reads="own", egress=False)
def find_person(name: str, ctx: ToolContext[People]) -> list[dict[str, str]]:
    """Find people by a part of their name, at most 20.

    Args:
        name: the part, in upper or lower case.
    """
    with closing(ctx.deps.open()) as db:
        found = db.execute(
            "SELECT name, mail FROM people WHERE instr(lower(name), lower(?)) ORDER BY name LIMIT 20", (name,)
        )
        return [{"name": row[0], "mail": row[1]} for row in found]


@tool(effect="keyed", targets=("mail",), egress=False)
def save_person(name: str, mail: str, ctx: ToolContext[People]) -> str:
    """Save the mail address of a person, in place of the one that is there.

    Args:
        name: the whole name.
        mail: the address.
    """
    with closing(ctx.deps.open()) as db, db:
        db.execute(
            "INSERT INTO people VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET mail = excluded.mail", (name, mail)
        )
    return f"saved {name}"


TOOLS = (find_person, save_person)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serve an address book over MCP.")
    parser.add_argument("file", help="the SQLite file with the people")
    parser.add_argument("--port", type=int, help="serve over HTTP on this port of 127.0.0.1; 0 takes a free one")
    args = parser.parse_args()

    def show(address: str) -> None:
        """Say where it answers; standard output belongs to the protocol."""
        print(address, file=sys.stderr, flush=True)

    asyncio.run(serve(TOOLS, name="people", deps=People(args.file), port=args.port, started=show))
