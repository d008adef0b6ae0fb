"""Who asks: a user by the bearer token, and the names of the user's threads."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping

from attrs import frozen

from locus.plugins import Secret
from locus_plugin_serve.problems import Problem
from locus_plugin_serve.settings import USER

__all__ = ["LOCAL", "ThreadName", "Users"]

#: The user of a server without tokens.
LOCAL = "local"

_THREAD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}", re.ASCII)


@frozen
class ThreadName:
    """A thread as its user names it. No user can write the name of another user's thread: neither part has a slash.

    Args:
        user: whose it is.
        name: what the user calls it.
    """

    user: str
    name: str

    @classmethod
    def of(cls, user: str, name: object) -> ThreadName:
        """The thread that a request names.

        Raises:
            Problem: it is not a name.
        """
        if not isinstance(name, str) or not _THREAD.fullmatch(name):
            raise Problem.of_input(
                "the name of a thread must have 1 to 128 letters, digits, '.', '_', ':' or '-', and begin with a "
                f"letter or a digit, got {name!r:.140}"
            )
        return cls(user, name)

    @classmethod
    def parse(cls, thread_id: str) -> ThreadName | None:
        """The thread of an id in the store; None if it was not made here."""
        user, _, name = thread_id.partition("/")
        return cls(user, name) if USER.fullmatch(user) and _THREAD.fullmatch(name) else None

    @property
    def thread_id(self) -> str:
        """Its id in the store."""
        return f"{self.user}/{self.name}"


class Users:
    """Knows users by their tokens, of which only digests are kept.

    Args:
        tokens: by user; empty = everybody is `LOCAL`.
    """

    def __init__(self, tokens: Mapping[str, Secret]) -> None:
        self._digests = {user: _digest(secret.reveal().encode()) for user, secret in tokens.items()}

    def authenticate(self, authorization: bytes | None) -> str:
        """The user of a request.

        Args:
            authorization: the header of that name, or None.

        Raises:
            Problem: it is not the token of a user.
        """
        if not self._digests:
            return LOCAL
        scheme, _, token = (authorization or b"").partition(b" ")
        asked, found = _digest(token.strip()), None
        for user, digest in self._digests.items():  # all of them, so that the time says nothing about which one it is
            if hmac.compare_digest(asked, digest):
                found = user
        if found is None or scheme.lower() != b"bearer":
            raise Problem(
                401,
                "expected the header Authorization: Bearer TOKEN with the token of a user",
                kind="authentication_error",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return found


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
