"""Who may touch which file: ordered rules on paths, asked before a call and kept where a listing shows more than asked.

The decider is a guard: when it fails, the call is rejected; and it holds in child runs as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, get_args

from attrs import frozen

from locus.core.messages import ToolCall
from locus.files import BackendError, virtual_path
from locus.plugin import Allow, Decision, Hook, Interrupt, Reject, RunContext, hookimpl
from locus_plugin_filesystem.matching import PathPattern

if TYPE_CHECKING:
    from locus_plugin_filesystem.settings import FilesystemSettings

__all__ = ["Action", "PermissionsHook", "Rule", "Rules"]


class _HasPath(Protocol):
    @property
    def path(self) -> str: ...


T = TypeVar("T", bound=_HasPath)

Action = Literal["allow", "deny", "ask"]
Access = Literal["read", "write"]

#: What each tool does to its path.
_ACCESS: Mapping[str, Access] = {
    "write_file": "write",
    "edit_file": "write",
    "read_file": "read",
    "ls": "read",
    "glob": "read",
    "grep": "read",
}


@frozen
class Rule:
    """One rule.

    Args:
        action: what follows where it fits.
        access: what it is about; None = both.
        pattern: of paths.
    """

    action: Action
    access: Access | None
    pattern: PathPattern

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
            return cls(action, access, PathPattern(pattern))  # type: ignore[arg-type]  # it is one of them
        except BackendError as e:
            raise ValueError(f"{text!r} is not a rule: {e}") from e


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
        access = _ACCESS.get(call.name)
        if access is None:
            return Allow()
        try:
            path = virtual_path(call.arguments.get("path", "/"))
        except BackendError:
            return Allow()  # the tool answers with the code
        action = self._rules.action(path, access)
        if action == "deny":
            return Reject(f"permission_denied: a rule forbids to {access} {path}")
        if action == "ask":
            return Interrupt(f"May {call.name} {access} {path}?")
        return Allow()
