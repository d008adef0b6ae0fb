"""`ActivePlugin`: a plugin that was chosen, with its settings and its hooks, imported and made."""

from __future__ import annotations

from locus.core.frozen import frozen
from locus.plugins.manifest import Plugin

__all__ = ["ActivePlugin"]


@frozen(kw_only=True)
class ActivePlugin:
    """One chosen plugin.

    Args:
        manifest: what it says of itself.
        instances: its hook objects and modules, in the manifest's order.
        version: of its distribution; ``""`` when it was passed in code.
        settings: its settings, or None when it has none.
        fatal: if its hooks break the specification the agent is not built; otherwise it is left out and reported.
    """

    manifest: Plugin
    instances: tuple[object, ...] = ()
    version: str = ""
    settings: object | None = None
    fatal: bool = True
