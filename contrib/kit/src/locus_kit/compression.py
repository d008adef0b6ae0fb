"""How a long row is compressed: with a dictionary of what every journal repeats, a quarter of a tool call of 2 KB.

The dictionary belongs to the format: a row can be read with the very one that it was written with, so this one never
changes after the first release; another one would need a mark of its own. The likelier a phrase, the later it comes,
as zlib advises.
"""

from __future__ import annotations

import zlib

__all__ = ["compress", "decompress"]

_DICTIONARY = (
    b'"error":{"role":"user","type":"text","text":""type":"thinking","thinking":"","signature":""not_before":"truncated":true'
    b'"why":"NoToolCalls","satisfied":["NoToolCalls"],"detail":"the model has answered","v":2}'
    b'[{"entry":"intent","run_id":"","step_id":"1/execute/0","digest":"","policy":"keyed","v":2}]'
    b'[{"entry":"outcome","run_id":"","step_id":"1/think/0","digest":"","value":{"$":"locus.called","v":'
    b'{"response":{"message":{"role":"assistant","content":[{"type":"tool_call","id":"call_1","name":"","arguments":{}}'
    b']},"usage":{"prompt_tokens":10,"completion_tokens":5,"cached_tokens":0},"stop_reason":"tool_calls","model":""},'
    b'"usage":{"prompt_tokens":10,"completion_tokens":5},"attempts":1}},"v":2},'
    b'{"entry":"transition","run_id":"","node":"think","next_node":"execute","delta":{"changed":{"prompt_tokens_used":10,'
    b'"completion_tokens_used":5,"updated_at":"2026-01-01T00:00:00.000000+00:00","active_seconds":0.0},"grown":{"messages":'
    b'[1,[{"role":"assistant","content":[{"type":"tool_call","id":"call_1","name":"","arguments":{}}]}]],"reasoning_steps":'
    b'[1,[{"iteration":1,"actions":[""]}]]}},"why":"the model asks for tools","v":2}],"texts":["'
    b'[{"entry":"outcome","run_id":"","step_id":"1/execute/0","digest":"","value":{"$":"locus.call","v":{"execution":'
    b'{"tool_name":"","arguments":{"},"result":"\\u00000","duration_ms":0.0,"key":"","call_id":"call_"},'
    b'"content":"\\u00000"}},"v":2},'
    b'{"entry":"transition","run_id":"","node":"execute","next_node":"think","delta":{"changed":{'
    b'"updated_at":"2026-01-01T00:00:00.000000+00:00","active_seconds":0.0,"iteration":1},"grown":{"messages":[2,'
    b'[{"role":"tool","content":[{"type":"tool_result","call_id":"call_1","content":"\\u00000","name":""}]}]],'
    b'"tool_executions":[0,[{"tool_name":"","arguments":{},"result":"\\u00000","duration_ms":0.0,"key":"",'
    b'"call_id":"call_1"}]],"tool_history":[0,[""]]}},"why":"the tools have answered","v":2}'
)

#: The fastest level: the long repetitions are gone before this.
_LEVEL = 1


#: Bytes up to which a text is compressed with a window of that size.
_NEAR = 8 * 1024


def _make_template(window: int, memory: int) -> zlib._Compress:
    return zlib.compressobj(_LEVEL, zlib.DEFLATED, window, memory, zlib.Z_DEFAULT_STRATEGY, _DICTIONARY)


# What compresses a text is copied, because to read the dictionary takes as long as to compress a row. A row is short,
# and zlib's own choice is to clear a quarter of a megabyte for each: that takes longer than the row, and pushes what
# the program works on out of the processor's cache. Decompression is the same either way.
_NEAR_TEMPLATE, _TEMPLATE = _make_template(13, 5), _make_template(zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL)


def compress(text: bytes) -> bytes:
    """In zlib's format, with the dictionary."""
    work = (_NEAR_TEMPLATE if len(text) <= _NEAR else _TEMPLATE).copy()
    return work.compress(text) + work.flush()


def decompress(body: bytes) -> bytes:
    """The inverse.

    Raises:
        ValueError: it is truncated, or has data after its end.
        zlib.error: it is damaged.
    """
    work = zlib.decompressobj(zdict=_DICTIONARY)
    text = work.decompress(body)
    if not work.eof or work.unused_data:
        raise ValueError("a compressed row is truncated, or has data after its end")
    return text
