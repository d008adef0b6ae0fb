"""`JsonType`: a Python type as JSON sees it. Its schema for the model, and the way from data to a value.

The arguments of a tool and the typed answer of an agent are the same problem, and this is its one solution.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from attrs import frozen

from locus.schema.adapters import convert, describe_foreign, portable, portable_within
from locus.schema.inlining import inlined, rebased
from locus.schema.lenient import normalised
from locus.schema.problems import Problem, problems

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
        """A value of the type: strictly, or else with what `locus.schema.lenient` puts right.

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
    try:
        return _built(portable(annotation))
    except NoJsonForm as e:
        try:
            return _built(portable_within(annotation))
        except (NoJsonForm, RecursionError, TypeError, ValueError, NameError, RuntimeError):
            raise e from e.__cause__
    except RecursionError:
        raise NoJsonForm(f"{annotation!r} is nested without end") from None
    except (TypeError, ValueError, NameError, RuntimeError) as e:
        raise NoJsonForm(str(e)) from e


def _built(known: Any) -> JsonType:
    builder = _Builder()
    try:
        schema = builder.schema_of(known)
        msgspec.json.Decoder(known)  # some types are refused only here
        plain = msgspec.json.decode(msgspec.json.encode(inlined(schema, builder.parts, _PART)))
    except RecursionError:
        raise NoJsonForm(f"{known!r} is nested without end") from None
    except (TypeError, ValueError, NameError, RuntimeError) as e:
        raise NoJsonForm(str(e)) from e
    return JsonType(known, plain, bool(builder.foreign))


class _Builder:
    """Collects the parts of one schema: of msgspec's classes, of stand-ins and of foreign ones.

    Each source numbers its parts, so that two classes of one name keep apart.
    """

    def __init__(self) -> None:
        self.parts: dict[str, Mapping[str, Any]] = {}
        self.foreign: dict[Any, dict[str, Any]] = {}
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
        if cls not in self.foreign:
            describe = describe_foreign(cls)
            if describe is None:
                raise NoJsonForm(f"{getattr(cls, '__qualname__', cls)} has no JSON form")
            source = self._source()
            key = f"{source}{cls.__name__}"
            self.foreign[cls] = {"$ref": _PART + key}
            schema = describe(self.schema_of)
            own = {name: rebased(each, "#/$defs/", _PART + source) for name, each in schema.get("$defs", {}).items()}
            self.parts.update({source + name: each for name, each in own.items()})
            # A recursive model refers to its own definition, which then has the name of the model.
            self.parts.setdefault(key, rebased(schema, "#/$defs/", _PART + source))
        return dict(self.foreign[cls])
