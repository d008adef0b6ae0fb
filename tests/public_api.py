"""The public API as text, one name a line with its parameters: what a release promises to keep.

``python -m tests.public_api`` at the top of a checkout writes it anew into `FROZEN`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Set
from enum import Enum
from pathlib import Path
from typing import Any

import attrs

__all__ = ["FROZEN", "MODULES", "listing"]

#: What is frozen; read by the test beside this module.
FROZEN = Path(__file__).resolve().parent / "data" / "public_api.txt"

#: The modules whose ``__all__`` is public, in the order of the reference.
MODULES = (
    "locus",
    "locus.plugin",
    "locus.config",
    "locus.core",
    "locus.core.errors",
    "locus.core.events",
    "locus.core.fingerprint",
    "locus.core.journal",
    "locus.core.labels",
    "locus.core.messages",
    "locus.core.state",
    "locus.core.termination",
    "locus.files",
    "locus.hooks",
    "locus.journal",
    "locus.journal.listing",
    "locus.loop",
    "locus.loop.router",
    "locus.models",
    "locus.plugins",
    "locus.schema",
    "locus.threads",
    "locus.tools",
)

_ODD = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def listing() -> str:
    """Every public name, each where it is defined and then where it is offered again."""
    seen: dict[int, str] = {}
    lines: list[str] = []
    modules = [importlib.import_module(name) for name in MODULES]
    offered = {id(getattr(module, name)) for module in modules for name in vars(module)["__all__"]}
    # The facades last: a name is described in its own module, and only named where it is re-exported.
    for module in sorted(MODULES, key=lambda name: (-name.count("."), name)):
        for name in sorted(vars(importlib.import_module(module))["__all__"]):
            value, path = getattr(importlib.import_module(module), name), f"{module}.{name}"
            described = isinstance(value, type) or callable(value)
            if described and id(value) in seen:
                lines.append(f"{path} = {seen[id(value)]}")
                continue
            seen[id(value)] = path
            lines += _described(path, value, offered)
    return "".join(f"{line}\n" for line in sorted(lines))


def _described(path: str, value: Any, offered: Set[int]) -> Iterator[str]:
    if not isinstance(value, type):
        yield f"{path}{_parameters(value) if inspect.isfunction(value) else ''}"
        return
    constructed = not issubclass(value, Enum | BaseException) and not getattr(value, "_is_protocol", False)
    yield f"{path}{_parameters(value) if constructed else ''}"
    own: dict[str, str] = {}
    inherited: dict[str, str] = {}
    for each in reversed(value.__mro__):
        # A base that is not public itself is how a public class is built: what it defines is the class's own.
        (own if each is value or id(each) not in offered else inherited).update(_members(each))
    yield from (f"{path}.{line}" for name, line in own.items() if inherited.get(name) != line)


def _members(cls: type) -> Iterator[tuple[str, str]]:
    """The public members that a class of the kernel defines itself, fields apart: those are in its parameters."""
    if cls.__module__.partition(".")[0] != "locus":
        return
    fields = {a.name for a in attrs.fields(cls)} if attrs.has(cls) else set()
    for name, member in vars(cls).items():
        if not name.startswith("_") and name not in fields:
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            bound = 0 if isinstance(member, staticmethod) else 1
            yield name, f"{name}{_parameters(function, bound) if inspect.isfunction(function) else ''}"


def _parameters(value: Any, bound: int = 0) -> str:
    """The names of the parameters and how each is passed; ``=`` marks those that may be left out.

    Args:
        value: a function or a class.
        bound: how many parameters a call does not give: the instance, or the class.
    """
    try:
        given = [*inspect.signature(value).parameters.values()][bound:]
    except (ValueError, TypeError):
        return ""
    shown, kind = [], None
    for p in given:
        if p.kind is p.KEYWORD_ONLY and kind not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
            shown.append("*")
        kind = p.kind
        mark = "*" * (_ODD.index(p.kind) + 1) if p.kind in _ODD else ""
        shown.append(f"{mark}{p.name}{'=' if p.default is not p.empty else ''}")
    return f"({', '.join(shown)})"


if __name__ == "__main__":
    FROZEN.parent.mkdir(exist_ok=True)
    FROZEN.write_text(listing(), encoding="utf-8")
