"""What the plugin found."""

from __future__ import annotations

from attrs import frozen

__all__ = ["SkillsReport"]


@frozen(kw_only=True)
class SkillsReport:
    """``result.reports["skills"]``.

    Args:
        skills: the names that the model is shown.
        problems: what is not used, as ``"name: why"``.
        read: the names that the model has read in this segment of the run, in order, each once.
    """

    skills: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
