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

__all__ = ["COOKIE_SECONDS", "LOCAL", "ThreadName", "Users"]

#: The user of a server without tokens.
LOCAL = "local"

#: How long a cookie is good: a working day.
COOKIE_SECONDS = 12 * 3600

_PURPOSE = "locus serve: a cookie to read events with"
_LONGEST_TIME = 12

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
    """Knows users by their tokens, of which only digests are kept, and by cookies made of those.

    A page's ``EventSource`` can send no token, and what its address has is in logs. So a page fetches a cookie with the
    token, and the cookie is good for reading events and for nothing else. It is signed with the digest of the token, so
    it is good after a restart, too, and no longer when the token is another one.

    Args:
        tokens: by user; empty = everybody is `LOCAL`.
        server: the agent's name: servers at other ports of one host share its cookies.
    """

    def __init__(self, tokens: Mapping[str, Secret], server: str) -> None:
        self._digests = {user: _digest(secret.reveal().encode()) for user, secret in tokens.items()}
        self._server = server

    @property
    def cookie(self) -> str:
        """The name of the cookie; that of an agent may be any text."""
        return f"locus-events-{_digest(self._server.encode()).hex()[:8]}"

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
            raise _refusal("expected the header Authorization: Bearer TOKEN with the token of a user")
        return found

    def make_cookie(self, user: str, now: float) -> str:
        """The value of a cookie that is good for `COOKIE_SECONDS`; ``""`` where no tokens are set.

        Args:
            user: who has shown a token.
            now: seconds since the epoch.
        """
        return self._sign(user, int(now) + COOKIE_SECONDS) if self._digests else ""

    def read_cookie(self, value: str, now: float) -> str:
        """The user of a cookie.

        Args:
            value: of the cookie.
            now: seconds since the epoch.

        Raises:
            Problem: it was not made here, or is too old.
        """
        user, _, rest = value.partition(":")
        until, _, _ = rest.partition(".")
        if user in self._digests and until.isascii() and until.isdigit() and len(until) <= _LONGEST_TIME:
            made = self._sign(user, int(until))
            if hmac.compare_digest(made.encode(), value.encode()) and now < int(until):
                return user
        raise _refusal(f"the cookie {self.cookie} is not good, or no longer; fetch a new one with the token")

    def _sign(self, user: str, until: int) -> str:
        said = f"{_PURPOSE}\n{self._server}\n{user}\n{until}".encode()
        return f"{user}:{until}.{hmac.new(self._digests[user], said, hashlib.sha256).hexdigest()}"


def _refusal(text: str) -> Problem:
    return Problem(401, text, kind="authentication_error", headers={"WWW-Authenticate": "Bearer"})


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
