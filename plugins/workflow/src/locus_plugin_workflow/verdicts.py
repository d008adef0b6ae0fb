"""What a handler says of its iteration: `Continue`, `Complete` or `Fail`. Returned by it, or made by its context."""

from __future__ import annotations

from typing import Any, TypeAlias

from attrs import field, frozen

from locus.core import freeze

__all__ = ["Complete", "Continue", "Fail", "Verdict"]


@frozen
class Continue:
    """Another iteration is needed.

    Args:
        output: the input of the next iteration, data with a JSON form.
    """

    output: Any = field(default=None, converter=freeze)


@frozen
class Complete:
    """The step is completed.

    Args:
        output: what the steps behind it get, data with a JSON form.
    """

    output: Any = field(default=None, converter=freeze)


def _text(error: Any) -> str:
    return f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else str(error)


@frozen
class Fail:
    """This attempt has failed.

    Args:
        error: why, as text; of an exception its class and its text.
        is_permanent: the retry policy does not apply.
    """

    error: str = field(default="", converter=_text)
    is_permanent: bool = False


Verdict: TypeAlias = Continue | Complete | Fail
