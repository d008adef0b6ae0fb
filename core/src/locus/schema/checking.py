"""Data under a JSON Schema: what is wrong with it, in full, and what a reader can put right without guessing.

The conversion to a Python type stops at the first fault and says little about values; a model that reads every fault
at once, each with its path, what was found and what was expected, repairs its call in one turn.
"""

from __future__ import annotations

import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from attrs import frozen

from locus.core.errors import closest
from locus.core.lazy import Lazy
from locus.core.patterns import Pattern
from locus.schema.jsonschema import Schema, admits, alternatives, describe, identity, kind_of, resolve
from locus.schema.text import clean_text, join_names, safe_repr, truncate

if TYPE_CHECKING:
    import msgspec
else:
    msgspec = Lazy("msgspec")

# The bounds of a check, whatever the schema and the data are: problems named, depth, and schemas looked at.
_MOST_PROBLEMS = 20
_DEEPEST = 100
_MOST_VISITS = 100_000


@frozen
class Problem:
    """One fault.

    Args:
        path: where, as in ``"$.items[0].price"``; ``"$"`` is the whole.
        message: what was found there and what was expected.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


TOO_DEEP = Problem("$", "nested too deeply")


class ValidationError(ValueError):
    """Data does not fit a schema.

    Args:
        problems: every fault that was found.
    """

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(map(str, problems)))


def explain(problems: tuple[Problem, ...]) -> str:
    """Problems on one line, for a model or a person."""
    return truncate("; ".join(map(str, problems)), 4_000)


# --- problems ----------------------------------------------------------------------------------------


def find_problems(schema: Schema, data: Any) -> tuple[Problem, ...]:
    """The faults of data under a schema, at most twenty; none does not promise that a Python type accepts it.

    A keyword that is not known here (a ``format``, ``unevaluatedProperties``) restricts nothing, nor does a reference
    out of the schema or a pattern that is not a regular expression of RE2's, which no text keeps busy.

    Args:
        schema: a JSON Schema, the root of its own references.
        data: plain data.
    """
    return tuple(islice(_Check(schema).faults(schema, data, "$", 0), _MOST_PROBLEMS))


class _Check:
    """One check of one value: knows the root that references refer to, and how much it may still look at."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._visits = 0

    def faults(self, schema: Any, data: Any, path: str, depth: int) -> Iterator[Problem]:
        if isinstance(schema, Mapping) and "$ref" in schema and len(schema) > 1:  # what is beside it counts, too
            beside = {key: each for key, each in schema.items() if key not in ("$ref", "$defs")}
            yield from self.faults(beside, data, path, depth + 1)
            schema = {"$ref": schema["$ref"]}
        schema = resolve(schema, self._root)
        self._visits += 1
        if depth > _DEEPEST or self._visits > _MOST_VISITS:
            yield Problem(path, TOO_DEEP.message if depth > _DEEPEST else "too much to check under this schema")
            return
        if not admits(schema, data, self._root):
            yield Problem(path, f"expected {describe(schema, self._root)}, got {_describe_value(data)}")
            return
        yield from self._check_branches(schema, data, path, depth + 1)
        kind = kind_of(data)
        if kind == "object":
            yield from self._object(schema, data, path, depth + 1)
        elif kind == "array":
            yield from self._array(schema, data, path, depth + 1)
        elif kind == "string":
            yield from _string(schema, data, path)
        elif kind in ("integer", "number"):
            yield from _number(schema, data, path)

    def _fits(self, schema: Any, data: Any, depth: int) -> bool:
        return next(self.faults(schema, data, "$", depth), None) is None

    def _check_branches(self, schema: Schema, data: Any, path: str, depth: int) -> Iterator[Problem]:
        for part in schema.get("allOf", ()):
            yield from self.faults(part, data, path, depth)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                yield from self._closest_arm(schema[key], data, path, depth)
        if "oneOf" in schema:
            fitting = sum(self._fits(arm, data, depth) for arm in schema["oneOf"])
            if fitting > 1:
                yield Problem(path, f"expected a value that fits exactly one alternative, got one that fits {fitting}")
        if "not" in schema and self._fits(schema["not"], data, depth):
            yield Problem(
                path, f"expected a value that is not {describe(schema['not'], self._root)}, got {_describe_value(data)}"
            )
        if "if" in schema:
            branch = schema.get("then" if self._fits(schema["if"], data, depth) else "else", True)
            yield from self.faults(branch, data, path, depth)

    def _closest_arm(self, arms: Any, data: Any, path: str, depth: int) -> Iterator[Problem]:
        """The faults under the alternative that has the fewest of them; nothing when one fits."""
        fewest: list[Problem] | None = None
        for arm in arms:
            if admits(arm, data, self._root):
                found = list(islice(self.faults(arm, data, path, depth), _MOST_PROBLEMS))
                if fewest is None or len(found) < len(fewest):
                    fewest = found
                if not found:
                    break
        if fewest is None:
            expected = " or ".join(dict.fromkeys(describe(arm, self._root) for arm in arms))
            fewest = [Problem(path, f"expected {expected}, got {_describe_value(data)}")]
        yield from fewest

    def _object(self, schema: Schema, data: Mapping[str, Any], path: str, depth: int) -> Iterator[Problem]:
        properties = schema.get("properties", {})
        patterns = {each: inner for key, inner in schema.get("patternProperties", {}).items() if (each := _regex(key))}
        rest = schema.get("additionalProperties", {})
        missing = [name for name in schema.get("required", ()) if name not in data]
        for name, each in data.items():
            here = f"{path}{_step(name)}"
            inner = [properties[name]] if name in properties else []
            inner += [by_name for pattern, by_name in patterns.items() if pattern.matches(str(name))]
            if not inner and rest is False:
                yield Problem(here, _unknown_parameter(name, properties, missing, "tool" if path == "$" else "object"))
                continue
            for one in inner or (rest,):
                yield from self.faults(one, each, here, depth)
            if "propertyNames" in schema:
                yield from self.faults(schema["propertyNames"], name, here, depth)
        for name, others in schema.get("dependentRequired", {}).items():
            missing += [other for other in others if name in data and other not in data and other not in missing]
        for name in missing:
            yield Problem(f"{path}{_step(name)}", f"missing; expected {describe(properties.get(name, {}), self._root)}")
        yield from _size(schema, len(data), path, "Properties", "entries")

    def _array(self, schema: Schema, data: Any, path: str, depth: int) -> Iterator[Problem]:
        heads, rest = schema.get("prefixItems", ()), schema.get("items", {})
        for i, each in enumerate(data):
            if i < len(heads) or rest is not False:
                yield from self.faults(heads[i] if i < len(heads) else rest, each, f"{path}[{i}]", depth)
        if rest is False and len(data) > len(heads):
            yield Problem(path, f"expected at most {len(heads)} items, got {len(data)}")
        yield from _size(schema, len(data), path, "Items", "items")
        if "contains" in schema:
            least, most = schema.get("minContains", 1), schema.get("maxContains", len(data))
            count = sum(self._fits(schema["contains"], each, depth) for each in data)
            if not least <= count <= most:
                limit = f"at least {least}" if count < least else f"at most {most}"
                wanted = describe(schema["contains"], self._root)
                yield Problem(path, f"expected {limit} items that are {wanted}, got {count}")
        if schema.get("uniqueItems") is True:
            counts = Counter(map(identity, data))
            twice = next((each for each in data if counts[identity(each)] > 1), _NOTHING)
            if twice is not _NOTHING:
                yield Problem(path, f"expected items that all differ, got {safe_repr(twice)} more than once")


