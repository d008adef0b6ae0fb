"""Oracle's SDK signs the same requests with the same signatures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import oci
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oci._vendor import requests
from plugins.oci.tests.verification import FINGERPRINT, TENANCY, USER, Keys

from locus_plugin_oci.signing import Identity, date_now, sign

HOST = "https://inference.generativeai.us-chicago-1.oci.oraclecloud.com"


@pytest.fixture(scope="module")
def keys() -> Keys:
    return Keys.recorded()


@pytest.fixture(scope="module")
def signer(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("keys") / "key.pem"
    path.write_bytes(keys.private)
    return oci.signer.Signer(TENANCY, USER, FINGERPRINT, str(path))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    method=st.sampled_from(["POST", "GET", "DELETE", "HEAD"]),
    path=st.sampled_from(["/20231130/actions/chat", "/n/ns/b/bucket/o/a%2Fb", "/n/ns/b/bucket/o?prefix=a%2F&limit=10"]),
    body=st.binary(max_size=200),
)
def test_signatures_are_those_of_the_sdk(keys: Keys, signer: Any, method: str, path: str, body: bytes) -> None:
    key = serialization.load_pem_private_key(keys.private, None)
    assert isinstance(key, RSAPrivateKey)
    date = date_now()
    content = body if method == "POST" else None
    ours = sign(Identity(f"{TENANCY}/{USER}/{FINGERPRINT}", key), method, HOST + path, body=content, date=date)
    headers = {"date": date, "content-type": "application/json"}
    request = requests.Request(method, HOST + path, data=content, headers=headers).prepare()
    if content is not None:
        request.headers["content-length"] = str(len(content))
    signer.do_request_sign(request)
    assert ours["authorization"] == request.headers["authorization"]
