"""`StepId`: the place of a step in a run, the same in every process and on every way back to it.

This is the one place that makes a text of a step's id and reads it. The text is what the journal holds and what people
see: ``0/execute/1`` is the second call of the first turn, ``0/execute/1#2`` its second repetition, and
``0/execute/1#2/step/0:pay`` the step ``pay`` inside its body. Names are escaped, so that no name that a plugin or a
tool chooses reads as the id of another step.
"""

from __future__ import annotations

import re
from functools import cache, partial

from locus.core.errors import CheckpointError
from locus.core.frozen import fast_init, frozen

#: Where a step belongs: Think's own model call, a tool call, a plugin's model call, ``run.step`` or ``ctx.step``, a
#: reviewer's verdict, a child run, and what a segment keeps for those who read the journal.
THINK, EXECUTE, CALL, STEP, REVIEW, CHILD, SEGMENT = ("think", "execute", "call", "step", "review", "child", "segment")

_LEVEL = r"/([^/#:?]+)/(0|[1-9][0-9]*)(?:#([1-9][0-9]*))?(?::([^/?]+))?"
_ITERATION = "0|[1-9][0-9]*"
#: A pattern, compiled for the first text that is read: a run that begins reads none.
_compiled = cache(partial(re.compile, flags=re.ASCII))
# What ends a part of the text. A name may hold ":" and "#": it begins at the first ":".
_IN_NODES = str.maketrans({c: f"%{ord(c):02X}" for c in "%/#:?"})
_IN_NAMES = str.maketrans({c: f"%{ord(c):02X}" for c in "%/?"})


@fast_init
@frozen
class StepId:
    """Names one effect of a run.

    Args:
        iteration: 0-based index of the iteration.
        node: where it belongs, `THINK`, `EXECUTE`, ... or what a plugin's node calls its own steps; not empty.
        ordinal: which of several, from 0.
        attempt: how often it was made before, because a hook asked for another try.
        name: what its maker calls it, any text.
        parent: the step inside whose body it happens, or None.
    """

    iteration: int
    node: str
    ordinal: int = 0
    attempt: int = 0
    name: str = ""
    parent: StepId | None = None

    def inner(self, node: str, ordinal: int = 0, name: str = "") -> StepId:
        """The id of a step inside the body of this one."""
        return StepId(self.iteration, node, ordinal, 0, name, self)

    def at_attempt(self, attempt: int) -> StepId:
        """The id of another attempt at this step, 0 for the first."""
        return StepId(self.iteration, self.node, self.ordinal, attempt, self.name, self.parent)

    @classmethod
    def of_call(cls, iteration: int, purpose: str, question: str, times: int, parent: StepId | None = None) -> StepId:
        """The id of a plugin's model call, by what it asks and how often that was asked before.

        Args:
            iteration: 0-based index of the iteration.
            purpose: what the call is for, any text.
            question: a hash of the request, in hex digits.
            times: how often the node or body under way has asked the same for the same purpose.
            parent: the step inside whose body it is made, or None.
        """
        return cls(iteration, CALL, times, name=f"{question}:{purpose}", parent=parent)

    @property
    def purpose(self) -> str:
        """What a plugin's model call is for, ``""`` for another step."""
        return self.name.partition(":")[2] if self.node == CALL else ""

    @property
    def root(self) -> StepId:
        """The outermost step that this one is inside of, itself where it is inside of none."""
        step = self
        while step.parent is not None:
            step = step.parent
        return step

    def __str__(self) -> str:
        """The text form; `parse` reads it."""
        parent = self.parent
        before = str(self.iteration) if parent is None else str(parent)
        text = f"{before}/{_escape(self.node, _IN_NODES)}/{self.ordinal}"
        if self.attempt:
            text += f"#{self.attempt}"
        return f"{text}:{_escape(self.name, _IN_NAMES)}" if self.name else text

    @classmethod
    def parse(cls, text: str) -> StepId:
        """The id of which this is the text form.

        Raises:
            CheckpointError: it is not the text of a step id.
        """
        start, match_level = _compiled(_ITERATION).match(text), _compiled(_LEVEL).match
        made: StepId | None = None
        at = start.end() if start is not None else 0
        while start is not None and at < len(text):
            level = match_level(text, at)
            if level is None:
                break
            node, ordinal, attempt, name = level.groups()
            made = cls(int(start[0]), _plain(node), int(ordinal), int(attempt or 0), _plain(name or ""), made)
            at = level.end()
        # Only an escape can be written in more than one way.
        if made is None or at < len(text) or ("%" in text and str(made) != text):
            raise CheckpointError("step_id", f"{text!r:.120} is not the id of a step")
        return made


def _escape(text: str, table: dict[int, str]) -> str:
    return text if text.isalnum() else text.translate(table)


def _plain(text: str) -> str:
    return text if "%" not in text else re.sub("%([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), text)
