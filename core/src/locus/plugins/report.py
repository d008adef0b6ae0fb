"""What became of the plugins: so that "the guard allowed it" and "the guard did not run" can be told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from attrs import evolve

from locus.core.frozen import FrozenDict, frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

#: ``missing`` was asked for and is not installed; ``failed`` cannot be loaded or breaks the hook specification;
#: ``quarantined`` was active, and a hook of it failed so often that it was not called any more.
Status = Literal["active", "available", "disabled", "missing", "failed", "incompatible", "quarantined"]


@frozen(kw_only=True)
class HookFailure:
    """How one hook of one plugin failed in a run.

    Args:
        plugin: whose hook it is.
        hook: its name, such as ``"locus_on_think"``.
        error: the first failure, ``"<Type>: <message>"``.
        count: how often it failed.
        quarantined: it was not called again.
        trace: the traceback of the first failure.
    """

    plugin: str
    hook: str
    error: str
    count: int = 1
    quarantined: bool = False
    trace: str = ""


@frozen(kw_only=True)
class PluginReport:
    """One plugin, or one hook that was passed in code.

    Args:
        name: the plugin's name, or the hook's.
        kind: ``"plugin"``, or ``"hook"`` for what was passed in ``Agent(hooks=...)``.
        version: of its distribution; ``""`` for what has none.
        status: see `Status`.
        detail: one line that says why it is not active.
        trace: the traceback behind ``detail``, where there is one.
        guard: its hooks fail closed.
        failures: what failed in the run.
    """

    name: str
    kind: Literal["plugin", "hook"] = "plugin"
    version: str = ""
    status: Status = "active"
    detail: str = ""
    trace: str = ""
    guard: bool = False
    failures: tuple[HookFailure, ...] = ()


@frozen
class RunReport:
    """The plugins of one run, in the order in which their hooks are called."""

    plugins: tuple[PluginReport, ...] = ()

    @property
    def versions(self) -> FrozenDict[str, str]:
        """``name -> version`` of the plugins that were active."""
        return FrozenDict(
            (p.name, p.version) for p in self.plugins if p.kind == "plugin" and p.status in ("active", "quarantined")
        )

    def of(self, name: str) -> PluginReport | None:
        """The report of one plugin or hook, or None when the run did not know it."""
        return next((p for p in self.plugins if p.name == name), None)


def run_report(reports: Iterable[PluginReport], failures: Iterable[HookFailure] = ()) -> RunReport:
    """The plugins as they were built, with what failed in one run.

    Args:
        reports: `HookManager.reports`.
        failures: what the `HookHealth` of the run counts; empty for an agent that did not run.
    """
    by_plugin: dict[str, tuple[HookFailure, ...]] = {}
    for failure in failures:
        by_plugin[failure.plugin] = (*by_plugin.get(failure.plugin, ()), failure)
    made = []
    for report in reports:
        failed = by_plugin.get(report.name)
        if failed and report.status == "active":
            status: Status = "quarantined" if any(f.quarantined for f in failed) else "active"
            report = evolve(report, status=status, failures=failed)
        made.append(report)
    return RunReport(tuple(made))
