"""A tool call as a person reads it who decides whether it runs: everything of it, and nothing that looks alike."""

from __future__ import annotations

import json
import unicodedata

from locus.core import encode_data
from locus.core.errors import NotSerialisable
from locus.core.messages import ToolCall
from locus_kit.invisible import escape_invisible

__all__ = ["show_call"]

#: A sign of Braille without dots: it has a category of its own, and looks like a blank.
_BRAILLE_BLANK = "\u2800"


def show_call(call: ToolCall) -> str:
    r"""A call with its name and all of its arguments, in full, on one line: ``write(path="a", text="b\n")``.

    A part that is cut off could be the one that matters, and a file whose name has two blanks is another file: so
    blanks stay as many as there are, and characters that cannot be seen, or look like a blank, are escapes.
    """
    try:
        inside = ", ".join(
            f"{_key(key)}={json.dumps(encode_data(value), ensure_ascii=False)}" for key, value in call.arguments.items()
        )
    except (NotSerialisable, ValueError):
        inside = repr(call.arguments)
    return _escape_blanks(escape_invisible(f"{call.name}({inside})"))


def _key(key: object) -> str:
    """The name of an argument, quoted where it could be taken for more than one name."""
    return key if isinstance(key, str) and key.isidentifier() else json.dumps(str(key), ensure_ascii=False)


def _escape_blanks(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode() if _looks_blank(character) else character for character in text
    )


def _looks_blank(character: str) -> bool:
    if character in "\n\t":  # of names; JSON has escapes of its own
        return True
    return character == _BRAILLE_BLANK or (character != " " and unicodedata.category(character) == "Zs")
