"""The settings of the plugin: the table ``[plugins.skills]``."""

from __future__ import annotations

from attrs import field, frozen

from locus_kit.validators import integer, to_tuple

__all__ = ["SkillsSettings"]


@frozen(kw_only=True)
class SkillsSettings:
    """Where skills are, and what they count as.

    Args:
        folders: folders of skills, each skill a folder with a ``SKILL.md``; ``~`` is the home folder, missing folders
            are left out. Where two have a skill of the same name, the later one counts.
        trusted: skills are the user's own words. False: their descriptions are quoted as data in the prompt, and their
            texts count as a stranger's.
        most: how many skills are listed.
    """

    folders: tuple[str, ...] = field(default=("skills",), converter=to_tuple)
    trusted: bool = False
    most: int = field(default=100, validator=integer(1))
