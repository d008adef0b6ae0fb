"""A nightly job that may be killed: started again, it goes on where it was and books nothing twice.

    python contrib/examples/nightly_job.py 2026-03-31

It needs the plugins sqlite and that of the model. Start it from cron, or from a systemd unit with `Restart=on-failure`:
the day is the thread and the request, so as many starts as you like are one run. What is in the journal is not asked
again and not done again. A booking that a crash cut is repeated with its key, by which the ledger knows it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
from contextlib import closing
from datetime import date
from typing import Any, Literal

from attrs import frozen

from locus import Agent, AgentResult, TokenLimit, ToolContext, ToolError, tool

TABLES = """
CREATE TABLE IF NOT EXISTS payments (id INTEGER PRIMARY KEY, day TEXT, text TEXT, cents INTEGER);
CREATE TABLE IF NOT EXISTS bookings (
    key TEXT PRIMARY KEY, payment INTEGER UNIQUE REFERENCES payments, account TEXT NOT NULL);
"""
Account = Literal["rent", "travel", "supplies", "unclear"]


@frozen
class Ledger:
    """Payments, and the account that each is booked on."""

    path: str

    def open(self) -> sqlite3.Connection:
        """Connect; the caller closes."""
        db = sqlite3.connect(self.path)
        db.execute("PRAGMA foreign_keys = ON")
        db.executescript(TABLES)
        return db


@tool(effect="pure", reads="untrusted")  # the text of a payment is written by the payer
def list_payments(day: date, ctx: ToolContext[Ledger]) -> list[dict[str, Any]]:
    """List the payments of a day."""
    with closing(ctx.deps.open()) as db:
        found = db.execute("SELECT id, text, cents FROM payments WHERE day = ? ORDER BY id", (day.isoformat(),))
        return [{"id": row[0], "text": row[1], "cents": row[2]} for row in found]


@tool(effect="keyed", targets=())
def book(payment: int, account: Account, ctx: ToolContext[Ledger]) -> str:
    """Book a payment on an account. Each payment is booked once.

    Args:
        payment: its id.
        account: "unclear" leaves it to a person.
    """
    with closing(ctx.deps.open()) as db, db:
        try:
            db.execute("INSERT INTO bookings VALUES (?, ?, ?)", (ctx.idempotency_key, payment, account))
        except sqlite3.IntegrityError as error:
            made = db.execute("SELECT key FROM bookings WHERE payment = ?", (payment,)).fetchone()
            if made is None:
                raise ToolError(f"payment {payment} does not exist; list the payments") from error
            if made[0] != ctx.idempotency_key:
                raise ToolError(f"payment {payment} is booked already") from error
    return f"payment {payment} is booked on {account}"


def build(model: Any, threads: Any) -> Agent[Ledger, Any]:
    """Make the agent.

    Args:
        model: ``"provider:name"``, or a model.
        threads: where the journal is kept, such as ``"sqlite:jobs.db"``.
    """
    return Agent(
        model,
        name="nightly",
        tools=[list_payments, book],
        system_prompt="You book payments. List those of the day, book each one, and end with one sentence.",
        checkpointer=threads,
        tool_execution="sequential",
        termination=TokenLimit(100_000),
        max_iterations=40,
        tool_timeout=30.0,
    )


async def run_job(agent: Agent[Ledger, Any], day: date, ledger: Ledger) -> AgentResult[Any]:
    """Begin the job of a day, go on with it where it was left, or return the result that it has."""
    prompt = f"Book the payments of {day.isoformat()}."
    return await agent.run(prompt, thread_id=f"nightly {day}", request_id=day.isoformat(), deps=ledger)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Book the payments of a day; started again, it goes on.")
    parser.add_argument("day", type=date.fromisoformat, help="YYYY-MM-DD")
    parser.add_argument("--ledger", default="ledger.db", help="the SQLite file with payments and bookings")
    parser.add_argument("--threads", default="sqlite:jobs.db", help="where the journal is kept")
    parser.add_argument("--model", default=os.environ.get("LOCUS_MODEL", "llamacpp:qwen2.5-coder-1.5b"))
    args = parser.parse_args()
    outcome = asyncio.run(run_job(build(args.model, args.threads), args.day, Ledger(args.ledger)))
    print(outcome.text or f"{outcome.stop_reason}: {outcome.detail}")
    raise SystemExit(1 if outcome.failed else 0)
