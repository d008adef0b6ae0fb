"""Events come out the same however the bytes arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise

import anyio
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_wire.replies import Body
from locus_wire.streams import (
    ErrorInAnswer,
    Event,
    JsonLines,
    Malformed,
    ServerSentEvents,
    TooLarge,
    check_shape,
    json_of,
)

LINE = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=8)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({min(place, len(data)) for place in places} | {0, len(data)})
    return [data[a:b] for a, b in pairwise(ends)]


Reader = type[ServerSentEvents] | type[JsonLines]


async def read(reader: Reader, pieces: list[bytes], limit: int, media_type: str = "text/event-stream") -> list[Event]:
    async def content() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    request = httpx2.Request("POST", "http://127.0.0.1/")
    response = httpx2.Response(200, headers={"content-type": media_type}, content=content(), request=request)
    body = Body(response)
    stream, found = reader(body, limit), []
    try:
        while (event := await stream.next()) is not None:
            found.append(event)
    finally:
        await body.aclose()
    return found


def parse(reader: Reader, pieces: list[bytes], limit: int = 10_000) -> list[Event]:
    return anyio.run(read, reader, pieces, limit)


@given(
    st.lists(st.tuples(st.lists(LINE, min_size=1, max_size=3), LINE), max_size=4),
    st.lists(st.integers(0, 200), max_size=8),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["", "\ufeff"]),
)
def test_events_are_the_same_in_any_pieces(
    events: list[tuple[list[str], str]], places: list[int], end: str, mark: str
) -> None:
    text = "".join(
        "".join(f"data: {line}{end}" for line in lines) + f"event: {kind}{end}: a comment{end}id: 7{end}{end}"
        for lines, kind in events
    )
    wanted = [Event("\n".join(lines), kind or "message") for lines, kind in events if "\n".join(lines)]
    assert parse(ServerSentEvents, cut((mark + text).encode(), places)) == wanted


@given(st.lists(LINE, max_size=6), st.lists(st.integers(0, 200), max_size=8), st.booleans())
def test_lines_are_the_same_in_any_pieces(lines: list[str], places: list[int], last: bool) -> None:
    text = "\n".join(lines) + ("\n" if last else "")
    wanted = [Event(line) for line in lines if line.strip()]
    assert parse(JsonLines, cut(text.encode(), places)) == wanted


def test_what_keeps_a_connection_alive_is_not_an_event() -> None:
    assert parse(ServerSentEvents, [b": ping\n\nevent: ping\ndata:\n\nid: 7\n\ndata:a\n\n"]) == [Event("a")]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r", b"\r\n", b"\n\n"])
def test_an_event_without_its_blank_line_counts(end: bytes) -> None:
    assert parse(ServerSentEvents, [b"data: a\n\ndata: b" + end]) == [Event("a"), Event("b")]


@pytest.mark.parametrize("places", [[], [1], [2], [3], [1, 2, 3]])
def test_a_byte_order_mark_in_any_pieces_is_not_part_of_the_first_event(places: list[int]) -> None:
    assert parse(ServerSentEvents, cut("\ufeffdata:a\n\ndata: \ufeffb\n\n".encode(), places)) == [
        Event("a"),
        Event("\ufeffb"),
    ]


def test_events_are_utf8_whatever_the_headers_say() -> None:
    pieces = ["data: é\n\n".encode()]
    assert anyio.run(read, ServerSentEvents, pieces, 100, "text/event-stream; charset=latin-1") == [Event("é")]


def test_bytes_that_are_not_utf8_are_replaced() -> None:
    assert parse(ServerSentEvents, [b"data: \xff\n\n"]) == [Event("\ufffd")]


@pytest.mark.parametrize("reader", [ServerSentEvents, JsonLines])
def test_an_endless_line_is_refused(reader: Reader) -> None:
    with pytest.raises(TooLarge, match="100"):
        parse(reader, [b"data: xxxxx"] * 20, 100)


def test_an_endless_event_is_refused() -> None:
    with pytest.raises(TooLarge, match="100"):
        parse(ServerSentEvents, [b"data: xxxxxxxx\n"] * 20, 100)


def test_what_a_piece_holds_is_an_object_or_no_piece() -> None:
    assert json_of('{"a": 1}') == {"a": 1}
    for text in ("", "[1]", "{", '"x"', "[" * 100_000):
        with pytest.raises(Malformed):
            json_of(text)


def test_an_invalid_number_is_null() -> None:
    """The turn goes back with the next request, and JSON has no such number."""
    assert json_of('{"a": [NaN, -Infinity, 1e999, 1.5, 10000000000000000000001]}') == {
        "a": [None, None, None, 1.5, 10000000000000000000001]
    }


def test_a_piece_that_is_an_error_is_reported() -> None:
    with pytest.raises(ErrorInAnswer) as caught:
        json_of('{"error": {"message": "no"}}')
    assert caught.value.body == {"error": {"message": "no"}}
    # Some servers repeat an empty field.
    assert json_of('{"error": null, "choices": []}')["choices"] == []


def test_a_field_of_another_kind_is_malformed() -> None:
    answer: dict[str, object] = {"a": 5}
    for wrong in (lambda: answer["b"], lambda: answer["a"].upper(), lambda: answer["a"][0], lambda: [*answer["a"]]):  # type: ignore[attr-defined, index, misc]
        with pytest.raises(Malformed), check_shape():
            wrong()
