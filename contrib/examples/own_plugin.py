"""A plugin of one's own in one file: quotas, so that tools are called only so often a day, over all runs and processes.

    python contrib/examples/own_plugin.py "Text Ann that I am late."

It needs the plugin of the model. A manifest may be passed as it is. In a distribution of its own, which `locus plugin
new` writes, it is an entry point; then `locus run -p quota` and the table `[plugins.quota]` work as well.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from fnmatch import fnmatchcase
from typing import Any

from attrs import field, frozen

from locus import Agent, Reject, tool
from locus.core.messages import ToolCall
from locus.plugin import Hook, Plugin, RunContext, StashKey

REFUSED: StashKey[list[str]] = StashKey("quota refused")


@frozen(kw_only=True)
class QuotaSettings:
    """How often tools may be called.

    Args:
        limits: calls a day (in UTC), by glob patterns of tool names; the first that matches counts.
        file: the SQLite file with the counts.
    """

    limits: Mapping[str, int] = field(factory=dict)
    file: str = "quota.db"


class Quota(Hook):
    """Rejects a call beyond its quota; a guard, so a call whose quota cannot be read does not run either."""

    guard = True

    def __init__(self, settings: QuotaSettings) -> None:
        self.settings = settings

    def on_tool_call(self, call: ToolCall, run: RunContext) -> Reject | None:
        """Decide about one call, which takes its place in the quota by being allowed."""
        limits = self.settings.limits.items()
        pattern, limit = next((each for each in limits if fnmatchcase(call.name, each[0])), ("", None))
        if limit is None or self._take(pattern, limit, run, call.id):
            return None
        refused = run.stash.setdefault(REFUSED, [])
        refused.append(call.name)
        run.report("quota", tuple(refused))
        return Reject(f"the quota of {limit} calls of {pattern} a day is used up; go on without, and say so")

    def _take(self, pattern: str, limit: int, run: RunContext, call_id: str) -> bool:
        """Count a call if there is room, in one transaction; a resumed run that asks again has its place already."""
        day = run.clock.now().date().isoformat()
        key = f"{run.run_id}/{run.state.iteration}/{call_id}"
        with closing(sqlite3.connect(self.settings.file, isolation_level=None)) as db:
            db.execute(
                "CREATE TABLE IF NOT EXISTS calls (day TEXT, pattern TEXT, key TEXT, PRIMARY KEY (day, pattern, key))"
            )
            db.execute("BEGIN IMMEDIATE")
            used = [row[0] for row in db.execute("SELECT key FROM calls WHERE day = ? AND pattern = ?", (day, pattern))]
            room = key in used or len(used) < limit
            if room:
                db.execute("INSERT OR IGNORE INTO calls VALUES (?, ?, ?)", (day, pattern, key))
            db.execute("COMMIT")
        return room


#: References, not objects: a manifest is read by programs that never use the plugin. In a distribution they name the
#: module, as in "my_quota.hooks:Quota".
plugin = Plugin(
    name="quota",
    api=(1, 0),
    summary="Limits how often tools are called a day.",
    hooks=(f"{__name__}:Quota",),
    settings=f"{__name__}:QuotaSettings",
    guard=True,
)


@tool(targets=("to",))
def send_text(to: str, text: str) -> str:
    """Send a text message."""
    print(f"to {to}: {text}")
    return "sent"


def build(model: Any, limits: Mapping[str, int], file: str) -> Agent[Any, Any]:
    """Make an agent with the plugin.

    Args:
        model: ``"provider:name"``, or a model.
        limits: calls a day by patterns of tool names.
        file: the SQLite file with the counts.
    """
    settings = {"limits": limits, "file": file}
    return Agent(model, name="texts", tools=[send_text], plugins=[plugin], quota=settings, max_iterations=6)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="An agent that sends at most so many text messages a day.")
    parser.add_argument("prompt")
    parser.add_argument("--a-day", type=int, default=3, help="how many")
    parser.add_argument("--file", default="quota.db", help="the SQLite file with the counts")
    parser.add_argument("--model", default=os.environ.get("LOCUS_MODEL", "llamacpp:qwen2.5-coder-1.5b"))
    args = parser.parse_args()
    result = asyncio.run(build(args.model, {"send_*": args.a_day}, args.file).run(args.prompt))
    print(result.text or f"{result.stop_reason}: {result.error or result.detail}", result.reports.get("quota", ""))
