"""Claims against evidence by rules, with no model: words, quantities and denials, compared piece by piece.

A claim is grounded when one piece of evidence has what it has: enough of its words, each of its names and quantities,
in the place that speaks of the same thing, and denied where it is denied. It is contradicted when a piece speaks of the
same thing with another number of the same kind, or with the opposite denial. Everything else is ungrounded: the rules
know no synonyms and make no inference, so they err on that side.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from attrs import frozen

from locus_plugin_grounding.evidence import Corpus, Piece, without
from locus_plugin_grounding.facts import Part, parts
from locus_plugin_grounding.partition import Kind
from locus_plugin_grounding.quantities import Quantity, same

__all__ = ["Finding", "Standing", "corrects", "find"]

#: Quantities that say which thing is spoken of, and not what is said of it.
_NAMING: Final = ("id", "date")
#: A claim with more characters, or more quantities, is no sentence that rules can compare.
_LONGEST, _MOST_QUANTITIES = 2_000, 40
#: How much of a claim's words a piece must have to speak of the same thing.
_SUBJECT: Final = 0.6


class Standing(Enum):
    """How a claim stands to the evidence."""

    GROUNDED = "grounded"
    UNGROUNDED = "ungrounded"
    CONTRADICTED = "contradicted"
    COMPLEMENTARY = "complementary"


@frozen
class Finding:
    """What was found about a claim.

    Args:
        standing: how it stands.
        kind: on what kind of evidence it rests.
    """

    standing: Standing
    kind: Kind


@frozen
class _Group:
    """Parts of a claim that are about one thing."""

    parts: tuple[Part, ...]

    @property
    def terms(self) -> frozenset[str]:
        return frozenset().union(*(part.terms for part in self.parts))

    @property
    def names(self) -> frozenset[str]:
        return frozenset().union(*(part.names for part in self.parts))

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        return tuple(q for part in self.parts for q in part.quantities)

    @property
    def whole(self) -> bool:
        terms = len(self.terms)
        return terms >= 2 or (terms == 1 and bool(self.quantities))


def _groups(found: Iterable[Part]) -> list[_Group]:
    """Parts that stand alone, each with those before it that do not."""
    groups: list[_Group] = []
    under_way: tuple[Part, ...] = ()
    for part in found:
        under_way = (*under_way, part)
        if _Group(under_way).whole:
            groups.append(_Group(under_way))
            under_way = ()
    if under_way:
        last = groups.pop().parts if groups else ()
        groups.append(_Group((*last, *under_way)))
    return groups


def find(claim: str, corpus: Corpus, *, overlap: float = 0.75) -> Finding:
    """How a claim stands to the evidence.

    Args:
        claim: one sentence. The user's question, quoted in it, counts for nothing.
        corpus: the evidence.
        overlap: the share of words and quantities that a piece must have.
    """
    ungrounded = Finding(Standing.UNGROUNDED, Kind.INFERENCE)
    if len(claim) > _LONGEST:
        return ungrounded
    groups = _groups(parts(without(claim, corpus.question)))
    if not groups or sum(len(group.quantities) for group in groups) > _MOST_QUANTITIES:
        return ungrounded
    supports: list[Piece] = []
    held, disputed = 0, False
    for group in groups:
        support, against = _compared(group, corpus, overlap)
        if support is not None:
            held += 1
            supports.append(support)
            disputed = disputed or against is not None
        elif against is not None:
            return Finding(Standing.CONTRADICTED, Kind.SPECIFIC_DATA if against.record else Kind.TOOL_MATCH)
    if held < len(groups):
        return ungrounded
    if disputed:
        return Finding(Standing.COMPLEMENTARY, Kind.COMPLEMENTARY_FINDING)
    return Finding(Standing.GROUNDED, _kind(groups, supports))


def _kind(groups: list[_Group], supports: list[Piece]) -> Kind:
    if any(piece is not supports[0] for piece in supports):
        return Kind.SYNTHESIS
    if any(part.denied for group in groups for part in group.parts):
        return Kind.NEG_EVIDENCE
    return Kind.SPECIFIC_DATA if supports[0].record else Kind.TOOL_MATCH


def _compared(group: _Group, corpus: Corpus, overlap: float) -> tuple[Piece | None, Piece | None]:
    """A piece that says it, and one that says otherwise."""
    support = against = None
    for piece in corpus.near(group.terms, group.quantities):
        said = _says(group, piece, overlap)
        if said is True:
            support = support or piece
        elif said is False:
            against = against or piece
        if support is not None and against is not None:
            break
    return support, against


def _says(group: _Group, piece: Piece, overlap: float) -> bool | None:
    """Whether a piece says what a group says (True), the opposite (False), or speaks of something else (None)."""
    terms, known = group.terms, piece.terms | piece.context
    if not group.names <= known:
        return None
    hits = sum(term in known for term in terms)
    agrees = True
    matched = 0
    for part in group.parts:
        for q in part.quantities:
            found = _has(q, part, group, piece)
            if found is None:
                return None
            agrees = agrees and found
            matched += found
    if any(_denied(part, piece) not in (None, part.denied) for part in group.parts):
        agrees = False
    if agrees:
        return True if hits + matched >= overlap * (len(terms) + len(group.quantities)) else None
    return False if terms and hits >= _SUBJECT * len(terms) else None


def _has(q: Quantity, part: Part, group: _Group, piece: Piece) -> bool | None:
    """Whether a piece has a quantity where it speaks of the same thing; False for another one there, None for none."""
    rivals = [p for p in piece.parts if any(_rivals(q, other) for other in p.quantities)]
    if not rivals:
        return True if any(same(q, other) for other in piece.known) else None
    scope = part if part.terms else _Group(group.parts)
    shared = [_shared(scope.terms, scope.quantities, p) for p in rivals]
    nearest = [p for p, n in zip(rivals, shared, strict=True) if n == max(shared)]
    if any(same(q, other) for p in nearest for other in p.quantities):
        return True
    if q.kind in _NAMING:
        others = (*piece.known, *(other for p in rivals for other in p.quantities))
        return True if any(same(q, other) for other in others) else None
    return False if any(other.kind == q.kind for p in nearest for other in p.quantities) else None


def _rivals(q: Quantity, other: Quantity) -> bool:
    return q.kind == other.kind or ("" in (q.kind, other.kind) and q.raw is not None and other.raw is not None)


def _shared(terms: frozenset[str], quantities: Iterable[Quantity], part: Part) -> int:
    naming = sum(any(same(q, other) for other in part.quantities) for q in quantities if q.kind in _NAMING)
    return len(terms & part.terms) + naming


def _denied(part: Part, piece: Piece) -> bool | None:
    """Whether a piece denies what a part speaks of; None when it does not speak of it.

    Each word is judged where the piece has most of the part: in "widget in stock, gadget not in stock" the stock of the
    widget is not denied.
    """
    found: dict[str, tuple[int, bool]] = {}
    for other in piece.parts:
        shared = part.terms & other.terms
        score = _shared(part.terms, part.quantities, other)
        for term in shared:
            best, denied = found.get(term, (0, True))
            if score > best:
                found[term] = (score, other.denied)
            elif score == best:
                found[term] = (score, denied and other.denied)
    return any(denied for _, denied in found.values()) if found else None


def corrects(new: str, old: str) -> bool:
    """Whether a claim speaks of what another one spoke of, otherwise."""
    one, other = _Group(parts(new)), _Group(parts(old))
    if not one.terms or not other.terms or one == other:
        return False
    return len(one.terms & other.terms) >= _SUBJECT * len(other.terms)
