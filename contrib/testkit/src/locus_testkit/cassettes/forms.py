"""Requests, chunks, answers and errors as plain data, and back: what can be read in a diff and compared."""

from __future__ import annotations

import builtins
import importlib
import re
from collections.abc import Sequence
from typing import Any

from attrs import fields

from locus.core import decode, decode_data, encode, encode_data
from locus.core.errors import LocusError, ModelError
from locus.core.messages import Usage
from locus.models import Chunk, ModelRequest, ModelResponse, ModelSettings
from locus.tools import ToolSpec

__all__ = [
    "chunks_form",
    "chunks_of",
    "comparable",
    "error_form",
    "error_of",
    "request_form",
    "response_form",
    "response_of",
]

#: The boundaries of `locus_kit.judging.quote` differ from run to run, and say nothing.
_BOUNDARY = re.compile(r"(?<=<<<data )[0-9a-f]{16}(?=\n)|(?<=\n)[0-9a-f]{16}(?=>>>)")


def request_form(model: str, request: ModelRequest) -> dict[str, Any]:
    """A request; without its deadline, which is a moment of one process.

    Raises:
        NotSerialisable: a part of it has no JSON form.
    """
    form: dict[str, Any] = {"model": model, "purpose": request.purpose}
    form["messages"] = [encode(message) for message in request.messages]
    if request.tools:
        form["tools"] = {tool.name: _tool(tool) for tool in request.tools}
    settings = _settings(request.settings)
    if settings:
        form["settings"] = settings
    if request.output is not None:
        form["output"] = {"name": request.output.name, "schema": encode_data(request.output.schema)}
    return form


def _tool(tool: ToolSpec) -> dict[str, Any]:
    form = {"description": tool.description, "parameters": encode_data(tool.parameters)}
    if tool.examples:
        form["examples"] = [
            {
                "user": each.user,
                "arguments": encode_data(each.arguments),
                "result": each.result,
                "answer": each.answer,
            }
            for each in tool.examples
        ]
    return form


def _settings(settings: ModelSettings) -> dict[str, Any]:
    plain = ModelSettings()
    given = {each.name: getattr(settings, each.name) for each in fields(ModelSettings)}
    return {name: encode_data(value) for name, value in given.items() if value != getattr(plain, name)}


def comparable(form: Any) -> Any:
    """A form without what differs from run to run by design."""
    if isinstance(form, str):
        return _BOUNDARY.sub("*", form)
    if isinstance(form, dict):
        return {key: comparable(each) for key, each in form.items()}
    return [comparable(each) for each in form] if isinstance(form, list) else form


def response_form(response: ModelResponse) -> Any:
    """An answer.

    Raises:
        NotSerialisable: a part of it has no JSON form.
    """
    return encode(response)


def response_of(form: Any) -> ModelResponse:
    """The answer that a form is of.

    Raises:
        CheckpointError: the form is invalid.
    """
    return decode(form, ModelResponse)


def chunks_form(chunks: Sequence[Chunk]) -> list[Any]:
    """The pieces of an answer: text as it is, other kinds as pairs of kind and text."""
    return [chunk.text if chunk.kind == "text" else [chunk.kind, chunk.text] for chunk in chunks]


def chunks_of(form: Sequence[Any]) -> list[Chunk]:
    """The pieces that a form is of."""
    return [Chunk(each) if isinstance(each, str) else Chunk(each[1], each[0]) for each in form]


def error_form(error: Exception) -> dict[str, Any]:
    """An error with the data that it carries; of another tree than ours, what it says."""
    form: dict[str, Any] = {"type": f"{type(error).__module__}:{type(error).__qualname__}", "message": str(error)}
    if isinstance(error, LocusError):
        form["data"] = {name: _datum(value) for name, value in vars(error).items()}
    return form


def _datum(value: Any) -> Any:
    if isinstance(value, Usage):
        return {"usage": encode(value)}
    try:
        return {"value": encode_data(value)}
    except Exception:  # noqa: BLE001  what has no JSON form is not what a test looks at
        return {"value": None}


def error_of(form: dict[str, Any]) -> Exception:
    """The error that a form is of, of its own type; a `ModelError` with its text if the type is unknown here."""
    module, _, name = form["type"].partition(":")
    cls = _class(module, name)
    if cls is not None and not issubclass(cls, LocusError):
        try:
            return cls(form["message"])
        except TypeError:  # its constructor takes something else
            cls = None
    if cls is None:
        return ModelError(f"{form['message']} (recorded as {form['type']}, which cannot be made here)")
    error = cls.__new__(cls)
    error.args = (form["message"],)
    for key, each in form["data"].items():
        value = decode(each["usage"], Usage) if "usage" in each else decode_data(each["value"])
        setattr(error, key, tuple(value) if isinstance(value, list) else value)
    return error


def _class(module: str, name: str) -> type[Exception] | None:
    if module == "builtins":
        found: Any = getattr(builtins, name, None)
    else:
        try:
            found = importlib.import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError):
            return None
        if not (isinstance(found, type) and issubclass(found, LocusError)):
            return None  # its constructor may take anything
    return found if isinstance(found, type) and issubclass(found, Exception) else None
