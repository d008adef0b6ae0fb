"""From the events of a stream to the very message that the API would have sent in one piece.

Deltas are put together by what they are; a kind that is not known here is put together by the names of its fields, so
that a block of the future still goes back whole. Events that are not known are ignored, as the API's guide asks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from locus.models import Chunk, OnChunk
from locus_plugin_anthropic.blocks import Wire
from locus_plugin_anthropic.reply import check_message, usage_of
from locus_wire import Event, arguments_of, check_shape, json_of

__all__ = ["Stream"]


class Stream:
    """One answer as it arrives.

    Args:
        on_chunk: where pieces go.
        answer: the name of a tool whose arguments are the answer, or None. Neither they nor the text around them are
            shown: what the answer's text is, shows in the end.
    """

    def __init__(self, on_chunk: OnChunk | None = None, answer: str | None = None) -> None:
        #: What has arrived, in the form of a message that came in one piece.
        self.message: Wire = {}
        #: The text of arguments that are not a JSON object, by the place of their block.
        self.raw: dict[int, str] = {}
        self._on_chunk, self._answer = on_chunk, answer
        self._blocks: dict[int, Wire] = {}
        self._json: dict[int, list[str]] = {}

    async def take(self, event: Event) -> bool:
        """Take one event; True = it was the last.

        Raises:
            ErrorInAnswer: the event reports a failure.
            Malformed: it makes no sense.
        """
        chunks: list[Chunk] = []
        data = json_of(event.data)
        with check_shape():
            done = self._apply(data["type"], data, chunks)
        if self._on_chunk is not None:
            for chunk in chunks:
                await self._on_chunk(chunk)
        return done

    def _apply(self, kind: str, data: Mapping[str, Any], chunks: list[Chunk]) -> bool:
        match kind:
            case "message_start":
                self.message = {**data["message"], "content": []}
                # What the prompt took, for an answer that is cut off before its end.
                chunks.append(Chunk("", usage=usage_of(self.message)))
            case "content_block_start":
                self._start(data["index"], dict(data["content_block"]), chunks)
            case "content_block_delta":
                self._add(self._blocks[data["index"]], data["index"], data["delta"], chunks)
            case "content_block_stop":
                self._stop(data["index"], chunks)
            case "message_delta":
                rest = {key: value for key, value in data.items() if key not in ("type", "delta", "usage")}
                self.message |= {key: value for key, value in (rest | data["delta"]).items() if value is not None}
                told = {key: value for key, value in (data.get("usage") or {}).items() if value is not None}
                # The counts are totals so far, so they replace those of the beginning.
                self.message["usage"] = {**(self.message.get("usage") or {}), **told}
            case "message_stop":
                for at in sorted(self._json):
                    self._stop(at, chunks)  # a server that sent no stop event
                check_message(self.message)
                return True
        return False

    def _start(self, at: int, block: Wire, chunks: list[Chunk]) -> None:
        if at in self._blocks:
            raise ValueError(f"block {at} begins twice")
        self._blocks[at] = block
        self.message["content"].append(block)
        if "input" in block:
            self._json[at] = []
        if block["type"] in ("text", "thinking"):
            self._show(block.get(block["type"]), block["type"], chunks)

    def _add(self, block: Wire, at: int, delta: Mapping[str, Any], chunks: list[Chunk]) -> None:
        match delta:
            case {"type": "text_delta" | "thinking_delta" as kind}:
                key = str(kind).removesuffix("_delta")
                block[key] = block.get(key, "") + delta[key]
                self._show(delta[key], key, chunks)
            case {"type": "signature_delta", "signature": signature}:
                block["signature"] = signature
            case {"type": "citations_delta", "citation": citation}:
                block["citations"] = [*(block.get("citations") or []), citation]
            case {"type": "input_json_delta", "partial_json": str(text)}:
                self._json.setdefault(at, []).append(text)
                self._show_call(block, text, chunks)
            case _:
                for key in delta.keys() - {"type"}:
                    joined = isinstance(delta[key], str) and isinstance(block.get(key), str)
                    block[key] = block[key] + delta[key] if joined else delta[key]

    def _stop(self, at: int, chunks: list[Chunk]) -> None:
        block, pieces = self._blocks[at], self._json.pop(at, None)
        if pieces is None:
            return
        text = "".join(pieces)
        if not text:  # the arguments came with the block, or are empty
            if block.get("input"):
                self._show_call(block, json.dumps(block["input"], ensure_ascii=False), chunks)
            return
        given = arguments_of(text)
        if given is None:
            self.raw[next(n for n, each in enumerate(self.message["content"]) if each is block)] = text
        block["input"] = given or {}

    def _show(self, text: Any, key: str, chunks: list[Chunk]) -> None:
        if isinstance(text, str) and text and (key == "thinking" or self._answer is None):
            chunks.append(Chunk(text, "reasoning" if key == "thinking" else "text"))

    def _show_call(self, block: Mapping[str, Any], text: str, chunks: list[Chunk]) -> None:
        if text and block.get("type") == "tool_use" and block.get("name") != self._answer:
            chunks.append(Chunk(text, "tool_call"))
