"""From a page to the Markdown that a model reads: its main content, links that can be followed, no navigation."""

from __future__ import annotations

import re
from urllib.parse import urljoin

from attrs import frozen
from bs4 import Tag
from markdownify import MarkdownConverter

from locus_plugin_web.markup import Document, parse_html

__all__ = ["Text", "read_page"]

#: What is around the content of a page.
_AROUND = "nav, header, footer, aside, form, menu, [role=navigation], [role=banner], [role=contentinfo], [role=dialog]"
#: Where the content is, the surest first.
_MAIN = ("main", "[role=main]", "article", "#content", "#main", ".content", "#bodyContent")
#: A part is taken for the content if it holds this part of the words.
_SHARE = 0.25
_BLANKS = re.compile(r"\n{3,}")
_LONGEST_LINK = 1_000


@frozen
class Text:
    """What a page says.

    Args:
        title: one line, or ``""``.
        text: in Markdown.
        is_whole: whether nothing was left out for its size.
    """

    title: str
    text: str
    is_whole: bool = True


def read_page(html: str, url: str) -> Text:
    """The main content of a page in Markdown.

    Args:
        html: the page.
        url: where it is; what its links count from.
    """
    document = parse_html(html)
    main = find_main(document)
    for link in main.find_all("a"):
        _mend_link(link, url)
    for image in main.find_all("img"):
        image.replace_with(str(image.get("alt") or ""))
    converter = MarkdownConverter(heading_style="ATX", bullets="-", escape_asterisks=False, escape_underscores=False)
    lines = (line.rstrip() for line in converter.convert_soup(main).splitlines())
    return Text(document.title, _BLANKS.sub("\n\n", "\n".join(lines)).strip(), document.is_whole)


def find_main(document: Document) -> Tag:
    """The part of a page that holds its content; all of it if no part can be told apart.

    What is around the content is taken out of the tree, unless next to nothing would be left.
    """
    tree = document.tree
    whole: Tag = tree.body or tree
    size = _size(whole)
    for css in _MAIN:
        found = tree.select(css, limit=2)
        # Several of a kind are a list of contents.
        if len(found) == 1 and _size(found[0]) >= size * _SHARE:
            whole = found[0]
            break
    around = [
        each for each in whole.select(_AROUND) if not each.find_parent(["article", "main"]) or whole.name != "body"
    ]
    if sum(_size(each) for each in around if not _is_within(each, around)) < _size(whole) * (1 - _SHARE / 2):
        for each in around:
            each.extract()
    return whole


def _size(tag: Tag) -> int:
    return sum(len(text) for text in tag.stripped_strings)


def _is_within(tag: Tag, others: list[Tag]) -> bool:
    known = {id(each) for each in others}
    return any(id(each) in known for each in tag.parents)


def _mend_link(link: Tag, url: str) -> None:
    """Make a link whole; one that leads nowhere becomes its text."""
    href = str(link.get("href") or "")
    if href.startswith("#") and not any(map(str.isalnum, link.get_text())):
        link.decompose()  # the sign behind a heading, which is a link to that heading
        return
    try:
        whole = urljoin(url, href.strip())
    except ValueError:
        whole = ""
    if not href or href.startswith("#") or not whole.startswith(("http://", "https://")) or len(whole) > _LONGEST_LINK:
        link.unwrap()
    else:
        link["href"] = whole.replace(" ", "%20")
