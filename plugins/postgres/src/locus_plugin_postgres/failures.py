"""From what the driver raises to an error that says what to do, and whether to try again."""

from __future__ import annotations

import ssl

import asyncpg

from locus_plugin_postgres.address import Address
from locus_plugin_postgres.errors import (
    PostgresDenied,
    PostgresFailed,
    PostgresFull,
    PostgresProblem,
    PostgresReadOnly,
    PostgresUnreachable,
)

__all__ = ["is_passing", "is_undone", "problem"]

#: The connection is gone, or will be there soon: what was asked is asked again on another one.
_PASSING = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,  # the connection was closed meanwhile
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InternalClientError,
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    # A server that became a replica: its successor may be reached by the same address.
    asyncpg.ReadOnlySQLTransactionError,
)

#: Of those, what the server says of something that it has not done.
_UNDONE = (
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.ReadOnlySQLTransactionError,
)

#: Of those, what no moment changes: a certificate, an address or a value that is wrong.
_LASTING = ValueError


#: What OpenSSL reports of a certificate that is not for the name, or the number, of the host.
_OTHER_HOST = (62, 64)


def is_passing(error: BaseException) -> bool:
    """Whether the same call may succeed a moment later."""
    lasts = isinstance(error, _LASTING) or _lacks_tls(error) or _is_refusal(error)
    return isinstance(error, _PASSING) and not lasts


def is_undone(error: BaseException) -> bool:
    """Whether the call has certainly had no effect."""
    return isinstance(error, _UNDONE) or not is_passing(error)


def _lacks_tls(error: BaseException) -> bool:
    return isinstance(error, ConnectionError) and "SSL" in str(error)


def _is_refusal(error: BaseException | None) -> bool:
    """Whether the server has ended the greeting, as it does with a certificate that it does not trust."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__  # of a connection that was closed
    return error is not None and "_ALERT_" in (error.reason or "")


def problem(error: BaseException, address: Address, patience: float) -> PostgresProblem:
    """What is wrong, from the driver's error.

    Args:
        error: of asyncpg or of the operating system.
        address: of the server.
        patience: seconds for which it was tried.
    """
    where, said = address.shown, _text(error)
    match error:
        case ssl.SSLCertVerificationError() if error.verify_code in _OTHER_HOST:
            return PostgresUnreachable(
                where,
                f"its certificate is for another host ({error.verify_message}); name the host as the certificate does, "
                "or look only at who signed it with tls='verify-ca'",
            )
        case ssl.SSLCertVerificationError():
            return PostgresUnreachable(
                where,
                f"its certificate is not trusted ({error.verify_message or said}); name the certificates that sign it "
                "with ca_file, or accept any certificate with tls='require'",
            )
        case _ if _lacks_tls(error):
            return PostgresUnreachable(
                where,
                "it offers no TLS, which a server on another machine must; turn ssl on in its configuration, "
                "or go without encryption with tls='disable'",
            )
        case _ if _is_refusal(error):
            alert = _text(error.__cause__ or error)
            return PostgresDenied(where, f"it refuses the certificate of this client ({alert}); check cert_file")
        case asyncpg.InvalidAuthorizationSpecificationError() if "client certificate" in said:
            return PostgresDenied(
                where, f"it does not let this user in ({said}); name the certificate of this client with cert_file"
            )
        case asyncpg.InvalidPasswordError() | asyncpg.InvalidAuthorizationSpecificationError():
            return PostgresDenied(where, f"it does not let this user in ({said}); check the user and the password")
        case asyncpg.InsufficientPrivilegeError():
            return PostgresDenied(
                where,
                f"this user lacks a right ({said}); nothing was changed: have the owner of the schema run setup() and "
                "grant what the README of locus-plugin-postgres lists",
            )
        case asyncpg.InvalidCatalogNameError():
            return PostgresDenied(where, f"{said}; create the database, or name another one")
        case asyncpg.ReadOnlySQLTransactionError():
            return PostgresReadOnly(
                where,
                "it takes no writes, as a replica does; name the primary, or add ?target_session_attrs=read-write to "
                "an address with several hosts",
            )
        case asyncpg.DiskFullError():
            return PostgresFull(
                where,
                f"its disk is full ({said}); what was committed is kept, and nothing is half-written: make room, "
                "then resume the run",
            )
        case asyncpg.TooManyConnectionsError():
            return PostgresUnreachable(
                where, f"it takes no more connections ({said}); raise max_connections, or lower connections"
            )
        case asyncpg.ClientConfigurationError():
            return PostgresUnreachable(where, f"no connection could be made ({said}); check the address")
        case TimeoutError():
            return PostgresUnreachable(
                where, f"it did not answer within {patience:g} s; check that it runs and can be reached from here"
            )
        case _ if isinstance(error, _PASSING):
            return PostgresUnreachable(
                where,
                f"it could not be reached for {patience:g} s ({said}); check that it runs and can be reached from here",
            )
    return PostgresFailed(where, f"it reports {type(error).__name__}: {said}; see the log of the server")


def _text(error: BaseException) -> str:
    """The first line of what it says; the details may repeat what was stored."""
    if isinstance(error, asyncpg.ClientConfigurationError):  # which may quote the address
        return "the address or a file that it names is invalid"
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
