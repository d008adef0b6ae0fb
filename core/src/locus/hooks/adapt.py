"""What a hook object implements, in one form: `Hook` subclasses, plain objects and modules alike.

pluggy gets an `Adapted` object instead of the original: it compares what is registered with ``==``, and two
hooks with equal values are two hooks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType, MethodType, ModuleType
from typing import Any

import pluggy

from locus.core.errors import HookSpecError
from locus.hooks.hook import Hook
from locus.hooks.markers import hookimpl
from locus.hooks.table import PROJECT, observer_hook

_SHORT = "on_"
_LONG = f"{PROJECT}_"
_DECIDES = {"on_tool_call": f"{PROJECT}_decide_tool_call"}
_KINDS = inspect.Parameter


class Adapted:
    """The implementations of one hook object, by hook name.

    Attributes:
        opts: pluggy's options of each implementation.
        direct: for a method of a `Hook`, the method itself and how many arguments it takes.
        names: of each, the name as it is written in the source, for messages.
    """

    def __init__(self, source: object, name: str) -> None:
        self.source, self.name = source, name
        self.opts: dict[str, Any] = {}
        self.direct: dict[str, tuple[Callable[..., Any], int]] = {}
        self.names: dict[str, str] = {}

    def add(self, written: str, hook: str, function: Callable[..., Any], opts: Any) -> None:
        """Take one implementation in."""
        if opts.get("wrapper") or opts.get("hookwrapper"):
            raise HookSpecError(self.name, f"{written} is marked as a wrapper; implement locus_wrap_... instead")
        if hook in self.opts:
            raise HookSpecError(self.name, f"{self.names[hook]} and {written} implement the same hook; keep one")
        setattr(self, hook, function)
        self.opts[hook] = {**opts, "specname": None}
        self.names[hook] = written


def name_of(hook: object) -> str:
    """What a hook that was passed in code is called in reports."""
    given = getattr(hook, "name", "") if isinstance(hook, Hook) else ""
    if isinstance(given, str) and given:
        return given
    return hook.__name__ if isinstance(hook, ModuleType) else type(hook).__name__


def adapt(manager: pluggy.PluginManager, source: object, name: str) -> Adapted:
    """What a `Hook`, an object with marked methods, or a module with marked functions implements.

    Raises:
        HookSpecError: a class instead of an instance, nothing implemented, a mark forgotten, or a method
            that cannot be called with an event and the run.
    """
    if isinstance(source, type):
        raise HookSpecError(name, f"{source.__name__} is a class; pass an instance: {source.__name__}()")
    adapted = Adapted(source, name)
    for written in dir(source):
        if written.startswith("__"):
            continue
        opts = manager.parse_hookimpl_opts(source, written)
        if opts is not None and not (isinstance(source, Hook) and written.startswith(_SHORT)):
            function = getattr(source, written)
            if not isinstance(function, FunctionType | MethodType):
                raise HookSpecError(name, f"{written} is a {type(function).__name__}; a hook is a function or a method")
            adapted.add(written, opts.get("specname") or written, function, opts)
        elif written.startswith(_LONG):
            _refuse_unmarked(source, written, name)
        elif isinstance(source, Hook) and written.startswith(_SHORT):
            _add_method(adapted, written, opts)
    if not adapted.opts and not isinstance(source, Hook):
        raise HookSpecError(
            name,
            f"{source!r:.80} implements no hook; mark functions with @hookimpl, or derive from locus.Hook",
        )
    return adapted


def _refuse_unmarked(source: object, written: str, name: str) -> None:
    """A function that is named like a hook and not marked would be a hook that never runs."""
    function = inspect.getattr_static(source, written)
    if isinstance(function, ModuleType) or not callable(getattr(source, written, None)):
        return
    if isinstance(source, ModuleType) and getattr(function, "__module__", None) != source.__name__:
        return  # imported from elsewhere, such as a specification
    raise HookSpecError(name, f"{written} is not marked; put @hookimpl on it, or choose another name")


def _add_method(adapted: Adapted, written: str, opts: Any) -> None:
    """A method ``on_<event>`` of a `Hook`, whatever its parameters are called."""
    method = getattr(adapted.source, written)
    if not callable(method):
        return
    takes = _count_arguments(method, written, adapted.name)
    hook = _DECIDES.get(written, observer_hook(written.removeprefix(_SHORT)))
    adapted.add(written, hook, _decide if written in _DECIDES else _observe, _MARKED if opts is None else opts)
    adapted.direct[hook] = (method, takes)


def _count_arguments(method: Callable[..., Any], written: str, name: str) -> int:
    """How many arguments to pass: 1, or 2 with the run."""
    parameters = inspect.signature(method).parameters.values()
    positional = [p for p in parameters if p.kind in (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in positional if p.default is _KINDS.empty]
    any_number = any(p.kind is _KINDS.VAR_POSITIONAL for p in parameters)
    named_only = any(p.kind is _KINDS.KEYWORD_ONLY and p.default is _KINDS.empty for p in parameters)
    if len(needed) > 2 or named_only or not (positional or any_number):
        raise HookSpecError(name, f"{written}{inspect.signature(method)} must take one argument, or two with the run")
    return 2 if any_number or len(positional) >= 2 else 1


def _observe(event: Any, run: Any) -> None:
    """Shows pluggy the arguments of an observer; what is called is the method itself."""


def _decide(call: Any, run: Any) -> None:
    """Shows pluggy the arguments of a decider; what is called is the method itself."""


_MARKED = getattr(hookimpl(_observe), f"{PROJECT}_impl")
