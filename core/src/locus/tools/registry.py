"""`ToolRegistry`: the tools of an agent, by name, fixed once they are collected."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from types import ModuleType
from typing import Any

from locus.core.data import encode_data
from locus.core.errors import ToolDefinitionError, UnknownName, closest
from locus.core.fingerprint import short_hash
from locus.schema.text import clean_text, join_names, safe_repr
from locus.tools.decorator import as_tool
from locus.tools.definition import Tool, ToolSpec

_LONGEST_NAME = 200


class ToolRegistry:
    """An immutable collection of tools.

    Args:
        sources: tools, plain callables (made into tools), modules and objects that hold tools, other registries,
            and iterables of these.

    Raises:
        ToolDefinitionError: two tools have one name, or a source is not a tool.
    """

    __slots__ = ("_digest", "_specs", "_tools", "remembers")

    def __init__(self, *sources: Any) -> None:
        tools: dict[str, Tool[..., Any]] = {}
        for tool in (each for source in sources for each in _tools_in(source)):
            if tool.receiver:
                method = tool.origin.rpartition(".")[2]
                raise ToolDefinitionError(
                    f"{tool.origin} is a method; pass it from an instance, as in tools=[thing.{method}]"
                )
            other = tools.setdefault(tool.name, tool)
            if other is not tool and _facts(other) != _facts(tool):
                raise ToolDefinitionError(
                    f"two tools are named {tool.name!r}: {other.origin} and {tool.origin}; "
                    'rename one of them: tool(fn, name="...")'
                )
        self._tools = tools
        self._specs = tuple(tool.spec for tool in tools.values())
        self._digest: str | None = None
        #: Whether a tool's executions are remembered for its whole thread.
        self.remembers = any(tool.idempotent == "thread" for tool in tools.values())

    @classmethod
    def of(cls, sources: Any) -> ToolRegistry:
        """The registry of one source, such as the list given as ``Agent(tools=...)``; a registry is kept as it is."""
        return sources if isinstance(sources, ToolRegistry) else cls(sources)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The specs that the model reads, in the order of registration; the same object each time."""
        return self._specs

    @property
    def digest(self) -> str:
        """Eight hex digits that change when what the model reads of any tool changes."""
        if self._digest is None:
            specs = [(s.name, s.description, s.parameters, [repr(e) for e in s.examples]) for s in self._specs]
            self._digest = short_hash(json.dumps(encode_data(specs)))
        return self._digest

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order of registration."""
        return tuple(self._tools)

    def get(self, name: str) -> Tool[..., Any] | None:
        """The tool of that very name, or None."""
        return self._tools.get(name)

    def require(self, names: Iterable[str], what: str) -> None:
        """Insist that there are tools of these names.

        Raises:
            UnknownName: one is missing; the message has the nearest name.
        """
        for name in sorted(names):
            if name not in self:
                raise UnknownName(what, name, self.names)

    def unknown(self, name: str) -> str:
        """The error for a model that called a tool that does not exist."""
        text = f"UnknownTool: {safe_repr(name)} is not a tool"
        if not self._tools:
            return f"{text}; no tools are available, answer without one"
        near = self.nearest(name)
        hint = f"; did you mean {near!r}?" if near is not None else ""
        return f"{text}{hint}; the tools are: {join_names(self._tools)}"

    def nearest(self, name: str) -> str | None:
        """The name that a wrong one most likely meant (another case, a prefix such as ``functions.``), or None."""
        plain = {_plain(known): known for known in reversed(self._tools)}
        meant = [_plain(part)[:_LONGEST_NAME] for part in (name, re.split("[.:/]", name)[-1])]
        for part in meant:
            if part in plain:
                return plain[part]
        found = (closest(part, plain) for part in reversed(meant))
        return next((plain[near] for near in found if near is not None), None)

    def with_tools(self, *more: Any) -> ToolRegistry:
        """A registry of these tools and more.

        Raises:
            ToolDefinitionError: as when constructing.
        """
        return ToolRegistry(self, *more) if more else self

    def __iter__(self) -> Iterator[Tool[..., Any]]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __getitem__(self, name: str) -> Tool[..., Any]:
        return self._tools[name]

    def __repr__(self) -> str:
        return f"ToolRegistry({', '.join(self._tools)})"


#: What tells whether one function was given twice in the same way, which does no harm.
_facts = attrgetter("fn", "spec", "idempotent", "effect", "timeout", "ask_on_unknown", "max_result_chars")


def _plain(name: str) -> str:
    return clean_text(name).casefold().replace("-", "_").strip()


def _tools_in(source: Any) -> Iterable[Tool[..., Any]]:
    if isinstance(source, Tool):
        return (source,)
    if isinstance(source, ToolRegistry):
        return tuple(source)
    if isinstance(source, str):
        raise ToolDefinitionError(
            f"expected a tool, got the string {source!r}; pass the function, or the module that holds it"
        )
    held = tools_of(source)
    if held:
        return held
    if isinstance(source, ModuleType):
        raise ToolDefinitionError(f"the module {source.__name__} holds no tools; mark its functions with @tool")
    if isinstance(source, Iterable) and not callable(source) and not isinstance(source, bytes | Mapping):
        return [tool for each in source for tool in _tools_in(each)]
    return (as_tool(source),)


def tools_of(holder: Any) -> tuple[Tool[..., Any], ...]:
    """The tools that a module, or an instance of a class with tools among its methods, holds under public names."""
    if isinstance(holder, ModuleType):
        found = [value for name, value in vars(holder).items() if not name.startswith("_")]
    elif inspect.isroutine(holder) or inspect.isclass(holder):
        return ()
    else:
        names = {n: v for cls in reversed(type(holder).__mro__) for n, v in vars(cls).items()}
        names |= getattr(holder, "__dict__", {})
        found = [getattr(holder, n) for n, v in names.items() if not n.startswith("_") and _is_tool(v)]
    return tuple({id(each): each for each in found if isinstance(each, Tool)}.values())


def _is_tool(value: Any) -> bool:
    return isinstance(value.__func__ if isinstance(value, staticmethod) else value, Tool)