_NOTHING = object()


def _describe_value(data: Any) -> str:
    kind = kind_of(data)
    return kind if kind == "null" else f"{kind} {safe_repr(data)}"


def _unknown_parameter(name: object, properties: Mapping[str, Any], missing: list[str], holder: str) -> str:
    near = closest(str(name), missing) or closest(str(name), properties) or _alike(str(name), properties)
    if near is not None:
        return f"unknown parameter, did you mean {near!r}?"
    known = f"known: {join_names(properties)}" if properties else f"this {holder} takes no parameters"
    return f"unknown parameter; {known}"


def _alike(name: str, known: Mapping[str, Any]) -> str | None:
    """The longest known name that is within the wrong one, or the wrong one within it: `number_of_nights`, `nights`."""
    wrong = _bare(name)
    near = [each for each in known if min(len(wrong), len(each)) > 2 and (_bare(each) in wrong or wrong in _bare(each))]
    return max(near, key=len, default=None)


def _bare(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _step(name: object) -> str:
    text = clean_text(str(name))
    return f".{text}" if text.isidentifier() else f"[{safe_repr(text, 60)}]"


@lru_cache(maxsize=256)
def _regex(pattern: object) -> Pattern | None:
    try:
        return Pattern(pattern) if isinstance(pattern, str) else None
    except ValueError:  # a pattern of another dialect restricts nothing here
        return None


def _string(schema: Schema, data: str, path: str) -> Iterator[Problem]:
    yield from _size(schema, len(data), path, "Length", "characters")
    pattern = _regex(schema.get("pattern"))
    if pattern is not None and not pattern.matches(data):
        yield Problem(path, f"expected a string that matches {pattern.expression!r}, got {safe_repr(data)}")


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
            yield Problem(path, f"expected {describe(schema, {})} {sign} {limit}, got {safe_repr(data)}")


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


# --- what models get wrong -----------------------------------------------------------------------------

_WORDS = {"true": True, "false": False, "null": None, "none": None}
_LONGEST = 1_000_000
_EXACT = 2**53


def normalise(schema: Schema, data: Any) -> Any:
    """The data as the schema means it, where that is unambiguous; plain and mutable.

    Where a string came and the schema admits no string, and its text is JSON of a kind that the schema admits, the
    text is read: ``"3"`` for an integer, ``"[1, 2]"`` for an array, ``"True"`` for a boolean. A whole number written
    as ``3.0`` is an integer. A ``null`` for what may be left out and admits no null is left out. Nothing else is
    changed: a string that the schema admits stays as it is.

    Args:
        schema: also the root that its references refer to.
        data: plain data.

    Raises:
        RecursionError: the data is nested too deeply.
    """
    return _Reader(schema).read(schema, data)


class _Reader:
    def __init__(self, root: Schema) -> None:
        self._root = root

    def read(self, schema: Any, data: Any) -> Any:
        schema = resolve(schema, self._root)
        if not admits(schema, data, self._root):
            data = self._reread(schema, data)
        arms = alternatives(schema)
        if arms:
            fitting = [arm for arm in arms if admits(arm, data, self._root)]
            return self.read(fitting[0], data) if len(fitting) == 1 else plain(data)
        kind = kind_of(data)
        if kind == "object":
            return self._object(schema, data)
        if kind == "array":
            heads, rest = schema.get("prefixItems", ()), schema.get("items", {})
            return [self.read(heads[i] if i < len(heads) else rest, each) for i, each in enumerate(data)]
        return data

    def _reread(self, schema: Schema, data: Any) -> Any:
        """The value that a text spells, or the whole number that a float is; the data itself when neither fits."""
        found = data
        if isinstance(data, str) and len(data) <= _LONGEST:
            text = data.strip()
            try:
                found = _WORDS[text.lower()] if text.lower() in _WORDS else msgspec.json.decode(text)
            except (ValueError, msgspec.DecodeError, RecursionError):
                return data
        if isinstance(found, float) and found.is_integer() and abs(found) <= _EXACT:
            whole = int(found)
            if not admits(schema, found, self._root) and admits(schema, whole, self._root):
                return whole
        return found if admits(schema, found, self._root) else data

    def _object(self, schema: Schema, data: Mapping[str, Any]) -> dict[str, Any]:
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        rest = schema.get("additionalProperties", {})
        made = {}
        for name, each in data.items():
            expected = properties.get(name, rest)
            optional = name in properties and name not in required
            if each is not None or not optional or admits(expected, None, self._root):
                made[name] = self.read(expected, each)
        return made


def plain(data: Any) -> Any:
    """A mutable copy of plain data, made of dicts and lists only."""
    kind = kind_of(data)
    if kind == "object":
        return {name: plain(each) for name, each in data.items()}
    return [plain(each) for each in data] if kind == "array" else data
