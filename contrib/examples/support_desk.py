"""A support desk that looks orders up by itself, and asks a person before money moves.

    python contrib/examples/support_desk.py "My lamp of order 4711 is broken. Please refund it."

It needs the plugins approval, sqlite and that of the model. The question is in the journal: leave the program with
Ctrl-C, run it again without a text, and it asks again. An answer counts once, and so does the refund.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
from contextlib import closing
from typing import Any

from attrs import frozen

from locus import Agent, MaxIterations, TokenLimit, ToolContext, ToolError, tool
from locus.core.errors import InterruptMismatch

TABLES = """
CREATE TABLE IF NOT EXISTS orders (number TEXT PRIMARY KEY, item TEXT, cents INTEGER);
CREATE TABLE IF NOT EXISTS refunds (key TEXT PRIMARY KEY, number TEXT, cents INTEGER);
INSERT OR IGNORE INTO orders VALUES ('4711', 'desk lamp', 8450), ('4712', 'chair', 12900);
"""


@frozen
class Desk:
    """The shop's database."""

    path: str

    def open(self) -> sqlite3.Connection:
        """Connect; each call has a connection of its own, because calls run side by side."""
        db = sqlite3.connect(self.path)
        db.executescript(TABLES)
        return db


@tool(effect="pure", reads="own")
def find_order(number: str, ctx: ToolContext[Desk]) -> dict[str, Any]:
    """Look an order up: the item, and its price in cents.

    Args:
        number: of the order.
    """
    with closing(ctx.deps.open()) as db:
        row = db.execute("SELECT item, cents FROM orders WHERE number = ?", (number,)).fetchone()
    if row is None:
        raise ToolError(f"order {number} does not exist; ask the customer for the number")
    return {"item": row[0], "cents": row[1]}


@tool(effect="keyed", targets=("number",))
def refund(number: str, cents: int, ctx: ToolContext[Desk]) -> str:
    """Pay money back to the customer of an order.

    Args:
        number: of the order.
        cents: how much; at most the order's price, all refunds together.
    """
    with closing(ctx.deps.open()) as db, db:
        # A crash after the commit repeats this call with the same key, which then changes nothing.
        db.execute(
            "INSERT OR IGNORE INTO refunds SELECT :key, number, :cents FROM orders WHERE number = :number"
            " AND :cents BETWEEN 1 AND cents - (SELECT coalesce(sum(cents), 0) FROM refunds WHERE number = :number)",
            {"key": ctx.idempotency_key, "number": number, "cents": cents},
        )
        if db.execute("SELECT 1 FROM refunds WHERE key = ?", (ctx.idempotency_key,)).fetchone() is None:
            raise ToolError(f"{cents} cents cannot be refunded for order {number}: look up its price first")
    return f"refunded {cents / 100:.2f} euros for order {number}"


def build(model: Any, threads: Any) -> Agent[Desk, Any]:
    """Make the agent.

    Args:
        model: ``"provider:name"``, or a model.
        threads: where conversations and open questions are kept, such as ``"sqlite:threads.db"``.
    """
    return Agent(
        model,
        name="support",
        tools=[find_order, refund],
        system_prompt="You work at the support desk of a shop. Look an order up before you refund it. Be brief.",
        approval={"tools": ("refund",)},
        checkpointer=threads,
        termination=TokenLimit(30_000) | MaxIterations(8),
    )


def main(text: str | None, thread_id: str, agent: Agent[Desk, Any], desk: Desk) -> None:
    """Handle one request of a customer, and ask in the terminal what a person has to decide."""
    run = agent.run(text, thread_id=thread_id, deps=desk) if text else agent.resume(thread_id, deps=desk)
    result = asyncio.run(run)
    while result.interrupts:
        asked = result.interrupts[0]
        answer = input(f"{asked.question} [{'/'.join(map(str, asked.options))}] ")
        try:
            result = asyncio.run(agent.resume(thread_id, answer, deps=desk))
        except InterruptMismatch as error:
            print(error)
    print(result.text or f"{result.stop_reason}: {result.detail}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A support desk that asks before it refunds.")
    parser.add_argument(
        "text", nargs="?", help="what the customer writes; without it, the open question is asked again"
    )
    parser.add_argument("--thread", default="customer", help="the conversation")
    parser.add_argument("--model", default=os.environ.get("LOCUS_MODEL", "llamacpp:qwen2.5-coder-1.5b"))
    parser.add_argument("--threads", default="sqlite:support-threads.db", help="where conversations are kept")
    parser.add_argument("--shop", default="shop.db", help="the SQLite file with orders and refunds")
    args = parser.parse_args()
    main(args.text, args.thread, build(args.model, args.threads), Desk(args.shop))
