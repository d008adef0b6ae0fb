"""Skills: folders with a SKILL.md, of which the model reads what it needs.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_skills.catalog import SkillCatalog
    from locus_plugin_skills.hook import SkillsHook
    from locus_plugin_skills.report import SkillsReport
    from locus_plugin_skills.settings import SkillsSettings
    from locus_plugin_skills.skill import BadSkill, Skill, parse_skill

__all__ = ["BadSkill", "Skill", "SkillCatalog", "SkillsHook", "SkillsReport", "SkillsSettings", "parse_skill"]

_MODULES = {
    "catalog": ("SkillCatalog",),
    "hook": ("SkillsHook",),
    "report": ("SkillsReport",),
    "settings": ("SkillsSettings",),
    "skill": ("BadSkill", "Skill", "parse_skill"),
}

__getattr__, __dir__ = exports(__name__, {f"locus_plugin_skills.{module}": names for module, names in _MODULES.items()})
