"""Patterns of names, and what a regular expression needs: in time that grows with the path or the pattern."""

from __future__ import annotations

import pytest
import re2  # type: ignore[import-untyped]  # it ships no types
from hypothesis import example, given, settings
from hypothesis import strategies as st

from locus.files import BackendError
from locus_plugin_filesystem.literals import required_texts
from locus_plugin_filesystem.patterns import glob_match

_NAMES = [
    ("*.md", "a.md a.b.md", "a/b.md .md .a.md md"),
    ("**/*.md", "a.md a/b.md a/b/c.md", "a/.md a.md/b .a/b.md"),
    ("a/**", "a/b a/b/c", "ab a b/a/c"),
    ("a/**/b", "a/b a/x/b a/x/y/b", "ab axb a/.x/b"),
    ("***/a", "a x/a x/y/a", "xa"),
    ("a**b", "ab axxb", "a/b ax/b"),
    ("?", "a é", ". / ab"),
    ("a?c", "abc a.c", "a/c ac"),
    ("[a-c]x", "ax bx", "dx -x"),
    ("[!a]", "b", "a . /"),
    ("[^a]b", "xb", "ab .b"),
    ("[]]", "]", "["),
    ("[a-]", "a -", "b"),
    ("[+-9]", "+ 3 9", "/ a"),
    ("[[:digit:]]x", "5x", "ax"),
    (r"\*\[", "*[", "a["),
    ("[", "[", "a"),
    ("[a", "[a", "a"),
    ("{a,b}.{c,d}", "a.c b.d", "a.a a,b"),
    ("{a,{b,c}d}", "a bd cd", "ad b"),
    ("{a,b", "{a,b", "a"),
    ("{a}", "{a}", "a"),
    ("{a{b},c}", "a{b} c", "ab a"),
    ("{**/a,b}.md", "a.md x/a.md b.md", "x/b.md"),
    ("{*,.*}", "a .a", "a/b"),
    ("{,x}y", "y xy", "x"),
    ("a,b", "a,b", "a b"),
    (".*", ".a .", "a"),
    ("a]b}", "a]b}", "ab"),
    ("a.b", "a.b", "axb"),
    ("(a|b)+", "(a|b)+", "a b"),
]


@pytest.mark.parametrize(("pattern", "those", "not_those"), _NAMES)
def test_pattern_means_what_a_shell_means_by_it(pattern: str, those: str, not_those: str) -> None:
    is_match = glob_match(pattern)
    assert {path: bool(is_match(path)) for path in those.split()} == dict.fromkeys(those.split(), True)
    assert {path: bool(is_match(path)) for path in not_those.split()} == dict.fromkeys(not_those.split(), False)


@pytest.mark.parametrize("pattern", ["[z-a]", "[[:nothing:]]", "\ud800*", "{a,\udfff}", "\\\ud800"])
def test_range_or_class_that_cannot_be_is_refused(pattern: str) -> None:
    with pytest.raises(BackendError, match="invalid_pattern"):
        glob_match(pattern)


@settings(deadline=None)
@given(st.text("ab*?[]{},!-/\\.^:é", max_size=30), st.text("ab/.é", max_size=30))
@example("**/a/" * 100 + "b", "a/" * 200 + "a")
@example("{a,b}" * 150, "a" * 150)
@example("*a" * 300 + "*b", "a" * 255)
@example("[\ud800]", "a")
@example("[a-\udfff]", "a")
@example("{" * 500 + "," + "}" * 500, "a")
def test_any_text_is_a_pattern_or_refused(pattern: str, path: str) -> None:
    code = ""
    try:
        glob_match(pattern)(path)
    except BackendError as e:
        code = e.code
    assert code in ("", "invalid_pattern")


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("needle", ["needle"]),
        (r"import os\.path$", ["import os.path"]),
        ("colou?r", ["colo", "r"]),
        ("ab+c", ["ab", "c"]),
        ("a*bc", ["bc"]),
        ("(abc){0}alpha", ["alpha"]),
        ("def (one|two)_name", ["def ", "_name"]),
        ("[]x]abc", ["abc"]),
        (r"\bword\b", ["word"]),
        ("one|two", []),
        ("(?i)word", []),
        (r"\x41bc", []),
        (r"\Qa.b\E", []),
        ("", []),
    ],
)
def test_texts_that_a_match_needs_are_found(pattern: str, texts: list[str]) -> None:
    assert required_texts(pattern) == texts


_ATOMS = st.sampled_from(
    [
        "(a(b)c)",
        "^",
        "$",
        r"\b",
        "|",
        "{",
        "}",
        "]",
        ",",
        "x",
        r"\n",
        "a",
        "b",
        "ab",
        "é",
        ".",
        r"\.",
        r"\d",
        r"\\",
        r"\-",
        "[ab]",
        "[^a]",
        "[]a]",
        "[[:alpha:]]",
        "(a|b)",
        "(ab)",
    ]
)
_REPEATS = st.sampled_from(["", "", "", "*", "+", "?", "{0}", "{2}", "{0,1}", "{1,}", "*?", "+?", "??", "{,2}"])


@settings(deadline=None)
@given(
    st.lists(st.tuples(_ATOMS, _REPEATS).map("".join), max_size=5).map("".join),
    st.lists(st.sampled_from("abé.x{}],\\1-2"), max_size=10).map("".join),
)
def test_no_match_lacks_a_text_that_it_needs(pattern: str, text: str) -> None:
    options = re2.Options()
    options.log_errors = False
    try:
        search = re2.compile(pattern, options).search
    except re2.error:
        return
    if search(text):
        assert [each for each in required_texts(pattern) if each not in text] == []
