"""Text from servers, made fit to be shown: bounded, without control and invisible characters.

Nothing in it is an instruction to Locus. What a reader does not see could still be one to a model: tags and other
characters without a shape are taken out of what describes a tool and of what it gives.
"""

from __future__ import annotations

from typing import Any

from locus_kit.invisible import remove_invisible

__all__ = ["clean_data", "clean_result", "clean_text", "shorten"]


def clean_text(text: str, limit: int) -> str:
    """The visible text, at most that many characters; what is cut is marked."""
    # Enough of it to fill the limit, and no more work than that.
    text = remove_invisible(text[: limit * 4])
    text = text.strip()
    return text if len(text) <= limit else f"{text[: max(0, limit - 4)].rstrip()} ..."


def shorten(text: object, limit: int = 300) -> str:
    """One visible line of it, for messages."""
    return " ".join(clean_text(str(text), limit).split())


def clean_result(text: str) -> str:
    """A text that the model reads as a result: whole, with ends of lines as they are here."""
    return remove_invisible(text.replace("\r\n", "\n").replace("\r", "\n"))


def clean_data(value: Any) -> Any:
    """Structured data of a result, with its texts and its keys cleaned."""
    if isinstance(value, str):
        return clean_result(value)
    if isinstance(value, dict):
        return {clean_result(str(key)): clean_data(each) for key, each in value.items()}
    return [clean_data(each) for each in value] if isinstance(value, list) else value
