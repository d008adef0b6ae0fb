"""Request signatures of OCI: RSA-SHA256 over some headers, as `draft-cavage-http-signatures-08` says.

Source: "Request Signatures" of the OCI documentation. PKCS #1 v1.5 has no randomness: the same request at the same
second has the same signature, so what is written here can be compared with the SDK byte for byte.
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
from collections.abc import Mapping
from urllib.parse import urlsplit

from attrs import field, frozen
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

__all__ = ["Identity", "date_now", "sign", "signing_string"]

_ALWAYS = ("date", "(request-target)", "host")
_WITH_BODY = ("content-length", "content-type", "x-content-sha256")


@frozen
class Identity:
    """Who signs.

    Args:
        key_id: names the key: ``"tenancy/user/fingerprint"``, or ``"ST$"`` and a token, which is a secret.
        key: the private key.
        region: the home region of the identity, if known.
        tenancy: OCID of the tenancy, where that is known.
    """

    key_id: str = field(repr=False)
    key: RSAPrivateKey = field(repr=False, eq=False)
    region: str | None = None
    tenancy: str | None = None


def date_now() -> str:
    """This second, as the header ``date`` says it."""
    return email.utils.formatdate(usegmt=True)


def sign(
    identity: Identity,
    method: str,
    url: str,
    *,
    body: bytes | None = None,
    media_type: str = "application/json",
    date: str | None = None,
) -> dict[str, str]:
    """The headers that prove who sends a request.

    Args:
        identity: who signs.
        method: ``"GET"``, ``"POST"``, ...
        url: the address as it will be sent, percent-encoded.
        body: what the signature covers beside the address; None for methods without one, and where Object Storage takes
            an object, whose content it does not ask to be signed.
        media_type: of the body.
        date: as `date_now` says it.

    Returns:
        ``date`` and ``authorization``, and ``x-content-sha256`` if it has a body. ``host``, ``content-length`` and
        ``content-type`` must be sent as they were signed.
    """
    given = {"date": date or date_now()}
    names: tuple[str, ...] = _ALWAYS
    covered = given
    if body is not None:
        given["x-content-sha256"] = base64.b64encode(hashlib.sha256(body).digest()).decode()
        covered = {**given, "content-length": str(len(body)), "content-type": media_type}
        names = (*_ALWAYS, *_WITH_BODY)
    text = signing_string(names, method, url, covered)
    signature = identity.key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
    proof = base64.b64encode(signature).decode()
    return given | {
        "authorization": f'Signature algorithm="rsa-sha256",headers="{" ".join(names)}",keyId="{identity.key_id}",'
        f'signature="{proof}",version="1"'
    }


def signing_string(names: tuple[str, ...], method: str, url: str, headers: Mapping[str, str]) -> str:
    """What is signed: a line for each name, in their order.

    Args:
        names: of headers, in lower case; ``(request-target)`` is the method and the path.
        method: of the request.
        url: its address.
        headers: by lower-case names; without ``host`` among them, it is the one of the address.
    """
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    special = {"(request-target)": f"{method.lower()} {target}", "host": headers.get("host", parts.netloc)}
    return "\n".join(f"{name}: {special.get(name) or headers[name]}" for name in names)
