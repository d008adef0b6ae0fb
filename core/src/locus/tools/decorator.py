"""`tool`: make a function into something that a model may call.

The signature becomes the schema and the docstring becomes the description, so that there is one place to keep right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar, Unpack, cast, get_args, overload

from attrs import evolve

from locus.core.errors import ToolDefinitionError, closest
from locus.core.labels import LEVELS, Reads
from locus.core.lazy import Lazy
from locus.schema.text import clean_text, join_names, safe_repr
from locus.tools.context import ToolContext
from locus.tools.definition import ArgumentError, Effect, Idempotent, Tool, ToolExample, ToolSpec

if TYPE_CHECKING:
    from locus.schema import arguments, signatures
    from locus.schema.signatures import Signature
else:
    arguments = Lazy("locus.schema.arguments")
    signatures = Lazy("locus.schema.signatures")

P = ParamSpec("P")
R = TypeVar("R")

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LEAST_RESULT = 200


class ToolOptions(TypedDict, total=False):
    """The options of `tool`; an option that is left out keeps its default.

    Args:
        name: what the model calls it; default: the function's name.
        description: what the model reads of it; default: the docstring without what it says about parameters.
        idempotent: True: the body runs once per run for the same arguments, and repeated calls get the first
            result; ``"thread"``: once per thread; default False: it runs each time.
        effect: ``"pure"``, ``"keyed"`` or ``"once"`` (default), see `Tool`.
        timeout: seconds the body may take; default None: no limit of its own.
        examples: worked examples, as `ToolExample` or as a mapping of its fields.
        ask_on_unknown: ask a person when a crash left the outcome of a call unknown; default False.
        max_result_chars: how much of a result the model gets; default 100,000.
        reads: whose words its results may hold: ``"untrusted"`` (default), anybody's; ``"own"``, those of records that
            the user alone writes; ``"user"``, the user's, such as an answer to a question.
        targets: the parameters that say whom or what a call reaches, such as ``("recipient",)``; default None: all of
            them, but for a tool with ``effect="pure"`` that sends nothing out.
        egress: whether a call sends something out, as fetching a URL does; default None: if a parameter is a URL.
    """

    name: str
    description: str
    idempotent: Idempotent
    effect: Effect
    timeout: float | None
    examples: Sequence[ToolExample | Mapping[str, Any]]
    ask_on_unknown: bool
    max_result_chars: int
    reads: Reads
    targets: Sequence[str] | None
    egress: bool | None


@overload
def tool(fn: Tool[P, R], /, **options: Unpack[ToolOptions]) -> Tool[P, R]: ...
@overload
def tool(fn: Callable[P, R], /, **options: Unpack[ToolOptions]) -> Tool[P, R]: ...
@overload
def tool(fn: None = None, /, **options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(fn: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Make a tool: ``@tool``, ``@tool(idempotent=True)`` or ``tool(fn, name="find")``.

    The docstring (Google, NumPy or reST style) is what the model reads: its summary, and what it says about each
    parameter. A parameter annotated ``ToolContext[Deps]`` is filled in and not shown to the model.

    Args:
        fn: a function, sync or async, a bound method, a `functools.partial` (what it fixes by keyword is not the
            model's to choose), an object that can be called, or a tool to be changed.
        options: see `ToolOptions`.

    Raises:
        ToolDefinitionError: it cannot be described to a model; the message names the parameter or the option.
    """
    _check(options, fn)
    if fn is None:
        return lambda fn: _make(fn, options)
    return _make(fn, options)


def as_tool(fn: Callable[..., Any]) -> Tool[..., Any]:
    """The tool itself, or a tool of a plain callable with every option at its default.

    Raises:
        ToolDefinitionError: it cannot be described to a model.
    """
    return fn if isinstance(fn, Tool) else _make(fn, {})


