"""What is wrong with data, in full: every fault with its path, what stands there and what was expected.

The conversion stops at the first fault and says little about values; a model that is told everything at once
repairs its call in one turn.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from attrs import frozen

from locus.core.errors import closest
from locus.schema.jsonschema import Schema, admits, arms, describe, kind_of, resolve
from locus.schema.text import clean, cut, listed, shown

__all__ = ["Problem", "explained", "problems"]

_MOST = 20
_DEEPEST = 100


@frozen
class Problem:
    """One fault.

    Args:
        path: where, as in ``"$.items[0].price"``; ``"$"`` is the whole.
        message: what stands there and what was expected.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def explained(found: tuple[Problem, ...]) -> str:
    """Problems on one line, for a model or a person."""
    return cut("; ".join(map(str, found)), 4_000)


def problems(schema: Schema, data: Any, path: str = "$", root: Schema | None = None) -> tuple[Problem, ...]:
    """The faults of data under a schema, at most twenty; none does not promise that a Python type accepts it.

    Args:
        schema: a JSON Schema.
        data: plain data.
        path: where the data stands.
        root: what references refer to; the schema itself when None.
    """
    return tuple(islice(_check(schema, data, path, schema if root is None else root, 0), _MOST))


def _check(schema: Any, data: Any, path: str, root: Schema, depth: int) -> Iterator[Problem]:
    schema = resolve(schema, root)
    if depth > _DEEPEST:
        yield Problem(path, "nested too deeply")
        return
    for part in schema.get("allOf", ()):
        yield from _check(part, data, path, root, depth + 1)
    if not admits(schema, data, root):
        yield Problem(path, f"expected {describe(schema, root)}, got {_given(data)}")
        return
    alternatives = arms(schema)
    if alternatives:
        yield from _closest_arm(alternatives, data, path, root, depth)
    kind = kind_of(data)
    if kind == "object":
        yield from _object(schema, data, path, root, depth)
    elif kind == "array":
        yield from _array(schema, data, path, root, depth)
    elif kind == "string":
        yield from _string(schema, data, path)
    elif kind in ("integer", "number"):
        yield from _number(schema, data, path)


def _given(data: Any) -> str:
    kind = kind_of(data)
    return kind if kind == "null" else f"{kind} {shown(data)}"


def _closest_arm(alternatives: Any, data: Any, path: str, root: Schema, depth: int) -> Iterator[Problem]:
    """The faults under the alternative that has the fewest of them; nothing when one fits."""
    fewest: list[Problem] | None = None
    for arm in alternatives:
        if admits(arm, data, root):
            found = list(islice(_check(arm, data, path, root, depth + 1), _MOST))
            if fewest is None or len(found) < len(fewest):
                fewest = found
            if not found:
                break
    yield from fewest or ()


def _object(schema: Schema, data: Mapping[str, Any], path: str, root: Schema, depth: int) -> Iterator[Problem]:
    properties = schema.get("properties", {})
    rest = schema.get("additionalProperties", {})
    missing = [name for name in schema.get("required", ()) if name not in data]
    for name, each in data.items():
        here = f"{path}{_step(name)}"
        if name in properties:
            yield from _check(properties[name], each, here, root, depth + 1)
        elif rest is False:
            yield Problem(here, _unknown(name, properties, missing))
        else:
            yield from _check(rest, each, here, root, depth + 1)
    for name in missing:
        wanted = describe(properties.get(name, {}), root)
        yield Problem(f"{path}{_step(name)}", f"missing; expected {wanted}")
    yield from _size(schema, len(data), path, "Properties", "entries")


def _unknown(name: object, properties: Mapping[str, Any], missing: list[str]) -> str:
    near = closest(str(name), missing) or closest(str(name), properties) or _alike(str(name), properties)
    if near is not None:
        return f"unknown parameter, did you mean {near!r}?"
    return "unknown parameter; " + (f"known: {listed(properties)}" if properties else "there are none")


def _alike(name: str, known: Mapping[str, Any]) -> str | None:
    """The longest known name that is within the wrong one, or the wrong one within it: `number_of_nights`, `nights`."""
    wrong = _bare(name)
    near = [each for each in known if min(len(wrong), len(each)) > 2 and (_bare(each) in wrong or wrong in _bare(each))]
    return max(near, key=len, default=None)


def _bare(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _step(name: object) -> str:
    text = clean(str(name))
    return f".{text}" if text.isidentifier() else f"[{shown(text, 60)}]"


def _array(schema: Schema, data: Any, path: str, root: Schema, depth: int) -> Iterator[Problem]:
    heads, rest = schema.get("prefixItems", ()), schema.get("items", {})
    for i, each in enumerate(data):
        if i < len(heads) or rest is not False:
            yield from _check(heads[i] if i < len(heads) else rest, each, f"{path}[{i}]", root, depth + 1)
    if rest is False and len(data) > len(heads):
        yield Problem(path, f"expected at most {len(heads)} items, got {len(data)}")
    yield from _size(schema, len(data), path, "Items", "items")


def _string(schema: Schema, data: str, path: str) -> Iterator[Problem]:
    yield from _size(schema, len(data), path, "Length", "characters")
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        try:
            fits = re.search(pattern, data)
        except re.error:  # a pattern of another dialect restricts nothing here
            return
        if fits is None:
            yield Problem(path, f"expected a string that matches {pattern!r}, got {shown(data)}")


def _size(schema: Schema, size: int, path: str, what: str, unit: str) -> Iterator[Problem]:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    if least is not None and size < least:
        yield Problem(path, f"expected at least {least} {unit}, got {size}")
    if most is not None and size > most:
        yield Problem(path, f"expected at most {most} {unit}, got {size}")


def _number(schema: Schema, data: float, path: str) -> Iterator[Problem]:
    for key, (sign, holds) in _LIMITS.items():
        limit = schema.get(key)
        if limit is not None and not holds(data, limit):
            yield Problem(path, f"expected {describe(schema, {})} {sign} {limit}, got {shown(data)}")


def _is_multiple(data: float, of: float) -> bool:
    try:
        return not of or math.isclose(math.remainder(data, of), 0.0, abs_tol=1e-9 * abs(of))
    except (OverflowError, ValueError):  # larger than a float, or infinite
        return True


_LIMITS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "minimum": (">=", operator.ge),
    "maximum": ("<=", operator.le),
    "exclusiveMinimum": (">", operator.gt),
    "exclusiveMaximum": ("<", operator.lt),
    "multipleOf": ("a multiple of", _is_multiple),
}
