"""Signatures are those of Oracle's SDK, byte for byte, and a verifier that knows nothing of the signer takes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from locus_plugin_oci.regions import domain_of, is_region
from locus_plugin_oci.signing import Identity, date_now, sign

from .verification import FINGERPRINT, TENANCY, USER, Keys, unsigned_because

RECORDED = json.loads((Path(__file__).parent / "data" / "signatures.json").read_text())
KEY_IDS = {"user": f"{TENANCY}/{USER}/{FINGERPRINT}", "session": f"ST${RECORDED['token']}"}


def identity_of(keys: Keys, key_id: str) -> Identity:
    key = serialization.load_pem_private_key(keys.private, None)
    assert isinstance(key, RSAPrivateKey)
    return Identity(key_id, key)


@pytest.mark.parametrize("vector", RECORDED["vectors"], ids=lambda v: f"{v['name']}-{v['signer']}".replace(" ", "-"))
def test_signature_is_the_one_of_the_sdk(keys: Keys, vector: dict[str, Any]) -> None:
    """An API key and a session token, with and without a body, with names that are percent-encoded twice."""
    body = bytes.fromhex(vector["body"]) if vector["covers_body"] else None
    identity = identity_of(keys, KEY_IDS[vector["signer"]])
    given = sign(identity, vector["method"], vector["url"], body=body, date=RECORDED["date"])
    assert given["authorization"] == vector["authorization"]
    assert given["date"] == RECORDED["date"]
    assert given.get("x-content-sha256") == (vector["x-content-sha256"] if vector["covers_body"] else None)


def test_every_part_of_a_request_is_covered(keys: Keys) -> None:
    """Another method, path, host, time, type or body, and the signature is worth nothing."""
    url, body = "https://host.example/20231130/actions/chat?x=1", b'{"a": 1}'
    given = sign(identity_of(keys, KEY_IDS["user"]), "POST", url, body=body)
    headers = {**given, "host": "host.example", "content-length": "8", "content-type": "application/json"}
    sent: dict[str, Any] = {
        "method": "POST",
        "path": "/20231130/actions/chat?x=1",
        "headers": headers,
        "body": body,
    }
    assert unsigned_because(keys, **sent) == ""
    changes: list[dict[str, Any]] = [
        {"method": "PUT", "path": "/20231130/actions/chat?x=1"},
        {"path": "/20231130/actions/chat?x=2"},
        {"headers": {**headers, "host": "other.example"}},
        {"headers": {**headers, "date": date_now().replace("GMT", "UTC")}},
        {"headers": {**headers, "content-type": "text/plain"}},
        {"headers": {**headers, "content-length": "9"}},
        {"body": b'{"a": 2}'},
    ]
    for change in changes:
        assert unsigned_because(keys, **{**sent, **change}) != "", change


def test_who_signs_is_not_shown(keys: Keys) -> None:
    """Neither the key nor a token, which stands in the name of the key."""
    shown = repr(identity_of(keys, "ST$secret-token"))
    assert "secret-token" not in shown
    assert "RSA" not in shown


def test_regions_have_their_domains() -> None:
    """Commercial ones, known or not, and those of other realms; a host name cannot be smuggled in."""
    assert domain_of("us-chicago-1") == domain_of("xx-newtown-1") == "oraclecloud.com"
    assert domain_of("uk-gov-london-1") == "oraclegovcloud.uk"
    assert domain_of("eu-frankfurt-2") == "oraclecloud.eu"
    assert is_region("us-chicago-1")
    assert not any(is_region(text) for text in ("", "us", "evil.example/", "us-chicago-1.evil.example", "US-CHICAGO-1"))
