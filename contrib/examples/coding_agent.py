"""A coding agent: it edits the files of one folder, and is done when the tests that you name pass.

    python contrib/examples/coding_agent.py work "median() is wrong for an even count" --check "python3 -m unittest"

It needs Linux and the plugins filesystem, shell and that of the model. Commands run in a sandbox that sees this folder
alone and has no network. The model does not decide that it is done: the check must have passed, with unchanged tests.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path
from typing import Any

from locus import Agent, Hook, Message, NoProgress, Revise, TimeLimit, TokenLimit, ToolCompleteEvent, ToolStartEvent
from locus.core.state import AgentState
from locus.plugin import hookimpl


def read_tests(folder: Path) -> dict[str, bytes]:
    """The files that say what is right, by path."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("test_*.py")) if path.is_file()}


class ChecksFirst(Hook):
    """A guard: an answer counts only if the check was the last command, passed, and the tests are as they were."""

    guard = True

    def __init__(self, check: str, folder: Path) -> None:
        self.check = check
        self.folder = folder
        self.tests = read_tests(folder)

    def find_fault(self, state: AgentState) -> str:
        """What is missing, or ``""``: by the record of the run and the folder, not by what the answer claims."""
        if read_tests(self.folder) != self.tests:
            return "A test was changed. Restore it: the code is to be mended."
        acts = [done for done in state.tool_executions if done.tool_name in ("write_file", "edit_file", "execute")]
        if not acts or acts[-1].arguments.get("command") != self.check:
            return f"Run `{self.check}`, exactly so, after your last change, and answer when it passes."
        if str(acts[-1].result).partition("\n")[0] != "exit code 0":
            return f"`{self.check}` failed. Read its output, and mend the code."
        return ""

    @hookimpl
    def locus_review_answer(self, answer: Message, state: AgentState) -> Revise | None:
        """Send the answer back, at most ``max_revisions`` times."""
        fault = self.find_fault(state)
        return Revise(fault) if fault else None


def build(model: Any, checks: ChecksFirst) -> Agent[Any, Any]:
    """Make the agent.

    Args:
        model: ``"provider:name"``, or a model.
        checks: its folder is all that the agent sees; no path and no link leads out of it.
    """
    root = str(checks.folder)
    return Agent(  # noqa: S604  # shell= has the settings of a plugin
        model,
        name="coder",
        system_prompt=f"Mend the code in the folder /, which commands see as /work, until `{checks.check}` passes.",
        filesystem={"root": root, "permissions": ["deny write /**/test_*.py", "deny /.git"]},
        shell={"root": root, "timeout": 60},
        hooks=[checks],
        tool_execution="sequential",  # so that a check sees the change before it
        termination=TokenLimit(200_000) | TimeLimit(900) | NoProgress(),
        max_iterations=30,
        max_revisions=4,
    )


async def main(task: str, model: str, checks: ChecksFirst) -> int:
    """Work on one task, show what happens, and return the exit status."""
    run = build(model, checks).run(task)
    async for event in run:
        match event:
            case ToolStartEvent(tool_name=name, arguments=arguments):
                print("->", name, str(dict(arguments))[:100])
            case ToolCompleteEvent(result=result, error=error):
                print("<-", (error or result or "")[:100].replace("\n", " | "))
    fault = checks.find_fault(run.result.state)
    print(f"{run.result.text} [{run.result.stop_reason}] {fault or 'The check has passed.'}")
    return 1 if fault else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Mend the code of a folder until a check passes.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("task", help="what is to be done")
    parser.add_argument("--check", default="python3 -m unittest", help="the command that passes when it is done")
    parser.add_argument("--model", default=os.environ.get("LOCUS_MODEL", "llamacpp:qwen2.5-coder-1.5b"))
    args = parser.parse_args()
    raise SystemExit(asyncio.run(main(args.task, args.model, ChecksFirst(args.check, args.folder))))
