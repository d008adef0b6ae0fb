"""Hooks: what plugins and users hook into, and how that is found, checked, ordered and called."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.hooks.contribute import Contribution
    from locus.hooks.manager import HookManager
    from locus.hooks.specs import HOOKS, HookInfo, observer_hook, observer_info

__all__ = [
    "HOOKS",
    "Contribution",
    "HookInfo",
    "HookManager",
    "observer_hook",
    "observer_info",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus.hooks.contribute": ("Contribution",),
        "locus.hooks.manager": ("HookManager",),
        "locus.hooks.specs": ("HOOKS", "HookInfo", "observer_hook", "observer_info"),
    },
)
