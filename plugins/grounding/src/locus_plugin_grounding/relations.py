"""What the small words of a sentence say: how certain it is, of how many it holds, who does it to whom, and since when.

The comparison of words of content passes over these words. Here a claim may say no more than its evidence:
"was cancelled" is not "may be cancelled", "all" is not "most", "from Rome to Oslo" is not "from Oslo to Rome".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from attrs import frozen

from locus_plugin_grounding.arithmetic import is_total

__all__ = ["NONE", "Relations", "clash", "join", "relations_of"]

_MAY = re.compile(
    r"\b(?:(?-i:may)(?!\s+\d)|might|could(?!\s+not|n['\u2019]t)|can|possibly|possible|perhaps|maybe|probably|likely|apparently"
    r"|allegedly|reportedly|presumably|potentially|suspected)\b",
    re.IGNORECASE,
)
_SHOULD = re.compile(r"\b(?:should|must|ought|supposed to|has to|have to|needs? to|required to)\b", re.IGNORECASE)
_WILL = re.compile(
    r"\b(?:will|shall|about to|due to be|set to"
    r"|(?:going|plan(?:s|ned|ning)?|intend(?:s|ed)?|expect(?:s|ed)?|schedul(?:es|ed)|tr(?:y|ies|ied)|attempt(?:s|ed)?"
    r"|want(?:s|ed)?|hop(?:es|ed)|agree[sd]?|promise[sd]?|threaten(?:s|ed)?|offer(?:s|ed)?|decide[sd]?|ask(?:s|ed)?) to"
    r"|\w+['\u2019]ll)\b",
    re.IGNORECASE,
)
_MOST = re.compile(
    r"\b(?:most|majority|usually|mostly|mainly|nearly all|almost (?:all|every)|typically)\b", re.IGNORECASE
)
_SOME = re.compile(
    r"\b(?:some|several|few|sometimes|occasionally|part of|partly|partially|half of|many|one of|rarely)\b",
    re.IGNORECASE,
)
_ALL = re.compile(
    r"\b(?:all(?! right| but)|every|everyone|everybody|everything|always|both|entire|entirely|whole|completely|fully"
    r"|each(?=\s+[^\W\d_]))\b",
    re.IGNORECASE,
)
_ONLY = re.compile(r"\b(?:only|solely|exclusively)\b(?<!not only)", re.IGNORECASE)
_IS = re.compile(r"\b(?:is|are|'s)\s+(?:(?:currently|now|still|also)\s+)?(?!\w+(?:ed|en|ing)\b|not\b)", re.IGNORECASE)
_WAS = re.compile(
    r"\b(?:was|were)\s+(?!\w+(?:ed|en|ing|id|nt|ld|wn)\b|not\b)(?=.*\b(?:until|till|before|formerly|once|from)\b)"
    r"|\b(?:used to be|former|formerly|previously|no longer)\b",
    re.IGNORECASE,
)
_PASSIVE = re.compile(
    r"(?i:\b(?:was|were|been|is|are|be|being)\s+(?:\w+\s+)?\w+\s+by\b)"
    r"|\bby (?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b)[A-Z]"
)
_SOURCE = (
    "from by sender origin source departure seller payer donor lender giver absender absenderin herkunft abfahrt abflug"
    " verkäufer départ expéditeur provenance vendeur origen salida remitente vendedor"
)
_TARGET = (
    "to receiver recipient destination arrival target buyer payee addressee borrower empfänger empfängerin ziel ankunft"
    " käufer arrivée destinataire destination acheteur llegada destino destinatario comprador"
)
_ROLES: Final = dict.fromkeys(_SOURCE.split(), "source") | dict.fromkeys(_TARGET.split(), "target")
_CHINESE_ROLES: Final = {
    "出 发": "from",
    "起 点": "from",
    "发 件 人": "from",
    "到达": "to",
    "到 达": "to",
    "终 点": "to",
    "收 件 人": "to",
}
_TOKEN = re.compile(r"[^\W_]+(?:[-'\u2019][^\W_]+)*|[,;:.]")
_ENDS_WORDS = """
and or but in on at with for of the a an is was are were has had not that which , ; : . will may
"""
_ENDS: Final = frozenset(_ENDS_WORDS.split())
_ARTICLES_WORDS = """
a an the of in on at for with by from to le la les un une el los las der die das den dem
"""
_ARTICLES: Final = frozenset(_ARTICLES_WORDS.split())
#: Signs of a verb with two sides, for which the order says who does it to whom.
_TWO_SIDED = re.compile(
    "借|给|欠|送|卖|打 ?败|击 ?败|战 ?胜|赢|输|买|告|雇|杀|爱|教|收 ?购|起 ?诉|逮 ?捕|批 ?评|表 ?扬|取 ?代|超 ?过|追|咬"
    "|骗|救"
)
_POLE_PAIRS = (
    "on off|up down|in out|before after|above below|over under|more less|more fewer|most least|first last|into out"
    "|with without|inside outside|early late|earlier later|next previous"
)
#: Small words by their opposites.
_POLES: Final[dict[str, set[str]]] = {}
for _one, _other in (pair.split() for pair in _POLE_PAIRS.split("|")):
    _POLES.setdefault(_one, set()).add(_other)
    _POLES.setdefault(_other, set()).add(_one)
_MOST_TOKENS: Final = 400


@frozen
class Relations:
    """What the small words of a part say.

    Args:
        force: ``""`` it is so, or ``"may"``, ``"should"``, ``"will"``.
        share: of how many it is said: 3 all, 2 most, 1 some, 0 nothing is said.
        only: whether it is said of nothing else.
        tense: ``"is"`` or ``"was"`` of a state that lasts, or ``""``.
        source: words of whom or what it comes from.
        target: words of whom or what it goes to.
        order: names, as they follow each other.
        passive: whether the first of them has it done to it.
        total: whether it says what several things come to.
        poles: those of its words that have an opposite: on and off, before and after.
    """

    force: str = ""
    share: int = 0
    only: bool = False
    tense: str = ""
    source: frozenset[str] = frozenset()
    target: frozenset[str] = frozenset()
    order: tuple[str, ...] = ()
    passive: bool = False
    total: bool = False
    poles: frozenset[str] = frozenset()


NONE: Final = Relations()


def relations_of(text: str, language: str) -> Relations:
    """Read the small words of a part whose closed-class words are English."""
    if language == "zh":
        for word, role in _CHINESE_ROLES.items():
            text = text.replace(word, f"{word} {role} ")
    tokens = _TOKEN.findall(text)[:_MOST_TOKENS]
    source, target = _sides(tokens)
    names = _names(tokens, language, text)
    passive = bool(_PASSIVE.search(text))
    if target and not source and names and not passive and tokens and _is_first(names[0], tokens):
        source = frozenset((names[0],)) - target
    force = "may" if _MAY.search(text) else "should" if _SHOULD.search(text) else "will" if _WILL.search(text) else ""
    share = 2 if _MOST.search(text) else 3 if _ALL.search(text) else 1 if _SOME.search(text) else 0
    poles = frozenset(word for token in tokens if (word := token.casefold()) in _POLES)
    tense = "was" if _WAS.search(text) else "is" if _IS.search(text) else ""
    return Relations(
        force, share, bool(_ONLY.search(text)), tense, source, target, names, passive, is_total(text), poles
    )


def _is_first(name: str, tokens: list[str]) -> bool:
    return any(token.casefold() == name for token in tokens[:3])


def _sides(tokens: list[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The words behind what says where something comes from, and where it goes to."""
    found: dict[str, set[str]] = {"source": set(), "target": set()}
    role, taken = "", 0
    for token in tokens:
        word = token.casefold()
        if word in _ROLES:
            role, taken = _ROLES[word], 0
        elif word in _ENDS:
            if taken or word in (",", ";", "."):
                role = ""
        elif role:
            found[role].add(word)
            taken += 1
            if taken == 4:
                role = ""
    return frozenset(found["source"]), frozenset(found["target"])


