"""Text from servers, made fit to be shown: bounded, without control and invisible characters.

Nothing in it is an instruction to Locus. What a reader does not see could still be one to a model: tags and other
characters without a shape are taken out of what describes a tool.
"""

from __future__ import annotations

import unicodedata

__all__ = ["clean_text", "shorten"]

_KEPT = frozenset("\n\t")
# Control, format (direction marks, joiners), surrogates, private use.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co"})
# Tags and variation selectors: whole invisible texts can be written in them.
_TAGS = "\U000e0000"
_SELECTORS = frozenset(map(chr, range(0xFE00, 0xFE0F)))


def clean_text(text: str, limit: int) -> str:
    """The visible text, at most that many characters; what is cut is marked."""
    if not text.isascii() or not text.isprintable():
        # Enough of it to fill the limit, and no more work than that.
        text = "".join(c for c in text[: limit * 4] if c in _KEPT or _is_visible(c))
    text = text.strip()
    return text if len(text) <= limit else f"{text[: max(0, limit - 4)].rstrip()} ..."


def shorten(text: object, limit: int = 300) -> str:
    """One visible line of it, for messages."""
    return " ".join(clean_text(str(text), limit).split())


def _is_visible(character: str) -> bool:
    return character < _TAGS and character not in _SELECTORS and unicodedata.category(character) not in _UNSEEN
