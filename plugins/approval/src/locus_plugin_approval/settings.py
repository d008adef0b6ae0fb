"""The settings of the plugin: the table ``[plugins.approval]``."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from attrs import field, frozen

from locus_kit.validators import to_tuple

__all__ = ["ApprovalSettings"]


def _patterns(value: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if value is None else to_tuple(value)


@frozen(kw_only=True)
class ApprovalSettings:
    """Which calls need a person's word.

    Args:
        tools: globs of the names of tools whose calls are asked about, such as ``"write_*"``; None = those of every
            tool that may have an effect, which is each that is not declared ``effect="pure"``.
        except_tools: globs of the names of tools whose calls run without a question, whatever `tools` says.
    """

    tools: tuple[str, ...] | None = field(default=None, converter=_patterns)
    except_tools: tuple[str, ...] = field(default=(), converter=to_tuple)

    def asks_about(self, tool: str, effect: str) -> bool:
        """Whether a person is asked about the calls of a tool.

        Args:
            tool: its name.
            effect: what it declares: ``"pure"``, ``"keyed"`` or ``"once"``.
        """
        if any(fnmatchcase(tool, glob) for glob in self.except_tools):
            return False
        if self.tools is None:
            return effect != "pure"
        return any(fnmatchcase(tool, glob) for glob in self.tools)
