"""Models that answer by what they are asked for, so that a test needs no order of calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from locus import tool
from locus.core.messages import Role
from locus.models import ModelRequest
from locus_testkit import ScriptedModel, call

__all__ = ["EVENTS", "FACT", "researcher", "search"]

FACT = "Gallium was discovered in 1875 by Lecoq de Boisbaudran."
EVENTS = [
    {"label": "a new line in a spectrum", "type": "root_cause", "confidence": 0.9},
    {"label": "discovery of gallium", "causes": ["a new line in a spectrum"], "type": "symptom", "confidence": 0.8},
]


@tool(effect="pure")
def search(query: str) -> str:
    """Search the library.

    Args:
        query: what to look for.
    """
    return FACT


def researcher(
    verdict: str = "1: yes", *, before: Callable[[ModelRequest], None] | None = None, **answers: Any
) -> ScriptedModel:
    """A model that searches once, concludes, and writes one claim.

    Args:
        verdict: what it says as the judge.
        before: called with each request.
        answers: what it says for other purposes in place of what it says by default.
    """
    said = {
        "causal": json.dumps(EVENTS),
        "summarize": json.dumps({"claims": [{"text": "Gallium was discovered in 1875.", "evidence": [1]}]}),
        "regenerate": json.dumps({"claims": [{"text": "Gallium is from the year 1875.", "evidence": [1]}]}),
        "grounding": verdict,
        **answers,
    }

    def answer(request: ModelRequest) -> Any:
        if before is not None:
            before(request)
        if request.purpose != "think":
            return said[request.purpose]
        if any(message.role is Role.TOOL for message in request.messages):
            return "It was in 1875."
        return call("search", query=request.messages[-1].text[:40])

    return ScriptedModel(answer, after="repeat")
