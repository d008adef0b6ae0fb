"""`Body`: the JSON object of a request, read field by field, with errors that name the field."""

from __future__ import annotations

import json
from typing import Any, Self, TypeVar, cast

from starlette.requests import Request

from locus.core.errors import closest
from locus_plugin_serve.problems import Problem

__all__ = ["Body"]

T = TypeVar("T")
Default = TypeVar("Default")

_WORDS = {str: "a string", bool: "true or false", dict: "an object", list: "an array", int: "an integer"}


class Body:
    """The fields of a request.

    Args:
        fields: the object.
    """

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields
        self._taken: set[str] = set()
        #: Fields that are known, and that errors do not recommend.
        self._unheeded: set[str] = set()

    @classmethod
    async def read(cls, request: Request) -> Self:
        """The body of a request; an empty one has no fields.

        Raises:
            Problem: it is not a JSON object, or is not said to be JSON. A page in a browser can send other types to any
                address without asking first.
        """
        data = await request.body()
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Problem(415, f"expected the Content-Type application/json, got {kind!r:.80}")
        if not data.strip():
            return cls({})
        try:
            text = data.decode(json.detect_encoding(data))  # strictly, which `json.loads` does not do
            fields = json.loads(text)
            if "\\u" in text:
                json.dumps(fields, ensure_ascii=False).encode()  # fails at a lone surrogate, which nothing could store
        except (ValueError, RecursionError) as e:
            raise Problem.of_input(f"the body is not JSON: {e!s:.200}") from None
        if not isinstance(fields, dict):
            raise Problem.of_input(f"the body must be a JSON object, got {type(fields).__name__}")
        return cls(fields)

    def has(self, name: str) -> bool:
        """Whether a field is there and is not null."""
        self._taken.add(name)
        return self._fields.get(name) is not None

    def take_any(self, name: str) -> Any:
        """A field of any kind, or None."""
        self._taken.add(name)
        return self._fields.get(name)

    def take_unheeded(self, name: str) -> Any:
        """A field that has no effect, or None; `refuse_rest` knows it and does not list it."""
        self._unheeded.add(name)
        return self._fields.get(name)

    def take(self, name: str, kind: type[T], default: Default) -> T | Default:
        """A field; one that is null or missing has its default.

        Raises:
            Problem: it is of another kind.
        """
        value = self.take_any(name)
        if value is None:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise Problem.of_input(f"{name} must be {_WORDS.get(kind, kind.__name__)}, got {value!r:.80}", param=name)
        return value

    def take_number(self, name: str) -> float | None:
        """A number, or None.

        Raises:
            Problem: it is something else.
        """
        value = self.take_any(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise Problem.of_input(f"{name} must be a number, got {value!r:.80}", param=name)
        return cast("float | None", value)

    def take_choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        """One of some words.

        Raises:
            Problem: it is another one.
        """
        value = self.take_any(name)
        if value is None:
            return default
        if value not in choices:
            raise Problem.of_input(f"{name} must be one of {', '.join(choices)}, got {value!r:.80}", param=name)
        return cast("str", value)

    def refuse_rest(self) -> None:
        """Refuse fields that nothing has asked for: a misspelled one would have no effect.

        Raises:
            Problem: there are some.
        """
        rest = sorted(set(self._fields) - self._taken - self._unheeded)
        if rest:
            near = closest(rest[0][:80], self._taken)
            known = f"the fields are {', '.join(sorted(self._taken))}" if near is None else f"did you mean {near!r}?"
            raise Problem.of_input(f"unknown field {rest[0]!r:.80}; {known}", param=rest[0][:80])
