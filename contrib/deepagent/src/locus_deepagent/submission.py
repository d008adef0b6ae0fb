"""`SubmissionHook`: what a submission must be, and what is said of it in the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

from locus.core import thaw
from locus.core.events import TerminateEvent
from locus.core.messages import ToolCall
from locus.core.state import AgentState, ToolExecution
from locus.models import OutputError, OutputSchema
from locus.plugin import Allow, Decision, Hook, Reject, RunContext, hookimpl
from locus.tools import Tool, ToolContext
from locus_kit.schematool import schema_tool

__all__ = ["DeepAgentReport", "SubmissionHook", "make_submit_tool"]

NAME = "deepagent"


@frozen(kw_only=True)
class DeepAgentReport:
    """``result.reports["deepagent"]``.

    Args:
        condition: what ends a run besides its limits.
        submissions: how many were accepted.
        refused: how many did not follow the output schema, or failed.
        confidence: of the run at its end.
        note: what is unusual about the agent, or ``""``.
    """

    condition: str
    submissions: int = 0
    refused: int = 0
    confidence: float = 0.0
    note: str = ""


class SubmissionHook(Hook):
    """Refuses submissions that do not follow the output schema, and reads the one that was accepted.

    Args:
        tool: the name of the tool that submits.
        condition: see `DeepAgentReport`.
        schema: what its arguments, or its only argument, must be; None = anything.
        note: see `DeepAgentReport`.
        tools: what comes after the tools of the agent and of its plugins.
    """

    name = NAME

    def __init__(
        self,
        tool: str,
        *,
        condition: str,
        schema: OutputSchema[Any] | None = None,
        note: str = "",
        tools: Iterable[object] = (),
    ) -> None:
        self._tool, self._condition, self._schema, self._note = tool, condition, schema, note
        self._tools = tuple(tools)

    @hookimpl
    def locus_register_tools(self) -> Iterable[object]:
        """The last tools of the agent."""
        return self._tools

    @hookimpl
    def locus_decide_tool_call(self, call: ToolCall, run: RunContext) -> Decision:
        """Refuse a submission that does not follow the schema, with every problem and its path."""
        if self._schema is None or call.name != self._tool:
            return Allow()
        try:
            read_submission(call.arguments, self._schema)
        except OutputError as e:
            return Reject(f"the submission does not follow the schema {e.name!r}: {e}; correct it and submit it again")
        return Allow()

    @hookimpl
    def locus_parse_result(self, state: AgentState) -> object | None:
        """The value of the newest submission that was accepted."""
        found = None if self._schema is None else find_submission(state, self._tool)
        return None if found is None or self._schema is None else read_submission(found.arguments, self._schema)

    def on_terminate(self, event: TerminateEvent, run: RunContext) -> None:
        """Report what was submitted."""
        made = [each for each in run.state.tool_executions if each.tool_name == self._tool]
        accepted = sum(each.succeeded for each in made)
        report = DeepAgentReport(
            condition=self._condition,
            submissions=accepted,
            refused=len(made) - accepted,
            confidence=run.state.confidence,
            note=self._note,
        )
        run.report(NAME, report)


def read_submission(arguments: Mapping[str, Any], schema: OutputSchema[Any]) -> Any:
    """The value of a submission.

    Args:
        arguments: of the call; of a tool with one parameter, its value counts as well.
        schema: what it must be.

    Raises:
        OutputError: it does not follow the schema.
    """
    given = thaw(arguments)
    try:
        return schema.parse(given)
    except OutputError as first:
        only = next(iter(given.values()), None) if len(given) == 1 else None
        if not isinstance(only, dict | list | str):
            raise
        try:
            return schema.parse(only)
        except OutputError as second:
            # The problems of what was meant: those of the object that is not missing everything.
            raise (second if isinstance(only, dict) else first) from None


def find_submission(state: AgentState, tool: str) -> ToolExecution | None:
    """The newest submission that was accepted, or None."""
    executions = reversed(state.tool_executions)
    return next((each for each in executions if each.tool_name == tool and each.succeeded), None)


async def _accept(arguments: dict[str, Any], ctx: ToolContext[Any]) -> str:
    return "submitted"


def make_submit_tool(name: str, schema: OutputSchema[Any]) -> Tool[..., Any]:
    """A tool whose arguments are an output schema.

    Args:
        name: what the model calls it.
        schema: what is to be submitted.
    """
    return schema_tool(
        _accept,
        name=name,
        description="Submit the final, structured answer. Call it once the work is done; it ends the work.",
        parameters=schema.spec.schema,
        origin=f"the submit tool {name!r} of create_deepagent",
        effect="pure",
        reads="user",
        targets=(),
        egress=False,
    )
