"""What a callable says of itself: its parameters with their real types, and its docstring, which a model reads.

Under ``from __future__ import annotations`` a type is text, and text that names a local class means something only
in the scope where the function was defined. That scope is looked for in the function's closure and, while it is
still running, on the stack.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, get_type_hints

from attrs import frozen

from locus.core.errors import ToolDefinitionError
from locus.core.lazy import Lazy

if TYPE_CHECKING:
    import docstring_parser
    from docstring_parser import common
else:
    docstring_parser = Lazy("docstring_parser")
    common = Lazy("docstring_parser.common")


@frozen(kw_only=True, eq=False)
class Signature:
    """What a callable turned out to be.

    Args:
        name: its name, as Python has it.
        origin: ``"module.qualname"``, for messages.
        description: its docstring without what that says of single parameters, or ``""``.
        described: what the docstring says of single parameters, by name.
        parameters: in order, annotations resolved; an annotation that is missing stays
            ``inspect.Parameter.empty``.
        is_async: calling it gives an awaitable.
        receiver: it is a function in a class body that still waits for its instance.
    """

    name: str
    origin: str
    description: str
    described: Mapping[str, str]
    parameters: tuple[inspect.Parameter, ...]
    is_async: bool
    receiver: bool


def read_signature(fn: Callable[..., Any]) -> Signature:
    """Look at a function, a method, a partial or a callable object.

    Raises:
        ToolDefinitionError: it cannot be called as a tool, or an annotation names something that does not exist.
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
    fixed, inner = _without_partials(fn)
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
    parameters = [p for p in signature.parameters.values() if p.name not in fixed]
    receiver = _waits_for_self(inner, parameters)
    names = function if function is not None else inner
    documented = entry if inspect.isroutine(inner) or entry.__doc__ else type(inner)
    description, described = parse_docstring(inspect.getdoc(documented) or "")
    return Signature(
        name=getattr(inner, "__name__", type(inner).__name__),
        origin=origin,
        description=description,
        described=described,
        parameters=tuple(_with_type(p, names, origin) for p in parameters[receiver:]),
        is_async=inspect.iscoroutinefunction(entry),
        receiver=receiver,
    )


def _without_partials(fn: Any) -> tuple[frozenset[str], Any]:
    """What partials fix by keyword, which the model cannot choose, and the callable below them."""
    fixed: set[str] = set()
    while isinstance(fn, functools.partial):
        fixed.update(fn.keywords)
        fn = fn.func
    return frozenset(fixed), fn


def _function(fn: Any) -> Any:
    """The plain function at the bottom, whose globals the annotations are written in; None for a builtin."""
    if not inspect.isroutine(fn):
        fn = type(fn).__call__
    fn = inspect.unwrap(getattr(fn, "__func__", fn))
    return fn if inspect.isfunction(fn) else None


def _origin(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _waits_for_self(fn: Any, parameters: list[inspect.Parameter]) -> bool:
    if not inspect.isfunction(fn) or not parameters or parameters[0].name not in ("self", "cls"):
        return False
    scope = fn.__qualname__.rpartition(".")[0]
    return bool(scope) and not scope.endswith("<locals>") and parameters[0].annotation is inspect.Parameter.empty


# --- annotations -------------------------------------------------------------------------------------


def _with_type(parameter: inspect.Parameter, function: Any, origin: str) -> inspect.Parameter:
    if parameter.annotation is inspect.Parameter.empty:
        return parameter
    try:
        return parameter.replace(annotation=_resolve(parameter.annotation, function))
    except NameError as e:
        raise ToolDefinitionError(
            f"{origin}: the annotation {parameter.annotation!r} of parameter {parameter.name!r} names "
            f"{e.name!r}, which is not defined where the function is; import it outside "
            "`if TYPE_CHECKING:`, or define it at module level"
        ) from e
    except Exception as e:
        raise ToolDefinitionError(
            f"{origin}: the annotation {parameter.annotation!r} of parameter {parameter.name!r} "
            f"is not a type ({e}); write the type of the JSON value, such as str, int or list[str]"
        ) from e


def _resolve(annotation: Any, function: Any) -> Any:
    holder = SimpleNamespace(__annotations__={"it": annotation})
    names = getattr(function, "__globals__", {})
    closure = _closure(function)
    try:
        return get_type_hints(holder, names, closure, include_extras=True)["it"]
    except NameError:
        local = {**_running_scopes(getattr(function, "__qualname__", ""), names), **closure}
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
        NameError: an annotation names something that does not exist.
    """
    try:
        return get_type_hints(cls, include_extras=True), False
    except NameError:
        names = vars(sys.modules[cls.__module__])
        return get_type_hints(cls, names, _running_scopes(cls.__qualname__, names), include_extras=True), True


def _running_scopes(qualname: str, module: Mapping[str, Any]) -> dict[str, Any]:
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


# --- docstrings --------------------------------------------------------------------------------------

# What begins or underlines a section or a field, in any style. Without one, the docstring is its own
# description, and the parser need not be imported: it takes longer to import than all of this package.
_MARKS = re.compile(r"^[ \t]*(?:[:@]|\.\.|[-=~]{2,})|:[ \t]*$", re.MULTILINE)


def parse_docstring(doc: str) -> tuple[str, dict[str, str]]:
    """Take a docstring apart; Google, NumPy, reST and Epydoc style are recognised, and plain text is kept whole.

    Returns:
        All that is not about one parameter, and the description of each documented parameter, by name.
    """
    if _MARKS.search(doc) is None:
        return doc.strip(), {}
    try:
        parsed = docstring_parser.parse(doc)
    except Exception:  # noqa: BLE001  an odd docstring is still a description
        return doc.strip(), {}
    parameters: dict[str, str] = {}
    paragraphs = [parsed.description or ""]
    for meta in parsed.meta:
        text = (meta.description or "").strip()
        # `attribute` is how Google style spells a field of a class; in a function it documents no parameter.
        if isinstance(meta, common.DocstringParam) and meta.args[0] != "attribute":
            if text:
                parameters[meta.arg_name.lstrip("*")] = text
            continue
        body = meta.snippet or text if isinstance(meta, common.DocstringExample) else text
        paragraphs.append(_section(meta, body))
    return "\n\n".join(p.strip() for p in paragraphs if p.strip()), parameters


def _section(meta: common.DocstringMeta, text: str) -> str:
    if isinstance(meta, common.DocstringReturns):
        title = "Yields" if meta.is_generator else "Returns"
    elif isinstance(meta, common.DocstringRaises):
        title = f"Raises {meta.type_name}" if meta.type_name else "Raises"
    elif isinstance(meta, common.DocstringExample):
        return f"Example:\n{text}" if text else ""
    else:
        title = " ".join(meta.args).replace("_", " ").capitalize()
    return f"{title}: {text}" if text else ""
