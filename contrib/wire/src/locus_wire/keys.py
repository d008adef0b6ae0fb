"""Where a key comes from, and how it is kept out of every text.

A key is read when it is sent and never kept: not in a `repr`, an error, a log, an event or a checkpoint.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from attrs import frozen

from locus.plugins import Secret
from locus_wire.errors import KeyMissing

__all__ = ["HIDDEN", "Key", "hide_secrets"]

HIDDEN = "***"

#: What keys of the usual vendors look like, masked ones included, and what follows a scheme of authorisation.
_SHAPES = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|key|hf)[-_][A-Za-z0-9_*.-]{6,}|(?<=[Bb]earer )[^\s\"',]+|(?<=[Bb]asic )[^\s\"',]{8,}"
)


@frozen(kw_only=True)
class Key:
    """A key of a provider.

    Args:
        provider: the scheme of the provider, for messages.
        given: from the settings; None = read from the environment.
        env: the variables it is usually in, the first that is set counts.
        needed: whether nothing is sent without one. A server of one's own may do without.
    """

    provider: str
    given: Secret | None = None
    env: tuple[str, ...] = ()
    needed: bool = True

    def find(self, environ: Mapping[str, str] | None = None) -> str | None:
        """The key, or None if none was found and none is needed.

        Args:
            environ: the process's environment when None.

        Raises:
            KeyMissing: no key was found; the text says where it was looked for.
        """
        if self.given is not None and (text := self.given.reveal().strip()):
            return text
        return self._find_elsewhere(environ)

    async def ask(self, environ: Mapping[str, str] | None = None) -> str | None:
        """The same where the key may be an async function.

        Raises:
            KeyMissing: no key was found.
        """
        if self.given is not None and (text := (await self.given.areveal()).strip()):
            return text
        return self._find_elsewhere(environ)

    @property
    def is_async(self) -> bool:
        """Whether only `ask` finds it."""
        return self.given is not None and self.given.is_async

    def _find_elsewhere(self, environ: Mapping[str, str] | None) -> str | None:
        known = os.environ if environ is None else environ
        for name in self.env:
            if text := known.get(name, "").strip():
                return text
        if not self.needed:
            return None
        raise KeyMissing(f"{self.provider} needs a key; {self.remedy}", provider=self.provider, retryable=False)

    @property
    def remedy(self) -> str:
        """What to do about a key that is missing or wrong, in words."""
        table = f"[plugins.{self.provider}]"
        if self.given is not None and self.given.source:
            return f"{table} takes it from the environment variable {self.given.source}"
        named = " or ".join(self.env)
        usual = f"set {named}, or " if named else ""
        return f'{usual}write api_key = {{ env = "NAME" }} in {table}'


def hide_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """A text of a provider without keys.

    Args:
        text: what it said; some repeat the key that they refuse.
        secrets: the keys that were sent.
    """
    for secret in secrets:
        if len(secret) >= 4:  # "EMPTY" and the like are not secrets, and shorter ones would eat words
            text = text.replace(secret, HIDDEN)
    return _SHAPES.sub(HIDDEN, text)
