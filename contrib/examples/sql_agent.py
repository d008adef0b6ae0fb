"""Questions about an SQLite database, answered by SQL that can only read.

    python contrib/examples/sql_agent.py shop.db "Which product sold best in March?"

It needs the plugin of the model. SQLite enforces what the prompt could only ask for: the file is opened read-only, an
authorizer allows SELECT alone, a slow query is stopped, and of a large result the model gets the first rows.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from attrs import frozen

from locus import Agent, TokenLimit, ToolContext, ToolError, ToolStartEvent, tool

ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}


def authorize(action: int, first: str | None, second: str | None, *_: object) -> int:
    """Allow what a SELECT does; refuse everything else, and functions that load code."""
    refused = action not in ALLOWED or (action == sqlite3.SQLITE_FUNCTION and second == "load_extension")
    return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK


@frozen
class Database:
    """A database that is only read.

    Args:
        path: the file.
        rows: how many rows of a result are shown.
        seconds: how long a query may take.
    """

    path: Path
    rows: int = 50
    seconds: float = 5.0

    def open(self) -> sqlite3.Connection:
        """Connect; the caller closes. Each call has a connection of its own, because calls run side by side."""
        return sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True)

    def describe(self) -> str:
        """The statements that made its tables and views."""
        with closing(self.open()) as db:
            found = db.execute("SELECT sql FROM sqlite_schema WHERE type IN ('table', 'view') AND sql IS NOT NULL")
            return "\n".join(sql for (sql,) in found)


@tool(effect="pure", reads="own")
def query(sql: str, ctx: ToolContext[Database]) -> dict[str, Any]:
    """Run one SELECT and return its columns and rows.

    Args:
        sql: one statement in the dialect of SQLite.
    """
    database = ctx.deps
    with closing(database.open()) as db:
        db.set_authorizer(authorize)
        until = time.monotonic() + database.seconds
        db.set_progress_handler(lambda: int(time.monotonic() > until), 10_000)
        try:
            cursor = db.execute(sql)
            found = cursor.fetchmany(database.rows + 1)
        except sqlite3.OperationalError as error:
            late = time.monotonic() > until
            raise ToolError(f"stopped after {database.seconds} seconds" if late else str(error)) from error
        except sqlite3.DatabaseError as error:  # "not authorized", and more than one statement
            raise ToolError(f"{error}; only one SELECT is allowed") from error
    columns = [column[0] for column in cursor.description or ()]
    shown = {"columns": columns, "rows": found[: database.rows]}
    return shown if len(found) <= database.rows else shown | {"note": f"only the first {database.rows} rows"}


def build(model: Any, database: Database) -> Agent[Database, Any]:
    """Make the agent. It knows the schema from its prompt, so no call is spent on that.

    Args:
        model: ``"provider:name"``, or a model.
        database: what is asked about; the same is passed to each run as ``deps``.
    """
    return Agent(
        model,
        name="sql",
        tools=[query],
        system_prompt="Answer questions about this SQLite database with the tool query, and take every number from a "
        f"result. The database:\n{database.describe()}",
        termination=TokenLimit(40_000),
        max_iterations=8,
    )


async def main(question: str, model: str, database: Database) -> None:
    """Answer one question, and show the queries."""
    run = build(model, database).run(question, deps=database)
    async for event in run:
        if isinstance(event, ToolStartEvent):
            print(f"{event.arguments['sql']};")
    print(run.result.text or f"{run.result.stop_reason}: {run.result.detail}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Answer a question about an SQLite database.")
    parser.add_argument("database", type=Path)
    parser.add_argument("question")
    parser.add_argument("--model", default=os.environ.get("LOCUS_MODEL", "llamacpp:qwen2.5-coder-1.5b"))
    args = parser.parse_args()
    asyncio.run(main(args.question, args.model, Database(args.database)))
