"""The words of a journal, which a compressed row need not spell out: a quarter of what a tool call of 2 KB takes.

It belongs to the format: a row can be read with the very dictionary that it was written with, so this one never
changes; another one would need a mark of its own. The likelier a phrase, the later it stands, as zlib advises.
"""

from __future__ import annotations

import zlib

__all__ = ["compress", "decompress"]

_WORDS = (
    b'"satisfied":["NoToolCalls"],"not_before":null,"truncated":true,"error":"role":"user","type":"text","text":"'
    b'"type":"thinking","thinking":"","signature":""'
    b'[{"entry":"intent","run_id":"","step_id":"1/execute/0","digest":"","policy":"keyed"}'
    b'{"entries":[{"entry":"outcome","run_id":"","step_id":"1/think/model","digest":"","value":{"$":"locus.called","v":'
    b'{"response":{"message":{"role":"assistant","content":[{"type":"tool_call","id":"call_1","name":"","arguments":{}}'
    b']},"usage":{"prompt_tokens":10,"completion_tokens":5,"cached_tokens":0},"stop_reason":"tool_calls"},"usage":{},'
    b'"attempts":1}}},"value":{"$":"locus.call","v":{"execution":{"tool_name":"","arguments":{"},"result":"\\u00000",'
    b'"duration_ms":0.0,"key":"","call_id":"call_"},"content":"\\u00000"}}}],"texts":["'
    b'{"entry":"transition","run_id":"","node":"execute","next_node":"think","delta":{"changed":{"iteration":1,'
    b'"prompt_tokens_used":1,"completion_tokens_used":1,"active_seconds":0.0,'
    b'"updated_at":"2026-01-01T00:00:00.000000+00:00"},"grown":{"messages":[1,[{"role":"tool","content":'
    b'[{"type":"tool_result","call_id":"call_1","content":"\\u00000","name":""}]}]],"tool_executions":[0,'
    b'[{"tool_name":"","arguments":{},"result":"\\u00000","duration_ms":0.0,"key":"","call_id":"call_1"}]],'
    b'"tool_history":[0,[""]],"reasoning_steps":[1,[{"iteration":1,"actions":[""]}]]}},'
    b'"why":"the model asks for tools"}],"texts":["'
)

#: The fastest level: the long repetitions are gone before this.
_LEVEL = 1


def compress(text: bytes) -> bytes:
    """In zlib's format, with the dictionary."""
    work = zlib.compressobj(_LEVEL, zdict=_WORDS)
    return work.compress(text) + work.flush()


def decompress(body: bytes) -> bytes:
    """The inverse.

    Raises:
        ValueError: it is cut, or goes on behind its end.
        zlib.error: it is damaged.
    """
    work = zlib.decompressobj(zdict=_WORDS)
    text = work.decompress(body)
    if not work.eof or work.unused_data:
        raise ValueError("a compressed row is cut, or goes on behind its end")
    return text
