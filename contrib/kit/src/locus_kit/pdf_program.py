"""Reads a PDF: a program of its own, so that a hostile file can be given up, which imports pypdf and nothing of ours.

Its argument is JSON: ``folders`` (where pypdf is), ``pages``, ``chars``, ``lines``, ``seconds`` and ``memory`` (bytes).
The file is on standard input. On standard output is a line of JSON for the document, one for each page as soon as it is
read, and one that says why it stopped.
"""

from __future__ import annotations

import importlib
import io
import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

__all__ = ["main"]

#: What a title may have of characters.
_TITLE = 300
#: Levels of the page tree, and nodes of it for each page that is wanted.
_LEVELS, _NODES = 50, 20


def main() -> None:
    """Read the file, and say what it holds."""
    wanted = json.loads(sys.argv[1])
    _limit(wanted["seconds"], wanted["memory"])
    data = sys.stdin.buffer.read()
    try:
        why = _read(data, wanted, time.monotonic() + wanted["seconds"])
    except MemoryError:
        why = "memory"
    except Exception as e:  # noqa: BLE001 - the file is anybody's, and pypdf lets many kinds through
        why = "encrypted" if type(e).__name__ in ("DependencyError", "FileNotDecryptedError") else "damaged"
    _say({"end": why})


def _limit(seconds: float, memory: int) -> None:
    try:
        resource = importlib.import_module("resource")
    except ImportError:  # on Windows
        return
    # The seconds bound it where its parent, which kills it before, is gone.
    for kind, most in (("RLIMIT_AS", memory), ("RLIMIT_CPU", int(seconds) + 5), ("RLIMIT_CORE", 0)):
        with suppress(AttributeError, ValueError, OSError):  # not everywhere, or it is less already
            resource.setrlimit(getattr(resource, kind), (most, most))


def _read(data: bytes, wanted: dict[str, Any], deadline: float) -> str:
    sys.path[:0] = wanted["folders"]
    pypdf = importlib.import_module("pypdf")
    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        return "encrypted"
    _say({"title": _title(reader)})
    chars = lines = 0
    for number, page in enumerate(_pages(pypdf, reader, wanted["pages"])):
        if number >= wanted["pages"]:
            return "pages"
        try:
            text = page.extract_text()
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - the others may be good
            text = None
        shown = None if text is None else text.strip()[: wanted["chars"] - chars]
        _say({"page": shown})
        chars += len(shown or "")
        lines += (shown or "").count("\n") + 1
        if chars >= wanted["chars"]:
            return "chars"
        if lines >= wanted["lines"]:
            return "lines"
        if time.monotonic() > deadline:
            return "seconds"
    return ""


def _title(reader: Any) -> str:
    try:
        found = reader.metadata.title
    except Exception:  # noqa: BLE001 - the text can be read without it
        return ""
    return " ".join(str(found or "").split())[:_TITLE]


def _pages(pypdf: Any, reader: Any, most: int) -> Iterator[Any]:
    """The pages in order. ``reader.pages`` looks at all of them first, which takes long where there are very many."""
    # Of each level of the tree, the nodes that are left, and the fonts that they have in common.
    levels: list[tuple[Iterator[Any], Any]] = [(iter((reader.root_object["/Pages"],)), None)]
    nodes = 0
    while levels:
        left, resources = levels[-1]
        found = next(left, None)
        if found is None:
            levels.pop()
            continue
        nodes += 1
        if nodes > _NODES * (most + 1) or len(levels) > _LEVELS:
            raise ValueError("the page tree does not end")
        node = found.get_object()
        if "/Kids" in node:
            levels.append((iter(node["/Kids"]), node.get("/Resources", resources)))
            continue
        page = pypdf.PageObject(reader)
        page.update(node)
        if resources is not None and "/Resources" not in page:
            page[pypdf.generic.NameObject("/Resources")] = resources
        yield page


def _say(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
