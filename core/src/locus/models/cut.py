"""An answer that the caller's cancel cut off: what is kept of it, and what it cost as far as that is known.

A provider counts at the end of an answer, and some at its beginning too. Where none has counted, the tokens are
estimated from the text: to charge nothing would let a run that is cut off and taken up again spend without a limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from locus.core.messages import ASSISTANT, Block, MediaBlock, Message, RawBlock, ToolCall, ToolResult, Usage
from locus.models.protocol import Chunk, ModelRequest, ModelResponse

#: UTF-8 bytes a token, the rule of thumb for English; bytes also come out right for scripts of one token a letter.
BYTES_A_TOKEN = 4

#: What providers wrap around each message: its role and its delimiters.
TOKENS_A_MESSAGE = 4

#: An image of about a megapixel; what a clip or a document costs is of that order and cannot be known here.
TOKENS_A_MEDIUM = 1_500


def cut_response(request: ModelRequest, pieces: Sequence[Chunk]) -> ModelResponse:
    """What is kept of an answer that was cut off: its text. Calls and reasoning are incomplete, and left out."""
    text = "".join([piece.text for piece in pieces if piece.kind == "text"])
    message = Message(ASSISTANT, text if text.strip() else (), is_cut=True)
    return ModelResponse(message=message, usage=_usage(request, pieces), stop_reason="cancelled")


def _usage(request: ModelRequest, pieces: Sequence[Chunk]) -> Usage:
    counted = next((piece.usage for piece in reversed(pieces) if piece.usage is not None), Usage())
    prompt, completion = counted.prompt_tokens, _text_tokens("".join([piece.text for piece in pieces]))
    if not prompt:
        prompt = sum(map(estimate_tokens, request.messages))
        prompt += sum([_text_tokens(f"{t.name}{t.description}{t.parameters}") for t in request.tools])
    completion = max(completion, counted.completion_tokens)
    return evolve(
        counted,
        prompt_tokens=prompt,
        completion_tokens=completion,
        estimated_tokens=prompt + completion - counted.total_tokens,
    )


def estimate_tokens(message: Message) -> int:
    """About how many tokens a message takes: four bytes of text a token, and a flat sum for media."""
    return TOKENS_A_MESSAGE + sum(map(_block_tokens, message.content))


def _block_tokens(block: Block) -> int:
    if isinstance(block, MediaBlock):
        return TOKENS_A_MEDIUM
    if isinstance(block, ToolResult):
        content = block.content
        return _text_tokens(content) if isinstance(content, str) else sum(map(_block_tokens, content))
    if isinstance(block, ToolCall):
        return _text_tokens(block.name) + _text_tokens(block.malformed or repr(block.arguments))
    if isinstance(block, RawBlock):
        return _text_tokens(repr(block.data))
    return _text_tokens(block.text)


def _text_tokens(text: str) -> int:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // BYTES_A_TOKEN)
