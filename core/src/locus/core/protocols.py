"""Whether a value has what a protocol asks for.

`isinstance` with a protocol finds what ``__getattr__`` gives in Python 3.11 and no longer in 3.12: a store that hands
its calls on to another one would be one in the first and none in the second.
"""

from __future__ import annotations

from functools import cache

__all__ = ["has_all_of"]


def has_all_of(value: object, protocol: type) -> bool:
    """Whether a value has every public attribute that a protocol class names; what they are is not looked at."""
    return all(hasattr(value, name) for name in _names(protocol))


@cache
def _names(protocol: type) -> tuple[str, ...]:
    return tuple(name for name in vars(protocol) if not name.startswith("_"))
