"""`Tape`: the model answers of an evaluation, recorded, and given again to the same requests.

What a replay is good for: the agent's own code is compared, at two commits, or with two settings of a plugin, without
the noise of a model that answers differently each time. What it is not: an answer to a request that was never made.
An answer is found by the case, the repeat and the whole request, with its model, messages, tools, settings and
schema. If a request is not on the tape, its trial is *missing*, whatever the agent makes of it, and no model is
asked.

Recorded is at the seam at which a run makes its effects happen, so that calls which plugins make for it are on the
tape as well. Runs of other agents that a tool starts have effects of their own and are not: where they ask a model
during a replay, the trial is missing, too.

A tape is a file of JSON lines, to which each answer is added at once: a process that is killed leaves a tape that holds
whatever its journal does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from locus.core import encode, encode_data
from locus.core.errors import InputError, ModelError, NotSerialisable
from locus.core.journal import Policy, StepId
from locus.core.messages import Usage
from locus.journal import Effects
from locus.models import ModelCall
from locus_kit.remote import take_effect

__all__ = ["Tape", "TapeEffects", "TrialTape"]

_FORMAT = 1


class Tape:
    """Recorded answers in a file.

    Args:
        path: of the file, ``.jsonl``.
        replays: whether answers are taken from it; else they are added to it.

    Raises:
        InputError: the file cannot be read or written, or is not a tape.
    """

    def __init__(self, path: Path | str, *, replays: bool) -> None:
        self.path, self.replays = Path(path), replays
        self._answers: dict[tuple[str, int, str], dict[str, dict[str, Any]]] = {}
        try:
            if replays or self.path.exists():
                self._read()
            if not replays:
                self.path.open("a", encoding="utf-8").close()
        except OSError as e:
            raise InputError(f"the tape {self.path} cannot be {'read' if replays else 'written'}: {e.strerror}") from e

    def __repr__(self) -> str:
        return f"<Tape {self.path}: {'replays' if self.replays else 'records'}, {len(self)} answers>"

    def __len__(self) -> int:
        return sum(map(len, self._answers.values()))

    @property
    def digest(self) -> str:
        """A short hash of what it holds, where it replays: an evaluation on another tape is another one."""
        return blake2b(self.path.read_bytes(), digest_size=6).hexdigest() if self.replays else "records"

    def of_trial(self, case: str, repeat: int) -> TrialTape:
        """The part of one trial."""
        return TrialTape(self, case, repeat)

    def find(self, case: str, repeat: int, request: str) -> dict[str, dict[str, Any]]:
        """What is recorded of a request in a trial, by the step that asked."""
        return self._answers.get((case, repeat, request), {})

    def find_at(self, case: str, repeat: int, step: str) -> dict[str, Any] | None:
        """The hashes of the request that was recorded at a step of a trial, or None."""
        for (of_case, of_repeat, _), lines in self._answers.items():
            if (of_case, of_repeat) == (case, repeat) and step in lines:
                parts: dict[str, Any] = lines[step]["parts"]
                return parts
        return None

    def add(self, line: dict[str, Any]) -> None:
        """Record an answer; of two with the same step and request the later one counts."""
        text = json.dumps(line, ensure_ascii=True) + "\n"
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text)
        self._keep(line)

    def _keep(self, line: dict[str, Any]) -> None:
        key = (line["case"], line["repeat"], line["request"])
        self._answers.setdefault(key, {})[line["step"]] = line

    def _read(self) -> None:
        whole = self.path.read_bytes()
        end = whole.rfind(b"\n") + 1
        if end < len(whole) and not self.replays:  # a process died while it wrote the last line: nothing relies on it
            os.truncate(self.path, end)
        for n, line in enumerate(whole[:end].splitlines(), 1):
            try:
                form = json.loads(line)
                if form["format"] != _FORMAT:
                    raise ValueError(f"format {form['format']!r}, expected {_FORMAT}")
                self._keep(form)
            except (ValueError, TypeError, KeyError) as e:
                raise InputError(f"{self.path}:{n}: expected a line of a tape of `locus eval --record`: {e}") from e


class TrialTape:
    """The answers of one trial.

    Args:
        tape: the whole.
        case, repeat: of the trial.
    """

    def __init__(self, tape: Tape, case: str, repeat: int) -> None:
        self._tape, self._case, self._repeat = tape, case, repeat
        self._used: set[tuple[str, str]] = set()
        #: What was asked and is not on the tape, in a sentence each.
        self.misses: list[str] = []

    @property
    def replays(self) -> bool:
        """Whether answers are taken from the tape."""
        return self._tape.replays

    async def ask(self, step: str, call: ModelCall, fn: Callable[[], Awaitable[Any]]) -> Any:
        """Answer a call of a model: from the tape, or by making it and recording what came of it.

        Args:
            step: the id of the step, the same on every way back to it.
            call: what is asked.
            fn: makes the call.
        """
        parts = _hash_parts(call)
        request = _hash(parts)
        if not self.replays:
            return await self._record(step, request, parts, call, fn)
        recorded = self._tape.find(self._case, self._repeat, request)
        # The same request may be made several times: the answer to the same step first, then those not given yet.
        fresh = [name for name in recorded if (request, name) not in self._used]
        name = step if step in fresh else fresh[0] if fresh else None
        if name is None:
            why = self._explain(step, parts)
            purpose = "" if call.purpose in ("", "think") else f" for {call.purpose}"
            self.misses.append(f"request {len(self._used) + 1} to {call.model.name}{purpose} is not on the tape: {why}")
            failure = {"type": "ModelError", "text": self.misses[-1], "retryable": False}
            return await take_effect(fn, {"failed": failure, "usage": encode(Usage())})
        self._used.add((request, name))
        return await take_effect(fn, recorded[name]["came"])

    def _explain(self, step: str, parts: dict[str, Any]) -> str:
        """What differs from the request that was recorded at this step."""
        before = self._tape.find_at(self._case, self._repeat, step)
        if before is None:
            return "nothing was recorded at this step"
        recorded, asked = before["messages"], parts["messages"]
        found = [name for name in parts if name != "messages" and before[name] != parts[name]]
        at = next((n for n, (a, b) in enumerate(zip(recorded, asked, strict=False)) if a != b), None)
        if at is not None:
            found.append(f"message {at + 1} of {len(asked)}")
        elif len(recorded) != len(asked):
            found.append(f"the number of messages, {len(recorded)} recorded and {len(asked)} asked")
        return f"other than recorded: {', '.join(found)}" if found else "it was given out already"

    async def _record(
        self, step: str, request: str, parts: dict[str, Any], call: ModelCall, fn: Callable[[], Awaitable[Any]]
    ) -> Any:
        line = {
            "format": _FORMAT,
            "case": self._case,
            "repeat": self._repeat,
            "step": step,
            "request": request,
            "parts": parts,
        }
        try:
            value = await fn()
        except ModelError as e:
            failure = {"type": type(e).__name__, "text": str(e), "retryable": e.retryable}
            self._tape.add({**line, "came": {"failed": failure, "usage": encode(call.usage)}})
            raise
        self._tape.add({**line, "came": {"value": encode_data(value)}})
        return value


def _hash_parts(call: ModelCall) -> dict[str, Any]:
    """What a request asks, as hashes of its parts: everything but when it must be answered."""
    request = call.request
    return {
        "model": call.model.name,
        "purpose": call.purpose,
        "messages": [_hash(_form(message)) for message in request.messages],
        "tools": _hash(list(map(_form, request.tools))),
        "settings": _hash(_form(request.settings)),
        "output": "" if request.output is None else _hash(_form(request.output)),
    }


def _form(value: Any) -> Any:
    try:
        return encode(value)
    except NotSerialisable:  # a provider's extras may be anything
        return repr(value)


def _hash(form: Any) -> str:
    text = json.dumps(form, sort_keys=True, default=repr)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class TapeEffects:
    """The effects of a run, whose model calls go by a tape.

    Args:
        inner: the effects that it would have otherwise.
        find: from the id of a step to the tape of its trial.
    """

    def __init__(self, inner: Effects, find: Callable[[StepId], TrialTape]) -> None:
        self._inner, self._find = inner, find
        self.now, self.new_id = inner.now, inner.new_id

    def run(self, step_id: StepId, fn: Callable[[], Awaitable[Any]], policy: Policy, digest: str) -> Awaitable[Any]:
        """Make an effect happen, see `Effects.run`."""
        call = getattr(fn, "__self__", None)
        if not isinstance(call, ModelCall):
            return self._inner.run(step_id, fn, policy, digest)
        tape = self._find(step_id)
        if tape.replays:
            return tape.ask(str(step_id), call, fn)
        return tape.ask(str(step_id), call, partial(self._inner.run, step_id, fn, policy, digest))
