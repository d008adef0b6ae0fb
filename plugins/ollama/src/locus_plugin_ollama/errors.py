"""What can go wrong beyond what `locus_wire.errors` knows of every provider.

RequestRefused
└── CannotSend              the request holds what this protocol cannot say; nothing was sent
NotFound
└── ModelMissing            the server is there and has no such model (`.model`, `.known`)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from locus.core.errors import closest
from locus_wire.errors import ContextTooLong, NotFound, RequestRefused, Unreachable

__all__ = ["PROVIDER", "CannotSend", "ModelMissing", "too_long", "unreachable"]

PROVIDER = "ollama"

_E = TypeVar("_E", Unreachable, ContextTooLong)


class CannotSend(RequestRefused):
    """The request holds what this protocol cannot say; nothing was sent."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{PROVIDER}: {message}", provider=PROVIDER, retryable=False)


class ModelMissing(NotFound):
    """The server has no such model.

    Args:
        model: as it was asked for, without the scheme.
        url: where the server is.
        known: the models that it has, as far as it says; None = it does not say.
        cause: what it answered.
    """

    def __init__(self, model: str, url: str, known: Iterable[str] | None, cause: NotFound) -> None:
        self.model, self.known = model, () if known is None else tuple(known)
        super().__init__(
            f"{PROVIDER} answered 404: {url} has no model {model!r}; {_remedy(model, known)}",
            provider=PROVIDER,
            code=cause.code,
            status=cause.status,
            request_id=cause.request_id,
            retryable=False,
        )


def _remedy(model: str, known: Iterable[str] | None) -> str:
    names = () if known is None else tuple(known)
    pull = f"run: ollama pull {model}"
    family = [name for name in names if name.partition(":")[0] == model.partition(":")[0]]
    near = closest(model, family or names)
    if near is None and family:
        near = family[0]
    if near is not None:
        return f"did you mean {near!r}? If not, {pull}"
    if names:
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        return f"{pull} (it has {shown})"
    return pull if known is None else f"{pull} (it has none yet)"


def unreachable(error: Unreachable, url: str, *, here: bool) -> Unreachable:
    """The same, with what to do about a server that does not run.

    Args:
        error: as it came.
        url: where the server should be.
        here: whether that is this machine.
    """
    start = "is ollama running? Start it: ollama serve" if here else "is ollama running there?"
    what = str(error).removesuffix("; check base_url and the network")
    return _reword(error, f"{what}; {start} (base_url is {url}: OLLAMA_HOST, or base_url in [plugins.{PROVIDER}])")


def too_long(error: ContextTooLong) -> ContextTooLong:
    """The same, with the setting that makes the window larger."""
    return _reword(error, f"{error}; or make the window larger: num_ctx in [plugins.{PROVIDER}]")


def _reword(error: _E, text: str) -> _E:
    made = type(error).__new__(type(error))
    made.__dict__.update(error.__dict__)
    made.args = (text,)
    return made
