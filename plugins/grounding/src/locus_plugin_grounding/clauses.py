"""Who does what to whom: the words before a verb and those behind it, with a passive turned into its active.

No grammar is known, so any word of content may be the verb. It says that two things have changed sides only when a
claim and its evidence have the same word between the same two others, the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from attrs import frozen

__all__ = ["Side", "Word", "are_swapped", "sides_of"]

#: What ends the words that a verb is about: "defeated Sweden | in Oslo".
_PREPOSITION_WORDS = """
about above across after against along among around as at before behind below beneath beside between beyond by despite
during except for from in inside into like near of off on onto outside over per since than through throughout to toward
towards under until up upon via with within without that which who whom whose where when while because if
"""
_PREPOSITIONS: Final = frozenset(_PREPOSITION_WORDS.split())
_DETERMINER_WORDS = """
a an the this that these those my your his her its our their every each some any no another
"""
_DETERMINERS: Final = frozenset(_DETERMINER_WORDS.split())
_AUXILIARIES: Final = frozenset(["is", "are", "was", "were", "be", "been", "being", "get", "gets", "got"])
#: Verbs that say the same of both: who met whom, also met by whom.
_MUTUAL_WORDS = """
adjoin agre border coincid collid compet cooperat correlat date differ divorc draw drew equal fac fight interact
intersect join marri marry match meet neighbour neighbor overlap parallel play resembl shar swap tie touch with
"""
_MUTUAL: Final = frozenset(_MUTUAL_WORDS.split())
#: More words than a clause has: a table, or a list.
_MOST: Final = 30


@frozen
class Word:
    """A word of a part, in the order of the text.

    Args:
        form: its stem; of a small word, the word; of a number or a letter, its value.
        content: whether it carries a fact.
        value: whether it is a number, or a letter that names something.
    """

    form: str
    content: bool
    value: bool = False


@frozen
class Side:
    """What is around one word.

    Args:
        verb: the word, with the preposition that belongs to it ("depend on").
        doer: what does it.
        done_to: what has it done to it.
    """

    verb: str
    doer: frozenset[Word]
    done_to: frozenset[Word]


def sides_of(words: Sequence[Word]) -> tuple[Side, ...]:
    """What is on the two sides of each word that could be a verb.

    Args:
        words: of one part of a text.
    """
    if len(words) > _MOST:
        return ()
    found = []
    for at, verb in enumerate(words):
        before = words[at - 1].form if at else ""
        if not verb.content or verb.value or verb.form in _MUTUAL or before in _DETERMINERS | _PREPOSITIONS:
            continue
        subject = frozenset(word for word in words[:at] if word.content)
        preposition, rest = "", words[at + 1 :]
        if rest and rest[0].form in _PREPOSITIONS and rest[0].form != "by":
            # What something is done to has "to" before it, or not, in Spanish.
            preposition, rest = "" if rest[0].form == "to" else rest[0].form, rest[1:]
        target, behind = _object(rest)
        agent, _ = _object(behind[1:]) if behind and behind[0].form == "by" else (frozenset(), ())
        passive = any(word.form in _AUXILIARIES for word in words[max(0, at - 2) : at]) or (not target and bool(agent))
        if agent and passive:
            subject, target = agent, subject | target
        if subject and target:
            found.append(Side(f"{verb.form} {preposition}".rstrip(), subject, target))
    return tuple(found)


def _object(words: Sequence[Word]) -> tuple[frozenset[Word], Sequence[Word]]:
    """The words up to a preposition, and what follows."""
    for at, word in enumerate(words):
        if word.form in _PREPOSITIONS and not word.content:
            return frozenset(w for w in words[:at] if w.content), words[at:]
    return frozenset(word for word in words if word.content), ()


def are_swapped(claim: Iterable[Side], found: Iterable[Side]) -> bool:
    """Whether two things have changed sides around a word that both texts have."""
    there: dict[str, list[Side]] = {}
    for side in found:
        there.setdefault(side.verb, []).append(side)
    for side in claim:
        others = there.get(side.verb, ())
        if others and all(_is_swapped(side, other) for other in others):
            return True
    return False


def _is_swapped(one: Side, other: Side) -> bool:
    doers = (one.doer - one.done_to) & (other.done_to - other.doer)
    done_to = (one.done_to - one.doer) & (other.doer - other.done_to)
    return any(x.value == y.value for x in doers for y in done_to)
