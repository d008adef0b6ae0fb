"""`JsonType`: a Python type as JSON sees it. Its schema for the model, and the way from data to a value.

The arguments of a tool and the typed answer of an agent are the same problem, and this is its one solution.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from attrs import frozen

from locus.tools.jsonschema import inlined
from locus.tools.lenient import normalised
from locus.tools.problems import Problem, problems
from locus.tools.standins import convert, describe_foreign, portable

__all__ = ["JsonType", "Misfit", "NoJsonForm", "json_type"]

_PART = "#/parts/"


class NoJsonForm(TypeError):
    """A type cannot be described as JSON Schema; the message says which and why."""


class Misfit(ValueError):
    """Data does not fit a type.

    Args:
        problems: every fault that was found.
    """

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(map(str, problems)))


@frozen(eq=False)
class JsonType:
    """A type with its schema.

    Args:
        annotation: what msgspec converts to.
        schema: plain JSON Schema; recursive types refer to ``#/$defs/...`` in it.
        foreign: it holds a type that loads itself.
    """

    annotation: Any
    schema: dict[str, Any]
    foreign: bool = False

    def load(self, data: Any) -> Any:
        """A value of the type: strictly, or else with what `locus.tools.lenient` puts right.

        Raises:
            Misfit: the data does not fit.
        """
        try:
            return convert(data, self.annotation)
        except Exception:  # noqa: BLE001  a class's own check may raise anything
            return self.load_leniently(data)

    def load_leniently(self, data: Any) -> Any:
        """As `load`, for data that strict conversion refused.

        Raises:
            Misfit: the data does not fit.
        """
        try:
            better = normalised(self.schema, data)
        except RecursionError:
            raise Misfit((Problem("$", "nested too deeply"),)) from None
        try:
            return convert(better, self.annotation)
        except Exception as e:
            raise Misfit(problems(self.schema, better) or (told(e),)) from e


def told(error: Exception, path: str = "$") -> Problem:
    """What a failed conversion says, as a problem; msgspec writes the path at the end, starting from ``$``."""
    text = str(error) or type(error).__name__
    found = re.fullmatch(r"(?s)(.*) - at `(?:key in )?\$(.*)`", text)
    message, rest = (found[1], found[2]) if found else (text, "")
    return Problem(f"{path}{rest}", message.replace("`", ""))


def json_type(annotation: Any) -> JsonType:
    """Look at a resolved annotation.

    Raises:
        NoJsonForm: it, or a part of it, has no JSON form.
    """
    builder = _Builder()
    try:
        known = portable(annotation)
        schema = builder.schema_of(known)
        msgspec.json.Decoder(known)  # some types are refused only here
        plain = msgspec.json.decode(msgspec.json.encode(schema))
    except RecursionError:
        raise NoJsonForm(f"{annotation!r} is nested without end") from None
    except (TypeError, ValueError, NameError, RuntimeError) as e:
        raise NoJsonForm(str(e)) from e
    if builder.kept:
        defs = msgspec.json.decode(msgspec.json.encode(builder.kept))
        # A recursive type is still an object at its root, not a reference.
        root = defs.get(str(plain.pop("$ref", "")).removeprefix("#/$defs/"), {})
        plain = root | plain | {"$defs": defs}
    return JsonType(known, plain, builder.foreign)


class _Builder:
    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Any]] = {}
        self.foreign = False

    def schema_of(self, annotation: Any) -> dict[str, Any]:
        (schema,), parts = msgspec.json.schema_components(
            (annotation,), schema_hook=self._describe, ref_template=_PART + "{name}"
        )
        return inlined(schema, parts, self.kept, _PART)

    def _describe(self, cls: Any) -> dict[str, Any]:
        self.foreign = True
        describe = describe_foreign(cls)
        if describe is None:
            raise NoJsonForm(f"{getattr(cls, '__qualname__', cls)} has no JSON form")
        schema = describe(self.schema_of)
        # The definitions of a foreign schema become ours; those that stay get a name that is free here.
        own = schema.get("$defs")
        return inlined(schema, own, self.kept, "#/$defs/") if own else schema