def _names(tokens: list[str], language: str, text: str) -> tuple[str, ...]:
    """Names in their order; in Chinese, with a verb that has two sides, every character."""
    if language == "zh":
        return tuple(tokens) if _TWO_SIDED.search(text) else ()
    found: list[str] = []
    before = ""
    for token in tokens:
        if token[0].isupper() and token.casefold() not in _ENDS and before not in _ARTICLES and len(token) > 1:
            found.append(token.casefold())
        before = token.casefold()
    return tuple(dict.fromkeys(found))


def join(every: Iterable[Relations]) -> Relations:
    """The two sides of several parts together: a record has each in a line of its own."""
    parts = tuple(every)
    return Relations(
        source=frozenset().union(*(part.source for part in parts)),
        target=frozenset().union(*(part.target for part in parts)),
    )


def clash(claim: Relations, found: Relations) -> bool:
    """Whether evidence says it with less certainty, of fewer, of another time or the other way round.

    Args:
        claim: of a part of a claim.
        found: of what evidence says with the same words.
    """
    return (
        _is_less_certain(claim, found)
        or (claim.share > 1 and found.share < claim.share)
        or (claim.share == 1 and found.share == 0 and found.only)
        or (claim.only and not found.only)
        or (claim.tense == "is" and found.tense == "was")
        or any(_POLES[word] & (found.poles - claim.poles) for word in claim.poles - found.poles)
        or is_turned(claim, found)
    )


def _is_less_certain(claim: Relations, found: Relations) -> bool:
    if claim.force in ("", "should"):
        return found.force != claim.force
    return claim.force == "will" and found.force in ("may", "should")


def is_turned(claim: Relations, found: Relations) -> bool:
    """Whether the two sides, or two names around a verb, have changed places."""
    if (claim.source & found.target) - found.source or (claim.target & found.source) - found.target:
        return True
    here = [name for name in claim.order if name in found.order]
    there = [name for name in found.order if name in claim.order]
    if len(here) < 2 or len(there) < 2:
        return False
    return (here != there) != (claim.passive != found.passive)
