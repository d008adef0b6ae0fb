"""Whether a failure may pass: also where a provider lets an HTTP library's own error through.

The libraries are never imported here: an error of one that was not imported cannot have been raised.
"""

from __future__ import annotations

import ssl
import sys
from typing import Any

from locus.core.errors import ModelError, is_transient

__all__ = ["find_wait", "may_pass", "to_model_error"]

#: What libraries raise when the network failed, or the other side broke off. What the request itself is wrong about
#: (an unsupported scheme, a header that is not valid) is not among them.
_NETWORK = {
    "httpx": ("TimeoutException", "NetworkError", "RemoteProtocolError", "ProxyError"),
    "httpx2": ("TimeoutException", "NetworkError", "RemoteProtocolError", "ProxyError"),
    "httpcore": ("TimeoutException", "NetworkError", "RemoteProtocolError", "ProxyError"),
    "httpcore2": ("TimeoutException", "NetworkError", "RemoteProtocolError", "ProxyError"),
    "aiohttp": ("ClientConnectionError", "ClientPayloadError"),
    "urllib3": ("exceptions.TimeoutError", "exceptions.ProtocolError"),
    "anyio": ("BrokenResourceError", "EndOfStream"),
    "trio": ("BrokenResourceError",),
}
#: What libraries raise for an answer with the status of a failure.
_STATUS = {"httpx": "HTTPStatusError", "httpx2": "HTTPStatusError", "requests": "HTTPError"}


def may_pass(error: BaseException) -> bool:
    """Whether the same request may succeed later.

    Beside what `is_transient` knows, these may pass: raw errors of the network of the usual HTTP libraries, their
    errors for a status such as 429 or 503, and groups of nothing else. A certificate that is not trusted does not.
    """
    if isinstance(error, BaseExceptionGroup):
        return all(map(may_pass, error.exceptions))
    if _is_untrusted(error):
        return False
    return is_transient(error) or _is_network(error) or _is_status(error)


def to_model_error(error: Exception, name: str) -> Exception:
    """A failure that may pass, in the kernel's terms: a `ModelError` that says so, where the kernel cannot know it."""
    if is_transient(error) or not may_pass(error):
        return error
    status = _status_of(error)
    if status is not None:
        what = f"{type(error).__name__} with status {status}"  # its text has the address, and maybe a key within it
    else:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    made = ModelError(f"{name} failed: {what}", status=status, retryable=True, retry_after=find_wait(error) or None)
    made.__cause__ = error
    return made


def find_wait(error: BaseException | None) -> float:
    """Seconds that the provider asked to wait; 0.0 where it did not."""
    if isinstance(error, ModelError):
        asked = error.retry_after
    else:
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        try:
            asked = float(headers.get("retry-after", 0))  # a date is not read: it needs this machine's clock
        except (TypeError, ValueError, AttributeError):
            return 0.0
    # NaN compares with nothing; a negative wait counts as 0.
    return asked if asked is not None and asked > 0 else 0.0


def _classes(table: dict[str, Any]) -> tuple[type[BaseException], ...]:
    found = []
    for library, names in table.items():
        module = sys.modules.get(library)
        for path in (names,) if isinstance(names, str) else names:
            each: Any = module
            for part in path.split("."):
                each = getattr(each, part, None)
            if isinstance(each, type) and issubclass(each, BaseException):
                found.append(each)
    return tuple(found)


def _is_network(error: BaseException) -> bool:
    return isinstance(error, _classes(_NETWORK))


def _status_of(error: BaseException) -> int | None:
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status if isinstance(status, int) else None


def _is_status(error: BaseException) -> bool:
    status = _status_of(error)
    return isinstance(error, _classes(_STATUS)) and status is not None and ModelError("", status=status).retryable


def _is_untrusted(error: BaseException) -> bool:
    """Whether the other side's certificate was refused; libraries chain that error below their own."""
    looked_at: BaseException | None = error
    for _ in range(10):
        if looked_at is None or isinstance(looked_at, ModelError):
            return False
        if isinstance(looked_at, ssl.SSLCertVerificationError):
            return True
        looked_at = looked_at.__cause__ or looked_at.__context__
    return False
