"""Who may touch which file: ordered rules on paths, asked before a call and kept where a listing shows more than asked.

The decider is a guard: when it fails, the call is rejected; and it holds in child runs as well.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, get_args

from attrs import frozen

from locus.core.messages import ToolCall
from locus.files import BackendError, virtual_path
from locus.plugin import Allow, Decision, Hook, Interrupt, Reject, RunContext, hookimpl
from locus_kit.calls import show_call
from locus_kit.invisible import escape_invisible
from locus_plugin_filesystem.matching import PathPattern, is_below

if TYPE_CHECKING:
    from locus_plugin_filesystem.settings import FilesystemSettings

__all__ = ["Access", "Action", "PermissionsHook", "Rule", "Rules"]


class _Matches(Protocol):
    def matches(self, path: str) -> bool: ...


class _HasPath(Protocol):
    @property
    def path(self) -> str: ...


T = TypeVar("T", bound=_HasPath)

Action = Literal["allow", "deny", "ask"]
Access = Literal["read", "write"]

#: What each tool does to its path.
_ACCESS: Mapping[str, tuple[Access, ...]] = {
    "write_file": ("write",),
    # What it does comes last. Whether the old text is found says what is in the file.
    "edit_file": ("read", "write"),
    "read_file": ("read",),
    "ls": ("read",),
    "glob": ("read",),
    "grep": ("read",),
}

#: What makes a pattern of a path.
_WILDCARDS = frozenset("*?[{\\")


class _Below:
    """Matches a path and all that is below it."""

    def __init__(self, path: str) -> None:
        self._path = path

    def matches(self, path: str) -> bool:
        return is_below(path, self._path)


@frozen
class Rule:
    """One rule.

    Args:
        action: what follows where it fits.
        access: what it is about; None = both.
        pattern: of paths. One without wildcards is about that path and all below it; wildcards match names that begin
            with a dot, which rules have to protect as well as others.
    """

    action: Action
    access: Access | None
    pattern: _Matches

    @classmethod
    def of(cls, text: str) -> Rule:
        """A rule of its text, such as ``"deny write /docs/**"``.

        Raises:
            ValueError: the text is not a rule.
        """
        action, _, rest = text.strip().partition(" ")
        word, _, pattern = rest.strip().partition(" ")
        access: Any = word if word in get_args(Access) else None
        pattern = pattern.strip() if access else rest.strip()
        if action not in get_args(Action) or not pattern.startswith("/"):
            raise ValueError(f"{text!r} is not a rule; write 'allow|deny|ask [read|write] /pattern'")
        try:
            return cls(action, access, _read_pattern(pattern))  # type: ignore[arg-type]  # it is one of them
        except BackendError as e:
            raise ValueError(f"{text!r} is not a rule: {e}") from e


def _read_pattern(pattern: str) -> _Matches:
    """A pattern in the spelling of the paths that it is matched with."""
    if not _WILDCARDS.intersection(pattern):
        return _Below(virtual_path(pattern))
    pattern = unicodedata.normalize("NFC", pattern)
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise BackendError("invalid_pattern", "no path has a part '..' once it is resolved")
    return PathPattern("/" + "/".join(parts), hidden=True)


class Rules:
    """Rules in their order.

    Args:
        texts: see `Rule.of`.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._rules = tuple(map(Rule.of, texts))

    def __bool__(self) -> bool:
        return bool(self._rules)

    def action(self, path: str, access: Access) -> Action:
        """What follows for a path: the action of the first rule that fits."""
        for rule in self._rules:
            if rule.access in (None, access) and rule.pattern.matches(path):
                return rule.action
        return "allow"

    def show(self, found: Sequence[T], path: str) -> Sequence[T]:
        """What a listing or a search may show of what it found: what may be read without a further question.

        Args:
            found: entries or matches, each with its path.
            path: what was listed; a person was asked about it where a rule says so.
        """
        if not self._rules:
            return found
        shown = ("allow", self.action(path, "read"))
        return [each for each in found if self.action(each.path, "read") in shown]


class PermissionsHook(Hook):
    """Decides about the calls of the file tools by the rules.

    Args:
        settings: with the rules.
    """

    guard = True
    name = "filesystem permissions"

    def __init__(self, settings: FilesystemSettings) -> None:
        self._rules = Rules(settings.permissions)

    @hookimpl
    def locus_decide_tool_call(self, call: ToolCall, run: RunContext) -> Decision:
        """Refuse or ask, as the first rule that fits the path says."""
        try:
            path = virtual_path(call.arguments.get("path", "/"))
        except BackendError:
            return Allow()  # the tool answers with the code
        needed = _ACCESS.get(call.name, ())
        found = {access: self._rules.action(path, access) for access in needed}
        for access, action in found.items():
            if action == "deny":
                return Reject(f"permission_denied: a rule forbids to {access} {path}")
        if "ask" in found.values():
            # What is written counts as well as where.
            return Interrupt(f"May {call.name} {needed[-1]} {escape_invisible(path)}? {show_call(call)}")
        return Allow()
