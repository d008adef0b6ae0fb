"""`Difference`: the first thing in which code and record are not the same, and what counts as the same."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from attrs import frozen

from locus.schema import safe_repr

if TYPE_CHECKING:
    from locus.core.journal import StateDelta
    from locus.core.state import AgentState

__all__ = ["Difference", "differing_field", "same"]

#: What is stamped on a state by the clock.
_STAMPS = frozenset({"updated_at", "active_seconds"})

_ADDRESS = re.compile(r"\b0x[0-9a-f]+\b")


@frozen(kw_only=True)
class Difference:
    """Where a replay comes to something else than the journal says.

    Args:
        n: the number of the transition, as in `History`.
        node: the node at work.
        step: what differs: a step's id, a field of the state, or ``"the next node"``.
        recorded: what the journal says; None where it has nothing.
        actual: what the code comes to now; None where it does nothing.
    """

    n: int
    node: str
    step: str
    recorded: Any
    actual: Any

    def __str__(self) -> str:
        return (
            f"transition {self.n} ({self.node}), {self.step}: recorded {safe_repr(self.recorded, 300)}, "
            f"now {safe_repr(self.actual, 300)}"
        )


def same(recorded: Any, actual: Any) -> bool:
    """Whether two values mean the same: NaN is NaN, and an address in a text is any address."""
    if recorded == actual:
        return True
    if isinstance(recorded, float) and isinstance(actual, float):
        return math.isclose(recorded, actual, rel_tol=1e-9)  # a sum, in another order
    return _ADDRESS.sub("0x", repr(recorded)) == _ADDRESS.sub("0x", repr(actual))


def differing_field(
    after: AgentState, new: AgentState, recorded: StateDelta, actual: StateDelta
) -> tuple[str, Any, Any] | None:
    """The first field in which two transitions from one state differ: its name and both values; None for none.

    Args:
        after: the state that the journal has.
        new: the state that the code made.
        recorded: the change to the one.
        actual: the change to the other.
    """
    touched = {*recorded.changed, *recorded.grown, *actual.changed, *actual.grown, "iteration", "metadata"} - _STAMPS
    for name in sorted(touched):
        if name in recorded.grown and recorded.grown.get(name) == actual.grown.get(name):
            continue
        then, now = getattr(after, name), getattr(new, name)
        if not same(then, now):
            return _place(f"state.{name}", then, now)
    return None


def _place(name: str, then: Any, now: Any) -> tuple[str, Any, Any]:
    """The first item that differs, where the values are sequences or mappings."""
    if isinstance(then, tuple) and isinstance(now, tuple):
        for i in range(max(len(then), len(now))):
            a, b = (v[i] if i < len(v) else None for v in (then, now))
            if not same(a, b):
                return f"{name}[{i}]", a, b
    if isinstance(then, dict) and isinstance(now, dict):
        for key in sorted({*then, *now}, key=str):
            if not same(then.get(key), now.get(key)):
                return f"{name}[{key!r}]", then.get(key), now.get(key)
    return name, then, now
