"""What is used and never shown: a `Secret`, and passwords within the texts that name stores and models.

Such texts are other people's formats, so whatever looks like a secret is taken for one: hiding a password too many
costs less than showing one in a log.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from inspect import isawaitable, iscoroutine, iscoroutinefunction
from typing import Any, NoReturn


class Secret:
    """A password or a key. It does not appear in a `repr`, a message, a log or a pickle.

    In a configuration file it is written ``{ env = "NAME" }``; in code it is made with ``Secret(text)``, or with a
    function for a token that expires: ``Secret(fetch)``.

    Args:
        text: the text, or a function that gives it, sync or async. It is called for each request, so it keeps a token
            while that is good; a sync one is called on the event loop, so it returns at once.
        source: the environment variable it came from, or ``""``.

    Raises:
        TypeError: it is neither text nor a function.
    """

    __slots__ = ("_text", "source")

    def __init__(self, text: str | Callable[[], str | Awaitable[str]], source: str = "") -> None:
        if not isinstance(text, str) and not callable(text):
            raise TypeError(f"a Secret must be a str, or a function that returns one, got {type(text).__name__}")
        self._text = text
        #: The environment variable it came from, or ``""``.
        self.source = source

    @property
    def is_function(self) -> bool:
        """Whether it may be another text each time."""
        return not isinstance(self._text, str)

    @property
    def is_async(self) -> bool:
        """Whether only `areveal` gives it."""
        return iscoroutinefunction(self._text) or iscoroutinefunction(getattr(self._text, "__call__", None))  # noqa: B004

    def reveal(self) -> str:
        """The text itself: call it where it is sent, and keep it nowhere else.

        Raises:
            TypeError: the function of the secret gives something else; an async one gives its text to `areveal`.
        """
        text = self._text if isinstance(self._text, str) else self._text()
        if iscoroutine(text):
            text.close()
        return _check(text)

    async def areveal(self) -> str:
        """The same where an async function may be asked.

        Raises:
            TypeError: the function of the secret gives something else.
        """
        text = self._text if isinstance(self._text, str) else self._text()
        return _check(await text if isawaitable(text) else text)

    def __repr__(self) -> str:
        return f"Secret(env={self.source!r})" if self.source else "Secret('***')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled; give the other process its environment variable")

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: Any) -> Secret:
        return self


def _check(text: object) -> str:
    if not isinstance(text, str):
        raise TypeError(f"the function of a Secret must return a str, got {type(text).__name__}")
    return text


_HIDDEN = "***"
_BLANK = re.compile(r"\s")
_USER = re.compile(r"//[^\s:/@]*:")

_NAMES = r"password|passwd|passphrase|pwd|secret|token|credentials?|api[_-]?key|access[_-]?key|auth|signature"
#: Where a secret is, and none itself: ``api_key = { env = "NAME" }``.
_PLACE = r"\{\s*env\s*=\s*\"\w+\"\s*\}"
#: ``token=``, ``db_password =``; the short ones only where a query has them: ``key=`` may be anything elsewhere.
_NAMED = rf"((?:^|[^\w.-])[\w.-]*(?:{_NAMES})\s*=\s*+(?!{_PLACE})|[?&;](?:key|pass|sig|code)=)"


@cache  # compiling these takes a millisecond, and most programs show no such text
def _whole() -> tuple[re.Pattern[str], ...]:
    return (
        re.compile(r"(^[\w+.-]+:[^\s:/\\@]+:)[^/\\]*@", re.DOTALL),
        re.compile(rf"{_NAMED}('[^']*'|\"[^\"]*\"|[^&;\s]*)", re.IGNORECASE),
    )


@cache
def _in_prose() -> tuple[re.Pattern[str], ...]:
    return (re.compile(rf"{_NAMED}('[^']*'|\"[^\"]*\"|[^&;\s'\")\]}}]*)", re.IGNORECASE),)


def redact(text: str) -> str:
    """The text that names a store or a model, such as ``"pg://user:***@host/db?token=***"``.

    Args:
        text: nothing but that, however it is written: passwords of a user, and parameters called after a secret.
    """
    # Of a text that is known to be one connection, everything between the user and the last "@" is the password.
    end = text.rfind("@")
    found = _USER.search(text, 0, max(end, 0))
    if found is not None:
        text = f"{text[: found.end()]}{_HIDDEN}{text[end:]}"
    return _hide(text, _whole())


def scrub(text: str) -> str:
    """The same for prose and tracebacks that may contain such texts."""
    # In prose it ends with the word, of which only the first "//user:" counts: so each word is read once.
    parts, at, end = [], 0, 0
    for found in re.finditer(r"//[^\s:/@'\"]*:", text) if "@" in text else ():
        if found.end() <= end:
            continue
        blank = _BLANK.search(text, found.end())
        end = len(text) if blank is None else blank.start()
        last = text.rfind("@", found.end(), end)
        if last >= 0:
            parts += [text[at : found.end()], _HIDDEN]
            at = last
    return _hide("".join([*parts, text[at:]]), _in_prose())


def show_values(values: Mapping[str, Any]) -> str:
    """The `repr` of a table that may contain such texts."""
    return repr({key: redact(value) if isinstance(value, str) else value for key, value in values.items()})


def _hide(text: str, patterns: tuple[re.Pattern[str], ...]) -> str:
    for pattern in patterns:
        text = pattern.sub(lambda found: f"{found[1]}{_HIDDEN}{'@' if found[0].endswith('@') else ''}", text)
    return text
