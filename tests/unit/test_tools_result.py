"""What the model reads of a result and of an exception, whatever the tool did."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import attrs
import msgspec
import pydantic
import pytest

from locus.core.messages import MediaBlock, RawBlock, TextBlock, ToolCall
from locus.tools import error_text, result_content, result_text, tool


@dataclasses.dataclass
class Point:
    x: int
    where: Path = Path("a")


@attrs.frozen
class Order:
    items: tuple[str, ...]


class Person(pydantic.BaseModel):
    name: str
    born: dt.date


class Colour(enum.Enum):
    RED = "red"


class Word(str, enum.Enum):  # noqa: UP042  the older spelling prints otherwise
    YES = "yes"


class Plain:
    def __repr__(self) -> str:
        return "<plain\n thing>"


class Broken:
    def __repr__(self) -> NoReturn:
        raise RuntimeError("no repr")


class Lines(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


class Array:
    """What numpy's arrays look like from outside."""

    def tolist(self) -> list[int]:
        return [1, 2]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is\n", "as it is\n"),
        ("", ""),
        (None, "(done, no result)"),
        (True, "true"),
        (3, "3"),
        (2**70, str(2**70)),
        (0.5, "0.5"),
        (float("nan"), "nan"),
        (b"text", "text"),
        (b"\xff\xfe", "(2 bytes of binary data)"),
        (dt.date(2024, 2, 29), "2024-02-29"),
        (Colour.RED, "red"),
        (Word.YES, "yes"),
        (Path("a/b"), "a/b"),
        ([], "[]"),
        ({"a": [1, "é"]}, '{"a":[1,"é"]}'),
        ({1: "a"}, '{"1":"a"}'),
        ({(1, 2): "a"}, "{(1, 2): 'a'}"),
        ((1, {2}), "[1,[2]]"),
        (MappingProxyType({"a": 1}), '{"a":1}'),
        (Lines(), '{"a":1}'),
        (range(3), "[0,1,2]"),
        (Point(1), '{"x":1,"where":"a"}'),
        ([Point(1, Path("b"))], '[{"x":1,"where":"b"}]'),
        (Order(("tea",)), '{"items":["tea"]}'),
        (Person(name="Ada", born=dt.date(1815, 12, 10)), '{"name":"Ada","born":"1815-12-10"}'),
        ([Array()], "[[1,2]]"),
        (msgspec.Raw(b'{"a": 1}'), '{"a": 1}'),
        (Plain(), "<plain thing>"),
        ({"a": Plain()}, '{"a":"<plain thing>"}'),
        (Broken(), "<Broken whose repr fails>"),
        ([Broken()], '["<Broken whose repr fails>"]'),
        (ValueError("bad"), "ValueError: bad"),
        ({"why": ValueError("bad")}, '{"why":"ValueError: bad"}'),
        (1 + 2j, "(1+2j)"),
        (10**5000, "<int whose repr fails>"),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        ("a pair \ud83d\ude00", "a pair \U0001f600"),
        ({"a": "\ud800"}, '{"a":"\ufffd"}'),
    ],
    ids=map(str, itertools.count()),
)
def test_a_result_reaches_the_model_as_sensible_text(value: Any, text: str) -> None:
    assert result_content(value) == text
    assert result_text(value) == text
    result_text(value).encode()


def test_data_without_end_is_shown_as_python_shows_it() -> None:
    cycle: list[Any] = [1]
    cycle.append(cycle)

    assert result_text(cycle) == "[1, [...]]"


def test_a_generator_and_a_lock_are_named() -> None:
    assert "generator object" in result_text(x for x in "ab")
    assert "lambda" in result_text(lambda: 1)


# --- size ------------------------------------------------------------------------------------------


def test_a_huge_result_keeps_its_head_and_its_tail_and_says_what_is_missing() -> None:
    text = "a" * 600_000 + "b" * 400_000

    shown = result_text(text)

    assert len(shown) <= 100_000
    assert shown.startswith("aaa")
    assert shown.endswith("bbb")
    assert "1,000,000 characters in all, cut to 100,000" in shown


def test_a_tool_may_set_its_own_limit() -> None:
    @tool(max_result_chars=300)
    def read() -> str:
        """Read."""
        return ""

    assert len(result_content("x" * 1000, read)) <= 300
    assert len(result_content(["x" * 1000], read)) <= 300
    assert result_content("x" * 300, read) == "x" * 300


@pytest.mark.parametrize("limit", [200, 201, 1000])
@pytest.mark.parametrize("size", [199, 200, 201, 1_000, 1_001, 123_456])
def test_a_limit_is_never_exceeded(size: int, limit: int) -> None:
    assert len(result_text("x" * size, limit)) <= limit


# --- blocks ----------------------------------------------------------------------------------------

IMAGE = MediaBlock("image", "image/png", data=b"png")


@pytest.mark.parametrize(
    ("value", "blocks"),
    [
        (IMAGE, (IMAGE,)),
        (TextBlock("a"), (TextBlock("a"),)),
        ([TextBlock("a"), IMAGE], (TextBlock("a"), IMAGE)),
        (("a caption", IMAGE, 3), (TextBlock("a caption"), IMAGE, TextBlock("3"))),
        ((TextBlock("\ud800"),), (TextBlock("\ufffd"),)),
        ([RawBlock("p", {"a": 1})], (RawBlock("p", {"a": 1}),)),
    ],
)
def test_blocks_pass_as_blocks(value: Any, blocks: tuple[Any, ...]) -> None:
    assert result_content(value) == blocks


def test_a_huge_text_block_is_cut() -> None:
    content = result_content([TextBlock("x" * 200_000)])

    assert isinstance(content[0], TextBlock)
    assert len(content[0].text) <= 100_000


def test_a_tool_call_is_not_content() -> None:
    assert isinstance(result_content(ToolCall("1", "a")), str)


# --- exceptions ------------------------------------------------------------------------------------


class Silent(Exception):
    def __str__(self) -> NoReturn:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad value"), "ValueError: bad value"),
        (ValueError(), "ValueError: no message"),
        (ValueError("  \n"), "ValueError: no message"),
        (KeyError("a"), "KeyError: 'a'"),
        (Silent(), "Silent: no message"),
        (OSError(2, "No such file", "x"), "OSError: [Errno 2] No such file: 'x'"),
        (ValueError("\ud800"), "ValueError: \ufffd"),
        (
            ExceptionGroup("both", [ValueError("a"), ExceptionGroup("deep", [TypeError("b")])]),
            "ExceptionGroup: both (2 sub-exceptions): ValueError: a; "
            "ExceptionGroup: deep (1 sub-exception): TypeError: b",
        ),
    ],
    ids=map(str, itertools.count()),
)
def test_an_exception_is_reported_by_type_and_message(error: BaseException, text: str) -> None:
    told = error_text(error)

    assert told == text.replace("OSError", type(error).__name__)


def test_a_huge_message_is_cut() -> None:
    assert len(error_text(ValueError("x" * 1_000_000))) < 5_000


@pytest.mark.parametrize("value", [{"a": {1: Broken()}}, [Broken(), {None: 1}]], ids=["value", "key"])
def test_nothing_makes_it_fail(value: Any) -> None:
    assert result_text(value)
