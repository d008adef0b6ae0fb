"""`Inspection`: one thing on its way (a prompt, a call's arguments, a result, an answer), and what was done to it.

It walks through whatever holds text, keys of mappings and whole numbers included, and keeps count by rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from attrs import evolve

from locus.core.messages import Block, MediaBlock, Message, RawBlock, TextBlock, ThinkingBlock, ToolCall, ToolResult
from locus_plugin_guardrails.report import Did
from locus_plugin_guardrails.rule import Place
from locus_plugin_guardrails.scanner import Finding, Scanner

__all__ = ["Inspection", "characters"]

E = TypeVar("E", TextBlock, ThinkingBlock)

#: The fields that hold text, of messages, blocks and calls.
_TEXTS = ("content", "text", "name", "arguments", "malformed", "data", "extras", "url")


class Inspection:
    """The check of one thing.

    Args:
        scanner: the rules.
        place: where it comes from.
        limit: the most characters that it may have.
        tool: of which tool, for arguments and results.
    """

    def __init__(self, scanner: Scanner, place: Place, limit: int, tool: str = "") -> None:
        self._scanner, self._place, self._limit, self._tool = scanner, place, limit, tool
        self.did: Counter[Did] = Counter()
        self._size = 0

    @property
    def blocked(self) -> tuple[str, ...]:
        """The names of the rules that stop it, each once."""
        return tuple(dict.fromkeys(rule for rule, _, action in self.did if action == "block"))

    @property
    def unclean(self) -> tuple[str, ...]:
        """The names of the rules that stop it or change it."""
        return tuple(dict.fromkeys(rule for rule, _, action in self.did if action != "report"))

    def text(self, text: str) -> str:
        """A text, with placeholders."""
        return self._scanner.rewritten(text, self._regions(text))

    def _regions(self, text: str) -> list[Finding]:
        self._size += len(text)
        if self._size > self._limit:
            # What is too long is stopped as a whole, without being read.
            self.did["size", self._place, "block"] = 1
            return []
        found = self._scanner.findings(text, self._place, self._tool)
        for finding in found:
            self.did[finding.rule.name, self._place, finding.rule.action] += 1
        return self._scanner.regions(found) if found else []

    def data(self, value: Any) -> Any:
        """Plain data, with placeholders in its texts, its keys, and in place of numbers."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, list | tuple):
            return [self.data(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._number(value)
        return value

    def _mapping(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key, item in value.items():
            new = self.text(key) if isinstance(key, str) else key
            while new in made:  # two keys that differed by what was cut out
                new = f"{new}'"
            made[new] = self.data(item)
        return made

    def _number(self, value: float) -> Any:
        if isinstance(value, float):
            if not value.is_integer() or abs(value) < 1e8:
                return value
            written = str(int(value))
        elif -100_000_000 < value < 100_000_000:
            return value  # shorter than anything that a rule of ours looks for
        else:
            # Python refuses to write numbers of many thousand digits; such a one is hidden as a whole.
            written = str(value) if value.bit_length() < 8_000 else "9" * (self._limit + 1)
        read = self.text(written)
        return value if read == written else read

    def blocks(self, content: Iterable[Block]) -> tuple[Block, ...]:
        """The blocks of a message or a result. Texts are read as one, as they are shown."""
        every = list(content)
        texts = {n: block for n, block in enumerate(every) if isinstance(block, TextBlock)}
        for n, new in self._rewrite_joined([(n, block.text) for n, block in texts.items()]).items():
            every[n] = evolve(texts[n], text=new)
        return tuple(self._block(block) for block in every)

    def _rewrite_joined(self, texts: list[tuple[int, str]]) -> dict[int, str]:
        """The texts that change, by their number; a region that crosses a border is replaced where it begins."""
        changed: dict[int, str] = {}
        regions = self._regions("".join(text for _, text in texts))
        at = 0
        for n, text in texts if regions else ():
            end = at + len(text)
            parts: list[str] = []
            kept = at
            for region in regions:
                if region.end <= at or region.start >= end:
                    continue
                parts.append(text[kept - at : max(0, region.start - at)])
                if region.start >= at:
                    parts.append(region.placeholder)
                kept = min(end, region.end)
            new = "".join([*parts, text[kept - at :]])
            if new != text:
                changed[n] = new
            at = end
        return changed

    def _block(self, block: Block) -> Block:
        if isinstance(block, TextBlock):
            return self._extras(block)
        if isinstance(block, ThinkingBlock):
            text = self.text(block.text)
            # A signature vouches for the words that it was made for.
            return self._extras(block if text == block.text else evolve(block, text=text, signature=None))
        if isinstance(block, MediaBlock):
            return self._media(block)
        if isinstance(block, RawBlock):
            data = self.data(block.data)
            return block if data == _plain(block.data) else RawBlock(block.provider, data)
        if isinstance(block, ToolResult):
            content = self.text(block.content) if isinstance(block.content, str) else self.blocks(block.content)
            return evolve(block, content=content)
        return block

    def _media(self, block: MediaBlock) -> Block:
        name = self.text(block.name)
        url = block.url
        if url is not None and not url.startswith("data:"):
            read = self.text(url)
            if read != url:
                return TextBlock(read)
        return block if name == block.name else evolve(block, name=name)

    def _extras(self, block: E) -> E:
        if not block.extras:
            return block
        extras = self.data(block.extras)
        return block if extras == _plain(block.extras) else evolve(block, extras=extras)

    def message(self, message: Message) -> Message:
        """A message, the same object if nothing changes; tool calls are left to `call`."""
        content = self.blocks(message.content)
        extras = self.data(message.extras) if message.extras else message.extras
        if content == message.content and (not message.extras or extras == _plain(message.extras)):
            return message
        return evolve(message, content=content, extras=extras)

    def call(self, call: ToolCall) -> ToolCall:
        """A tool call as it may be recorded, the same object if nothing changes."""
        name = self.text(call.name)
        arguments = self.data(call.arguments)
        malformed = None if call.malformed is None else self.text(call.malformed)
        extras = self.data(call.extras) if call.extras else call.extras
        if "size" in self.blocked:
            name = name if len(call.name) <= 64 else "blocked"
            return evolve(call, name=name, arguments={"blocked": "[blocked: size]"}, malformed=None, extras={})
        if not self.did:
            return call
        return evolve(call, name=name, arguments=arguments, malformed=malformed, extras=extras)


def characters(value: Any) -> int:
    """How many characters of text a value holds: a message, blocks, a call, plain data."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(characters(key) + characters(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return sum(map(characters, value))
    return sum(characters(getattr(value, name, None)) for name in _TEXTS) if hasattr(value, "__attrs_attrs__") else 0


def _plain(value: Any) -> Any:
    """Data as `Passage.data` returns it, to compare with."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
