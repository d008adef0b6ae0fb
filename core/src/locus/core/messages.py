"""Messages: who said what, in blocks.

An assistant turn must go back to its provider exactly as it came, so a block that the kernel does not
know travels as `RawBlock`, and `ThinkingBlock` keeps its signature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar, cast, get_args

from attrs import field

from locus.core.frozen import EMPTY, FrozenDict, fast_init, freeze, frozen
from locus.core.labels import CLEAN, Label, Provenance, taint

__all__ = [
    "Block",
    "MediaBlock",
    "Message",
    "RawBlock",
    "Role",
    "TextBlock",
    "ThinkingBlock",
    "ToolCall",
    "ToolResult",
    "Usage",
    "label_answer",
    "label_messages",
    "plugin_message",
    "text_of",
]

W = TypeVar("W")

TRUNCATED = "Truncated"
CONTENT_FILTERED = "ContentFiltered"
REFUSED = "Refused"
EMPTY_ANSWER = "EmptyAnswer"
OUTPUT_INVALID = "OutputInvalid"

#: What can be wrong with the answer that a run ends with: the reason that it gives for the end, and what that means.
ANSWER_FAULTS: Mapping[str, str] = {
    TRUNCATED: "the answer was cut at the length limit",
    CONTENT_FILTERED: "the provider filtered the answer",
    REFUSED: "the model refused to answer",
    EMPTY_ANSWER: "the answer has neither text nor tool calls",
    OUTPUT_INVALID: "the answer does not follow the output schema",
}

#: Faults of an answer that was stopped for what it says: the calls in it are not run.
WITHHELD = frozenset({CONTENT_FILTERED, REFUSED})

#: Where a message keeps the name of the plugin that wrote it.
_PLUGIN = "locus.plugin"


class Role(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


#: The roles under short names, for what the loop reads every iteration: before Python 3.12 a member that is read
#: from its class costs a function call.
SYSTEM, USER, ASSISTANT, TOOL = Role


@fast_init
@frozen
class TextBlock:
    """Plain text. ``extras`` carries what a provider attaches to it (citations, ids), verbatim."""

    text: str
    extras: FrozenDict[str, Any] = field(default=EMPTY, converter=freeze, kw_only=True)


@frozen
class ThinkingBlock:
    """Reasoning that the provider exposed; ``signature`` and ``extras`` go back to it untouched."""

    text: str
    signature: str | None = None
    extras: FrozenDict[str, Any] = field(default=EMPTY, converter=freeze, kw_only=True)


@fast_init
@frozen
class ToolCall:
    """A tool call as the model asked for it.

    Args:
        id: the provider's id. Local models reuse ids: nothing may rely on their being unique.
        name: the tool's name, which may be unknown.
        arguments: the parsed arguments, deep-frozen; empty when ``malformed`` is set.
        malformed: the raw text of arguments that are no JSON object, else None.
    """

    id: str
    name: str
    arguments: FrozenDict[str, Any] = field(default=EMPTY, converter=freeze)
    malformed: str | None = None
    extras: FrozenDict[str, Any] = field(default=EMPTY, converter=freeze, kw_only=True)
    _trace: Callable[[], Provenance] | None = field(default=None, init=False, eq=False, repr=False)

    @property
    def provenance(self) -> Provenance | None:
        """Where the values in the arguments come from, for hooks that decide about the call; None elsewhere."""
        return None if self._trace is None else self._trace()

    def with_trace(self, trace: Callable[[], Provenance]) -> ToolCall:
        """The call as a hook that decides about it gets it.

        Args:
            trace: finds the provenance, when it is asked for.
        """
        asked = ToolCall(self.id, self.name, self.arguments, self.malformed, extras=self.extras)
        object.__setattr__(asked, "_trace", trace)
        return asked

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.id, self.name, self.arguments, self.malformed, self.extras)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        for name, value in zip(
            ("id", "name", "arguments", "malformed", "extras", "_trace"), (*state, None), strict=True
        ):
            object.__setattr__(self, name, value)


def _content(content: str | Iterable[Block]) -> str | tuple[Block, ...]:
    return content if isinstance(content, str) else tuple(content)


@fast_init
@frozen
class ToolResult:
    """The answer to one call: text (or blocks) for the model."""

    call_id: str
    content: str | tuple[Block, ...] = field(converter=_content)
    is_error: bool = False
    name: str = ""


@frozen
class MediaBlock:
    """An image, an audio clip or a document, by URL or by bytes.

    Args:
        kind: ``"image"``, ``"audio"`` or ``"document"``.
        media_type: the MIME type, such as ``"image/png"``; ``""`` lets the provider find out (URLs only).
        url: where it can be fetched, or None.
        data: the bytes, or None. Exactly one of ``url`` and ``data`` is given.
    """

    kind: str
    media_type: str = ""
    url: str | None = None
    data: bytes | None = field(default=None, repr=False)
    name: str = ""

    def __attrs_post_init__(self) -> None:
        if self.kind not in ("image", "audio", "document"):
            raise ValueError(f"kind must be 'image', 'audio' or 'document', got {self.kind!r}")
        if (self.url is None) == (self.data is None):
            raise ValueError("give either url or data")
        if self.data is not None and not self.media_type:
            raise ValueError("data needs its media_type, such as 'image/png'")


@frozen
class RawBlock:
    """A block of a provider that the kernel does not know, kept verbatim for that provider."""

    provider: str
    data: FrozenDict[str, Any] = field(converter=freeze)


Block = TextBlock | ThinkingBlock | ToolCall | ToolResult | MediaBlock | RawBlock


_KINDS = frozenset(get_args(Block))


def _role(role: Role | str) -> Role:
    return role if type(role) is Role else Role(role)


def _blocks(content: str | Block | Iterable[Block]) -> tuple[Block, ...]:
    if type(content) is tuple:
        for block in content:
            if type(block) not in _KINDS:
                break
        else:
            return content
    if isinstance(content, str):
        return (TextBlock(content),) if content else ()
    if isinstance(content, Block):
        return (content,)
    blocks = tuple(content)
    for block in blocks:
        if not isinstance(block, Block):
            raise TypeError(f"message content holds {block!r}; use str or blocks of locus.core.messages")
    return blocks


@fast_init
@frozen
class Message:
    """One turn of the conversation.

    Args:
        role: who speaks.
        content: text, a block, or blocks; stored as a tuple of blocks.
        name: the speaker's name, where a provider supports it.
        extras: what the provider attached to the whole turn (its id, its model), verbatim.
        is_cut: the caller cancelled the run in the middle of this answer: its text so far, and nothing else of it.
    """

    role: Role = field(converter=_role)
    content: tuple[Block, ...] = field(default=(), converter=_blocks)
    name: str | None = field(default=None, kw_only=True)
    extras: FrozenDict[str, Any] = field(default=EMPTY, converter=freeze, kw_only=True)
    is_cut: bool = field(default=False, kw_only=True)
    # Memos of pure functions of this value; a frozen value may remember what it has computed.
    _calls: tuple[ToolCall, ...] | None = field(default=None, init=False, eq=False, repr=False)
    _wire: dict[str, Any] | None = field(default=None, init=False, eq=False, repr=False)

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        if len(self.content) == 1 and type(self.content[0]) is TextBlock:
            return self.content[0].text
        return "".join([b.text for b in self.content if type(b) is TextBlock])

    @property
    def reasoning(self) -> str:
        """The thinking blocks, joined."""
        found = [b.text for b in self.content if type(b) is ThinkingBlock]
        return "".join(found) if found else ""

    @property
    def plugin(self) -> str | None:
        """The plugin that wrote a message in the user's place (see `plugin_message`), or None.

        Feedback of reviewers and of an output schema has ``"review"``.
        """
        name = self.extras.get(_PLUGIN)
        return name if isinstance(name, str) else None

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that this turn asks for, in order."""
        calls = self._calls
        if calls is None:
            content = self.content
            found = [b for b in content if type(b) is ToolCall]
            # A turn that is nothing but calls is its own list of them.
            calls = cast("tuple[ToolCall, ...]", content) if len(found) == len(content) else tuple(found)
            object.__setattr__(self, "_calls", calls)
        return calls

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The tool results that this turn carries, in order."""
        return tuple(b for b in self.content if type(b) is ToolResult)

    def wire(self, form: str, encode: Callable[[Message], W]) -> W:
        """The encoded form of this message, computed once per ``form`` and kept beside it.

        A provider encodes each message once however long the conversation grows, and the bytes of an
        old turn cannot drift between two requests (prompt caches depend on that).

        Args:
            form: a name for the encoding, unique to the encoder and its settings.
            encode: the pure function from the message to its encoded form.
        """
        memo = self._wire
        if memo is None:
            memo = {}
            object.__setattr__(self, "_wire", memo)
        try:
            return cast("W", memo[form])
        except KeyError:
            made = memo[form] = encode(self)
            return made

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.role, self.content, self.name, self.extras, self.is_cut)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        names = ("role", "content", "name", "extras", "is_cut", "_calls", "_wire")
        for name, value in zip(names, (*state, None, None), strict=True):
            object.__setattr__(self, name, value)


def plugin_message(plugin: str, text: str) -> Message:
    """What a plugin says to the model in the course of a run: a reflection, a plan.

    Providers know no role for it, so it has the user's; `Message.plugin` tells it from the user's own words. The text
    must say so as well, because the model sees nothing else.

    Args:
        plugin: the plugin's name.
        text: what it says.
    """
    return Message(Role.USER, text, extras={_PLUGIN: plugin})


@fast_init
@frozen(kw_only=True)
class Usage:
    """Tokens of one or more model calls, and dollars where they are known.

    Args:
        prompt_tokens: all tokens of the request, cached ones included.
        completion_tokens: all tokens of the answer, reasoning included.
        cached_tokens: the part of ``prompt_tokens`` that was read from a cache.
        cache_write_tokens: the part of ``prompt_tokens`` that was written to a cache.
        reasoning_tokens: the part of ``completion_tokens`` spent on reasoning.
        cost: dollars, or None where the price is not known.
        estimated_tokens: the part of all tokens that were not counted, because the caller's cancel came first, but
            estimated from the text.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None
    estimated_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        costs = [c for c in (self.cost, other.cost) if c is not None]
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cost=sum(costs) if costs else None,
            estimated_tokens=self.estimated_tokens + other.estimated_tokens,
        )

    def __sub__(self, earlier: Usage) -> Usage:
        """What was used since, never less than nothing."""
        cost = None if self.cost is None else max(0.0, self.cost - (earlier.cost or 0.0))
        return Usage(
            prompt_tokens=max(0, self.prompt_tokens - earlier.prompt_tokens),
            completion_tokens=max(0, self.completion_tokens - earlier.completion_tokens),
            cached_tokens=max(0, self.cached_tokens - earlier.cached_tokens),
            cache_write_tokens=max(0, self.cache_write_tokens - earlier.cache_write_tokens),
            reasoning_tokens=max(0, self.reasoning_tokens - earlier.reasoning_tokens),
            cost=cost,
            estimated_tokens=max(0, self.estimated_tokens - earlier.estimated_tokens),
        )


def text_of(content: str | Iterable[Block] | Mapping[str, Any]) -> str:
    """The readable text of tool-result content."""
    if isinstance(content, str):
        return content
    return "".join(b.text for b in content if isinstance(b, TextBlock))


def label_messages(messages: Iterable[Message]) -> Label:
    """The label of a conversation that was not had here.

    Texts of the user and of the system prompt are clean. Media are not, even in the user's turn, because the user need
    not have written them; nor are messages of assistants and tools.
    """
    label = CLEAN
    for message in messages:
        if message.role is TOOL or message.role is ASSISTANT:
            label |= taint("transcript")
        elif any(type(block) is not TextBlock for block in message.content):
            label |= taint("attachment")
    return label


def label_answer(message: Message) -> Label:
    """The label that an answer adds: hosted tools of a provider read text that the kernel does not see."""
    for block in message.content:
        if type(block) is RawBlock and not str(block.data.get("type", "")).endswith(("thinking", "reasoning")):
            return taint("hosted")
    return CLEAN
