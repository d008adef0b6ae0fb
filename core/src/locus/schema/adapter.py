"""`TypeAdapter`: a Python type as JSON sees it. Its schema for the model, and the way from data to a value.

The arguments of a tool and the typed answer of an agent are the same problem, and this is its one solution. A
`JsonSchemaAdapter` is the same for a schema from elsewhere, without a Python type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from attrs import frozen

from locus.core.patterns import Pattern
from locus.schema.checking import TOO_DEEP, Problem, ValidationError, find_problems, normalise, plain
from locus.schema.jsonschema import Schema, inline, lookup, nodes, rebase
from locus.schema.msgspec_adapters import adapt, convert, schema_source
from locus.schema.text import safe_repr

_PART = "#/parts/"
_ODD = (TypeError, ValueError, NameError, RuntimeError)


class UnsupportedType(TypeError):
    """A type cannot be described as JSON Schema; the message says which and why."""


class InvalidSchema(ValueError):
    """Something is not a JSON Schema that data can be checked under; the message says why."""


@frozen(eq=False)
class TypeAdapter:
    """A type with its schema; made by `of`.

    Args:
        annotation: what msgspec converts to.
        schema: plain JSON Schema; recursive types refer to ``#/$defs/...`` in it.
        custom: it holds a type that loads itself.
    """

    annotation: Any
    schema: dict[str, Any]
    custom: bool = False

    def check(self, data: Any) -> Any:
        """A value of the type: by strict conversion, or else of the data as `normalise` puts it right.

        Raises:
            ValidationError: the data does not fit.
        """
        try:
            return convert(data, self.annotation)
        except Exception:  # noqa: BLE001  a class's own check may raise anything
            return self._check_leniently(data)

    def _check_leniently(self, data: Any) -> Any:
        try:
            better = normalise(self.schema, data)
        except RecursionError:
            raise ValidationError((TOO_DEEP,)) from None
        try:
            return convert(better, self.annotation)
        except Exception as e:
            raise ValidationError(find_problems(self.schema, better) or (problem_of(e),)) from e


def problem_of(error: Exception, path: str = "$") -> Problem:
    """What a failed conversion says, as a problem; msgspec writes the path at the end, starting from ``$``."""
    text = str(error) or type(error).__name__
    found = re.fullmatch(r"(?s)(.*) - at `(?:key in )?\$(.*)`", text)
    message, rest = (found[1], found[2]) if found else (text, "")
    return Problem(f"{path}{rest}", message.replace("`", ""))


def of(annotation: Any) -> TypeAdapter:
    """The adapter of a resolved annotation.

    Raises:
        UnsupportedType: it, or a part of it, has no JSON form.
    """
    try:
        return _adapter(annotation, cyclic=False)
    except UnsupportedType as e:
        try:
            return _adapter(annotation, cyclic=True)
        except UnsupportedType:
            raise e from e.__cause__


def _adapter(annotation: Any, *, cyclic: bool) -> TypeAdapter:
    builder = _Builder()
    try:
        known = adapt(annotation, cyclic=cyclic)
        schema = builder.schema_of(known)
        msgspec.json.Decoder(known)  # some types are refused only here
        whole = msgspec.json.decode(msgspec.json.encode(inline(schema, builder.parts, _PART)))
    except RecursionError:
        raise UnsupportedType(f"{annotation!r} is nested without end") from None
    except UnsupportedType:
        raise
    except _ODD as e:
        raise UnsupportedType(str(e)) from e
    return TypeAdapter(known, whole, bool(builder.custom))


class _Builder:
    """Collects the parts of one schema: of msgspec's classes and of custom types.

    Each source numbers its parts, so that two classes of one name keep apart.
    """

    def __init__(self) -> None:
        self.parts: dict[str, Mapping[str, Any]] = {}
        self.custom: dict[Any, dict[str, Any]] = {}
        self._sources = 0

    def schema_of(self, annotation: Any) -> dict[str, Any]:
        source = self._source()
        (schema,), parts = msgspec.json.schema_components(
            (annotation,), schema_hook=self._describe, ref_template=f"{_PART}{source}{{name}}"
        )
        self.parts.update({source + name: part for name, part in parts.items()})
        return schema

    def _source(self) -> str:
        self._sources += 1
        return f"{self._sources}/"

    def _describe(self, cls: Any) -> dict[str, Any]:
        if cls not in self.custom:
            describe: Callable[..., dict[str, Any]] | None = schema_source(cls)
            if describe is None:
                raise UnsupportedType(f"{getattr(cls, '__qualname__', cls)} has no JSON form")
            source = self._source()
            key = f"{source}{cls.__name__}"
            self.custom[cls] = {"$ref": _PART + key}
            schema = describe(self.schema_of)
            own = {name: rebase(each, "#/$defs/", _PART + source) for name, each in schema.get("$defs", {}).items()}
            self.parts.update({source + name: each for name, each in own.items()})
            # A recursive model refers to its own definition, which then has the name of the model.
            self.parts.setdefault(key, rebase(schema, "#/$defs/", _PART + source))
        return dict(self.custom[cls])


# --- schemas without a type --------------------------------------------------------------------------


@frozen(eq=False)
class JsonSchemaAdapter:
    """A JSON Schema that data is checked under; made by `of_json_schema`.

    Args:
        schema: the schema.
    """

    schema: Schema

    def check(self, data: Any) -> Any:
        """The data as `normalise` puts it right: made of dicts, lists and atoms.

        Raises:
            ValidationError: the data does not fit.
        """
        try:
            better = normalise(self.schema, data)
            found = find_problems(self.schema, better)
        except RecursionError:
            found = (TOO_DEEP,)
        if found:
            raise ValidationError(found)
        return better


def of_json_schema(schema: Mapping[str, Any]) -> JsonSchemaAdapter:
    """The adapter of a JSON Schema.

    Raises:
        InvalidSchema: it is not one, it refers to something that is not in it (nothing is ever fetched), or a pattern
            is not one of RE2's.
    """
    root = plain(schema)
    try:
        for node in nodes(root):
            ref = node.get("$ref", "#")
            if lookup(ref, root) is None:
                raise InvalidSchema(f"refers to {ref!r}, which is not in it; put that into its '$defs'")
            for pattern in (*([node["pattern"]] if "pattern" in node else []), *node.get("patternProperties", ())):
                Pattern(pattern)
    except ValueError as e:
        raise e if isinstance(e, InvalidSchema) else InvalidSchema(f"has a pattern that cannot be used: {e}") from e
    except (AttributeError, TypeError) as e:
        raise InvalidSchema(f"is not a JSON Schema ({e}), got {safe_repr(root, 200)}") from e
    return JsonSchemaAdapter(root)
