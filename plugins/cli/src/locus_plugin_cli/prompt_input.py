"""The prompt of ``locus run``: what is typed, and what is piped in.

Whether standard input has a part in it cannot be known, so there is a rule. A file or a pipe is read; a terminal only
where ``-`` asks for it. Some programs start others with a pipe that nobody writes to, and reading it would never end.
So without ``-`` the first byte has to come within `PATIENCE` seconds; once it has, the rest is waited for.
"""

from __future__ import annotations

import os
import select
import sys

from locus.core.errors import InputError
from locus_plugin_cli.output import say

__all__ = ["LIMIT", "PATIENCE", "read_prompt"]

#: Seconds until a pipe that says nothing is left out.
PATIENCE = 5.0

#: Bytes of standard input; more than any model reads, and what endless devices are stopped at.
LIMIT = 50_000_000

_BLOCK = 1 << 20


def read_prompt(text: str | None, *, waits: bool) -> str | None:
    """The typed text, then a blank line and what standard input has.

    Args:
        text: what was typed, or None.
        waits: ``-`` was typed: standard input is read, however long it takes, also from a terminal.

    Returns:
        The prompt; None where nothing was typed and standard input has no part in it.

    Raises:
        InputError: standard input is not UTF-8 text, or is too long.
    """
    piped = _decode(_read(sys.stdin.fileno())) if waits else _read_if_piped(text)
    if text is None or piped is None:
        return piped if text is None else text
    return f"{text}\n\n{piped}" if piped.strip() else text


def _read_if_piped(text: str | None) -> str | None:
    """What standard input has, or None for a terminal and for a pipe that says nothing."""
    try:
        number = sys.stdin.fileno()
    except (OSError, ValueError):  # something else is in its place
        return None
    if os.isatty(number):
        return None
    if not _begins(number):
        left_out = "; `-` behind the prompt waits for it, and `< /dev/null` spares the waiting" if text else ""
        say(f"nothing came from standard input within {PATIENCE:g} s, so it is left out{left_out}")
        return None
    return _decode(_read(number))


def _begins(number: int) -> bool:
    """Whether something, be it the end, is there in time; always True where a pipe cannot be asked (Windows)."""
    if os.name == "nt":
        return True
    ready, _, _ = select.select([number], [], [], PATIENCE)
    return bool(ready)


def _read(number: int) -> bytes:
    # Not by `sys.stdin`: one copy, and a limit that holds while it is read.
    data = bytearray()
    while len(data) <= LIMIT:
        block = os.read(number, _BLOCK)
        if not block:
            return bytes(data)
        data += block
    raise InputError(f"standard input has more than {LIMIT // 1_000_000} MB; give the part that the model needs")


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise InputError(
            f"standard input is not UTF-8 text: byte 0x{data[e.start]:02x} at position {e.start}; convert it first"
        ) from None
