"""From a signature to what a model may pass: a struct to convert to, and the JSON Schema that describes it.

What cannot be described is refused when the tool is defined, with the name of the parameter: a model that reads a
wrong schema fails in ways that are hard to see.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

import msgspec
from attrs import frozen

from locus.core.errors import ToolDefinitionError
from locus.schema.adapter import TypeAdapter, UnsupportedType, of, problem_of
from locus.schema.canonical import MISSING, json_form, plain_form
from locus.schema.checking import TOO_DEEP, Problem, ValidationError, find_problems, normalise, plain
from locus.schema.jsonschema import nodes
from locus.schema.msgspec_adapters import SelfDescribing, constraints, convert, load_custom
from locus.schema.signatures import Signature
from locus.schema.text import clean_text

_NO_DEFAULT = inspect.Parameter.empty

#: Formats of texts of which several mean the same value.
_SEVERAL_FORMS = ("date-time", "time", "decimal")


@frozen(kw_only=True, eq=False)
class Parameters:
    """What a callable takes; made by `parameters_of`.

    Args:
        whole: all arguments together, as a struct; its schema is an object that allows nothing else.
        single: the type of each argument, by name, in the order of the signature.
        injected: the parameter that the caller fills in and a model does not see, or None.
        positional: the parameters that can only be passed by position, in order.
        exact: equal values of the struct encode equally, as they are.
        hidden: the parameters whose default the schema does not show.
        open: some value has no declared type; it is handed over as plain dicts and lists.
    """

    whole: TypeAdapter
    single: Mapping[str, Any]
    injected: str | None
    positional: tuple[str, ...]
    exact: bool
    hidden: frozenset[str]
    open: bool

    def convert(self, arguments: Mapping[str, Any]) -> Any:
        """The arguments as a struct, by strict conversion.

        Raises:
            Exception: they do not fit; a parameter's own class may raise anything. `repair` says what is wrong.
        """
        data = plain(arguments) if self.open else arguments
        return msgspec.convert(data, self.whole.annotation, str_keys=True, dec_hook=load_custom)

    def repair(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as `normalise` puts them right; strict conversion takes them.

        Raises:
            ValidationError: they do not fit, with every fault that was found.
        """
        schema = self.whole.schema
        try:
            better = normalise(schema, arguments)
            found = find_problems(schema, better)
            found += self._refusals(better, {re.split(r"[.\[]", p.path)[1] for p in found if p.path != "$"})
            if not found:
                self.convert(better)
        except RecursionError:
            found = (TOO_DEEP,)
        except Exception as e:  # noqa: BLE001  a parameter's own class may raise anything
            found = (problem_of(e),)
        if found:
            raise ValidationError(found)
        return dict(better)

    def _refusals(self, arguments: Any, known: set[str]) -> tuple[Problem, ...]:
        """What the conversions say that the schema cannot: dates that do not exist, a class's own checks."""
        found = []
        for name, annotation in self.single.items():
            if isinstance(arguments, Mapping) and name in arguments and name not in known:
                try:
                    convert(arguments[name], annotation)
                except Exception as e:  # noqa: BLE001  as in `repair`
                    found.append(problem_of(e, f"$.{name}"))
        return tuple(found)

    def form(self, values: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The canonical JSON of the values, with the defaults that the schema shows filled in.

        Args:
            values: what `convert` made of the arguments.
            arguments: the arguments.
        """
        if self.exact:
            form = plain_form(values)
        else:
            form = {name: json_form(getattr(values, name), arguments.get(name, MISSING)) for name in self.single}
        for name in self.hidden.difference(arguments) if self.hidden else ():
            del form[name]
        return form


def parameters_of(signature: Signature, injected: type) -> Parameters:
    """Look at the parameters of a callable.

    Args:
        signature: what `read_signature` found.
        injected: the class of the parameter that the caller fills in; a parameter annotated with it, or with a
            specialisation of it, is not shown to the model.

    Raises:
        ToolDefinitionError: a parameter cannot be described; the message names it.
    """
    filled: str | None = None
    single: dict[str, Any] = {}
    members: list[tuple[Any, ...]] = []
    shown: dict[str, dict[str, Any]] = {}
    hidden: set[str] = set()
    exact = True
    for parameter in signature.parameters:
        if _is_a(parameter.annotation, injected):
            if filled is not None:
                why = f"takes a {injected.__name__}, and so does {filled!r}; one is enough"
                raise _refusal(signature, parameter, why)
            filled = parameter.name
            continue
        name = parameter.name
        annotation, description = _declaration(signature, parameter)
        kind = single[name] = _type_of(signature, parameter, annotation)
        text = clean_text(description or signature.described.get(name, ""))
        shown[name] = {"description": text} if text else {}
        if parameter.default is _NO_DEFAULT:
            members.append((name, kind))
        else:
            members.append((name, kind, _default(parameter.default)))
            default, as_given = _shown_default(parameter.default, kind)
            shown[name] |= default
            hidden |= set() if default else {name}
            exact = exact and as_given
    whole = _struct(signature, members)
    for name, schema in whole.schema["properties"].items():
        schema.pop("default", None)
        schema |= shown[name]
    inner = nodes(whole.schema)[1:]
    return Parameters(
        whole=whole,
        single=single,
        injected=filled,
        positional=tuple(p.name for p in signature.parameters if p.kind is p.POSITIONAL_ONLY),
        exact=exact and not whole.custom and all(map(_has_one_form, inner)),
        hidden=frozenset(hidden),
        open=not all(map(_is_closed, inner)),
    )


def _refusal(signature: Signature, parameter: inspect.Parameter, why: str) -> ToolDefinitionError:
    return ToolDefinitionError(f"{signature.origin}: parameter {parameter.name!r} {why}")


def _is_a(annotation: Any, injected: type) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = annotation.__origin__
    some = [a for a in get_args(annotation) if a is not type(None)]
    if len(some) == 1 and type(None) in get_args(annotation):
        annotation = some[0]
    kind = get_origin(annotation) or annotation
    return isinstance(kind, type) and issubclass(kind, injected)


def _declaration(signature: Signature, parameter: inspect.Parameter) -> tuple[Any, str]:
    """The type of a parameter and the description that its annotation carries."""
    if parameter.kind is parameter.VAR_POSITIONAL:
        raise _refusal(signature, parameter, "is *variadic; a model passes arguments by name, so take a list instead")
    if parameter.kind is parameter.VAR_KEYWORD:
        raise _refusal(signature, parameter, "is **variadic; name the parameters, or take one dict instead")
    annotation = parameter.annotation
    if annotation is _NO_DEFAULT:
        raise _refusal(
            signature,
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


def _type_of(signature: Signature, parameter: inspect.Parameter, annotation: Any) -> Any:
    try:
        return of(annotation).annotation
    except UnsupportedType as e:
        raise _refusal(
            signature,
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
        text = msgspec.json.encode(default, enc_hook=_plain_form)
        shown = msgspec.json.decode(text)
        meant = convert(shown, annotation)
        if meant == default:
            return {"default": shown}, msgspec.json.encode(meant, enc_hook=_plain_form) == text
    except Exception:  # noqa: BLE001  a default may be any object, with any __eq__
        return {}, True
    return {}, True


def _plain_form(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, SelfDescribing):
        return value.model_dump(mode="json")  # type: ignore[attr-defined]
    raise NotImplementedError


def _struct(signature: Signature, members: list[tuple[Any, ...]]) -> TypeAdapter:
    try:
        return of(msgspec.defstruct("Arguments", members, kw_only=True, forbid_unknown_fields=True))
    except (RuntimeError, TypeError, ValueError) as e:
        raise ToolDefinitionError(
            f"{signature.origin}: its parameters {', '.join(m[0] for m in members)} cannot be used together: {e}; "
            "rename those that start with two underscores"
        ) from e


def _is_closed(node: Mapping[str, Any]) -> bool:
    """Whether a schema says of every value under it what type it has."""
    kind = node.get("type")
    if kind == "array":
        return "items" in node or "prefixItems" in node
    if kind == "object":
        return "properties" in node or "additionalProperties" in node
    return kind is not None or any(key in node for key in ("enum", "const", "$ref", "anyOf", "oneOf", "allOf"))


def _has_one_form(node: Mapping[str, Any]) -> bool:
    """Whether equal values under a schema encode equally: no class, no instant, no number that may be of two types."""
    if not _is_closed(node) or "properties" in node or "contentEncoding" in node:
        return False
    if node.get("format") in _SEVERAL_FORMS:
        return False
    if node.get("additionalProperties"):  # a schema does not say what the keys are
        return False
    kinds = {arm.get("type") for key in ("anyOf", "oneOf", "allOf") for arm in node.get(key, ())}
    return not {"integer", "number"} <= kinds and not any("$ref" in arm for arm in (node, *node.get("anyOf", ())))
