"""What goes wrong between an agent and its workflow."""

from __future__ import annotations

from locus.core.errors import ConfigError, JournalError, LocusError

__all__ = ["ActivityFailed", "NotAnActivity", "NotInWorkflow"]


class NotAnActivity(JournalError):
    """A step of the run cannot be an activity, and may not be repeated: it is a function of the workflow's process."""


class ActivityFailed(LocusError):
    """No worker could begin a tool: each has another agent than the workflow, or none. Nothing happened."""


class NotInWorkflow(ConfigError):
    """A run was asked for outside of a workflow, or in one whose worker has no `LocusPlugin`."""
