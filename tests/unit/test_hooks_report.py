"""The report of a run: who was there, in which version, and what failed."""

from __future__ import annotations

from locus.hooks.table import HookHealth, Impl
from locus.plugins.report import PluginReport, run_report

GUARD = Impl(call=print, plugin="door", hook="locus_on_think", guard=True)
AUDIT = Impl(call=print, plugin="audit", hook="locus_on_think")
REPORTS = (
    PluginReport(name="door", version="1.0", guard=True),
    PluginReport(name="audit", version="2.0"),
    PluginReport(name="gone", status="missing", detail="unknown plugin 'gone'"),
    PluginReport(name="Mine", kind="hook"),
)


def test_a_run_without_failures_reports_the_plugins_as_they_were_built() -> None:
    report = run_report(REPORTS, HookHealth().failures)

    assert report.plugins == REPORTS
    assert report.versions == {"door": "1.0", "audit": "2.0"}
    assert report.of("gone") is REPORTS[2]
    assert report.of("nobody") is None


def test_a_guard_that_did_not_run_and_one_that_allowed_everything_are_distinguished() -> None:
    assert run_report(REPORTS[2:]).of("door") is None
    allowed = run_report(REPORTS).of("door")
    assert allowed is not None
    assert (allowed.status, allowed.guard, allowed.failures) == ("active", True, ())


def test_failures_and_quarantines_are_listed_with_the_plugin() -> None:
    health = HookHealth()
    for _ in range(3):
        health.record(GUARD, ValueError("first"), isolated=True)
        health.record(AUDIT, ValueError("other"), isolated=True)

    report = run_report(REPORTS, health.failures)

    door, audit = report.of("door"), report.of("audit")
    assert door is not None
    assert audit is not None
    assert (door.status, audit.status) == ("active", "quarantined")
    assert [(f.count, f.error, f.quarantined) for f in door.failures] == [(3, "ValueError: first", False)]
    assert report.versions == {"door": "1.0", "audit": "2.0"}
