"""Schemas of the check `schema`: whether all that one says is checked.

The kernel's checker (`locus.schema.find_problems`) passes over what it does not know, and takes values as they are. In
a file of cases both would be found too late, or never: a keyword with a typo restricts nothing, so that a check passes
whatever the answer is, and a limit that is a text ends an evaluation in its middle. So a schema may have the keywords
that are checked and those that only describe, with values of their types, and its references must lead to a schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from locus.core import Pattern
from locus.core.errors import closest
from locus.schema import safe_repr
from locus_plugin_eval.json_values import Fault

__all__ = ["find_faults"]

_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")

#: Keywords that hold a schema, a list of schemas, and schemas by name.
_SCHEMA: Final = frozenset(("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"))
_SCHEMAS: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_NAMED: Final = frozenset(("$defs", "definitions", "patternProperties", "properties"))

#: Keywords that describe, and restrict nothing by what they are. Extensions begin with ``x-``.
_DESCRIBE: Final = frozenset(
    "$comment $id $schema default deprecated description examples readOnly title writeOnly".split()  # noqa: SIM905
)

#: Keywords that say nothing without another one.
_NEEDS: Final = {"else": "if", "then": "if", "maxContains": "contains", "minContains": "contains"}


def _is_type(value: Any) -> bool:
    kinds = value if isinstance(value, list) else [value]
    return bool(kinds) and all(each in _TYPES for each in kinds)


def _is_count(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and value >= 0 and value == int(value)


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


#: Keywords whose value is not a schema: what is expected, and whether a value is that.
_VALUES: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "type": (f"one of {', '.join(_TYPES)}, or a list of these", _is_type),
    "enum": ("a list of values", lambda value: isinstance(value, list) and bool(value)),
    "const": ("a value", lambda value: True),
    "required": ("a list of names", _are_names),
    "dependentRequired": (
        "lists of names by name, such as {a: [b]}",
        lambda value: isinstance(value, dict) and all(map(_are_names, value.values())),
    ),
    "uniqueItems": ("true or false", lambda value: isinstance(value, bool)),
    "multipleOf": ("a number above 0", lambda value: _is_number(value) and value > 0),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"), ("a number", _is_number)),
    **dict.fromkeys(
        (f"{which}{what}" for which in ("max", "min") for what in ("Contains", "Items", "Length", "Properties")),
        ("a whole number, 0 or more", _is_count),
    ),
}

_KNOWN: Final = (*_VALUES, "pattern", "$ref", *sorted(_SCHEMA | _SCHEMAS | _NAMED | _DESCRIBE))


def find_faults(schema: Mapping[str, Any]) -> Iterator[Fault]:
    """What of a schema would not be checked, or could not be.

    Args:
        schema: plain JSON without an alias within itself, the root of its own references.
    """
    walk = _Walk()
    yield from walk.check(schema, (), ())
    yield from walk.check_references()


class _Walk:
    """A walk over all schemas of a schema."""

    def __init__(self) -> None:
        #: By the steps of a reference, those that a reference can lead to: the checker follows none into a list.
        self._found: dict[tuple[str, ...], Any] = {}
        self._references: list[tuple[tuple[str, ...], str]] = []

    def check(self, schema: Any, path: tuple[str, ...], steps: tuple[str, ...] | None) -> Iterator[Fault]:
        """The faults of a schema and of those within it.

        Args:
            schema: the schema, or what is in its place.
            path: where it is, for a message.
            steps: of a reference to it; None where there can be none.
        """
        if steps is not None:
            self._found[steps] = schema
        if isinstance(schema, bool):
            return
        if not isinstance(schema, dict):
            yield path, f"expected a JSON Schema, such as {{type: object}}, got {safe_repr(schema)}"
            return
        for keyword, value in schema.items():
            here = (*path, keyword)
            if keyword in _NEEDS and _NEEDS[keyword] not in schema:
                yield here, f"expected {_NEEDS[keyword]!r} beside it, without which it is not checked"
            elif keyword in _SCHEMA | _SCHEMAS | _NAMED:
                yield from self._check_within(keyword, value, here, None if steps is None else (*steps, keyword))
            elif keyword == "$id" and path:
                yield here, "expected it at the top alone: references are looked up from there"
            else:
                yield from _check_value(keyword, value, path)
        if isinstance(schema.get("$ref"), str):
            self._references.append((path, schema["$ref"]))

    def _check_within(
        self, keyword: str, value: Any, path: tuple[str, ...], steps: tuple[str, ...] | None
    ) -> Iterator[Fault]:
        if keyword in _NAMED:
            if not isinstance(value, dict):
                yield path, f"expected schemas by name, got {safe_repr(value)}"
                return
            for name, each in value.items():
                if keyword == "patternProperties":
                    yield from _check_pattern(name, path)
                yield from self.check(each, (*path, name), None if steps is None else (*steps, name))
        elif keyword in _SCHEMAS:
            if not isinstance(value, list) or not value:
                yield path, f"expected a list of schemas, got {safe_repr(value)}"
                return
            for n, each in enumerate(value):
                yield from self.check(each, (*path, f"[{n}]"), None)
        elif keyword == "items" and isinstance(value, list):
            yield path, "expected one schema, for each item; a list of schemas is called 'prefixItems'"
        else:
            yield from self.check(value, path, steps)

    def check_references(self) -> Iterator[Fault]:
        """The references that lead nowhere, or to what the checker does not see whole."""
        for path, reference in self._references:
            fault = self._follow(reference)
            if fault:
                yield (*path, "$ref"), fault

    def _follow(self, reference: str) -> str:
        seen = {reference}
        while True:
            target = self._found.get(_steps(reference)) if reference == "#" or reference.startswith("#/") else None
            if target is None:
                return f"expected a reference to a schema in this one, such as '#/$defs/name', got {reference!r}"
            if not isinstance(target, dict) or not isinstance(target.get("$ref"), str):
                return ""
            beside = sorted(target.keys() - _DESCRIBE - {"$ref", "$defs", "definitions"})
            if beside:
                # The checker goes on to the last one of a chain, and to nothing else.
                return f"{reference!r} has a '$ref' itself, so its {beside[0]!r} is not checked; put both into 'allOf'"
            reference = target["$ref"]
            if reference in seen:
                return f"expected a reference that leads to a schema, got a circle: {reference!r}"
            seen.add(reference)


def _steps(reference: str) -> tuple[str, ...]:
    return tuple(each.replace("~1", "/").replace("~0", "~") for each in reference.split("/")[1:])


def _check_value(keyword: str, value: Any, path: tuple[str, ...]) -> Iterator[Fault]:
    """What is wrong with a keyword that holds no schema."""
    if keyword in _VALUES:
        expected, fits = _VALUES[keyword]
        if not fits(value):
            yield (*path, keyword), f"expected {expected}, got {safe_repr(value)}"
    elif keyword == "pattern":
        yield from _check_pattern(value, (*path, keyword))
    elif keyword == "$ref":
        if not isinstance(value, str):
            yield (*path, keyword), f"expected a text, such as '#/$defs/name', got {safe_repr(value)}"
    elif keyword not in _DESCRIBE and not keyword.startswith("x-"):
        near = closest(keyword, _KNOWN)
        hint = f"did you mean {near!r}?" if near else "leave it out"
        yield path, f"the keyword {safe_repr(keyword)} is not checked here, so it would always pass; {hint}"


def _check_pattern(value: Any, path: tuple[str, ...]) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield path, f"expected a pattern, got {safe_repr(value)}"
        return
    try:
        Pattern(value)
    except ValueError as e:
        yield path, str(e)
