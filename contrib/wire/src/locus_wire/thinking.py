"""Thoughts that a model writes into its text, as ``<think>...</think>``, where its server does not tell them apart.

Only a tag that the answer begins with counts: one in the middle is text about the tag.
"""

from __future__ import annotations

from typing import Literal

from locus.models import Chunk

__all__ = ["THINK_TAGS", "ThinkSplitter", "ThinkTags", "chunks_of", "split_thinking"]

#: ``"leading"``: an answer may begin with the tag. ``"opened"``: the template has written the first tag before the
#: answer, which begins in the thoughts. ``"off"``: a tag is text.
ThinkTags = Literal["leading", "opened", "off"]

#: Marks a block of thoughts that was part of the text: they are not sent back, because templates leave them out.
THINK_TAGS = "think_tags"

_OPEN, _CLOSE = "<think>", "</think>"


class ThinkSplitter:
    """Tells thoughts from text in the pieces of one answer, however they are cut.

    Blanks before the thoughts and between them and the text belong to neither.

    Args:
        tags: what the model writes.
    """

    def __init__(self, tags: ThinkTags) -> None:
        self._opened = tags == "opened"
        self._place: Literal["start", "thought", "text"] = "text" if tags == "off" else "start"
        self._held = ""
        self._said = tags == "off"  # whether the thought or the text has begun: blanks before it are left out

    def feed(self, piece: str) -> tuple[str, str]:
        """The thought and the text that this piece completes."""
        thought, rest = "", self._held + piece
        self._held = ""
        if self._place == "start":
            begin = rest.lstrip()
            if len(begin) < len(_OPEN) and _OPEN.startswith(begin):
                self._held = rest
                return "", ""
            if begin.startswith(_OPEN):
                self._place, rest = "thought", begin[len(_OPEN) :]
            elif self._opened:
                self._place = "thought"
            else:
                self._place, self._said = "text", True
        if self._place == "thought":
            thought, closed, after = rest.partition(_CLOSE)
            if not closed:
                kept = len(thought) - _count_begun(thought)
                self._held = thought[kept:]
                return self._skip_blanks(thought[:kept]), ""
            thought, rest = self._skip_blanks(thought), after
            self._place, self._said = "text", False
        return thought, self._skip_blanks(rest)

    def finish(self) -> tuple[str, str]:
        """What is left when the answer ends: the beginning of a tag that did not come."""
        held, self._held = self._held, ""
        if self._place == "thought" or (self._place == "start" and self._opened):
            return self._skip_blanks(held), ""
        return "", held

    def _skip_blanks(self, text: str) -> str:
        if self._said:
            return text
        text = text.lstrip()
        self._said = bool(text)
        return text


def chunks_of(split: tuple[str, str]) -> list[Chunk]:
    """A thought and a text as pieces of an answer."""
    thought, text = split
    return [*([Chunk(thought, "reasoning")] if thought else ()), *([Chunk(text)] if text else ())]


def split_thinking(text: str, tags: ThinkTags) -> tuple[str, str]:
    """The thoughts and the text of a whole answer.

    Args:
        text: as the model wrote it.
        tags: what the model writes.
    """
    splitter = ThinkSplitter(tags)
    (thought, said), (more, rest) = splitter.feed(text), splitter.finish()
    return thought + more, said + rest


def _count_begun(text: str) -> int:
    """How many of the last characters may be the beginning of the closing tag."""
    return next((n for n in range(min(len(text), len(_CLOSE) - 1), 0, -1) if _CLOSE.startswith(text[-n:])), 0)
