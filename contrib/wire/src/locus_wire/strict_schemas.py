"""`strict_schema`: a JSON Schema in the form that vendors can hold a model to while it writes.

Strict modes accept a part of JSON Schema: every object is closed, every property is required, without maps and
few constraints. What they do not accept (a default, a pattern, a limit) moves to the description and is checked when
the answer is read. An optional property becomes nullable; output schemas and tools read null as "left out".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from locus.core import thaw
from locus.core.errors import LocusError

__all__ = ["NotStrict", "StrictRules", "strict_schema"]

_NULL = {"type": "null"}
#: Names of the JSON types; bool before int, which it is a subclass of.
_KINDS = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    type(None): "null",
    dict: "object",
    list: "array",
}
#: References that lead to references, before they are taken for a circle.
_LONGEST_CHAIN = 100
#: Annotations for people and programs, which a model does not need.
_SILENT = frozenset(
    ("title", "examples", "deprecated", "readOnly", "writeOnly", "discriminator", "$schema", "$id", "$comment")
)
#: Keywords that are translated.
_KNOWN = frozenset(
    ("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "$defs", "definitions", "description", "properties")
) | {"required", "additionalProperties", "items", "prefixItems"}
#: Keywords that no strict mode has, and that change the meaning of a schema when they are left out.
_STRUCTURAL = frozenset(
    ("not", "if", "then", "else", "patternProperties", "propertyNames", "dependentRequired", "dependentSchemas")
) | {"contains", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef"}
_OF_OBJECTS = ("properties", "required", "additionalProperties")
_OF_ARRAYS = ("items", "prefixItems")


class NotStrict(LocusError):
    """A schema has no strict form: use `output_as_tool`, or ask for JSON and let the answer be repaired.

    Args:
        path: the place in the schema, as in ``"$.tags"``.
        why: what a strict schema cannot express.
    """

    def __init__(self, path: str, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"no strict form: {path}: {why}")


@frozen(kw_only=True)
class StrictRules:
    """What a vendor's strict mode accepts besides types, enums, ``anyOf``, arrays, closed objects and references.

    Args:
        keywords: constraints that stay, such as ``"minimum"`` and ``"pattern"``; the others move to the description.
        formats: values of ``format`` that stay.
        recursive: whether a schema may refer to itself.
        optional: whether a property may be left out; if not, an optional property is required and nullable.
    """

    keywords: frozenset[str] = frozenset()
    formats: frozenset[str] = frozenset()
    recursive: bool = True
    optional: bool = False


def strict_schema(schema: Mapping[str, Any], rules: StrictRules | None = None) -> dict[str, Any]:
    """Convert a schema to its strict form; a schema that is already strict stays as it is.

    Args:
        schema: the schema of an object, such as `OutputSpec.schema` and `ToolSpec.parameters`.
        rules: what the vendor accepts; None = the minimum that all of them accept.

    Returns:
        A schema that accepts every value that ``schema`` accepts, with null for a property that is left out. It is
        made of plain dicts and lists.

    Raises:
        NotStrict: the schema has no strict form: it allows any keys or any type, or relates properties to each other.
    """
    try:
        return _Strict(thaw(schema), StrictRules() if rules is None else rules).whole()
    except RecursionError:
        raise NotStrict("$", "it is nested too deeply") from None


class _Strict:
    def __init__(self, root: dict[str, Any], rules: StrictRules) -> None:
        self._root, self._rules = root, rules
        self._defs: dict[str, Any] = {}
        #: The name of the definition that the root refers to, or None.
        self._whole: str | None = None
        #: The definitions that are being converted at the moment; a reference to one of them is recursive.
        self._open: list[str] = []

    def whole(self) -> dict[str, Any]:
        root = self._root
        name = self._name(root.get("$ref", ""), "$") if "$ref" in root else None
        node = self._target(name, "$") if name else root
        if not isinstance(node, Mapping) or node.get("type") != "object":
            raise NotStrict("$", "the schema is not that of an object")
        self._whole = name
        self._open = ["#", *([name] if name else [])]
        made = self._node({key: each for key, each in node.items() if key not in ("$defs", "definitions")}, "$")
        return made | {"$defs": self._defs} if self._defs else made

    def _node(self, schema: Any, path: str) -> dict[str, Any]:
        if not isinstance(schema, Mapping):
            raise NotStrict(path, "any value fits" if schema else "no value fits")
        for key in schema:
            if key in _STRUCTURAL:
                raise NotStrict(path, f"{key!r} has no strict form")
        made = self._shape(schema, path)
        notes = [schema["description"]] if schema.get("description") else []
        for key, value in schema.items():
            if key in _KNOWN or key in _SILENT:
                continue
            if key in self._rules.keywords or (key == "format" and value in self._rules.formats):
                made[key] = value
            else:
                notes.append(f"{key}: {json.dumps(value, ensure_ascii=False, default=str)}")
        if not notes:
            return made
        # A strict schema allows no other keyword beside a reference.
        return {"description": "; ".join(notes), **({"anyOf": [made]} if "$ref" in made else made)}

    def _shape(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        """The type, the values or the alternatives of a schema, converted."""
        if "$ref" in schema:
            return {"$ref": self._reference(schema["$ref"], path)}
        if "const" in schema or "enum" in schema:
            return _one_of(_values([schema["const"]] if "const" in schema else schema["enum"], path))
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self._arms(schema, key, path)
        if "allOf" in schema:
            return self._together(schema, path)
        kinds = schema.get("type")
        if kinds is None:
            kinds = "object" if "properties" in schema else "array" if "items" in schema else None
        if kinds is None:
            raise NotStrict(path, "a value of any type fits")
        if isinstance(kinds, str):
            return self._of(kinds, schema, path)
        return _one_of([self._of(kind, schema, path) for kind in kinds])

    def _of(self, kind: str, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        if kind == "object":
            return self._object(schema, path)
        return self._array(schema, path) if kind == "array" else {"type": kind}

    def _arms(self, schema: Mapping[str, Any], key: str, path: str) -> dict[str, Any]:
        if any(each in schema for each in (*_OF_OBJECTS, *_OF_ARRAYS, "allOf")):
            raise NotStrict(path, f"{key!r} beside other rules has no strict form")
        return _one_of([self._node(arm, path) for arm in schema[key]])

    def _together(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        if len(schema["allOf"]) != 1 or any(each in schema for each in ("type", *_OF_OBJECTS, *_OF_ARRAYS)):
            raise NotStrict(path, "'allOf' has a strict form only when it is alone and holds one schema")
        return self._node(schema["allOf"][0], path)

    def _object(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        if "properties" not in schema or schema.get("additionalProperties", False) is not False:
            raise NotStrict(path, "a map with any keys fits; only an object with named properties can be strict")
        needed, made = schema.get("required", ()), {}
        for name in needed:
            if name not in schema["properties"]:
                raise NotStrict(path, f"{name!r} is required, and may be anything")
        for name, each in schema["properties"].items():
            strict = self._node(each, f"{path}.{name}")
            free = name not in needed and not self._rules.optional
            made[name] = strict if not free or self._admits_null(each) else _nullable(strict)
        names = [name for name in made if name in needed] if self._rules.optional else list(made)
        return {"type": "object", "properties": made, "required": names, "additionalProperties": False}

    def _admits_null(self, schema: Any) -> bool:
        """Whether null fits a schema that has a strict form."""
        for _ in range(_LONGEST_CHAIN):
            if "$ref" not in schema:
                break
            ref = schema["$ref"]
            schema = self._root if ref == "#" else self._target(self._name(ref, "$"), "$")
        if "const" in schema or "enum" in schema:
            return None in ([schema["const"]] if "const" in schema else schema["enum"])
        for key in ("anyOf", "oneOf", "allOf"):
            if key in schema:
                return any(self._admits_null(arm) for arm in schema[key])
        kinds = schema.get("type", ())
        return "null" in ((kinds,) if isinstance(kinds, str) else kinds)

    def _array(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        heads = [self._node(each, f"{path}[{i}]") for i, each in enumerate(schema.get("prefixItems", ()))]
        rest = schema.get("items", not heads)
        if rest is True:
            raise NotStrict(f"{path}[]", "an item of any type fits")
        items = [*heads, *([] if rest is False else [self._node(rest, f"{path}[]")])]
        if not items:
            raise NotStrict(path, "no item fits")
        return {"type": "array", "items": _one_of(items)}

    # -- references -------------------------------------------------------------------------------

    def _reference(self, ref: Any, path: str) -> str:
        if ref == "#":
            self._circle("#", path)
            return "#"
        name = self._name(ref, path)
        if name in self._open:
            self._circle(name, path)
            if name == self._whole:
                return "#"
        elif name not in self._defs:
            self._open.append(name)
            self._defs[name] = {}  # holds its place, so that definitions keep their order
            self._defs[name] = self._node(self._target(name, path), f"$defs.{name}")
            self._open.pop()
        return f"#/$defs/{name}"

    def _circle(self, name: str, path: str) -> None:
        if not self._rules.recursive:
            raise NotStrict(path, f"the schema refers to itself ({name!r})")

    def _name(self, ref: Any, path: str) -> str:
        for start in ("#/$defs/", "#/definitions/"):
            if isinstance(ref, str) and ref.startswith(start):
                return ref.removeprefix(start)
        raise _unknown(ref, path)

    def _target(self, name: str, path: str) -> Any:
        for each in ("$defs", "definitions"):
            if name in self._root.get(each, {}):
                return self._root[each][name]
        raise _unknown(name, path)


def _unknown(ref: Any, path: str) -> NotStrict:
    return NotStrict(path, f"it refers to {ref!r}, which is not a definition of this schema")


def _values(values: Any, path: str) -> Iterator[dict[str, Any]]:
    """One strict schema per JSON type of the values, with the values of that type."""
    by_kind: dict[str, list[Any]] = {}
    for value in values:
        by_kind.setdefault(_kind(value), []).append(value)
    if not by_kind:
        raise NotStrict(path, "no value fits")
    for kind, each in by_kind.items():
        if kind in ("object", "array"):
            raise NotStrict(path, f"one of its values is an {kind}")
        yield _NULL if kind == "null" else {"type": kind, "enum": each}


def _kind(value: Any) -> str:
    return next((name for cls, name in _KINDS.items() if isinstance(value, cls)), type(value).__name__)


def _one_of(arms: Any) -> dict[str, Any]:
    """A choice between schemas, flattened and without duplicates."""
    found: list[dict[str, Any]] = []
    for arm in arms:
        for each in arm["anyOf"] if arm.keys() == {"anyOf"} else (arm,):
            if each not in found:
                found.append(each)
    return dict(found[0]) if len(found) == 1 else {"anyOf": found}


def _nullable(strict: dict[str, Any]) -> dict[str, Any]:
    told = {key: strict[key] for key in ("description",) if key in strict}
    bare = {key: each for key, each in strict.items() if key != "description"}
    return told | _one_of([bare, _NULL])
