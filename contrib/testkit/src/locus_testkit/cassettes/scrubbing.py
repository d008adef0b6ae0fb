"""`Scrubber`: removes what must not be in a file that is committed.

Keys of a provider never come near a cassette, which knows requests and answers and no HTTP. What a prompt, a tool or a
setting carries does: the values of environment variables that are called like secrets, and texts that look like some.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, final
from urllib.parse import quote

from locus.plugins import scrub

__all__ = ["HIDDEN", "Scrubber"]

HIDDEN = "***"

_NAMES = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTH)S?(?:$|_)", re.IGNORECASE)
_SETTINGS = re.compile(
    r"header|authorization|cookie|password|passwd|secret|credential|(?:^|[_-])token$|api[_-]?key|access[_-]?key",
    re.IGNORECASE,
)
#: A shorter value may be part of any word.
_SHORTEST = 6


@final
class Scrubber:
    """Hides secrets in whatever is recorded or compared; what was scrubbed once stays as it is.

    Args:
        secrets: values to hide, beside those of environment variables that are called ``..._KEY``, ``..._TOKEN``,
            ``..._SECRET``, ``..._PASSWORD`` and the like.
        also: a function of each text, for what only the test knows.
        environ: the environment; None = that of this process.
    """

    def __init__(
        self,
        secrets: Iterable[str] = (),
        *,
        also: Callable[[str], str] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        around = os.environ if environ is None else environ
        found = {value for name, value in around.items() if _NAMES.search(name) and len(value.strip()) >= _SHORTEST}
        found.update(value for value in secrets if value)
        self._secrets = tuple(sorted({form for value in found for form in _forms(value)}, key=lambda s: (-len(s), s)))
        self._also = also

    def __repr__(self) -> str:
        return f"<Scrubber of {len(self._secrets)} texts>"

    def text(self, text: str) -> str:
        """The text without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        text = scrub(text)
        return text if self._also is None else self._also(text)

    def form(self, form: Any) -> Any:
        """Plain data without secrets, keys included."""
        if isinstance(form, str):
            return self.text(form)
        if isinstance(form, Mapping):
            return {self.text(str(key)): self.form(each) for key, each in form.items()}
        return [self.form(each) for each in form] if isinstance(form, list | tuple) else form

    def settings(self, form: Any) -> Any:
        """Settings of a provider, without what is called like a header or a key."""
        if isinstance(form, Mapping):
            return {key: HIDDEN if _SETTINGS.search(str(key)) else self.settings(each) for key, each in form.items()}
        return [self.settings(each) for each in form] if isinstance(form, list | tuple) else form

    def leaks(self, line: str) -> bool:
        """Whether a line of a file still has a secret in it."""
        return any(secret in line for secret in self._secrets)


def _forms(value: str) -> set[str]:
    """A secret as it is written in a text, in JSON text and in an address."""
    stripped = value.strip()
    forms = {value, stripped, quote(stripped, safe=""), json.dumps(stripped)[1:-1]}
    return {form for form in forms if len(form) >= min(_SHORTEST, len(value))}
