"""What a SIGKILL in the middle of research changes: what was recorded stays, and nothing is fetched again.

    nice python -m contrib.bench.killed --model llamacpp:qwen2.5-coder-1.5b --count 3

Each of the questions of `research.py` is asked in a process of its own, which kills itself when the model is asked for
the first summary: the research is done then, and nothing is written. A second process goes on from the journal. What
is counted of each question:

- died: whether the first process was killed there; a question that ends before was not tried;
- kept: the evidence that the journal held at the death is what the evidence at the end begins with;
- fetched: requests to the site before the death, and after it; without a replan there are none after;
- again: how many requests after the death had been made before;
- fact, replans, tokens, seconds, and why the run ended, as in `research.py`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import anyio
from contrib.bench.research import make_workflow, measure

from locus.models import Model, ModelRequest, ModelResponse, get_model
from locus_deepagent.research.keys import KEY_CAUSAL_CHAIN, KEY_EVIDENCE, KEY_PROMPT
from locus_plugin_sqlite import SqliteStore
from locus_testkit.site import LocalSite, Question, element_questions

#: What makes the model, in a process of its own: a function of a module, or a `functools.partial` of one.
MakeModel = Callable[[], Model]

_THREAD = "research"
_DIES_AT = "summarize"


class Dying:
    """A model that kills its process when it is first asked for a summary."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    async def complete(self, request: ModelRequest, on_chunk: Any = None) -> ModelResponse:
        if request.purpose == _DIES_AT:
            os.kill(os.getpid(), signal.SIGKILL)
        return await self.model.complete(request, on_chunk)


def work(make: MakeModel, prompt: str, address: str, journal: Path, answer: Connection) -> None:
    """Run the workflow on a journal, or go on with it; the first time the process does not survive."""
    answer.send(anyio.run(_work, make, prompt, address, journal))


async def _work(make: MakeModel, prompt: str, address: str, journal: Path) -> dict[str, Any]:
    async with SqliteStore(journal) as store:
        is_new = await store.peek(_THREAD) is None
        model = Dying(make()) if is_new else make()
        flow = make_workflow(model, address, checkpointer=store)
        values = {KEY_PROMPT: prompt}
        result = await (flow.run(values, thread_id=_THREAD) if is_new else flow.resume(_THREAD))
    plain = {key: value for key, value in result.values.items() if key != KEY_CAUSAL_CHAIN}
    return {"values": plain, "tokens": result.usage.total_tokens, "end": str(result.stop_reason)}


async def _evidence(make: MakeModel, address: str, journal: Path) -> list[str]:
    """What the journal holds of the evidence."""
    async with SqliteStore(journal) as store:
        flow = make_workflow(make(), address, checkpointer=store)
        newest = len(await flow.history(_THREAD))
        return list((await flow.state_at(_THREAD, newest)).get(KEY_EVIDENCE) or ())


def ask_twice(question: Question, make: MakeModel, folder: Path) -> dict[str, Any]:
    """Ask a question in a process that is killed, and in a second one that goes on.

    Args:
        question: of `locus_testkit.site`.
        make: makes the model; it is called in each of the processes.
        folder: an empty one, for the journal.
    """
    began = time.monotonic()
    with LocalSite() as site:
        arguments = (make, question.prompt, site.address, folder / "research.db")
        died, answer = _run(*arguments)
        before = _asked(site)
        recorded = anyio.run(_evidence, make, site.address, folder / "research.db") if died else []
        if died:
            _, answer = _run(*arguments)
        after = _asked(site)[len(before) :]
    if answer is None:
        raise RuntimeError(f"the process that was to answer {question.prompt!r} died")
    return {
        **measure(question, answer["values"], [*before, *after]),
        "tokens": answer["tokens"],
        "end": answer["end"],
        "seconds": round(time.monotonic() - began, 1),
        "died": died,
        "kept": bool(recorded) and answer["values"][KEY_EVIDENCE][: len(recorded)] == recorded,
        "fetched": [len(before), len(after)],
        "again": sum((Counter(before) & Counter(after)).values()),
    }


def _run(*arguments: Any) -> tuple[bool, dict[str, Any] | None]:
    """Whether a process was killed, and what it answered."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(*arguments, theirs))
    process.start()
    theirs.close()
    try:
        answer = ours.recv()
    except EOFError:
        answer = None
    process.join()
    return process.exitcode == -signal.SIGKILL, answer


def _asked(site: LocalSite) -> list[str]:
    """What was asked for but the rules for programs, which each process reads for itself."""
    return [each for each in site.paths if each != "/robots.txt"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="llamacpp:qwen2.5-coder-1.5b")
    parser.add_argument("--count", type=int, default=3)
    given = parser.parse_args()
    for question in element_questions(given.count):
        with tempfile.TemporaryDirectory() as folder:
            row = ask_twice(question, partial(get_model, given.model), Path(folder))
        shown = ("died", "kept", "fetched", "again", "fact", "replans", "tokens", "seconds", "end")
        print(question.prompt, *(f"{name}: {row[name]}" for name in shown), sep="\n    ", flush=True)


if __name__ == "__main__":
    main()
