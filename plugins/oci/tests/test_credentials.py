"""Who signs: profiles, sessions, resources. What is wrong is said by file and setting, and no secret with it."""

from __future__ import annotations

import base64
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from locus.plugins.secret import Secret
from locus_plugin_oci.credentials import Credentials
from locus_plugin_oci.errors import CredentialsUnusable
from locus_plugin_oci.settings import OciSettings

from .verification import FINGERPRINT, PASS_PHRASE, TENANCY, USER, Keys, write_profile


def token(**claims: Any) -> str:
    """A session token with some claims; nobody here checks its signature."""
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJSUzI1NiJ9.{body}.c2lnbmF0dXJl"


def credentials(config: Path, environ: dict[str, str] | None = None, **settings: Any) -> Credentials:
    return Credentials(
        OciSettings(config_file=str(config), **settings), environ=environ or {}, clock=lambda: 1_000_000.0
    )


def test_a_user_signs_with_a_key(keys: Keys, tmp_path: Path) -> None:
    found = credentials(write_profile(tmp_path, keys)).identity()
    assert found.key_id == f"{TENANCY}/{USER}/{FINGERPRINT}"
    assert (found.region, found.tenancy) == ("us-chicago-1", TENANCY)


@pytest.mark.parametrize("where", ["profile", "settings"])
def test_an_encrypted_key_needs_its_pass_phrase(keys: Keys, tmp_path: Path, where: str) -> None:
    more = {"pass_phrase": PASS_PHRASE} if where == "profile" else {}
    given: dict[str, Any] = {"pass_phrase": Secret(PASS_PHRASE)} if where == "settings" else {}
    config = write_profile(tmp_path, keys, encrypted=True, **more)
    assert credentials(config, **given).identity().key_id.startswith(TENANCY)


def test_a_key_without_a_pass_phrase_takes_no_harm_from_one(keys: Keys, tmp_path: Path) -> None:
    """One of [DEFAULT], where another profile's key needs it."""
    assert credentials(write_profile(tmp_path, keys, pass_phrase=PASS_PHRASE)).identity().tenancy == TENANCY


def test_a_session_signs_with_its_token(keys: Keys, tmp_path: Path) -> None:
    """... which is read again when the file has changed: that is how a session is renewed."""
    first, second = token(exp=2_000_000), token(exp=3_000_000)
    given = credentials(write_profile(tmp_path, keys, session=first))
    assert given.identity().key_id == f"ST${first}"
    (tmp_path / "token").write_text(second)
    os.utime(tmp_path / "token", ns=(1, 1))
    assert given.identity().key_id == f"ST${second}"


def test_a_session_that_has_ended_says_so(keys: Keys, tmp_path: Path) -> None:
    given = credentials(write_profile(tmp_path, keys, session=token(exp=999_999)))
    with pytest.raises(CredentialsUnusable, match="oci session authenticate"):
        given.identity()
    (tmp_path / "token").write_text(token(exp=1_000_001))
    os.utime(tmp_path / "token", ns=(1, 1))
    assert given.identity().key_id.startswith("ST$")


@pytest.mark.parametrize("as_files", [True, False])
def test_a_resource_signs_with_what_it_was_given(keys: Keys, tmp_path: Path, as_files: bool) -> None:
    """As OCI Functions are: values, or files that are renewed."""
    given = {
        "RPST": token(exp=2_000_000, res_tenant="ocid1.tenancy.oc1..resource"),
        "PRIVATE_PEM": keys.encrypted.decode(),
        "PRIVATE_PEM_PASSPHRASE": PASS_PHRASE,
    }
    wanted = given["RPST"]
    if as_files:
        for name, text in given.items():
            (tmp_path / name).write_text(text)
        given = {name: str(tmp_path / name) for name in given}
    environ = {f"OCI_RESOURCE_PRINCIPAL_{name}": text for name, text in given.items()}
    environ |= {"OCI_RESOURCE_PRINCIPAL_VERSION": "2.2", "OCI_RESOURCE_PRINCIPAL_REGION": "us-ashburn-1"}
    made = credentials(tmp_path / "none", environ)
    found = made.identity()
    assert (found.key_id, found.region) == (f"ST${wanted}", "us-ashburn-1")
    assert made.compartment == "ocid1.tenancy.oc1..resource"


