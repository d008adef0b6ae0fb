"""Labels: whose words a text may hold, and where the values in a call's arguments come from.

A model cannot tell an instruction in a web page from one of its user's. The kernel does know what it has read by the
time it makes a call: a `Label` is put on each result, and the join of all of them on the state. The label that counts
for what a model writes is its context's, because comparing values alone finds nothing where an injected text is
encoded. The one exception is a positive list: a value that is literally the user's, or in the user's own records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from locus.core.frozen import fast_init, frozen

__all__ = ["CLEAN", "LEVELS", "UNKNOWN", "Label", "Leaf", "Origin", "Provenance", "Reads", "taint"]

#: Whose words a text may hold: the user's own, those of the user's own records, or those of anybody.
Reads = Literal["user", "own", "untrusted"]

#: The levels, the cleanest first.
LEVELS: Mapping[str, int] = {level: at for at, level in enumerate(get_args(Reads))}

#: How a value came into the arguments of a call: literally from the user's turn or from a result, as the default of the
#: tool's schema, or written by the model out of all that it has seen.
Origin = Literal["user", "result", "default", "context"]


@fast_init
@frozen
class Label:
    """Whose words a text may hold. Labels form a join semilattice: ``a | b`` is idempotent, commutative, associative.

    Args:
        reads: the level.
        sources: the names of what was not trusted, such as tools.
    """

    reads: Reads = "user"
    sources: frozenset[str] = frozenset()

    @property
    def is_tainted(self) -> bool:
        """Whether anybody's words may be in it."""
        return self.reads == "untrusted"

    def __or__(self, other: Label) -> Label:
        """The label of both together."""
        if other is self or (LEVELS[other.reads] <= LEVELS[self.reads] and other.sources <= self.sources):
            return self
        if LEVELS[self.reads] <= LEVELS[other.reads] and self.sources <= other.sources:
            return other
        reads = max(self.reads, other.reads, key=LEVELS.__getitem__)
        return Label(reads, self.sources | other.sources)

    def __str__(self) -> str:
        return f"{self.reads} ({', '.join(sorted(self.sources))})" if self.sources else self.reads


#: The label of the user's own words; joined with any other, it changes nothing.
CLEAN = Label()


def taint(*sources: str) -> Label:
    """The label of text that anybody may have written, from these sources."""
    return Label("untrusted", frozenset(sources))


#: The label of text that was recorded without one.
UNKNOWN = taint("unknown")


# -- where the arguments of a call come from -----------------------------------------------------------


@frozen(kw_only=True)
class Leaf:
    """One value in the arguments of a call.

    Args:
        path: where it is, as in ``"recipients[0]"``.
        parameter: the argument that it is in.
        value: a text, a number or a boolean; the key of an object whose keys are free to choose is a leaf as well.
        origin: how it came there.
        label: of its origin. What the model wrote has that of the context.
        result: the index in ``state.tool_executions`` of the result that it is literally in, or None.
        tool: the name of the tool of that result, or ``""``.
    """

    path: str
    parameter: str
    value: Any
    origin: Origin
    label: Label
    result: int | None = None
    tool: str = ""

    @property
    def is_tainted(self) -> bool:
        """Whether someone other than the user may have chosen it."""
        return self.label.is_tainted

    @property
    def where(self) -> str:
        """Where it comes from, in words for people."""
        if self.origin == "result":
            return f"from the result of {self.tool}"
        if self.origin == "context":
            read = ", ".join(sorted(self.label.sources))
            return f"written by the model after it had read {read}" if read else "written by the model"
        return "from the user's request" if self.origin == "user" else "the default of the tool"


@frozen(kw_only=True)
class Provenance:
    """Where everything in the arguments of one call comes from.

    Args:
        leaves: the values, in order.
        context: the label of all that the model had seen when it made the call.
        targets: the parameters that say whom or what the call reaches.
        effect: of the tool.
        is_egress: the call sends something out, such as a request for a URL.
    """

    leaves: tuple[Leaf, ...]
    context: Label
    targets: tuple[str, ...] = ()
    effect: str = "once"
    is_egress: bool = False

    @property
    def target_leaves(self) -> tuple[Leaf, ...]:
        """The values that say whom or what the call reaches."""
        return tuple(leaf for leaf in self.leaves if leaf.parameter in self.targets)

    @property
    def tainted(self) -> tuple[Leaf, ...]:
        """Those of them that someone other than the user may have chosen."""
        return tuple(leaf for leaf in self.target_leaves if leaf.is_tainted)
