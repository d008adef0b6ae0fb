"""A research workflow in processes that are killed; run as ``python -m`` with what `main` takes.

The workflow never finds its summary grounded, so that it goes through every node, most of them several times. Each
process is forked from one that has imported everything, so a death costs milliseconds. It dies where a model or a
tool is asked, before the answer, or in a write of the store. It leaves two things: the file of the journal, and a
ledger, a file to which each question to a model or a tool is appended.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio

from locus import tool
from locus.models import ModelRequest
from locus_deepagent import create_research_workflow
from locus_deepagent.research.keys import KEY_CAUSAL_CHAIN, KEY_PROMPT
from locus_plugin_sqlite import SqliteStore
from locus_testkit.kills import Killed, every_kill, let_die

from .scripts import FACT, researcher

DyingStore = let_die(SqliteStore)


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


async def go(folder: Path, dies_at: int = 0) -> dict[str, Any]:
    """Run the workflow to its end, or go on with it."""
    async with DyingStore(folder / "runs.db", sync="normal") as store:
        app = build(folder / "ledger", store, dies_at)
        known = await store.peek("t")
        values = {KEY_PROMPT: "Who discovered gallium?"}
        result = await (app.run(values, thread_id="t", request_id="only") if known is None else app.resume("t"))
    made = {key: value for key, value in result.values.items() if key != "research_run"}
    made[KEY_CAUSAL_CHAIN] = made[KEY_CAUSAL_CHAIN].to_json()
    return {"values": made, "reason": result.stop_reason, "tokens": result.usage.prompt_tokens}


def forked(folder: Path, dies_at: int = 0) -> dict[str, Any] | None:
    """What a process of its own comes to; None where it was killed."""
    out = folder / "out.json"
    pid = os.fork()
    if not pid:
        status = 1
        try:
            out.write_text(json.dumps(anyio.run(go, folder, dies_at)))
            status = 0
        finally:
            os._exit(status)
    os.waitpid(pid, 0)
    return json.loads(out.read_text()) if out.exists() else None


def every_question(folder: Path, stride: int) -> Iterator[Killed]:
    """Kill a process in each question of the workflow to a model or a tool, and let another one go on."""
    warm, whole = folder / "warm", folder / "whole"
    warm.mkdir()
    anyio.run(go, warm)  # what is imported late is imported once
    whole.mkdir()
    wanted = forked(whole)
    assert wanted is not None
    for n in range(1, len((whole / "ledger").read_text().split()) + 1, stride):
        place = folder / f"{n}"
        place.mkdir()
        first = forked(place, n)
        shutil.copy(place / "ledger", place / "asked")
        ended = forked(place) if first is None else first
        yield Killed(folder=place, at=n, stored=False, died=first is None, result=ended, wanted=wanted)


def main(folder: Path, stride: int, at: str) -> None:
    """Kill, go on, and print what came of it.

    Args:
        folder: for journals and ledgers.
        stride: every which question or write.
        at: ``"questions"`` or ``"writes"``.
    """
    found: list[str] = []
    deaths: list[str] = []
    kills = list(every_question(folder, stride) if at == "questions" else every_kill(folder, go, stride=stride))
    questions = (folder / "whole" / "ledger").read_text().split()
    for kill in kills:
        asked = (kill.folder / "ledger").read_text().split()
        if kill.died:
            last = (kill.folder / "asked").read_text().split()[-1] if at == "questions" else ""
            deaths.append(last)
        again, ended, wanted = len(asked) - len(questions), kill.result, kill.wanted
        if ended is None or ended["values"] != wanted["values"] or ended["reason"] != wanted["reason"]:
            found.append(f"{at} {kill.at}: ended with {ended}")
        elif again > 2:  # that at which it died, and one whose answer was not written yet
            found.append(f"{at} {kill.at}: {again} questions were asked again")
        elif ended["tokens"] != wanted["tokens"]:
            found.append(f"{at} {kill.at}: {ended['tokens']} tokens were charged, {wanted['tokens']} were used")
    json.dump({"found": found, "deaths": deaths, "questions": questions, "wanted": kills[0].wanted}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
