"""From a signature to what a model may pass: a struct to convert to, and the JSON Schema that describes it.

What cannot be described is refused when the tool is defined, with the name of the parameter: a model that is told
a wrong schema fails in ways that nobody can see.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

import msgspec
from attrs import frozen

from locus.core.errors import ToolDefinitionError
from locus.schema.adapters import Loadable, constraints, convert
from locus.schema.annotations import Callee
from locus.schema.jsonschema import children
from locus.schema.jsontype import JsonType, NoJsonForm, json_type
from locus.schema.text import clean
from locus.tools.context import ToolContext

__all__ = ["Parameters", "parameters_of"]

_NO_DEFAULT = inspect.Parameter.empty


@frozen(kw_only=True, eq=False)
class Parameters:
    """What a tool takes.

    Args:
        whole: all arguments together, as a struct; its schema is an object that allows nothing else.
        single: the type of each argument, by name, in the order of the signature.
        context: the parameter that gets the `ToolContext`, or None.
        positional: the parameters that can only be passed by position, in order.
        plain: the struct's values encode to JSON without loss, so that the key can be made from them.
        open: some value has no declared type; it is handed to the body as plain dicts and lists.
        numbers: some value may be a float.
    """

    whole: JsonType
    single: Mapping[str, Any]
    context: str | None
    positional: tuple[str, ...]
    plain: bool
    open: bool
    numbers: bool


def parameters_of(callee: Callee, described: Mapping[str, str]) -> Parameters:
    """Look at the parameters of a callable.

    Args:
        callee: what `examine` found.
        described: the description of each parameter that the docstring has one for.

    Raises:
        ToolDefinitionError: a parameter cannot be described; the message names it.
    """
    context: str | None = None
    single: dict[str, Any] = {}
    members: list[tuple[Any, ...]] = []
    shown: dict[str, dict[str, Any]] = {}
    plain = True
    for parameter in callee.parameters:
        if _is_context(parameter.annotation):
            if context is not None:
                raise _refused(callee, parameter, f"takes a ToolContext, and so does {context!r}; one is enough")
            context = parameter.name
            continue
        name = parameter.name
        annotation, description = _declared(callee, parameter)
        kind = single[name] = _json_type(callee, parameter, annotation).annotation
        text = clean(description or described.get(name, ""))
        shown[name] = {"description": text} if text else {}
        if parameter.default is _NO_DEFAULT:
            members.append((name, kind))
        else:
            members.append((name, kind, _default(parameter.default)))
            default, as_given = _shown_default(parameter.default, kind)
            shown[name] |= default
            plain = plain and as_given
    whole = _struct(callee, members)
    for name, schema in whole.schema["properties"].items():
        schema.pop("default", None)
        schema |= shown[name]
    nodes = _nodes(whole.schema)[1:]
    return Parameters(
        whole=whole,
        single=single,
        context=context,
        positional=tuple(p.name for p in callee.parameters if p.kind is p.POSITIONAL_ONLY),
        plain=plain and not whole.foreign and not any("properties" in node for node in nodes),
        open=not all(map(_closed, nodes)),
        numbers=any(node.get("type") == "number" or not _closed(node) for node in nodes),
    )


def _refused(callee: Callee, parameter: inspect.Parameter, why: str) -> ToolDefinitionError:
    return ToolDefinitionError(f"{callee.origin}: parameter {parameter.name!r} {why}")


def _is_context(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = annotation.__origin__
    some = [a for a in get_args(annotation) if a is not type(None)]
    if len(some) == 1 and type(None) in get_args(annotation):
        annotation = some[0]
    kind = get_origin(annotation) or annotation
    return isinstance(kind, type) and issubclass(kind, ToolContext)


def _declared(callee: Callee, parameter: inspect.Parameter) -> tuple[Any, str]:
    """The type of a parameter and the description that its annotation carries."""
    if parameter.kind is parameter.VAR_POSITIONAL:
        raise _refused(callee, parameter, "is *variadic; a model passes arguments by name, so take a list instead")
    if parameter.kind is parameter.VAR_KEYWORD:
        raise _refused(callee, parameter, "is **variadic; name the parameters, or take one dict instead")
    annotation = parameter.annotation
    if annotation is _NO_DEFAULT:
        raise _refused(
            callee,
            parameter,
            f"has no annotation; write its type, as in `{parameter.name}: str` (Any for anything)",
        )
    description = ""
    if get_origin(annotation) is Annotated:
        facts = constraints(annotation.__metadata__)
        description = facts.pop("description", "")
        annotation = Annotated[annotation.__origin__, msgspec.Meta(**facts)] if facts else annotation.__origin__
    if parameter.default is None and annotation is not Any:
        annotation = annotation | None  # `x: int = None` means what it says
    return annotation, description


def _json_type(callee: Callee, parameter: inspect.Parameter, annotation: Any) -> JsonType:
    try:
        return json_type(annotation)
    except NoJsonForm as e:
        raise _refused(
            callee,
            parameter,
            f"has the type {inspect.formatannotation(annotation)}, for which no JSON Schema can be made: {e}; "
            "use plain types, dataclasses, attrs, TypedDict or pydantic classes, "
            "or fix the argument with functools.partial",
        ) from e


def _default(default: Any) -> Any:
    # A factory that gives the very object: what the function would have used, whatever it is.
    return msgspec.field(default_factory=lambda: default)


def _shown_default(default: Any, annotation: Any) -> tuple[dict[str, Any], bool]:
    """The ``default`` of a schema, and whether a call that spells it out encodes as one that leaves it out.

    A default whose JSON does not mean the same value is not shown.
    """
    try:
        text = msgspec.json.encode(default, enc_hook=_encodable)
        shown = msgspec.json.decode(text)
        meant = convert(shown, annotation)
        if meant == default:
            return {"default": shown}, msgspec.json.encode(meant, enc_hook=_encodable) == text
    except Exception:  # noqa: BLE001  a default may be any object, with any __eq__
        return {}, True
    return {}, True


def _encodable(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Loadable):
        return value.model_dump(mode="json")  # type: ignore[attr-defined]
    raise NotImplementedError


def _struct(callee: Callee, members: list[tuple[Any, ...]]) -> JsonType:
    try:
        struct = msgspec.defstruct("Arguments", members, kw_only=True, forbid_unknown_fields=True)
        return json_type(struct)
    except (RuntimeError, TypeError, ValueError) as e:
        raise ToolDefinitionError(
            f"{callee.origin}: its parameters {', '.join(m[0] for m in members)} cannot be used together: {e}; "
            "rename those that start with two underscores"
        ) from e


def _closed(node: Mapping[str, Any]) -> bool:
    kind = node.get("type")
    if kind == "array":
        return "items" in node or "prefixItems" in node
    if kind == "object":
        return "properties" in node or "additionalProperties" in node
    return kind is not None or any(key in node for key in ("enum", "const", "$ref", "anyOf", "oneOf", "allOf"))


def _nodes(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    todo: list[Mapping[str, Any]] = [schema, *schema.get("$defs", {}).values()]
    while todo:
        node = todo.pop()
        found.append(node)
        todo += children(node)
    return found
