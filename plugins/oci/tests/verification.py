"""Checks signatures as the service does: from what arrived, with the public key and nothing of the signer's code."""

from __future__ import annotations

import base64
import email.utils
import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from attrs import frozen
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

__all__ = ["FINGERPRINT", "PASS_PHRASE", "TENANCY", "USER", "Keys", "unsigned_because", "write_profile"]

TENANCY = "ocid1.tenancy.oc1..aaaaaaaatenancy"
USER = "ocid1.user.oc1..aaaaaaaauser"
FINGERPRINT = "20:3b:97:13:55:1c:5b:0d:d3:37:d8:50:4e:c5:3a:34"
PASS_PHRASE = "open sesame"

_FORM = re.compile(
    r'Signature algorithm="rsa-sha256",headers="([^"]*)",keyId="([^"]*)",signature="([^"]*)",version="1"'
)


@frozen
class Keys:
    """A key pair as PEM. It is the one of the recorded signatures: making another takes seconds."""

    private: bytes
    encrypted: bytes
    public: rsa.RSAPublicKey

    @classmethod
    def recorded(cls) -> Keys:
        """Read it."""
        known = json.loads((Path(__file__).parent / "data" / "signatures.json").read_text())
        private = known["key"].encode()
        key = serialization.load_pem_private_key(private, None, unsafe_skip_rsa_key_validation=True)
        public = key.public_key()
        assert isinstance(public, rsa.RSAPublicKey)
        return cls(private, known["encrypted_key"].encode(), public)


def write_profile(folder: Path, keys: Keys, *, session: str = "", encrypted: bool = False, **more: str) -> Path:
    """A configuration file with its key; gives its path.

    Args:
        folder: where.
        keys: the pair.
        session: a session token, for a profile that signs with one.
        encrypted: whether the key needs its pass phrase.
        more: further lines of the profile.
    """
    key_file = folder / "key.pem"
    key_file.write_bytes(keys.encrypted if encrypted else keys.private)
    key_file.chmod(0o600)
    lines = {"tenancy": TENANCY, "fingerprint": FINGERPRINT, "key_file": str(key_file), "region": "us-chicago-1"}
    if session:
        (folder / "token").write_text(session)
        lines["security_token_file"] = str(folder / "token")
    else:
        lines["user"] = USER
    path = folder / "config"
    path.write_text("\n".join(["[DEFAULT]", *(f"{name}={value}" for name, value in (lines | more).items())]))
    return path


def unsigned_because(
    keys: Keys, method: str, path: str, headers: Mapping[str, str], body: bytes, *, key_id: str | None = None
) -> str:
    """Why a request is not signed as it should be; ``""`` where it is.

    Args:
        keys: whose public key counts.
        method: of the request line.
        path: of the request line, with its query.
        headers: by lower-case names, as they arrived.
        body: as it arrived.
        key_id: who must have signed; None = the user of `write_profile`.
    """
    matched = _FORM.fullmatch(headers.get("authorization", ""))
    if matched is None:
        return "there is no signature"
    names, signer, signature = matched[1].split(" "), matched[2], base64.b64decode(matched[3])
    if signer != (key_id or f"{TENANCY}/{USER}/{FINGERPRINT}"):
        return "somebody else signed"
    needed = {"date", "(request-target)", "host"}
    if method in ("POST", "PATCH") or (method == "PUT" and "/o/" not in path):
        needed |= {"content-length", "content-type", "x-content-sha256"}
    if not needed <= set(names):
        return f"the signature leaves out {needed - set(names)}"
    digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
    if "x-content-sha256" in names and headers["x-content-sha256"] != digest:
        return "the body is another one"
    said = email.utils.parsedate_to_datetime(headers["date"])
    if abs((datetime.now(UTC) - said).total_seconds()) > 300:
        return "the clock is wrong by more than five minutes"
    lines = [
        f"{name}: {method.lower()} {path}" if name == "(request-target)" else f"{name}: {headers[name]}"
        for name in names
    ]
    try:
        keys.public.verify(signature, "\n".join(lines).encode(), padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        return "the signature does not fit"
    return ""
