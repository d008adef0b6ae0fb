"""What can go wrong between here and a provider, as part of the kernel's exception tree.

ModelError
├── WireError               a request over HTTP failed (`.code`, and what every ModelError has)
│   ├── KeyMissing          no key was found; nothing was sent
│   ├── RequestRefused      the provider refused the request: 4xx
│   │   ├── KeyRefused      401: the key is wrong, or was withdrawn
│   │   ├── NotAllowed      403: the key is good, and not for this
│   │   ├── NotFound        404: no such model, or no such address
│   │   └── QuotaExceeded  402, or a code or words that say so: waiting does not help
│   ├── RateLimited         429: too much at a time
│   ├── ProviderFailed      5xx: the provider's own failure
│   │   └── Overloaded      503, 529: too many ask
│   ├── Redirected          3xx: another address; it is not asked, it would be shown the key
│   ├── Unreachable         no connection could be made
│   ├── ConnectionLost      the connection broke before the answer was whole
│   ├── TooLate             the answer was not whole in time
│   └── BadAnswer           the answer is not valid in this protocol
└── ContextOverflow
    └── ContextTooLong      the request is longer than the model's window (`.code`)
"""

from __future__ import annotations

from locus.core.errors import ContextOverflow, ModelError
from locus.core.messages import Usage

__all__ = [
    "BadAnswer",
    "ConnectionLost",
    "ContextTooLong",
    "KeyMissing",
    "KeyRefused",
    "NotAllowed",
    "NotFound",
    "Overloaded",
    "ProviderFailed",
    "QuotaExceeded",
    "RateLimited",
    "Redirected",
    "RequestRefused",
    "TooLate",
    "Unreachable",
    "WireError",
]


class WireError(ModelError):
    """A request over HTTP failed.

    Args:
        message: what happened and what to do, without credentials.
        provider: the scheme of the provider.
        code: the provider's own word for it, or None.
        status, request_id, retryable, retry_after, usage: see `ModelError`.
    """

    def __init__(
        self,
        message: str,
        *,
        provider: str,
        code: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        self.code = code
        super().__init__(
            message,
            provider=provider,
            status=status,
            request_id=request_id,
            retryable=retryable,
            retry_after=retry_after,
            usage=usage,
        )


class KeyMissing(WireError):
    """No key was found; nothing was sent."""


class RequestRefused(WireError):
    """The provider refused the request; the same request would be refused again."""


class KeyRefused(RequestRefused):
    """The key is wrong, or was withdrawn."""


class NotAllowed(RequestRefused):
    """The key is good, and not for this."""


class NotFound(RequestRefused):
    """The model or the address does not exist."""


class QuotaExceeded(RequestRefused):
    """The account has nothing left; waiting does not help."""


class RateLimited(WireError):
    """Too much at a time; ``retry_after`` says how long to wait, if the provider did."""


class ProviderFailed(WireError):
    """The provider had an internal error."""


class Overloaded(ProviderFailed):
    """Too many ask the provider at a time."""


class Redirected(WireError):
    """The address points elsewhere, which is not followed: another host would be shown the key."""


class Unreachable(WireError):
    """No connection could be made."""


class ConnectionLost(WireError):
    """The connection broke before the answer was whole."""


class TooLate(WireError):
    """The answer was not whole at the deadline, or nothing came for too long."""


class BadAnswer(WireError):
    """The answer is not valid in this protocol."""


class ContextTooLong(ContextOverflow):
    """The request is longer than the model's window.

    Args:
        message: what happened and what to do.
        provider: the scheme of the provider.
        code: the provider's own word for it, or None.
        status: the HTTP status.
        request_id: the provider's id of the request.
    """

    def __init__(
        self,
        message: str,
        *,
        provider: str,
        code: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
    ) -> None:
        self.code = code
        super().__init__(message, provider=provider, status=status, request_id=request_id, retryable=False)
