"""What a text must hold so that a regular expression can match it: an index is asked for that."""

from __future__ import annotations

__all__ = ["required_texts"]

#: Characters with a meaning of their own outside of a set.
_SPECIAL = frozenset("\\.^$*+?{}[]()|")

#: Escapes that match a place or one character of a class.
_CLASSES = frozenset("dDwWsSbBAzC")


def required_texts(pattern: str) -> list[str]:
    """Texts that are in whatever a pattern of RE2 matches, as they are written; none where that is not plain.

    It never names a text that a match can do without, and often misses one that it needs: what is in groups or sets,
    and everything where there are alternatives outside of groups, flags, or escapes of many forms.

    Args:
        pattern: in RE2's syntax, and valid.
    """
    if "(?" in pattern or "\\Q" in pattern:
        return []
    texts: list[str] = []
    run = ""
    at = 0
    while at < len(pattern):
        character, step = pattern[at], 1
        if character == "|":
            return []
        if character == "\\":
            character, step = pattern[at + 1 : at + 2], 2
            if character.isalnum() and character not in _CLASSES:
                return []  # \x41, \pL, \n and the like: another form of what may be before or behind it
            plain = not character.isalnum()
        else:
            plain = character not in _SPECIAL
            step = _group(pattern, at) if character == "(" else _set(pattern, at) if character == "[" else 1
        end = at + step
        repeat = pattern[end : end + 1]
        if repeat and repeat in "*?{":
            # Perhaps not there at all.
            texts, run = [*texts, run], ""
        elif plain:
            run += character
            if repeat == "+":
                texts, run = [*texts, run], ""
        else:
            texts, run = [*texts, run], ""
        at = end
        while pattern[at : at + 1] in ("*", "?", "+", "{"):
            at = (pattern.find("}", at) + 1 or len(pattern)) if pattern[at] == "{" else at + 1
    return [text for text in (*texts, run) if text]


def _group(pattern: str, start: int) -> int:
    """How long a group is, with all that is in it."""
    depth, at = 0, start
    while at < len(pattern):
        match pattern[at]:
            case "\\":
                at += 1
            case "[":
                at += _set(pattern, at) - 1
            case "(":
                depth += 1
            case ")":
                depth -= 1
                if not depth:
                    return at + 1 - start
        at += 1
    return len(pattern) - start


def _set(pattern: str, start: int) -> int:
    """How long a set of characters is."""
    at = start + 1
    at += pattern.startswith("^", at)
    at += pattern.startswith("]", at)
    while at < len(pattern) and pattern[at] != "]":
        if pattern.startswith("[:", at) and (end := pattern.find(":]", at)) > 0:
            at = end + 1
        at += 2 if pattern[at] == "\\" else 1
    return at + 1 - start
