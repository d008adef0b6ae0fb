"""Words that carry no fact of their own: what says that something is so, and what says which kind of value follows.

"It costs 84.50 dollars", "the price is 84.50 dollars" and "84.50 dollars" say the same. A closed table: a word that is
not in it is content, which evidence must have.
"""

from __future__ import annotations

from typing import Final

__all__ = ["CONTINUES", "FRAME", "VALUE", "kinds_of"]

_FRAME_WORDS = """
accord answer each come comes coming consist contain contains containing comprise comprises detail details entry exist
exists find finding found give gives given include includes included including indicate indicates
indicated info information know known list lists listed mention mentioned note noted number numbers
provide provides provided query record recorded records report reported reports respond response
go goes say says search see show showed showing shown shows state stated states status successfully system tool
already exactly following overall respectively consisting consists
"""
#: They say that something is so, and nothing about it.
FRAME: Final = frozenset(_FRAME_WORDS.split())
#: What a value is, by what it is measured in: beside a quantity they say nothing that its unit or its place does not.
VALUE: Final[dict[str, str]] = {
    word: kind
    for kind, words in {
        "money": "charge charged charges cost costing costs fee price priced prices pricing worth",
        "date": "date dated dates day",
        "time": "clock duration last lasted lasts lasting take takes time took",
        "mass": "heavy mass weigh weighed weighing weighs weight",
        "length": "deep depth distance far height high length measure measures size tall wide width",
        "heat": "cold degree degrees hot temperature warm",
        "share": "pct percent percentage rate share",
        "count": "available count item items piece pieces qty quantity remain remaining remains stock units",
        "name": "code id identifier key no ref reference",
        "": "long amount amounts equal equals figure result total totaled totalled totalling totals unit value values",
    }.items()
    for word in words.split()
}
_BACK = """
are be been being can could did does had has have he her his is it its itself she their they was were which who
whose will would
"""
#: The first words of a part that speaks of what the part before it spoke of: what refers back, and verbs.
CONTINUES: Final = frozenset(_BACK.split())


def kinds_of(words: frozenset[str]) -> frozenset[str]:
    """The kinds of value that some words name."""
    return frozenset(kind for word in words if (kind := VALUE.get(word)))
