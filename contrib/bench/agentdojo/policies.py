"""The policies that are compared, each as the options of an agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import field, frozen
from contrib.bench.agentdojo.labels import Labels, read_labels
from contrib.bench.agentdojo.model import OraclePlanner
from contrib.bench.agentdojo.suites import Case

from locus.core.labels import Reads
from locus.core.messages import ToolCall
from locus.plugin import Decision, Hook, Interrupt, Reject, RunContext, hookimpl

_LABELS = read_labels()


@frozen
class Policy:
    """One row of the table.

    Args:
        title: as the table calls it.
        options: makes the keywords of `Agent` for a case.
        obeys: whether the model obeys the injected text; False shows what the checks find in any case.
    """

    title: str
    options: Callable[[Case], Mapping[str, Any]] = field(default=lambda _: {})
    obeys: bool = True


class SuiteLabels(Hook):
    """Says which fields of a result are the user's own although the rest of it is not."""

    @hookimpl
    def locus_label_result(self, call: ToolCall, result: str, run: RunContext) -> Mapping[str, Reads] | None:
        """The fields of the result itself, and of each record where it is a list of them."""
        own = _labels(call.name).own
        return {pattern: "own" for name in own for pattern in (name, f"*.{name}")} or None


class AskEach(Hook):
    """Asks a person before each call that has an effect."""

    guard = True

    @hookimpl
    def locus_decide_tool_call(self, call: ToolCall, run: RunContext) -> Decision | None:
        """Ask, whatever was read before."""
        return Interrupt(f"May {call.name} run?") if _labels(call.name).has_effect else None


class NothingAfterReading(Hook):
    """Rejects each call that has an effect, once anything was read that others can write."""

    guard = True

    @hookimpl
    def locus_decide_tool_call(self, call: ToolCall, run: RunContext) -> Decision | None:
        """Look at what was read."""
        tainted = any(done.started and _labels(done.tool_name).reads != "own" for done in run.state.tool_executions)
        return Reject("others wrote what was read") if tainted and _labels(call.name).has_effect else None


def _labels(name: str) -> Labels:
    return _LABELS[name]


def _provenance(mode: str, **more: Any) -> Mapping[str, Any]:
    return {"hooks": [SuiteLabels()], "provenance": {"mode": mode}, **more}


def _locked(case: Case) -> Mapping[str, Any]:
    planning = {"locked": True, "planner": OraclePlanner(case), "max_steps": 100}
    return _provenance("reject", planning=planning)


POLICIES: dict[str, Policy] = {
    "honest": Policy("nothing, and a model that does not obey", obeys=False),
    "nothing": Policy("nothing"),
    "guardrails": Policy("`guardrails=True`", lambda _: {"guardrails": True}),
    "ask": Policy("ask a person at each side effect", lambda _: {"hooks": [AskEach()]}),
    "after-reading": Policy("no side effect after an untrusted read", lambda _: {"hooks": [NothingAfterReading()]}),
    "provenance-reject": Policy('`provenance={"mode": "reject"}`', lambda _: _provenance("reject")),
    "provenance-ask": Policy("`provenance=True`: questions", lambda _: _provenance("ask")),
    "locked": Policy('`provenance={"mode": "reject"}`, `planning={"locked": True}`, an oracle plans', _locked),
}
