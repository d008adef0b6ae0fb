"""What the tests of the plugin share: servers to start, and short ways to look at a run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from locus import AgentResult
from locus.core.journal import Body, Outcome
from locus.journal.store import Appended, Claim
from locus_plugin_mcp import McpReport, ServerReport

__all__ = ["alive", "broken", "log_of", "python", "raw", "reported", "results"]

_RAW = Path(__file__).with_name("raw_server.py")


def python(*arguments: str, **settings: Any) -> dict[str, Any]:
    """A server that this Python runs."""
    return {"command": sys.executable, "args": [*arguments], **settings}


def raw(how: dict[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    """The plain server, told what to do wrong; it needs no site-packages and starts at once."""
    return python("-S", "-E", str(_RAW), json.dumps(how or {}), **settings)


def results(result: AgentResult[Any]) -> list[str]:
    """What the model read of each call, in order."""
    blocks = [r for m in result.state.messages for r in m.tool_results]
    return [b.content if isinstance(b.content, str) else repr(b.content) for b in blocks]


def reported(result: AgentResult[Any], server: str = "raw") -> ServerReport:
    """What the result says of one server."""
    report: McpReport = result.reports["mcp"]
    found = report.of(server)
    assert found is not None
    return found


def log_of(path: Path) -> list[str]:
    """What a plain server has heard."""
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def alive(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def broken(store: Any, step: str) -> Any:
    """The store, which cannot save the outcome of one step the first time."""
    append, failed = store.append, list[bool]()

    async def fail(claim: Claim, bodies: Sequence[Body]) -> Appended:
        if not failed and any(isinstance(body, Outcome) and str(body.step_id) == step for body in bodies):
            failed.append(True)
            raise OSError(28, "no space left on device")
        done: Appended = await append(claim, bodies)
        return done

    store.append = fail
    return store
