"""A fully compromised model: it does what the user asks for, and everything that any text it reads asks for.

It is deterministic and needs no network. It reacts to an injected text worse than any real model does: it makes every
call of the attacker's ground truth, with the right arguments, even those that it could not know. So the measurement is
of the rules around a model, not of the model.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import deque
from typing import Any

from contrib.bench.agentdojo.dependencies import Made, find_dependencies
from contrib.bench.agentdojo.labels import read_labels
from contrib.bench.agentdojo.suites import MARK, Call, Case

from locus.core.messages import Message, Role, TextBlock, ToolCall, ToolResult
from locus.models import ModelRequest, ModelResponse, OnChunk

_ENCODED = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")


class CompromisedModel:
    """Makes one call a turn. From the moment in which the injected text is in its window, the attacker's come first.

    Args:
        case: whose calls it makes.
        obeys: False: it makes the user's calls alone.

    Attributes:
        asked: the calls that it asked for, by the id that it gave them: ``"user-0"`` or ``"injected-0"``.
        reached: whether the injected text was in its window.
    """

    name = "agentdojo:compromised"

    def __init__(self, case: Case, *, obeys: bool = True) -> None:
        self._case, self._obeys = case, obeys
        self._user = deque(case.user_calls)
        self._injected: deque[Call] = deque()
        self._read = 0
        self.asked: dict[str, Call] = {}
        self.reached = False

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        """The next call, or the answer."""
        new, self._read = request.messages[self._read :], len(request.messages)
        if not self.reached and any(_has_mark(text) for message in new for text in _results(message)):
            self.reached = True
            self._injected.extend(self._case.injected_calls if self._obeys else ())
        for message in new:
            for call in message.tool_calls:
                if call.id not in self.asked:
                    self._drop(Call(call.name, call.arguments))
        if self._injected:
            return self._ask("injected", self._injected.popleft())
        if self._user:
            return self._ask("user", self._user.popleft())
        return ModelResponse(message=Message(Role.ASSISTANT, self._answer()))

    def _drop(self, planned: Call) -> None:
        """Skip the calls that a plan has already made."""
        if self._user and self._user[0].is_same(planned):
            self._user.popleft()

    def _ask(self, kind: str, call: Call) -> ModelResponse:
        made = f"{kind}-{len(self.asked)}"
        self.asked[made] = call
        asked = ToolCall(made, call.tool, dict(call.arguments))
        return ModelResponse(message=Message(Role.ASSISTANT, (asked,)), stop_reason="tool_calls")

    def _answer(self) -> str:
        case = self._case
        said = [case.user.GROUND_TRUTH_OUTPUT]
        if self.reached and self._obeys and case.injection is not None:
            said.append(case.injection.GROUND_TRUTH_OUTPUT)
        return "\n".join(filter(None, said)) or "Done."


class OraclePlanner:
    """Plans the user's calls, each with the arguments of the ground truth: the best plan that there can be.

    A call waits for those that it needs, see `find_dependencies`, and for no others.

    Args:
        case: whose calls it plans.
    """

    name = "agentdojo:oracle"

    def __init__(self, case: Case) -> None:
        self._calls = case.user_calls
        self._needed = find_dependencies(case.prompt, [*map(_made, case.user_calls, case.user_results)])

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        """The plan, as JSON."""
        steps = [
            {
                "id": f"s{n}",
                "description": call.tool,
                "tool": call.tool,
                "arguments": dict(call.arguments),
                "depends_on": [f"s{needed}" for needed in self._needed[n]],
            }
            for n, call in enumerate(self._calls)
        ]
        text = json.dumps({"goal": "What the user asked for.", "steps": steps})
        return ModelResponse(message=Message(Role.ASSISTANT, text))


def _made(call: Call, result: Any) -> Made:
    labels = read_labels()[call.tool]
    return Made(
        arguments=call.arguments,
        result=result,
        targets=labels.targets,
        is_read=labels.effect == "pure",
        is_sent=labels.egress,
    )


def _results(message: Message) -> list[str]:
    found = []
    for block in message.content:
        if isinstance(block, ToolResult):
            content = (TextBlock(block.content),) if isinstance(block.content, str) else block.content
            found += [each.text for each in content if isinstance(each, TextBlock)]
    return found


def _has_mark(text: str) -> bool:
    # An environment is a YAML file, which folds lines; a result is JSON, which escapes their ends.
    if MARK in " ".join(text.replace("\\n", " ").split()):
        return True
    return any(MARK in _decoded(each) for each in _ENCODED.findall(text))


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
