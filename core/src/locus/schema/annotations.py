"""The parameters of a callable with their real types, however it is wrapped and however they are written.

Under ``from __future__ import annotations`` a type is text, and text that names a local class means something only
in the scope where the function was defined. That scope is looked for in the function's closure and, while it is
still running, on the stack.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, get_type_hints

from attrs import frozen

from locus.core.errors import ToolDefinitionError

__all__ = ["Callee", "class_hints", "examine"]


@frozen(kw_only=True, eq=False)
class Callee:
    """What a callable turned out to be.

    Args:
        name: its name, as Python has it.
        doc: its docstring, or ``""``.
        origin: ``"module.qualname"``, for messages.
        parameters: in order, annotations resolved; an annotation that is missing stays
            ``inspect.Parameter.empty``.
        is_async: calling it gives an awaitable.
        receiver: it is a function in a class body that still waits for its instance.
    """

    name: str
    doc: str
    origin: str
    parameters: tuple[inspect.Parameter, ...]
    is_async: bool
    receiver: bool


def examine(fn: Callable[..., Any]) -> Callee:
    """Look at a function, a method, a partial or a callable object.

    Raises:
        ToolDefinitionError: it cannot be called as a tool, or an annotation names nothing.
    """
    if isinstance(fn, classmethod):
        raise ToolDefinitionError(
            f"{_origin(fn.__func__)} is a classmethod that is not bound to its class yet; "
            "write tool(TheClass.method) below the class"
        )
    if inspect.isclass(fn):
        raise ToolDefinitionError(f"{_origin(fn)} is a class; pass a function, or an instance that can be called")
    if not callable(fn):
        raise ToolDefinitionError(f"{fn!r} cannot be called; pass a function, a method or a callable object")
    given, inner = _without_partials(fn)
    function = _function(inner)
    origin = _origin(inner if hasattr(inner, "__qualname__") else type(inner))
    entry = inner if inspect.isroutine(inner) else type(inner).__call__
    if inspect.isgeneratorfunction(entry) or inspect.isasyncgenfunction(entry):
        raise ToolDefinitionError(
            f"{origin} is a generator; a tool returns one result, so return a list, "
            "and report progress with ToolContext.emit_progress"
        )
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError) as e:
        raise ToolDefinitionError(f"{origin} has no signature that can be read ({e}); wrap it in a function") from e
    parameters = [p for p in signature.parameters.values() if p.name not in given]
    receiver = _waits_for_self(inner, parameters)
    names = function if function is not None else inner
    return Callee(
        name=getattr(inner, "__name__", type(inner).__name__),
        doc=inspect.getdoc(inner if inspect.isroutine(inner) else _documented(inner)) or "",
        origin=origin,
        parameters=tuple(_typed(p, names, origin) for p in parameters[receiver:]),
        is_async=inspect.iscoroutinefunction(entry),
        receiver=receiver,
    )


def _without_partials(fn: Any) -> tuple[frozenset[str], Any]:
    """What partials have fixed by keyword, and the callable below them: what is given is not the model's to choose."""
    given: set[str] = set()
    while isinstance(fn, functools.partial):
        given.update(fn.keywords)
        fn = fn.func
    return frozenset(given), fn


def _function(fn: Any) -> Any:
    """The plain function at the bottom, whose globals the annotations are written in; None for a builtin."""
    if not inspect.isroutine(fn):
        fn = type(fn).__call__
    fn = inspect.unwrap(getattr(fn, "__func__", fn))
    return fn if inspect.isfunction(fn) else None


def _origin(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _documented(instance: Any) -> Any:
    call = type(instance).__call__
    return call if call.__doc__ else type(instance)


def _waits_for_self(fn: Any, parameters: list[inspect.Parameter]) -> bool:
    if not inspect.isfunction(fn) or not parameters or parameters[0].name not in ("self", "cls"):
        return False
    scope = fn.__qualname__.rpartition(".")[0]
    return bool(scope) and not scope.endswith("<locals>") and parameters[0].annotation is inspect.Parameter.empty


def _typed(parameter: inspect.Parameter, function: Any, origin: str) -> inspect.Parameter:
    if parameter.annotation is inspect.Parameter.empty:
        return parameter
    try:
        return parameter.replace(annotation=_resolved(parameter.annotation, function))
    except NameError as e:
        raise ToolDefinitionError(
            f"{origin}: the annotation {parameter.annotation!r} of parameter {parameter.name!r} names "
            f"{e.name!r}, which is not defined where the function is; import it outside "
            "`if TYPE_CHECKING:`, or define it at module level"
        ) from e
    except Exception as e:
        raise ToolDefinitionError(
            f"{origin}: the annotation {parameter.annotation!r} of parameter {parameter.name!r} "
            f"is no type ({e}); write the type of the JSON value, such as str, int or list[str]"
        ) from e


def _resolved(annotation: Any, function: Any) -> Any:
    holder = SimpleNamespace(__annotations__={"it": annotation})
    names = getattr(function, "__globals__", {})
    closure = _closure(function)
    try:
        return get_type_hints(holder, names, closure, include_extras=True)["it"]
    except NameError:
        local = {**running_scopes(getattr(function, "__qualname__", ""), names), **closure}
        return get_type_hints(holder, names, local, include_extras=True)["it"]


def _closure(function: Any) -> dict[str, Any]:
    if not inspect.isfunction(function):
        return {}
    found = {p.__name__: p for p in getattr(function, "__type_params__", ())}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def class_hints(cls: type) -> tuple[dict[str, Any], bool]:
    """The types of the fields of a class, and whether names of a running function were needed to resolve them.

    Raises:
        NameError: an annotation names nothing.
    """
    try:
        return get_type_hints(cls, include_extras=True), False
    except NameError:
        names = vars(sys.modules[cls.__module__])
        return get_type_hints(cls, names, running_scopes(cls.__qualname__, names), include_extras=True), True


def running_scopes(qualname: str, module: Mapping[str, Any]) -> dict[str, Any]:
    """The local names of the functions and classes around a definition that are still being run.

    Args:
        qualname: of what was defined.
        module: the globals it was defined in.
    """
    scopes: list[tuple[int, dict[str, Any]]] = []
    frame = inspect.currentframe()
    while frame is not None:
        scope = frame.f_code.co_qualname
        if frame.f_globals is module and qualname.startswith(f"{scope}."):
            scopes.append((len(scope), dict(frame.f_locals)))
        frame = frame.f_back
    return {name: value for _, local in sorted(scopes, key=lambda s: s[0]) for name, value in local.items()}
