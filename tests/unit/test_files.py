"""`locus.files`: paths as backends get them, and the values that tools show."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from locus.files import BackendError, BackendProtocol, FileInfo, FileStore, GrepMatch, virtual_path

_PARTS = st.sampled_from(["", ".", "..", "a", "b c", "~", "é", "e\u0301", "\uff0e\uff0e", "\\", "*", ".hidden"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("/a/b.md", "/a/b.md"),
        ("a/b.md", "/a/b.md"),
        ("", "/"),
        ("/", "/"),
        (".", "/"),
        ("//a///b/", "/a/b"),
        ("/a/./b/../c", "/a/c"),
        ("a/..", "/"),
        ("~/x", "/~/x"),
        ("/..a/b..", "/..a/b.."),
        ("/e\u0301", "/é"),
        ("/" + "a" * 255, "/" + "a" * 255),
    ],
)
def test_a_path_is_absolute_and_folded(given: str, expected: str) -> None:
    assert virtual_path(given) == expected


@pytest.mark.parametrize(
    "given",
    [
        "..",
        "/..",
        "/a/../../b",
        "../../etc/passwd",
        "/a\x00b",
        "/a\nb",
        "/a\x7f",
        "/\ud800",
        "/a\u2028b",
        "/" + "a" * 256,
        "/" + "é" * 128,
        "/".join(["a" * 200] * 21),
        "/" * 5000,
        3,
    ],
)
def test_what_cannot_be_a_path_is_refused_with_the_code(given: Any) -> None:
    with pytest.raises(BackendError) as refused:
        virtual_path(given)
    assert (refused.value.code, str(refused.value)) == ("invalid_path", "invalid_path")


@given(st.lists(_PARTS, max_size=8).map("/".join) | st.text(max_size=40))
@example("/a/\u1e9b\u0323")
def test_a_normalised_path_stays_and_never_leaves_the_root(path: str) -> None:
    try:
        normal = virtual_path(path)
    except BackendError:
        return
    assert virtual_path(normal) == normal == unicodedata.normalize("NFC", normal)
    assert normal.startswith("/")
    assert not {"", ".", ".."} & set(normal[1:].split("/")) or normal == "/"


def test_an_error_says_its_code_and_what_goes_with_it() -> None:
    error = BackendError("invalid_pattern", "missing )")
    assert (error.code, str(error)) == ("invalid_pattern", "invalid_pattern: missing )")


def test_a_match_is_a_dataclass_and_an_entry_knows_what_it_is() -> None:
    assert json.loads(json.dumps(asdict(GrepMatch("/a", 1, "x")))) == {"path": "/a", "line": 1, "text": "x"}
    assert FileInfo("/a", is_dir=True) == FileInfo("/a", True, 0, None)


def test_the_protocols_tell_what_is_a_backend() -> None:
    assert not isinstance(object(), BackendProtocol)
    assert not isinstance({}, FileStore)
