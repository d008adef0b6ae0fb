"""The hooks: one module a family, and the table of all of them.

A hook is a plain function whose signature and docstring are its specification; pluggy checks every
implementation against it, by name and by argument.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from locus.core.frozen import frozen
from locus.hooks.markers import Lifetime
from locus.hooks.specs import decide, node, observe, register, review, session, wrap
from locus.hooks.table import PROJECT, observer_hook

__all__ = ["FAMILIES", "HOOKS", "HookInfo", "observer_hook", "observer_info"]


@frozen(kw_only=True)
class HookInfo:
    """One hook as it is specified.

    Args:
        name: such as ``"locus_on_think"``.
        family: ``"register"``, ``"session"``, ``"observe"``, ``"decide"``, ``"review"``, ``"wrap"`` or ``"node"``.
        arguments: the names of its arguments, in the order in which the loop passes them.
        lifetime: since when it exists, and when it goes.
        function: the specification itself; its docstring says what the hook is for.
    """

    name: str
    family: str
    arguments: tuple[str, ...]
    lifetime: Lifetime
    function: Callable[..., Any]


#: The modules that hold the specifications, by family.
FAMILIES: dict[str, ModuleType] = {
    "register": register,
    "session": session,
    "observe": observe,
    "decide": decide,
    "review": review,
    "wrap": wrap,
    "node": node,
}


def _read(family: str, module: ModuleType) -> list[HookInfo]:
    return [
        _info(name, family, function)
        for name, function in vars(module).items()
        if hasattr(function, f"{PROJECT}_lifetime")
    ]


def _info(name: str, family: str, function: Callable[..., Any]) -> HookInfo:
    code: Any = getattr(function, "__code__")  # noqa: B009 - a Callable has none, as far as types go
    return HookInfo(
        name=name,
        family=family,
        arguments=code.co_varnames[: code.co_argcount],
        lifetime=getattr(function, f"{PROJECT}_lifetime"),
        function=function,
    )


#: Every hook of the kernel by name, in the order in which the families are described.
HOOKS: dict[str, HookInfo] = {info.name: info for family, module in FAMILIES.items() for info in _read(family, module)}


def observer_info(event_type: str) -> HookInfo:
    """The hook that hears one kind of event, be it the kernel's or a plugin's."""
    name = observer_hook(event_type)
    return HOOKS.get(name) or _info(name, "observe", observe.locus_on_event)
