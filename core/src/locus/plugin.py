"""Everything a plugin author needs, in one import.

A plugin is a light manifest behind an entry point of the group ``locus.plugins``::

    # my_package/manifest.py: imports nothing but this module
    from locus.plugin import Plugin

    plugin = Plugin(name="audit", api=(1, 0), summary="Writes what happened.", hooks=("my_package.hooks:Audit",))
"""

from __future__ import annotations

from locus.core.directives import (
    Accept,
    Allow,
    Cancel,
    Continue,
    Decision,
    Directive,
    Interrupt,
    Option,
    Reject,
    Retry,
    Revise,
    Verdict,
)
from locus.core.events import Event, register_event
from locus.core.lazy import Lazy, exports
from locus.hooks.context import ConversationManager, RunContext, View, current_run
from locus.hooks.hook import Hook
from locus.hooks.markers import hookimpl
from locus.plugins.manifest import API, Plugin
from locus.tools.context import Stash, StashKey

__all__ = [
    "API",
    "Accept",
    "Allow",
    "Cancel",
    "Continue",
    "ConversationManager",
    "Decision",
    "Directive",
    "Event",
    "Hook",
    "Interrupt",
    "Lazy",
    "Option",
    "Plugin",
    "Reject",
    "Retry",
    "Revise",
    "RunContext",
    "Stash",
    "StashKey",
    "Verdict",
    "View",
    "current_run",
    "exports",
    "hookimpl",
    "register_event",
]
