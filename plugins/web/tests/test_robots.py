"""robots.txt is read as RFC 9309 says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_plugin_web.robots import parse_robots

EXAMPLE = """\
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow: /
Allow: /example/page.html
Allow: /example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""


@pytest.mark.parametrize(
    ("product", "path", "allowed"),
    [
        ("locus", "/", True),
        ("locus", "/a.gif", False),
        ("locus", "/a.gif?x", True),
        ("locus", "/example/page.html", False),
        ("locus", "/publications/a.gif", True),
        ("foobot", "/", False),
        ("foobot", "/example/page.html", True),
        ("foobot", "/example/allowed.gif", True),
        ("foobot", "/other", False),
        ("barbot", "/example/page.html", False),
        ("bazbot", "/example/page.html", False),
        ("bazbot", "/example/other.html", True),
        ("quxbot", "/example/page.html", True),
    ],
)
def test_the_example_of_the_rfc(product: str, path: str, allowed: bool) -> None:
    assert parse_robots(EXAMPLE, product).allows(path) is allowed


@pytest.mark.parametrize(
    ("rule", "path", "matches"),
    [
        ("/fish", "/fish.html", True),
        ("/fish", "/Fish.asp", False),
        ("/fish*", "/fishheads/yummy.html", True),
        ("/*.php$", "/folder/filename.php", True),
        ("/*.php$", "/filename.php?parameters", False),
        ("/fish*.php", "/fishheads/catfish.php?parameters", True),
        ("/a*a$", "/a", False),
        ("/a*a$", "/aa", True),
        ("/ü", "/%C3%BC", True),
        ("/%7Ejoe", "/~joe/index.html", True),
        ("/a%2Fb", "/a/b", False),
        ("/a%2Fb", "/a%2fb", True),
        ("$", "/", False),
        ("*", "/anything", True),
    ],
)
def test_a_pattern_matches_as_it_should(rule: str, path: str, matches: bool) -> None:
    assert parse_robots(f"user-agent: *\ndisallow: {rule}", "locus").allows(path) is not matches


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("", True),
        ("User-agent: *\nDisallow:", True),
        ("Disallow: /", True),
        ("\ufeffUser-agent: LOCUS/1.0\nDisallow: / # all", False),
        ("User-agent: *\nDisallow: /\nUser-agent: locus\nDisallow: /x", True),
        ("User-agent: locus\nAllow: /page\nUser-agent: *\nDisallow: /\nUser-agent: locus\nDisallow: /page$", True),
        ("User-agent: *\nDisallow: /page\nAllow: /page", True),
        ("User-agent: *\nSitemap: x\nDisallow: /", False),
    ],
)
def test_groups_and_ties(text: str, allowed: bool) -> None:
    assert parse_robots(text, "locus").allows("/page/1") is allowed


@settings(max_examples=40, deadline=None)
@given(st.text(), st.text())
def test_no_file_and_no_path_is_an_error(text: str, path: str) -> None:
    parse_robots(f"User-agent: *\nDisallow: {text}\n{text}", "locus").allows(path.encode("ascii", "ignore").decode())