def test_region_and_compartment_come_from_the_strongest(keys: Keys, tmp_path: Path) -> None:
    config = write_profile(tmp_path, keys)
    environ = {"OCI_REGION": "eu-paris-1", "OCI_COMPARTMENT_ID": "ocid1.compartment.oc1..env"}
    assert (credentials(config).region, credentials(config).compartment) == ("us-chicago-1", TENANCY)
    assert credentials(config, environ).region == "eu-paris-1"
    assert credentials(config, environ).compartment == "ocid1.compartment.oc1..env"
    assert credentials(config, environ, region="uk-london-1", compartment="c").region == "uk-london-1"
    assert credentials(config, environ, region="uk-london-1", compartment="c").compartment == "c"


def test_the_file_is_where_the_tools_of_oci_look(keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write_profile(tmp_path, keys)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert Credentials(OciSettings(), environ={"OCI_CONFIG_FILE": str(config)}).identity().tenancy == TENANCY
    (tmp_path / "home" / ".oci").mkdir(parents=True)
    (tmp_path / "home" / ".oci" / "config").write_text(config.read_text().replace("us-chicago-1", "us-phoenix-1"))
    assert Credentials(OciSettings(), environ={"OCI_CONFIG_FILE": str(config)}).identity().region == "us-phoenix-1"


def _other_key() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*form)


def _write(name: str, content: bytes) -> Callable[[Path, Keys], None]:
    def change(folder: Path, keys: Keys) -> None:
        (folder / name).write_bytes(content)

    return change


def _line(name: str, value: str) -> Callable[[Path, Keys], None]:
    def change(folder: Path, keys: Keys) -> None:
        config = folder / "config"
        kept = [line for line in config.read_text().splitlines() if not line.startswith(f"{name}=")]
        config.write_text("\n".join([*kept, f"{name}={value}"]))

    return change


def _public(folder: Path, keys: Keys) -> None:
    form = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (folder / "key.pem").write_bytes(keys.public.public_bytes(*form))


def _write_locked(folder: Path, keys: Keys) -> None:
    (folder / "key.pem").write_bytes(keys.encrypted)


@pytest.mark.parametrize(
    ("change", "settings", "says"),
    [
        (lambda folder, keys: (folder / "config").unlink(), {}, "file not found: .*oci setup config"),
        (None, {"profile": "WORK"}, "no profile 'WORK'; it has DEFAULT"),
        (_line("user", ""), {}, "has no user"),
        (_line("key_file", "/nowhere/key.pem"), {}, "key_file of profile 'DEFAULT' names /nowhere/key.pem"),
        (_line("key_content", "-----BEGIN"), {}, "keep it in a file"),
        (_write("config", b"pass_phrase = open sesame"), {}, "cannot be read as a configuration file"),
        (_write("key.pem", b"hunter2-not-a-key"), {}, "not a private key, or its pass phrase is wrong"),
        (_write("key.pem", _other_key()), {}, "not an RSA key"),
        (_public, {}, "is a public key"),
        (_write_locked, {}, "is encrypted, and no pass phrase is set"),
        (_write_locked, {"pass_phrase": Secret("wrong-7f3a")}, "its pass phrase is wrong"),
        (None, {"auth": "security_token"}, "has no security_token_file"),
        (None, {"auth": "instance_principal"}, "signs with an API key or a session token"),
        (None, {"auth": "resource_principal"}, "OCI_RESOURCE_PRINCIPAL_VERSION is ''"),
    ],
    ids=lambda value: None if not isinstance(value, str) else value[:30].replace(" ", "-"),
)
def test_what_is_wrong_is_said_and_no_secret_with_it(
    keys: Keys, tmp_path: Path, change: Any, settings: dict[str, Any], says: str
) -> None:
    config = write_profile(tmp_path, keys)
    if change is not None:
        change(tmp_path, keys)
    with pytest.raises(CredentialsUnusable, match=says) as caught:
        credentials(config, **settings).identity()
    error = caught.value
    shown = f"{error} {error!r} {error.__cause__!r}"
    for secret in ("hunter2", "wrong-7f3a", PASS_PHRASE, "BEGIN"):
        assert secret not in shown
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # our own bytes


def test_versions_of_resources_that_ask_a_service_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CredentialsUnusable, match=r"'1\.1'.*version 2\.2"):
        credentials(tmp_path, {"OCI_RESOURCE_PRINCIPAL_VERSION": "1.1"}).identity()
    with pytest.raises(CredentialsUnusable, match="RPST and OCI_RESOURCE_PRINCIPAL_PRIVATE_PEM is not set"):
        credentials(tmp_path, {"OCI_RESOURCE_PRINCIPAL_VERSION": "2.2"}).identity()
