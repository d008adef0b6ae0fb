"""What a person was asked, and has said, outlives the process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from locus import tool
from locus_testkit import call

from .kit import agent, question

pytestmark = pytest.mark.anyio

#: Does one thing with the thread and is killed.
_PROGRAM = """
import os, sys, signal
import anyio
sys.path.insert(0, {tests!r})
from kit import agent
from locus_testkit import call

store, log, act = sys.argv[1:]

def die(request):
    os.kill(os.getpid(), signal.SIGKILL)

line = lambda text: call("append", path=log, line=text)

async def main():
    made = agent(line("one"), line("two"), die, checkpointer="sqlite:" + store)
    if act == "ask":
        await made.run("x", thread_id="t")
        os.kill(os.getpid(), signal.SIGKILL)
    await made.resume("t", "always")

anyio.run(main)
"""


@pytest.fixture
def anyio_backend() -> str:
    """One is enough: it is the programs that matter here, and they run on asyncio."""
    return "asyncio"


async def _killed(store: Path, log: Path, act: str) -> None:
    program = _PROGRAM.format(tests=str(Path(__file__).parent))
    command = [sys.executable, "-c", program, str(store), str(log), act]
    died = await anyio.run_process(command, check=False)
    assert died.returncode == -9, died.stderr.decode()


def _later(store: Path, log: Path, *more: Any) -> Any:
    line = [call("append", path=str(log), line=text) for text in ("one", "two")]
    return agent(*line, *more, checkpointer=f"sqlite:{store}")


@pytest.mark.parametrize(
    ("answer", "written"), [("allow", "one\n"), ("reject", None), ({"arguments": {"line": "other"}}, "other\n")]
)
async def test_a_question_is_open_after_a_kill_and_is_answered_once(
    tmp_path: Path, answer: Any, written: str | None
) -> None:
    store, log = tmp_path / "t.db", tmp_path / "log"
    await _killed(store, log, "ask")
    assert not log.exists()
    if isinstance(answer, dict):
        answer = {"arguments": {**answer["arguments"], "path": str(log)}}
    result = await _later(store, log).resume("t", answer)
    assert (log.read_text() if log.exists() else None) == written
    # The second call is asked about, too.
    assert 'line="two"' in question(result)


async def test_always_survives_a_kill(tmp_path: Path) -> None:
    store, log = tmp_path / "t.db", tmp_path / "log"
    await _killed(store, log, "ask")
    await _killed(store, log, "answer")
    assert log.read_text() == "one\ntwo\n"
    result = await _later(store, log, call("append", path=str(log), line="three")).resume("t")
    assert result.stop_reason == "NoToolCalls"
    assert log.read_text() == "one\ntwo\nthree\n"


#: Answers with an edit; the body of the call kills its own process.
_DIES_IN_THE_BODY = """
import os, sys, signal
import anyio
sys.path.insert(0, {tests!r})
from kit import agent
from locus import tool
from locus_testkit import call

@tool
async def risky(how: str) -> str:
    "Die."
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    made = agent(call("risky", how="as asked"), tools=[risky], checkpointer="sqlite:" + sys.argv[1])
    await made.run("x", thread_id="t")
    await made.resume("t", {{"arguments": {{"how": "as edited"}}}})

anyio.run(main)
"""


async def test_an_edited_call_of_unknown_outcome_is_recorded_as_it_was_edited(tmp_path: Path) -> None:
    program = _DIES_IN_THE_BODY.format(tests=str(Path(__file__).parent))
    died = await anyio.run_process([sys.executable, "-c", program, str(tmp_path / "t.db")], check=False)
    assert died.returncode == -9, died.stderr.decode()

    @tool
    async def risky(how: str) -> str:
        """Die."""
        raise AssertionError("once means once")

    made = agent(call("risky", how="as asked"), tools=[risky], checkpointer=f"sqlite:{tmp_path / 't.db'}")
    result = await made.resume("t")
    (execution,) = result.state.tool_executions
    assert execution.outcome_unknown
    assert dict(execution.arguments) == {"how": "as edited"}