def _check(options: ToolOptions, fn: object) -> None:
    where = f"tool({getattr(fn, '__name__', '...')})" if fn is not None else "@tool"
    known = ToolOptions.__annotations__
    for name in options:
        if name not in known:
            near = closest(name, known)
            hint = f"did you mean {near!r}?" if near else f"known: {join_names(known)}"
            raise ToolDefinitionError(f"{where} has no option {name!r}; {hint}")
    checks: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
        ("name", is_tool_name, "1 to 64 letters, digits, '_' or '-'"),
        ("description", lambda v: isinstance(v, str), "a str"),
        ("idempotent", lambda v: v is True or v is False or v == "thread", "False, True or 'thread'"),
        ("effect", lambda v: v in get_args(Effect), "'pure', 'keyed' or 'once'"),
        ("timeout", lambda v: v is None or (_is_number(v) and v > 0), "seconds greater than 0, or None"),
        ("ask_on_unknown", lambda v: isinstance(v, bool), "True or False"),
        ("reads", lambda v: isinstance(v, str) and v in LEVELS, join_names(LEVELS)),
        ("targets", lambda v: v is None or _are_names(v), "a list of names of parameters, or None"),
        ("egress", lambda v: v is None or isinstance(v, bool), "True, False or None"),
        ("max_result_chars", lambda v: type(v) is int and v >= _LEAST_RESULT, f"at least {_LEAST_RESULT}"),
    )
    given = cast("Mapping[str, Any]", options)
    for name, holds, expected in checks:
        if name in given and not holds(given[name]):
            raise ToolDefinitionError(f"{where}: {name} must be {expected}, got {safe_repr(given[name])}")


def is_tool_name(name: object) -> bool:
    """Whether a model can call a tool by that name."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def _are_names(value: object) -> bool:
    return isinstance(value, list | tuple | set | frozenset) and all(isinstance(each, str) for each in value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _make(fn: Callable[..., Any], options: ToolOptions) -> Tool[..., Any]:
    if isinstance(fn, Tool):
        return _change(fn, options)
    signature = signatures.read_signature(fn)
    name = options.get("name", signature.name)
    if not is_tool_name(name):
        raise ToolDefinitionError(
            f"{signature.origin}: {name!r} is not a valid tool name; "
            "give it a name of 1 to 64 letters, digits, '_' or '-': tool(..., name=\"...\")"
        )
    parameters = arguments.parameters_of(signature, ToolContext)
    spec = ToolSpec(
        name=name,
        description=clean_text(options.get("description", signature.description) or name.replace("_", " ")),
        parameters=parameters.whole.schema,
        examples=_examples(signature, options),
    )
    made: Tool[..., Any] = Tool(
        fn=fn,
        spec=spec,
        parameters=parameters,
        is_async=signature.is_async,
        origin=signature.origin,
        receiver=signature.receiver,
        **_behaviour(options),
    )
    return _check_made(made)


def _behaviour(options: ToolOptions) -> dict[str, Any]:
    given = {k: v for k, v in options.items() if k not in ("name", "description", "examples")}
    targets = options.get("targets")
    return given if targets is None else given | {"targets": tuple(targets)}


def _change(tool: Tool[..., Any], options: ToolOptions) -> Tool[..., Any]:
    if not options:
        return tool
    spec = evolve(
        tool.spec,
        name=options.get("name", tool.name),
        description=options.get("description", tool.description),
        examples=_examples(tool, options) if "examples" in options else tool.examples,
    )
    return _check_made(evolve(tool, spec=spec, **_behaviour(options)))


def _examples(about: Signature | Tool[..., Any], options: ToolOptions) -> tuple[ToolExample, ...]:
    made = []
    for i, each in enumerate(options.get("examples", ())):
        if not isinstance(each, ToolExample):
            try:
                each = ToolExample(**each)
            except TypeError as e:
                raise ToolDefinitionError(
                    f"{about.origin}: examples[{i}] must be a ToolExample, or a dict with user, arguments, "
                    f"result and answer, got {safe_repr(each)}"
                ) from e
        made.append(each)
    return tuple(made)


def _check_made(tool: Tool[..., Any]) -> Tool[..., Any]:
    for name in tool.targets or ():
        if name not in tool.spec.properties:
            near = closest(name, tool.spec.properties)
            hint = f"did you mean {near!r}?" if near else f"its parameters: {tool.usage}"
            raise ToolDefinitionError(f"{tool.origin}: targets: the tool has no parameter {name!r}; {hint}")
    for i, example in enumerate(tool.examples):
        bound = tool.bind(example.arguments)
        if isinstance(bound, ArgumentError):
            raise ToolDefinitionError(f"{tool.origin}: examples[{i}] would be refused: {bound}")
    return tool
