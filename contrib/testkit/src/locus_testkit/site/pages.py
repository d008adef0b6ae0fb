"""`Page`, and the HTML around it: what a reader wants, among what every site puts around it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape, unescape

from attrs import frozen

__all__ = ["Page", "render", "render_list", "render_table"]

_TAG = re.compile(r"<[^>]*>")


@frozen(kw_only=True)
class Page:
    """A page of a site.

    Args:
        path: where it is, as in ``"/elements/gallium"``.
        title: its heading.
        body: its content in HTML, without the heading.
        see_also: paths and titles of related pages.
    """

    path: str
    title: str
    body: str
    see_also: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """The words of the content, as a search engine reads them."""
        return " ".join(unescape(_TAG.sub(" ", self.body)).split())


def render(page: Page, *, site: str = "The Elements") -> str:
    """The whole document: the content in ``<main>``, after navigation and a banner, before a sidebar and a footer."""
    related = "".join(f'<li><a href="{escape(path)}">{escape(title)}</a></li>' for path, title in page.see_also)
    aside = f"<aside><h2>See also</h2><ul>{related}</ul></aside>" if related else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{escape(page.title)} - {escape(site)}</title>
<style>main {{ max-width: 40em }} .banner {{ position: fixed }}</style>
<script>window.visits = [{{"page": "{escape(page.path)}"}}]; if (1 < 2 && 3 > 2) console.log("</p>");</script>
</head>
<body>
<header><a href="/">{escape(site)}</a>
<nav><ul><li><a href="/">Home</a></li><li><a href="/elements/">All elements</a></li>
<li><a href="/about">About</a></li></ul>
<form action="/search"><input name="q"><button>Search</button></form></nav></header>
<div class="banner" role="dialog"><p>This site uses cookies.</p><button>Accept all</button></div>
<main>
<h1>{escape(page.title)}</h1>
{page.body}
</main>
{aside}
<footer><p>Made for tests. <a href="/imprint">Imprint</a></p></footer>
</body>
</html>
"""


def render_list(links: Sequence[tuple[str, str]]) -> str:
    """A list of links, of paths and titles."""
    return "<ul>" + "".join(f'<li><a href="{escape(to)}">{escape(title)}</a></li>' for to, title in links) + "</ul>"


def render_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts."""
    first = "".join(f"<th>{escape(each)}</th>" for each in head)
    others = "".join("<tr>" + "".join(f"<td>{escape(each)}</td>" for each in row) + "</tr>\n" for row in rows)
    return f"<table>\n<thead><tr>{first}</tr></thead>\n<tbody>\n{others}</tbody></table>"
