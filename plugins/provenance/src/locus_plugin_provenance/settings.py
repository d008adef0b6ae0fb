"""The settings of the plugin: the table ``[plugins.provenance]``."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

from attrs import field, frozen
from attrs.validators import in_
from attrs.validators import optional as optional_value

from locus.core import FrozenDict

__all__ = ["Mode", "ProvenanceSettings", "ToolRule"]

#: How a tainted call is handled: a person is asked, it is rejected, or it runs.
Mode = Literal["ask", "reject", "allow"]


def _names(value: object) -> tuple[str, ...] | None:
    if isinstance(value, str):
        raise ValueError(f"targets must be a list of names of parameters, got {value!r}; write [{value!r}]")
    return None if value is None else tuple(value)  # type: ignore[arg-type]


@frozen(kw_only=True)
class ToolRule:
    """Rules for the calls of some tools.

    Args:
        mode: how a tainted call is handled; None = as for all tools.
        targets: the parameters that count as targets; None = those that the tool names.
    """

    mode: Mode | None = field(default=None, validator=optional_value(in_(("ask", "reject", "allow"))))
    targets: tuple[str, ...] | None = field(default=None, converter=_names)


def _rules(value: Mapping[str, ToolRule]) -> FrozenDict[str, ToolRule]:
    return FrozenDict(value)


@frozen(kw_only=True)
class ProvenanceSettings:
    """How to handle calls that someone other than the user may have chosen.

    Args:
        mode: how a tainted call is handled: ``"ask"`` a person, or ``"reject"`` it.
        tools: rules by globs of names of tools; the first one that fits counts.
        keep_own: whether a text that the model writes for a call that sends something out is tainted once the run has
            read both the user's own records and untrusted text, because it may carry the records out; None = with
            ``mode="ask"``.
    """

    mode: Literal["ask", "reject"] = field(default="ask", validator=in_(("ask", "reject")))
    tools: Mapping[str, ToolRule] = field(factory=dict, converter=_rules)
    keep_own: bool | None = None

    @property
    def keeps_own(self) -> bool:
        """Whether texts that may carry own records out are tainted."""
        return self.mode == "ask" if self.keep_own is None else self.keep_own

    def find_rule(self, tool: str) -> ToolRule:
        """The rule for the calls of one tool."""
        return next((rule for glob, rule in self.tools.items() if fnmatchcase(tool, glob)), _NO_RULE)


_NO_RULE = ToolRule()
