"""Who signs: a profile of the configuration file of OCI's command line, or a resource of OCI.

Files are read when they are first needed and again when they change: a session is renewed in its file. What is read is
held in this process and never shown.
"""

from __future__ import annotations

import base64
import configparser
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, frozen
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from locus_plugin_oci.errors import CredentialsUnusable
from locus_plugin_oci.signing import Identity

if TYPE_CHECKING:
    from locus_plugin_oci.settings import OciSettings

__all__ = ["Credentials", "read_profile"]

_SUPPORTED = (
    "locus-plugin-oci signs with an API key or a session token of a profile (auth = 'api_key', 'security_token'), and "
    "as a resource of version 2.2, as OCI Functions are (auth = 'resource_principal')"
)


@frozen
class _Stamp:
    """What a file looked like: equal as long as it is the same."""

    path: Path
    modified: int
    size: int

    @classmethod
    def of(cls, path: Path) -> _Stamp:
        try:
            found = path.stat()
        except OSError:
            return cls(path, -1, -1)
        return cls(path, found.st_mtime_ns, found.st_size)


@define
class _CachedKey:
    identity: Identity
    stamps: tuple[_Stamp, ...]
    expires: float | None


class Credentials:
    """Finds out who signs. Safe to share between threads: at worst a file is read twice.

    Args:
        settings: which profile, and how.
        environ: the process's environment when None.
        clock: seconds since 1970, for the end of a session.
    """

    def __init__(
        self,
        settings: OciSettings,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._environ = os.environ if environ is None else environ
        self._clock = clock
        self._load_key: _CachedKey | None = None

    def __repr__(self) -> str:
        return f"Credentials(profile={self._settings.profile!r}, auth={self._settings.auth!r})"

    def identity(self) -> Identity:
        """Who signs now.

        Raises:
            CredentialsUnusable: no usable credentials were found.
        """
        loaded = self._load_key
        if loaded is None or any(_Stamp.of(stamp.path) != stamp for stamp in loaded.stamps):
            loaded = self._load_key = self._load()
        if loaded.expires is not None and loaded.expires < self._clock():
            raise CredentialsUnusable(
                f"the session of profile {self._settings.profile!r} has ended; "
                f"`oci session authenticate --profile-name {self._settings.profile}` starts another one"
            )
        return loaded.identity

    @property
    def compartment(self) -> str | None:
        """The compartment that pays, if it is configured.

        Raises:
            CredentialsUnusable: no usable credentials were found.
        """
        given = self._settings.compartment or self._environ.get("OCI_COMPARTMENT_ID")
        return given or self.identity().tenancy

    @property
    def region(self) -> str | None:
        """The region, if it is configured.

        Raises:
            CredentialsUnusable: no usable credentials were found.
        """
        return self._settings.region or self._environ.get("OCI_REGION") or self.identity().region

    def _load(self) -> _CachedKey:
        kind = self._settings.auth
        if kind == "instance_principal":
            raise CredentialsUnusable(
                "auth is 'instance_principal', which takes a certificate of the instance to OCI's token service; "
                f"{_SUPPORTED}"
            )
        if kind == "resource_principal" or (kind == "auto" and self._environ.get("OCI_RESOURCE_PRINCIPAL_VERSION")):
            return self._resource()
        return self._profile()

    # -- a profile ----------------------------------------------------------------------------------

    def _profile(self) -> _CachedKey:
        settings = self._settings
        path = config_path(settings.config_file, self._environ)
        profile = read_profile(path, settings.profile)
        session = settings.auth == "security_token" or (
            settings.auth == "auto" and "security_token_file" in profile and "user" not in profile
        )
        wanted = ("tenancy", "key_file", "security_token_file") if session else _OF_A_USER
        missing = [name for name in wanted if not profile.get(name)]
        if missing:
            raise CredentialsUnusable(
                f"profile {settings.profile!r} of {path} has no {' and no '.join(missing)}; it needs "
                f"{', '.join(wanted)} (`oci setup config` and `oci session authenticate` write such profiles)"
            )
        key_file = _beside(path, profile["key_file"])
        files = [path, key_file]
        phrase = settings.pass_phrase.reveal() if settings.pass_phrase is not None else profile.get("pass_phrase")
        key = _key(_bytes(key_file, "key_file", settings.profile), phrase, f"the key file {key_file}")
        expires = None
        if session:
            token_file = _beside(path, profile["security_token_file"])
            files.append(token_file)
            token = _bytes(token_file, "security_token_file", settings.profile).decode("utf-8", "replace").strip()
            expires = _claim(token, "exp")
            key_id = f"ST${token}"
        else:
            key_id = "/".join(profile[name] for name in ("tenancy", "user", "fingerprint"))
        identity = Identity(key_id, key, profile.get("region") or None, profile.get("tenancy") or None)
        return _CachedKey(identity, tuple(map(_Stamp.of, files)), _number(expires))

    # -- a resource ---------------------------------------------------------------------------------

    def _resource(self) -> _CachedKey:
        given = {name: self._environ.get(f"OCI_RESOURCE_PRINCIPAL_{name}", "") for name in _OF_A_RESOURCE}
        if given["VERSION"] != "2.2":
            raise CredentialsUnusable(
                f"OCI_RESOURCE_PRINCIPAL_VERSION is {given['VERSION']!r}; {_SUPPORTED}. "
                "Version 2.2 needs no service to be asked, the others do"
            )
        missing = [f"OCI_RESOURCE_PRINCIPAL_{name}" for name in ("RPST", "PRIVATE_PEM") if not given[name]]
        if missing:
            raise CredentialsUnusable(f"{' and '.join(missing)} is not set; where this resource runs, OCI sets it")
        files: list[Path] = []

        def content(name: str) -> bytes:
            # As the SDK has it: an absolute path is a file, which is renewed; everything else the value itself.
            path = Path(given[name])
            if not path.is_absolute():
                return given[name].encode()
            files.append(path)
            return _bytes(path, f"OCI_RESOURCE_PRINCIPAL_{name}", "")

        token = content("RPST").decode("utf-8", "replace").strip()
        phrase = content("PRIVATE_PEM_PASSPHRASE").decode().strip() if given["PRIVATE_PEM_PASSPHRASE"] else None
        key = _key(content("PRIVATE_PEM"), phrase, "the key of OCI_RESOURCE_PRINCIPAL_PRIVATE_PEM")
        tenancy, expires = _claim(token, "res_tenant"), _claim(token, "exp")
        identity = Identity(f"ST${token}", key, given["REGION"] or None, tenancy if isinstance(tenancy, str) else None)
        # Where it is a file, it is renewed there; a value is what it is, and the service says when it has ended.
        return _CachedKey(identity, tuple(map(_Stamp.of, files)), None if files else _number(expires))


_OF_A_USER = ("tenancy", "user", "fingerprint", "key_file")
_OF_A_RESOURCE = ("VERSION", "RPST", "PRIVATE_PEM", "PRIVATE_PEM_PASSPHRASE", "REGION")


def config_path(given: str | None, environ: Mapping[str, str]) -> Path:
    """Where the configuration file is, as OCI's own tools look for it."""
    if given:
        return Path(given).expanduser()
    usual = Path("~/.oci/config").expanduser()
    named = environ.get("OCI_CONFIG_FILE")
    return Path(named).expanduser() if named and not usual.is_file() else usual


def read_profile(path: Path, profile: str) -> dict[str, str]:
    """A profile of a configuration file; what ``[DEFAULT]`` says holds for each.

    Raises:
        CredentialsUnusable: the profile is missing, or the file cannot be read.
    """
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CredentialsUnusable(
            f"file not found: {path}; `oci setup config` writes it, or the setting config_file names another one"
        ) from None
    except (OSError, UnicodeDecodeError, configparser.Error) as e:
        # The text of a parser's error quotes the line, which may be a pass phrase.
        raise CredentialsUnusable(f"{path} cannot be read as a configuration file ({type(e).__name__})") from None
    if profile not in parser:
        known = [*([parser.default_section] if parser.defaults() else []), *parser.sections()]
        raise CredentialsUnusable(f"{path} has no profile {profile!r}; it has {', '.join(known) or 'none'}")
    found = dict(parser[profile])
    if "key_content" in found:
        raise CredentialsUnusable(
            f"{path} holds a private key (key_content); keep it in a file and name that: key_file"
        )
    return found


def _beside(config: Path, name: str) -> Path:
    path = Path(name).expanduser()
    return path if path.is_absolute() else config.parent / path


def _bytes(path: Path, what: str, profile: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as e:
        where = f" of profile {profile!r}" if profile else ""
        raise CredentialsUnusable(f"{what}{where} names {path}, which cannot be read ({e.strerror})") from None


def _key(pem: bytes, phrase: str | None, what: str) -> RSAPrivateKey:
    """The private key in a file.

    Raises:
        CredentialsUnusable: the key is missing, or its pass phrase is missing or wrong.
    """
    # A label may follow the key, by which others find keys that lie about.
    pem = pem.strip()
    try:
        try:
            key = _load_key(pem, phrase.encode() if phrase else None)
        except TypeError:
            if phrase is None:
                raise CredentialsUnusable(
                    f'{what} is encrypted, and no pass phrase is set; write pass_phrase = {{ env = "NAME" }} in '
                    "[plugins.oci], or into the profile"
                ) from None
            # A pass phrase of [DEFAULT], and a key of this profile that has none.
            key = _load_key(pem, None)
    except (ValueError, UnsupportedAlgorithm):
        why = (
            "is a public key; name the private one"
            if b"PUBLIC KEY" in pem
            else "is not a private key, or its pass phrase is wrong"
        )
        raise CredentialsUnusable(f"{what} {why}") from None
    if not isinstance(key, RSAPrivateKey):
        raise CredentialsUnusable(f"{what} is not an RSA key, and OCI accepts only RSA keys for signing requests")
    return key


def _load_key(pem: bytes, phrase: bytes | None) -> PrivateKeyTypes:
    # Whether its numbers are primes takes 40 ms to find out, and the key is the user's own.
    return serialization.load_pem_private_key(pem, phrase, unsafe_skip_rsa_key_validation=True)


def _claim(token: str, name: str) -> Any:
    """What a token (RFC 7519) says of itself; the service checks it, this only looks."""
    try:
        body = token.split(".")[1]
        return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))).get(name)
    except (IndexError, ValueError, AttributeError):
        return None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
