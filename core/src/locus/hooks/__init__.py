"""Hooks: what plugins and users hook into, and how that is found, checked, ordered and called."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.hooks.compile import Contribution as Contribution
    from locus.hooks.manager import HookManager as HookManager
    from locus.hooks.specs import HOOKS as HOOKS
    from locus.hooks.specs import HookInfo as HookInfo
    from locus.hooks.specs import observer_info as observer_info
    from locus.hooks.table import STRIKES as STRIKES
    from locus.hooks.table import observer_hook as observer_hook

_MODULES = {
    "locus.hooks.compile": ("Contribution",),
    "locus.hooks.manager": ("HookManager",),
    "locus.hooks.specs": ("HOOKS", "HookInfo", "observer_info"),
    "locus.hooks.table": ("STRIKES", "observer_hook"),
}

__all__ = [name for names in _MODULES.values() for name in names]
__getattr__, __dir__ = exports(__name__, _MODULES)
