"""`ApprovalHook`: asks a person before calls of certain tools run."""

from __future__ import annotations

from attrs import evolve

from locus.core.messages import ToolCall
from locus.core.state import AgentState
from locus.plugin import Decision, Hook, Interrupt, Option, RunContext, StashKey, hookimpl
from locus.tools import ToolRegistry
from locus_kit.calls import show_call
from locus_kit.tool_names import check_tool_names
from locus_plugin_approval.report import ApprovalReport
from locus_plugin_approval.settings import ApprovalSettings

__all__ = ["ALWAYS", "ApprovalHook"]

NAME = "approval"

#: The answer that allows this call and the later ones of its tool in this run.
ALWAYS = "always"

_ALLOW, _REJECT = Option("allow", allow=True), Option("reject", takes="reason")
_EDIT, _ALWAYS = Option("edit", allow=True, takes="arguments"), Option(ALWAYS, allow=True)

_REPORT: StashKey[ApprovalReport] = StashKey("approval report")
_SEEN: StashKey[tuple[int, frozenset[str]]] = StashKey("approval: executions looked at, and tools that always may run")


class ApprovalHook(Hook):
    """Asks a person before calls of certain tools run: allow, reject with a reason, edit the arguments, or always.

    Args:
        settings: all of them; None = `ApprovalSettings()`.
    """

    guard = True
    name = NAME

    def __init__(self, settings: ApprovalSettings | None = None) -> None:
        self.settings = ApprovalSettings() if settings is None else settings

    @hookimpl
    def locus_check_tools(self, tools: ToolRegistry) -> None:
        """Refuse names of tools that do not exist."""
        check_tool_names(self.settings.tools, tools, "approval.tools")
        check_tool_names(self.settings.except_tools, tools, "approval.except_tools")

    @hookimpl
    async def locus_decide_tool_call(self, call: ToolCall, run: RunContext) -> Decision | None:
        """Ask about the call, unless its tool may run without a question."""
        tool = run.registry.get(call.name)
        # A tool that the registry does not have counts as one with an effect.
        if not self.settings.asks_about(call.name, "once" if tool is None else tool.effect):
            return None
        always = _find_always(run.state, run)
        report = evolve(run.stash.get(_REPORT, ApprovalReport()), always=tuple(sorted(always)))
        if call.name not in always:
            report = evolve(report, asked=report.asked + 1)
        run.stash[_REPORT] = report
        run.report(NAME, report)
        if call.name in always:
            return None
        can_edit = tool is not None and bool(tool.spec.properties)
        options = (_ALLOW, _REJECT, *((_EDIT,) if can_edit else ()), _ALWAYS)
        return Interrupt(f"May this call run? {show_call(call)}", options)


def _find_always(state: AgentState, run: RunContext) -> frozenset[str]:
    """The tools of which a person said "always" in this run; each execution is looked at once.

    The state is asked, not a memory of the hook's own: what is in it is there after a resume as well, and not in the
    next run of the thread.
    """
    seen, found = run.stash.get(_SEEN, (0, frozenset[str]()))
    done = state.tool_executions
    if seen > len(done):
        seen, found = 0, frozenset()
    said = {execution.tool_name for execution in done[seen:] if execution.answer == ALWAYS}
    found |= said
    run.stash[_SEEN] = len(done), found
    return found
