"""How a run ended, in the words of OpenAI's APIs."""

from __future__ import annotations

from typing import Any, Final

from locus import AgentResult
from locus.plugins import scrub
from locus_plugin_serve.problems import Problem
from locus_plugin_serve.results import questions_to_json
from locus_plugin_serve.users import ThreadName

__all__ = ["check_ended", "describe_run", "finish_reason"]

_FINISHED: Final = {"Truncated": "length", "ContentFiltered": "content_filter", "Refused": "content_filter"}

#: Clients of OpenAI try again by themselves where a status suggests it; a run that has had effects must not be.
_FINAL = {"x-should-retry": "false"}


def check_ended(result: AgentResult[Any]) -> None:
    """Insist that a run has an answer, or a question to a person.

    Raises:
        Problem: an error has ended it, or it was left open.
    """
    if result.interrupts:
        return
    if result.is_open:
        raise Problem(
            503,
            f"the run was left open ({result.stop_reason}) and goes on with the next server; the same request with the "
            "same Idempotency-Key gets its result",
            kind="server_error",
            code="left_open",
            headers={"Retry-After": "2", **_FINAL},
        )
    if result.error is not None:
        text = scrub(result.ending.error_text or str(result.error))
        raise Problem(500, text, kind="server_error", code=result.stop_reason[:80], headers=_FINAL)


def finish_reason(result: AgentResult[Any]) -> str:
    """``"stop"``, ``"length"`` or ``"content_filter"``."""
    for leaf in result.satisfied:
        if leaf in _FINISHED:
            return _FINISHED[leaf]
    return "stop" if result.stop_reason in ("NoToolCalls", "Interrupted") else "length"


def describe_run(thread: ThreadName, result: AgentResult[Any]) -> dict[str, Any]:
    """What these APIs have no word for; the field ``locus`` of an answer."""
    return {
        "thread": thread.name,
        "run_id": result.run_id,
        "stop_reason": result.stop_reason,
        "interrupts": questions_to_json(result.interrupts),
    }
