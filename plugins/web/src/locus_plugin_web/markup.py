"""From HTML to a tree, in one pass and within bounds, whatever the markup is.

The parser of the standard library takes quadratic time for markup that is left open, in the Pythons that are supported:
half a megabyte of ``<!--`` keeps it busy for minutes. Others are slow or large. Here every character is looked at a
bounded number of times, the tree is neither deep nor large, and what a reader of the page does not see is not in it:
scripts, comments, hidden elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Any

from attrs import frozen
from bs4 import BeautifulSoup
from bs4.builder import HTMLTreeBuilder

from locus_kit.invisible import remove_invisible

__all__ = ["Document", "parse_html"]

#: The most elements, levels and characters of text in a tree. What is beyond is left out.
MAX_ELEMENTS = 30_000
MAX_DEPTH = 60
MAX_TEXT = 1_000_000

_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
)
#: What ends only at its own end tag; nothing in it is markup.
_RAW = frozenset(("iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp"))
#: What is left out with everything in it.
_DROPPED = frozenset(
    (
        "audio",
        "button",
        "canvas",
        "datalist",
        "dialog",
        "embed",
        "noscript",
        "object",
        "select",
        "svg",
        "template",
        "video",
    )
)
_KEPT_ATTRIBUTES = ("alt", "class", "href", "id", "role", "start")
_HIDDEN = re.compile(
    r"(?:display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0(?![.\d])|font-size\s*:\s*0(?![.\d]))", re.I
)

_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*+)")
#: To the end of a tag, over quoted values. No part can be matched in two ways.
_REST = re.compile(r"((?:[^>\"']++|\"[^\"]*+\"|'[^']*+')*+)>")
_ATTRIBUTE = re.compile(r"([^\s=/\"'>]++)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'>]*+)))?")
#: Attributes of one tag that are looked at, in characters.
_LONGEST_ATTRIBUTES = 20_000

_BLOCKS = re.findall(
    r"\w+",
    "address article aside blockquote details div dl fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr main nav "
    "ol p pre section table ul",
)
#: What a start tag ends, and within what: the end tags that HTML lets authors leave out.
_ENDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (frozenset(("li",)), frozenset(("ul", "ol", "menu"))),
    "dt": (frozenset(("dt", "dd")), frozenset(("dl",))),
    "dd": (frozenset(("dt", "dd")), frozenset(("dl",))),
    "td": (frozenset(("td", "th")), frozenset(("tr", "table"))),
    "th": (frozenset(("td", "th")), frozenset(("tr", "table"))),
    "tr": (frozenset(("tr",)), frozenset(("table",))),
    "tbody": (frozenset(("thead", "tbody")), frozenset(("table",))),
    "tfoot": (frozenset(("thead", "tbody")), frozenset(("table",))),
    **dict.fromkeys(_BLOCKS, (frozenset(("p",)), frozenset(("button", "td", "th", "li", "div", "section", "body")))),
}


@frozen
class Document:
    """A page as a tree.

    Args:
        tree: its visible elements, with a few attributes.
        title: of its head, one line, or ``""``.
        is_whole: whether nothing was left out for its size.
    """

    tree: BeautifulSoup
    title: str
    is_whole: bool


def parse_html(text: str) -> Document:
    """Make a tree of a page.

    Args:
        text: the page.
    """
    builder = _Builder()
    # The builder is given its text by the tree that it builds.
    tree = BeautifulSoup(text, builder=builder)
    return Document(tree, " ".join(builder.title.split()), builder.is_whole)


class _Builder(HTMLTreeBuilder):
    """Tells a `BeautifulSoup` what is in a page."""

    NAME = "locus"
    features = [NAME]  # noqa: RUF012  # as the base class has it

    def __init__(self) -> None:
        super().__init__(multi_valued_attributes={})
        self.title = ""
        self.is_whole = True
        self._left = MAX_TEXT
        self._elements = 0
        self._open: list[tuple[str, bool]] = []  # names, and whether the tree has them
        self._counts: dict[str, int] = {}
        self._depth = 0
        self._dropped_from: int | None = None  # the level below which all is left out

    def prepare_markup(self, markup: Any, *_: Any, **__: Any) -> Iterable[tuple[Any, None, None, bool]]:
        """The text is decoded already."""
        yield markup, None, None, False

    def feed(self, markup: Any) -> None:
        """Read the whole text."""
        for kind, name, rest in _tokens(markup):
            if kind == "text":
                self._add_text(name)
            elif kind == "start":
                self._start(name, rest)
            elif kind == "end":
                self._end(name)
            elif not self.title:
                self.title = remove_invisible(unescape(name))[:1_000]
            if not self.is_whole:
                break

    def can_be_empty_element(self, tag_name: str) -> bool:
        """Whether an element has no content."""
        return tag_name in _VOID

    def _add_text(self, text: str) -> None:
        if self._dropped_from is None and text:
            visible = remove_invisible(unescape(text))
            if len(visible) > self._left:
                self.is_whole = False
            self._tree.handle_data(visible[: self._left])
            self._left -= min(self._left, len(visible))

    def _start(self, name: str, rest: str) -> None:
        ended, within = _ENDS.get(name, (frozenset(), frozenset()))
        # Only what is near is looked at: it is there in pages that were written, and others are to cost nothing.
        for other, _ in self._open[: -MAX_DEPTH - 1 : -1] if ended else ():
            if other in ended:
                self._end(other)
                break
            if other in within:
                break
        if name in _VOID:
            if self._dropped_from is None and name in ("br", "hr", "img"):
                self._tree.handle_starttag(name, None, None, _attributes(rest))
                self._tree.handle_endtag(name)
                self._count()
            return
        shown = self._dropped_from is None
        attributes = _attributes(rest) if shown else {}
        if shown and (name in _DROPPED or attributes.pop("hidden", None) is not None):
            self._dropped_from = len(self._open)
            shown = False
        in_tree = shown and self._depth < MAX_DEPTH
        if in_tree:
            self._tree.handle_starttag(name, None, None, attributes)
            self._depth += 1
            self._count()
        self._open.append((name, in_tree))
        self._counts[name] = self._counts.get(name, 0) + 1

    def _end(self, name: str) -> None:
        if not self._counts.get(name):
            return
        while True:
            other, in_tree = self._open.pop()
            self._counts[other] -= 1
            if in_tree:
                self._tree.handle_endtag(other)
                self._depth -= 1
            if self._dropped_from == len(self._open):
                self._dropped_from = None
            if other == name:
                return

    def _count(self) -> None:
        self._elements += 1
        self.is_whole = self.is_whole and self._elements < MAX_ELEMENTS

    @property
    def _tree(self) -> BeautifulSoup:
        assert self.soup is not None
        return self.soup


def _tokens(text: str) -> Iterator[tuple[str, str, str]]:
    """Kind, name or text, and attributes of everything in a page; each character is read a bounded number of times."""
    at, quotes_count = 0, True
    while True:
        begin = text.find("<", at)
        yield "text", text[at:begin] if begin >= 0 else text[at:], ""
        if begin < 0:
            return
        found = _TAG.match(text, begin)
        if found is None:
            if text[begin + 1 : begin + 2] not in ("!", "?", "/"):
                yield "text", "<", ""
                at = begin + 1
                continue
            closing = "-->" if text.startswith("<!--", begin) else ">"
            end = text.find(closing, begin + 2)
            if end < 0:
                return
            at = end + len(closing)
            continue
        name, rest = found[2].lower(), _REST.match(text, found.end()) if quotes_count else None
        if rest is None:
            # A quote that is never closed would be looked for again and again.
            quotes_count = False
            end = text.find(">", found.end())
            if end < 0:
                return
            inner, at = text[found.end() : end], end + 1
        else:
            inner, at = rest[1], rest.end()
        if found[1]:
            yield "end", name, ""
        elif name in _RAW:
            end_tag = re.compile(rf"</{name}", re.IGNORECASE).search(text, at)
            if end_tag is None:
                return
            if name == "title":
                yield "title", text[at : end_tag.start()], ""
            at = end_tag.start()
        elif name == "plaintext":
            return
        else:
            yield "start", name, inner


def _attributes(text: str) -> dict[str, Any]:
    """The attributes that matter, and ``hidden`` if the element is not to be seen."""
    if not text or text.isspace():
        return {}
    kept: dict[str, Any] = {}
    for found in _ATTRIBUTE.finditer(text, 0, _LONGEST_ATTRIBUTES):
        name = found[1].lower()
        value = unescape(found[2] or found[3] or found[4] or "")
        if name in _KEPT_ATTRIBUTES:
            kept.setdefault(name, remove_invisible(value))
        elif (
            name == "hidden"
            or (name == "aria-hidden" and value.lower() == "true")
            or (name == "style" and _HIDDEN.search(value))
        ):
            kept["hidden"] = ""
    return kept
