"""Characters that a reader cannot see: they control a terminal, reverse the order of text, or hide text inside it.

Text of models, tools, servers and stored threads may hold any of them. Shown to a person they are escaped; where a
model reads the text, they are taken out, because whole instructions can be written in them.
"""

from __future__ import annotations

import unicodedata

__all__ = ["escape_invisible", "is_visible", "remove_invisible"]

# Control characters (C0, DEL, C1); format characters (bidi marks and overrides, zero-width characters, tags);
# surrogates; private use; line and paragraph separators.
_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})

# Letters and marks without a shape: what else Unicode has as Default_Ignorable_Code_Point. The two selectors that
# choose between an emoji and a plain sign (U+FE0E, U+FE0F) belong to ordinary text.
_IGNORED = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0),
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE0E),
            *range(0xFFF0, 0xFFF9),
        ),
    )
)

#: The plane of tags and of more selectors; nothing behind it is text either.
_TAGS = "\U000e0000"

_KEPT = frozenset("\n\t")


def is_visible(character: str) -> bool:
    """Whether a character is shown as something, or as a blank; ends of lines and tabs are."""
    return character in _KEPT or (
        character < _TAGS and character not in _IGNORED and unicodedata.category(character) not in _CATEGORIES
    )


class _Table(dict[int, str]):
    """What `str.translate` puts in place of each character; worked out when it is first met."""

    def __init__(self, *, escapes: bool) -> None:
        super().__init__()
        self._escapes = escapes

    def __missing__(self, code: int) -> str:
        found = chr(code)
        if not is_visible(found):
            found = found.encode("unicode_escape").decode() if self._escapes else ""
        self[code] = found
        return found


_ESCAPED, _REMOVED = _Table(escapes=True), _Table(escapes=False)


def escape_invisible(text: str) -> str:
    r"""The text with invisible characters as escapes: ``\x1b``, ``\u202e``, ``\U000e0041``.

    Line ends and tabs stay; a carriage return does not, because it overwrites text that was shown.
    """
    return text if text.isascii() and text.isprintable() else text.translate(_ESCAPED)


def remove_invisible(text: str) -> str:
    """The text without invisible characters; line ends and tabs stay."""
    return text if text.isascii() and text.isprintable() else text.translate(_REMOVED)
