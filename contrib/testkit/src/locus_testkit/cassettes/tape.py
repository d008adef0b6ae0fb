"""The file of a cassette: a line of JSON a call, in the order in which the calls began.

Each request repeats the conversation. A line says only what its request adds to an earlier one, so that the
file is as long as what was said, and a review shows what is new.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from locus_testkit.cassettes.errors import CassetteError
from locus_testkit.cassettes.scrubbing import Scrubber

__all__ = ["VERSION", "Entry", "read_tape", "write_tape"]

VERSION = 1


@define(kw_only=True)
class Entry:
    """One recorded call.

    Args:
        request: as `forms.request_form` has it.
        chunks: the pieces, or None when the call was not streamed.
        response: the answer, or None.
        error: what it raised, or None. With neither of the two, the call was cancelled.
        used: whether it was replayed.
    """

    request: dict[str, Any]
    chunks: list[Any] | None = None
    response: Any = None
    error: dict[str, Any] | None = None
    used: bool = field(default=False, eq=False)


def write_tape(path: Path, entries: list[Entry], head: dict[str, Any], scrubber: Scrubber) -> None:
    """Write a cassette: all of it or nothing.

    Raises:
        CassetteError: a secret would be written to it.
    """
    written = [_line({"locus_cassette": VERSION, **head})]
    for number, entry in enumerate(entries, 1):
        form: dict[str, Any] = {"n": number, "request": _shorten(entry.request, entries[: number - 1])}
        for name in ("chunks", "response", "error"):
            value = getattr(entry, name)
            if value is not None:
                form[name] = value
        written.append(_line(form))
        if scrubber.leaks(written[-1]):
            raise CassetteError(
                path, f"call {number} holds a secret in a form that cannot be hidden; nothing is written"
            )
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_bytes(b"".join(written_line.encode() + b"\n" for written_line in written))
    part.replace(path)


def _line(form: dict[str, Any]) -> str:
    line = json.dumps(form, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:  # half of a pair
        return json.dumps(form)
    return line


def _shorten(request: dict[str, Any], earlier: list[Entry]) -> dict[str, Any]:
    form = dict(request)
    best, count = 0, 0
    for number, entry in enumerate(earlier, 1):
        same = _common(entry.request["messages"], request["messages"])
        if same and same >= count:
            best, count = number, same
    if best:
        form["messages"] = request["messages"][count:]
        form["begins"] = {"as": best, "messages": count}
    for number, entry in enumerate(earlier, 1):
        if "tools" in request and _list_tools(entry.request.get("tools")) == _list_tools(request["tools"]):
            form["tools"] = {"as": number}
            break
    return form


def _list_tools(tools: dict[str, Any] | None) -> list[tuple[str, Any]]:
    """In their order, which counts."""
    return list((tools or {}).items())


def _common(one: list[Any], other: list[Any]) -> int:
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return at
    return min(len(one), len(other))


def read_tape(path: Path) -> tuple[list[Entry], dict[str, Any]]:
    """The calls of a cassette, and what its first line says beside the version.

    Raises:
        CassetteError: it cannot be read.
    """
    entries: list[Entry] = []
    head: dict[str, Any] = {}
    try:
        for number, line in enumerate(path.read_bytes().decode().split("\n")):
            if not line.strip():
                continue
            form = json.loads(line)
            if number == 0:
                head = _head(path, form)
                continue
            names = ("chunks", "response", "error")
            entry = Entry(request=form["request"], **{name: form.get(name) for name in names})
            entries.append(evolve(entry, request=_whole(entry.request, entries)))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as e:
        raise CassetteError(path, f"line {number + 1} is not a recorded call ({e!r}); record it again") from e
    return entries, head


def _head(path: Path, form: dict[str, Any]) -> dict[str, Any]:
    version = form.pop("locus_cassette")
    if version != VERSION:
        raise CassetteError(path, f"its version must be {VERSION}, got {version!r}; record it again")
    return form


def _whole(request: dict[str, Any], earlier: list[Entry]) -> dict[str, Any]:
    form = {key: each for key, each in request.items() if key != "begins"}
    begins = request.get("begins")
    if begins:
        form["messages"] = [*earlier[begins["as"] - 1].request["messages"][: begins["messages"]], *request["messages"]]
    tools = request.get("tools")
    # A tool called "as" would have an object here.
    if tools is not None and isinstance(tools.get("as"), int):
        form["tools"] = earlier[tools["as"] - 1].request["tools"]
    return form
