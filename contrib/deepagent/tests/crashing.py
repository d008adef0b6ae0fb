"""A research workflow in processes that are killed; run as ``python -m`` with what `main` takes.

The workflow never finds its summary grounded, so that it goes through every node, most of them several times. Each
process is forked from one that has imported everything, so a death costs milliseconds. It dies where a model or a
tool is asked, before the answer, or in a write of the store. It leaves two things: the file of the journal, and a
ledger, a file to which each question to a model or a tool is appended.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
from plugins.graph.tests.crashing import Dying

from locus import tool
from locus.models import ModelRequest
from locus_deepagent import create_research_workflow
from locus_deepagent.research.keys import KEY_CAUSAL_CHAIN, KEY_PROMPT

from .scripts import FACT, researcher


def build(ledger: Path, store: Any, dies_at: int) -> Any:
    """The workflow.

    Args:
        ledger: the file of questions.
        store: its journal.
        dies_at: the question at which the process dies, from 1; 0 = none.
    """
    asked = 0

    def note(what: str) -> None:
        nonlocal asked
        asked += 1
        with ledger.open("a") as file:
            file.write(f"{what}\n")
        if asked == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def before(request: ModelRequest) -> None:
        note(request.purpose)

    @tool(effect="pure")
    def search(query: str) -> str:
        """Search the library.

        Args:
            query: what to look for.
        """
        note("tool")
        return FACT

    model = researcher("1: no", before=before)
    return create_research_workflow(model=model, tools=[search], reflexion=False, checkpointer=store)


async def go(folder: Path, dies_at: int) -> dict[str, Any]:
    """Run the workflow to its end, or go on with it."""
    async with Dying(folder / "runs.db", sync="normal") as store:
        app = build(folder / "ledger", store, dies_at)
        known = await store.peek("t")
        values = {KEY_PROMPT: "Who discovered gallium?"}
        result = await (app.run(values, thread_id="t", request_id="only") if known is None else app.resume("t"))
    made = {key: value for key, value in result.values.items() if key != "research_run"}
    made[KEY_CAUSAL_CHAIN] = made[KEY_CAUSAL_CHAIN].to_json()
    return {"values": made, "reason": result.stop_reason, "writes": Dying.count, "tokens": result.usage.prompt_tokens}


def forked(folder: Path, dies_at: int = 0, write: int = 0) -> dict[str, Any] | None:
    """What a process of its own comes to; None where it was killed."""
    out = folder / "out.json"
    out.unlink(missing_ok=True)
    pid = os.fork()
    if not pid:
        status = 1
        try:
            Dying.at, Dying.stored, Dying.count = write, False, 0
            out.write_text(json.dumps(anyio.run(go, folder, dies_at)))
            status = 0
        finally:
            os._exit(status)
    os.waitpid(pid, 0)
    return json.loads(out.read_text()) if out.exists() else None


def main(folder: Path, stride: int, at: str) -> None:
    """Kill, go on, and print what came of it.

    Args:
        folder: for journals and ledgers.
        stride: every which question or write.
        at: ``"questions"`` or ``"writes"``.
    """
    warm, whole = folder / "warm", folder / "whole"
    warm.mkdir()
    anyio.run(go, warm, 0)  # what is imported late is imported once
    whole.mkdir()
    wanted = forked(whole)
    assert wanted is not None
    questions = (whole / "ledger").read_text().split()
    found, deaths = [], []
    for n in range(1, (len(questions) if at == "questions" else wanted["writes"]) + 1, stride):
        place = folder / f"{at}{n}"
        place.mkdir()
        died = forked(place, n) if at == "questions" else forked(place, 0, n)
        asked = (place / "ledger").read_text().split() if (place / "ledger").exists() else []
        if died is None:
            deaths.append(asked[-1] if asked else "")
        ended = forked(place) if died is None else died
        again = len((place / "ledger").read_text().split()) - len(questions)
        if ended is None or ended["values"] != wanted["values"] or ended["reason"] != wanted["reason"]:
            found.append(f"{at} {n}: ended with {ended}")
        elif again > 2:  # that at which it died, and one whose answer was not written yet
            found.append(f"{at} {n}: {again} questions were asked again")
        elif ended["tokens"] != wanted["tokens"]:
            found.append(f"{at} {n}: {ended['tokens']} tokens were charged, {wanted['tokens']} were used")
    json.dump({"found": found, "deaths": deaths, "questions": questions, "wanted": wanted}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
