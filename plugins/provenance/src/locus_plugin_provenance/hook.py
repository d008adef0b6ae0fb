"""`ProvenanceHook`: decides about the calls of a run that has read untrusted text."""

from __future__ import annotations

from attrs import evolve

from locus.core.errors import UnknownName
from locus.core.messages import ToolCall
from locus.core.state import AgentState
from locus.plugin import Allow, Decision, Event, Hook, Interrupt, Option, Reject, RunContext, StashKey, hookimpl
from locus.tools import ToolRegistry
from locus_kit.tool_names import check_tool_names
from locus_plugin_provenance.events import TaintedCallEvent
from locus_plugin_provenance.policy import find_reasons
from locus_plugin_provenance.report import ProvenanceReport
from locus_plugin_provenance.settings import ProvenanceSettings

__all__ = ["ProvenanceHook"]

NAME = "provenance"

_REPORT: StashKey[ProvenanceReport] = StashKey("provenance report")
_OWN: StashKey[tuple[int, bool]] = StashKey("provenance: executions looked at, and whether own records were read")

_OPTIONS = (Option("allow", allow=True), Option("refuse"))


class ProvenanceHook(Hook):
    """Stops calls to targets that someone other than the user may have chosen, unless a person allows them.

    Args:
        settings: all of them; None = `ProvenanceSettings()`.
    """

    guard = True
    name = NAME

    def __init__(self, settings: ProvenanceSettings | None = None) -> None:
        self.settings = ProvenanceSettings() if settings is None else settings

    @hookimpl
    def locus_register_events(self) -> list[type[Event]]:
        """The plugin's own event."""
        return [TaintedCallEvent]

    @hookimpl
    def locus_check_tools(self, tools: ToolRegistry) -> None:
        """Refuse names of tools that do not exist."""
        check_tool_names(self.settings.tools, tools, "provenance.tools")
        for name, rule in self.settings.tools.items():
            tool = tools.get(name)
            if tool is None:
                continue
            for target in rule.targets or ():
                if target not in tool.spec.properties:
                    raise UnknownName(f"parameter in provenance.tools.{name}.targets", target, tool.spec.properties)

    @hookimpl
    async def locus_decide_tool_call(self, call: ToolCall, run: RunContext) -> Decision:
        """Ask about a tainted call, or reject it."""
        state, rule = run.state, self.settings.find_rule(call.name)
        mode = rule.mode or self.settings.mode
        if not state.label.is_tainted or mode == "allow":
            return Allow()
        found, tool = call.provenance, run.registry.get(call.name)
        if found is None or tool is None:
            return Reject("provenance: nothing is known of this call")
        targets = tool.targets if rule.targets is None else rule.targets
        is_own_read = found.is_egress and self.settings.keeps_own and _has_read_own(state, run)
        reasons = find_reasons(found, targets, is_own_read=is_own_read)
        if not reasons:
            return Allow()
        await run.emit(
            TaintedCallEvent(
                tool_name=call.name,
                call_id=call.id,
                decision=mode,
                reasons=reasons,
                sources=tuple(sorted(found.context.sources)),
            )
        )
        _count(run, mode)
        why = "; ".join(reasons)
        if mode == "ask":
            return Interrupt(f"May {call.name} be called? Another person may have chosen this: {why}", _OPTIONS)
        return Reject(f"provenance: someone other than the user may have chosen this: {why}")


def _has_read_own(state: AgentState, run: RunContext) -> bool:
    """Whether own records are among what the run has read; each result is looked at once."""
    seen, found = run.stash.get(_OWN, (0, False))
    done = state.tool_executions
    if seen > len(done):
        seen, found = 0, False
    for execution in done[seen:] if not found else ():
        label = execution.label
        found = found or (
            execution.started and ((label is not None and label.reads == "own") or "own" in execution.fields.values())
        )
    run.stash[_OWN] = len(done), found
    return found


def _count(run: RunContext, mode: str) -> None:
    report = run.stash.get(_REPORT, ProvenanceReport())
    if mode == "ask":
        report = evolve(report, asked=report.asked + 1)
    else:
        report = evolve(report, rejected=report.rejected + 1)
    run.stash[_REPORT] = report
    run.report(NAME, report)
