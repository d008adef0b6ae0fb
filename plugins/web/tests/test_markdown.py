"""HTML becomes Markdown: the content alone, within bounds, whatever the markup."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_plugin_web import markup
from locus_plugin_web.markdown import read_page
from locus_plugin_web.markup import parse_html

URL = "https://site.example/a/b"


def read(html: str) -> str:
    return read_page(html, URL).text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one<p>two", "one\n\ntwo"),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "- a\n- b\n  - c\n- d"),
        ("<ol start=3><li>a<li>b</ol>", "3. a\n4. b"),
        ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\n:   b\n\nc\n:   d"),
        ("<h1>T</h1>text<h3>t</h3>", "# T\n\ntext\n\n### t"),
        ("<pre>  x = 1\n  y</pre>", "```\n  x = 1\n  y\n```"),
        ("a <b>b</b> <i>c</i> <code>d_e*</code> f_g*h", "a **b** *c* `d_e*` f_g*h"),
        ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("<a href='../c?d=1#e'>x</a>", "[x](https://site.example/c?d=1#e)"),
        ("<a href='//other.example'>x</a>", "[x](https://other.example)"),
        ("<a href='javascript:alert(1)'>x</a><a href='#f'>y</a><a href='data:,z'>z</a><a>w</a>", "xyzw"),
        ("<a href='http://[::1'>x</a>", "x"),
        (
            "<h2>T<a href='#t'>¶</a></h2><h3><a href='#u'><svg></svg></a>U</h3>x<a href='#f'>1</a>",
            "## T\n\n### U\n\nx1",
        ),
        ("<img src=x.png alt='a cat'><img src=y.png>", "a cat"),
        ("x<br>y<hr>z", "x\ny\n\n---\n\nz"),
        ("1 < 2 &amp; 3 &lt; 4 &unknown; &#x41;&#66;", "1 < 2 & 3 < 4 &unknown; AB"),
        ("<P CLASS=x>Loud</P>", "Loud"),
        ("a<!-- b -->c<!-->d<!--->e<![CDATA[f]]>g<?php h ?>i", "acdegi"),
        ("<script>if (a < b) document.write('<p>x')</script>y<style>p { }</style>", "y"),
        ("<template><p>x</template><svg><text>y</text></svg><noscript>z</noscript>w", "w"),
        ("<textarea>x</textarea><select><option>y</select><button>z</button>w", "w"),
        ("<title>x</title>y", "y"),
        ("<p a='>'>x</p><p b=\"'\">y</p>", "x\n\ny"),
        ("x</nothing>y</p>z", "xyz"),
        ("<plaintext>x", ""),
        ("x<", "x<"),
        ("x</", "x"),
        ("", ""),
    ],
)
def test_markup_becomes_markdown(html: str, text: str) -> None:
    assert read(html) == text


@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>{}</p>",
        "<p hidden=until-found>{}</p>",
        "<p aria-hidden='true'>{}</p>",
        "<p style='color: red; DISPLAY : NONE'>{}</p>",
        "<p style=visibility:hidden>{}</p>",
        "<p style='opacity:0;'>{}</p>",
        "<p style='font-size: 0px'>{}</p>",
        "<p style='font-size:0'>{}</p>",
        "<div hidden><p>a</p><div>{}</div></div>",
        "<!-- {} -->",
        "<p\tHIDDEN\n>{}",
        "<p style='display&#58;none'>{}</p>",
    ],
)
def test_what_is_not_shown_is_not_read(hidden: str) -> None:
    assert "instruction" not in read(f"<div>before</div>{hidden.format('instruction')}")


@pytest.mark.parametrize("shown", ["opacity: 0.9", "font-size: 0.8em", "display: block"])
def test_what_is_shown_is_read(shown: str) -> None:
    assert read(f"<p style='{shown}'>text</p>") == "text"


CONTENT = "<p>" + "Words of the article. " * 20 + "</p>"


@pytest.mark.parametrize(
    "page",
    [
        "<body><nav>around</nav><main>{}</main><footer>around</footer></body>",
        "<body><div role=navigation>around</div><div role=main>{}</div></body>",
        "<body><header>around</header><article>{}<footer>around</footer></article><aside>around</aside></body>",
        "<body><div id=content>{}</div><p>around</p></body>",
        "<body><nav>around</nav>{}<footer>around</footer></body>",
        "<nav>around</nav>{}",
        "<body><main>short</main><main>other</main>{}</body>".replace("short", "").replace("other", ""),
    ],
)
def test_navigation_and_footers_are_not_content(page: str) -> None:
    text = read(page.format(CONTENT))
    assert "Words of the article." in text
    assert "around" not in text


@pytest.mark.parametrize(
    "page",
    [
        "<body><main></main>{}</body>",
        "<body><article>one</article><article>two</article>{}</body>",
        "<body><nav>{}</nav></body>",
        "<body><form>{}</form></body>",
        "<body><header>{}</header><p>x</body>",
        "<html>{}",
    ],
)
def test_the_content_is_kept_where_a_page_is_made_in_another_way(page: str) -> None:
    assert "Words of the article." in read(page.format(CONTENT))


def test_a_large_page_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markup, "MAX_TEXT", 100)
    page = read_page("<p>" + "a" * 200, URL)
    assert (page.text, page.is_whole) == ("a" * 100, False)
    monkeypatch.setattr(markup, "MAX_ELEMENTS", 10)
    page = read_page("<b>x</b>" * 20, URL)
    assert not page.is_whole


def test_a_deep_page_has_its_text_without_the_levels() -> None:
    depth = markup.MAX_DEPTH * 3
    page = read_page("<div>" * depth + "bottom" + "</div>" * depth + "<p>after", URL)
    assert page.text == "bottom\n\nafter"
    assert page.is_whole


def test_end_tags_of_ignored_levels_close_nothing_else() -> None:
    depth = markup.MAX_DEPTH + 5
    tree = parse_html("<div>" * depth + "</div>" * 6 + "<b>x</b>").tree
    [bold] = tree.find_all("b")
    assert len([each for each in bold.parents if each.name == "div"]) == markup.MAX_DEPTH - 1


_TAGS = "p div li ul ol table tr td a pre script main nav h1 br title blockquote"
_OTHER = "<!-- --> < > & &lt; ' = <b </ <img hidden href=x"
_PIECES = st.sampled_from(
    [f"<{end}{name}>" for name in _TAGS.split() for end in ("", "/")]
    + [*_OTHER.split(), '"', " ", "text", "\n", "\0", "\u200b", "<p hidden>"]
)


@settings(max_examples=40, deadline=None)
@given(st.lists(_PIECES, max_size=60).map("".join))
def test_no_markup_is_an_error(html: str) -> None:
    text = read(html)
    assert "\0" not in text
    assert "\u200b" not in text
