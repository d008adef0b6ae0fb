"""From bytes to text: the charset that a page says it has, among those that browsers know.

The codecs of Python are not to be chosen by a page: some of them take quadratic time, and UTF-7 hides markup.
"""

from __future__ import annotations

import re

import webencodings  # type: ignore[import-untyped]

__all__ = ["decode_body"]

#: Bytes at the beginning of a page where it may say its charset: https://html.spec.whatwg.org/#determining-the-character-encoding
_HEAD = 1_024
_META = re.compile(rb"<meta[^>]{0,500}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)
_DEFAULT = webencodings.lookup("windows-1252")


def decode_body(body: bytes, declared: str | None, *, is_html: bool) -> str:
    """The text of a body; what cannot be decoded becomes U+FFFD.

    A byte order mark counts most, then what the header says, then the page, then UTF-8 if it is valid; else it is taken
    for windows-1252, as browsers do.

    Args:
        body: the bytes.
        declared: the charset of the header, or None.
        is_html: whether a ``<meta>`` may say the charset.
    """
    label = None if declared is None else webencodings.lookup(declared.strip().strip("\"'"))
    if label is None and is_html and (found := _META.search(body[:_HEAD])):
        label = webencodings.lookup(found[1].decode("ascii"))
        if label is not None and label.name.startswith("utf-16"):
            label = webencodings.UTF8  # the meta was readable, so it is not UTF-16
    if label is None or label.name in ("utf-8", "x-user-defined", "replacement"):
        # A page that says UTF-8 and is not is far more often one of windows-1252 than one of broken UTF-8.
        label = webencodings.UTF8 if _is_utf8(body) else _DEFAULT
    text: str = webencodings.decode(body, label, errors="replace")[0]
    return text


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as e:
        # A body that was cut within a character is UTF-8 nevertheless.
        return e.start >= len(body) - 3 and e.reason == "unexpected end of data"
    return True
