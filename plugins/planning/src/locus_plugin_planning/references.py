"""References: how an argument of a step says that its value is the result of another.

They are JSON objects and never text, so that text of a user or a tool cannot be taken for one:
``{"$result": "step"}`` is the whole result, ``{"$result": "step", "path": "items.0.id"}`` a part of one that is JSON,
and ``{"$join": ["text ", {"$result": "step"}]}`` a text made of parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from locus.core import thaw

__all__ = ["Unresolved", "fill_references", "is_open", "references"]

_RESULT, _PATH, _JOIN = "$result", "path", "$join"


class Unresolved(ValueError):
    """A reference that is malformed, or that the results do not have."""


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _steps_of(reference: Mapping[str, Any]) -> list[str]:
    path = reference.get(_PATH)
    if path is None:
        return []
    return [part for part in path.split(".") if part] if isinstance(path, str) else [str(part) for part in path]


def _check(value: Mapping[str, Any]) -> None:
    """Refuse what looks like a reference but is not valid."""
    if _RESULT in value:
        if set(value) - {_RESULT, _PATH} or not isinstance(value[_RESULT], str):
            raise Unresolved(f'{_show(value)} is not a reference; write {{"$result": "id of a step", "path": "a.0.b"}}')
        path = value.get(_PATH)
        fits = path is None or isinstance(path, str) or (_is_list(path) and all(type(p) in (str, int) for p in path))
        if not fits:
            raise Unresolved(f'{_show(value)} has no usable path; write it as text, as in "items.0.id"')
    elif set(value) != {_JOIN} or not _is_list(value[_JOIN]):
        raise Unresolved(f'{_show(value)} joins nothing; write {{"$join": ["text", {{"$result": "id of a step"}}]}}')
    elif not all(isinstance(p, str) or (isinstance(p, Mapping) and _RESULT in p) for p in value[_JOIN]):
        raise Unresolved(f"{_show(value)} joins something other than texts and results")


def _show(value: Any) -> str:
    return f"{json.dumps(thaw(value), default=repr):.100}"


def _find(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if _RESULT in value or _JOIN in value:
            _check(value)
            if _RESULT in value:
                yield value[_RESULT]
                return
        for each in value.values():
            yield from _find(each)
    elif _is_list(value):
        for each in value:
            yield from _find(each)


def references(value: Any) -> tuple[str, ...]:
    """The steps whose results a value refers to, each once, in order.

    Raises:
        Unresolved: a reference in it is malformed.
    """
    return tuple(dict.fromkeys(_find(value)))


def is_open(value: Any) -> bool:
    """Whether a value is known only when results are."""
    if isinstance(value, Mapping):
        return _RESULT in value or _JOIN in value or any(is_open(each) for each in value.values())
    return _is_list(value) and any(is_open(each) for each in value)


def fill_references(value: Any, results: Mapping[str, str]) -> Any:
    """The value with results in place of its references.

    A whole result is text; the tool reads it as the type it wants. A part of one has the type that it has there.

    Args:
        value: plain data, frozen or not.
        results: the text of each result, by the id of its step.

    Raises:
        Unresolved: the result does not exist, or has nothing at that path.
    """
    if isinstance(value, Mapping):
        if _RESULT in value:
            return _resolve(value, results)
        if _JOIN in value:
            return "".join(_as_text(fill_references(each, results)) for each in value[_JOIN])
        return {key: fill_references(each, results) for key, each in value.items()}
    return [fill_references(each, results) for each in value] if _is_list(value) else value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _resolve(reference: Mapping[str, Any], results: Mapping[str, str]) -> Any:
    _check(reference)
    step, path = reference[_RESULT], _steps_of(reference)
    if step not in results:
        raise Unresolved(f"step {step!r} has no result")
    text = results[step]
    if not path:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise Unresolved(f"the result of step {step!r} is not JSON, so it has nothing at {'.'.join(path)!r}") from None
    for part in path:
        value = _part(value, part, step, path)
    return value


def _part(value: Any, part: str, step: str, path: Sequence[str]) -> Any:
    if isinstance(value, dict) and part in value:
        return value[part]
    if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
        return value[int(part)]
    raise Unresolved(f"the result of step {step!r} has nothing at {'.'.join(path)!r}: {part!r} is missing")
