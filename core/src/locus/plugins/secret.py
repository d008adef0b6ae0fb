"""`Secret`: a value that is used and never shown."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["Secret"]


class Secret:
    """A password or a key. It does not appear in a `repr`, a message, a log or a pickle.

    In a configuration file it is written ``{ env = "NAME" }``; in code it is made with ``Secret(text)``.
    """

    __slots__ = ("_text", "source")

    def __init__(self, text: str, source: str = "") -> None:
        self._text = text
        #: The environment variable it came from, or ``""``.
        self.source = source

    def reveal(self) -> str:
        """The text itself: call it where it is sent, and keep it nowhere else."""
        return self._text

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
