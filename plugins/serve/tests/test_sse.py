"""How an event is written: one line of ASCII, whatever is in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from locus_plugin_serve.sse import PieceWriter, write_event


class Opaque:
    """A value without a JSON form."""

    def __str__(self) -> str:
        return "opaque \u2028"


@pytest.mark.parametrize("text", ["plain", "a\n\rb", "\u2028\u2029\x85", "\u00e4 \u4e2d \U0001f600", "\ud83d", '"\\'])
def test_data_is_one_line_of_ascii(text: str) -> None:
    written = write_event({"text": text}, name="said", id="1.0")
    assert written.isascii()
    head, name, data, *rest = written.decode().splitlines()
    assert (head, name, rest) == ("id: 1.0", "event: said", [""])
    assert json.loads(data.removeprefix("data: ")) == {"text": text}
    assert PieceWriter({"text": PieceWriter.HOLE}, name="said").write(text) == write_event({"text": text}, name="said")


def test_a_part_without_a_json_form_is_its_text() -> None:
    written = write_event({"value": Opaque()})
    assert written == b'data: {"value":"opaque \\u2028"}\n\n'


@pytest.mark.parametrize(("options", "head"), [({}, b""), ({"id": "2"}, b"id: 2\n"), ({"name": "x"}, b"event: x\n")])
def test_an_event_without_a_name_or_an_id_has_no_line_for_it(options: dict[str, Any], head: bytes) -> None:
    assert write_event("[DONE]", **options) == head + b"data: [DONE]\n\n"
