"""Claims against evidence by rules, with no model: words, quantities and denials, compared piece by piece.

A claim is grounded when one piece of evidence has what it has: each of its hard facts (names and quantities) in the
place that speaks of the same thing, denied where it is denied, and enough of its other words. Words that say no more
than which kind of value a quantity is ("costs") need not be there. It is contradicted when a piece speaks of the same
thing with another number of the same kind, or with the opposite denial. Everything else is ungrounded: the rules know
no synonyms and make no inference, so they err on that side.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import Final

from attrs import evolve, frozen

from locus_plugin_grounding.arithmetic import adds_up, calculation_in, compares, is_total, without_reckoning
from locus_plugin_grounding.clauses import are_swapped
from locus_plugin_grounding.evidence import Corpus, Piece, without
from locus_plugin_grounding.facts import Part, parts
from locus_plugin_grounding.languages import ENGLISH, fold, language_of
from locus_plugin_grounding.partition import Kind
from locus_plugin_grounding.quantities import Quantity, same
from locus_plugin_grounding.relations import clash, is_turned, join

__all__ = ["Finding", "Standing", "corrects", "find", "names_of"]

#: Quantities that say which thing is spoken of, and not what is said of it.
_NAMING: Final = ("id", "date")
#: A claim with more characters, or more quantities, is not a sentence that rules can compare.
_LONGEST, _MOST_QUANTITIES = 2_000, 40
#: How much of a claim's words a piece must have to speak of the same thing.
_SUBJECT: Final = 0.6
#: How much of the words of each part must be there, so that the facts of one part do not carry another that is made up:
#: half, for of "the order was dispatched" one word is the subject and the other what is said of it in other words.
_PART: Final = 0.5
#: What several things are called together.
_COUNTS: Final = frozenset(("item", "thing", "piec", "product", "articl"))
#: Prefixes that deny.
_NO: Final = ("un", "in", "im", "il", "ir", "dis", "non", "mis", "des", "d\u00e9s", "d\u00e9")
_IT = re.compile(r"its?\b", re.IGNORECASE)


class Standing(Enum):
    """What the evidence says about a claim."""

    GROUNDED = "grounded"
    UNGROUNDED = "ungrounded"
    CONTRADICTED = "contradicted"
    COMPLEMENTARY = "complementary"


@frozen
class Finding:
    """What was found about a claim.

    Args:
        standing: what the evidence says about it.
        kind: on what kind of evidence it rests.
        open: of an ungrounded one, whether it may be so in other words: only words are missing, no name or number, and
            nothing is the other way round.
    """

    standing: Standing
    kind: Kind
    open: bool = False


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
    def content(self) -> frozenset[str]:
        """The words that evidence must have; where all words are soft and no quantity comes with them, all of them."""
        found: frozenset[str] = frozenset().union(*(part.content for part in self.parts))
        return found if found or self.quantities else self.terms

    @property
    def naming(self) -> tuple[Quantity, ...]:
        return tuple(q for part in self.parts for q in part.naming)

    @property
    def counted(self) -> frozenset[str]:
        return frozenset(noun for part in self.parts for _, noun in part.counted)

    @property
    def owned(self) -> bool:
        """Whether it names the thing that it is about."""
        return not self.parts[0].continues and bool(self.names or self.naming)

    @property
    def whole(self) -> bool:
        words = len(self.content)
        return words >= 2 or (words == 1 and bool(self.quantities))


def _groups(found: Iterable[Part]) -> list[_Group]:
    """Parts that are complete, each with the incomplete ones before it."""
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


def find(claim: str, corpus: Corpus, *, overlap: float = 1.0, before: str = "") -> Finding:
    """Compare a claim with the evidence.

    Args:
        claim: one sentence. The user's question, quoted in it, counts for nothing.
        corpus: the evidence.
        overlap: the share of words of content and quantities that a piece must have.
        before: the claim before it: where this one names nothing ("It costs ..."), the evidence may not be about
            another thing than that one named.
    """
    ungrounded = Finding(Standing.UNGROUNDED, Kind.INFERENCE)
    if len(claim) > _LONGEST:
        return ungrounded
    said = without(claim, corpus.question)
    language = language_of(said)
    if (reckoned := _find_calculation(said, corpus, language)) is not None:
        return reckoned
    groups = _groups(parts(said, language))
    if not groups or sum(len(group.quantities) for group in groups) > _MOST_QUANTITIES:
        return ungrounded
    if (derived := _is_derived(said, groups, corpus, language)) is not None:
        return Finding(Standing.GROUNDED, Kind.SYNTHESIS) if derived else ungrounded
    supports: list[Piece] = []
    held, disputed = 0, False
    about = _Group(())
    earlier = (
        names_of(before, language)
        if before and not (groups[0].naming or (groups[0].content and not _IT.match(claim)))
        else ()
    )
    for group in groups:
        if group.owned:
            about = _Group(())
        support, against = _compare(
            group,
            about,
            corpus.near(group.terms | about.names, (*group.quantities, *about.naming), language),
            overlap,
            earlier,
        )
        if not about.parts:
            about = group
        if support is not None:
            held += 1
            supports.append(support)
            disputed = disputed or against is not None
        elif against is not None:
            return Finding(Standing.CONTRADICTED, Kind.SPECIFIC_DATA if against.record else Kind.TOOL_MATCH)
    if held < len(groups):
        return evolve(ungrounded, open=not _is_settled(groups, corpus, language))
    if disputed:
        return Finding(Standing.COMPLEMENTARY, Kind.COMPLEMENTARY_FINDING)
    return Finding(Standing.GROUNDED, _kind(groups, supports))


def _is_settled(groups: list[_Group], corpus: Corpus, language: str) -> bool:
    """Whether no other words could make a claim right: the evidence lacks its names or numbers, or turns them round."""
    for group in groups:
        pieces = tuple(corpus.near(group.terms, group.quantities, language))
        bounded = any(q.bound for q in group.quantities) or any(part.relations.total for part in group.parts)
        if not bounded and any(not any(_is_present(q, piece) for piece in pieces) for q in group.quantities):
            return True
        known: frozenset[str] = frozenset().union(*(_known_words(group, piece) for piece in pieces))
        if language != "de" and any(part.inner - known for part in group.parts):
            return True  # German writes every noun like a name
        if any(_is_negated(word, known) for word in group.content - known):
            return True
        if any(_is_turned(group, piece) for piece in pieces):
            return True
        if any(group.content <= _known_words(group, piece) and _is_twisted(group, piece) for piece in pieces):
            return True
    return False


def _find_calculation(said: str, corpus: Corpus, language: str) -> Finding | None:
    """What the evidence says about a sentence that is a calculation and no more; None about any other."""
    done = calculation_in(fold(said, language))
    if done is None or any(part.content for part in parts(done.rest, language)):
        return None
    wanted = [Quantity("", number, number) for number in (done.claimed, *done.operands)]
    pieces = tuple(corpus.near((), wanted, language))
    result, *operands = (any(_is_present(q, piece) for piece in pieces) for q in wanted)
    if done.right and (result or all(operands)):
        return Finding(Standing.GROUNDED, Kind.TOOL_MATCH if result else Kind.SYNTHESIS)
    return Finding(Standing.UNGROUNDED if done.right else Standing.CONTRADICTED, Kind.INFERENCE)


def _is_derived(said: str, groups: list[_Group], corpus: Corpus, language: str) -> bool | None:
    """Whether the one amount of a sentence is the sum, or the difference, of those that the evidence has.

    None for any other sentence, and where the evidence has fewer than two amounts, or a total of its own.
    """
    folded = fold(said, language)
    compared = compares(folded)
    if compared is None and not is_total(folded):
        return None
    made = parts(without_reckoning(folded), language)
    amounts = [(q, part) for part in made for q in part.quantities if q.raw is not None and q not in part.naming]
    if len(amounts) != 1 or any(part.denied for part in made):
        return None
    claimed, part = amounts[0]
    terms: frozenset[str] = frozenset().union(*(part.terms for group in groups for part in group.parts))
    naming = [q for each in made for q in each.naming]
    pieces = tuple(corpus.near(terms, naming, language))
    found = [(piece, q) for piece in pieces if (q := _amount_of(claimed, part, piece)) is not None]
    if len(found) < 2 or any(part.relations.total for piece, _ in found for part in piece.parts):
        return None
    known: frozenset[str] = frozenset().union(*(_known_words(_Group(made), piece) for piece, _ in found))
    if not frozenset().union(*(each.content for each in made)) - _COUNTS <= known:
        return False
    if compared is None:
        return adds_up(claimed, (q for _, q in found))
    sides = [_side_of(text, found, language) for text in compared[:2]]
    if len(sides[0]) != 1 or len(sides[1]) != 1:
        return False
    less, more = (sides[0][0], sides[1][0]) if compared[2] else (sides[1][0], sides[0][0])
    return adds_up(more, (less, claimed))


def _amount_of(claimed: Quantity, part: Part, piece: Piece) -> Quantity | None:
    """The one amount of a piece that is of the kind of a claimed one, and of what it counts."""
    nouns = {noun for q, noun in part.counted if q == claimed}
    found = [
        q
        for other in piece.parts
        for q in other.quantities
        if q.raw is not None
        and q not in other.naming
        and q.kind == claimed.kind
        and (q.kind or not nouns or nouns & (other.terms | {noun for _, noun in other.counted}))
    ]
    return found[0] if len(found) == 1 else None


def _side_of(text: str, found: Iterable[tuple[Piece, Quantity]], language: str) -> list[Quantity]:
    """The amounts of what one side of a comparison names."""
    sides = parts(text, language)
    named = [q for side in sides for q in side.naming]
    words: frozenset[str] = frozenset().union(*(side.names for side in sides))
    if not named and not words:
        words = frozenset().union(*(side.content for side in sides))
    return [q for piece, q in found if words <= piece.terms and all(_is_present(n, piece) for n in named)]


def _kind(groups: list[_Group], supports: list[Piece]) -> Kind:
    if any(piece is not supports[0] for piece in supports):
        return Kind.SYNTHESIS
    if any(part.denied for group in groups for part in group.parts):
        return Kind.NEG_EVIDENCE
    return Kind.SPECIFIC_DATA if supports[0].record else Kind.TOOL_MATCH


def names_of(claim: str, language: str = ENGLISH) -> tuple[Quantity, ...]:
    """The identifiers, and numbers that name things, of a claim."""
    return _Group(parts(claim, language)).naming if len(claim) <= _LONGEST else ()


def _compare(
    group: _Group, about: _Group, near: Iterable[Piece], overlap: float, earlier: tuple[Quantity, ...]
) -> tuple[Piece | None, Piece | None]:
    """A piece that says it of what the sentence is about, and one that says otherwise."""
    support = against = None
    for piece in near:
        said = _is_said_by(group, piece, overlap) if _speaks_of(about, piece) and _may_match(earlier, piece) else None
        if said is True:
            support = support or piece
        elif said is False:
            against = against or piece
        if support is not None and against is not None:
            break
    return support, against


def _speaks_of(about: _Group, piece: Piece) -> bool:
    """Whether a piece knows the thing that the part of a sentence before this one named."""
    known = _known_words(about, piece)
    return about.names <= known and all(_is_present(q, piece) for q in about.naming)


def _may_match(earlier: tuple[Quantity, ...], piece: Piece) -> bool:
    """Whether a piece can be about what an earlier sentence named: it knows one of these, or names nothing itself."""
    if not earlier or any(_is_present(q, piece) for q in earlier):
        return True
    return not any(part.naming or (part.quantities and "name" in part.kinds) for part in piece.parts)


def _is_present(q: Quantity, piece: Piece) -> bool:
    return any(same(q, other) for other in piece.known) or any(same(q, o) for p in piece.parts for o in p.quantities)


def _known_words(group: _Group, piece: Piece) -> frozenset[str]:
    """The words that a piece has, and those that it has by a bare identifier: an "id" of 4711 is that of order 4711."""
    given = (
        noun
        for part in group.parts
        for noun, q in part.labels
        if any(not p.content and any(same(q, other) for other in p.quantities) for p in piece.parts)
    )
    return piece.terms | piece.context | frozenset(given)


def _is_said_by(group: _Group, piece: Piece, overlap: float) -> bool | None:
    """Whether a piece says what a group says (True), the opposite (False), or speaks of something else (None)."""
    words, known = group.content, _known_words(group, piece)
    if not group.names | group.counted <= known:
        return None
    hits = len(words & known)
    agrees = True
    matched = 0
    for part in group.parts:
        for q in part.quantities:
            found = _has_quantity(q, part, group, piece)
            if found is None:
                return None
            agrees = agrees and found
            matched += found
    if any(_is_denied(part, piece) not in (None, part.denied) or _is_opposed(part, piece) for part in group.parts):
        agrees = False
    if agrees:
        enough = hits + matched >= overlap * (len(words) + len(group.quantities))
        covered = enough and all(_is_covered(part, known) for part in group.parts)
        return True if covered and not _is_twisted(group, piece) else None
    subject = words or group.terms
    return False if subject and len(subject & known) >= _SUBJECT * len(subject) else None


def _is_covered(part: Part, known: frozenset[str]) -> bool:
    return len(part.content & known) >= _PART * len(part.content)


def _has_quantity(q: Quantity, part: Part, group: _Group, piece: Piece) -> bool | None:
    """Whether a piece has a quantity where it speaks of the same thing; False for another one there, None for none."""
    naming = q.kind in _NAMING or any(q == label for _, label in part.labels)
    rivals = [p for p in piece.parts if any(_rivals(q, other, p, part) for other in p.quantities)]
    if not rivals:
        return True if any(same(q, other) for other in piece.known) else None
    scope = part if part.content else group
    beside = [other for other in (*scope.quantities, *scope.naming) if other != q]
    scores = [_score(part, scope.terms, beside, p) for p in rivals]
    nearest = [p for p, score in zip(rivals, scores, strict=True) if score == max(scores)]
    holding = [p for p in nearest if any(same(q, other) for other in p.quantities)]
    if any(naming or not _of_another_kind(part, scope, p, piece) for p in holding):
        return True
    if holding:
        return None
    placed = q.kind == "date" and any(scope.content & p.terms for p in nearest)
    if naming and not placed:
        return True if _is_present(q, piece) else None
    return False if any(other.kind == q.kind for p in nearest for other in p.quantities) else None


def _score(part: Part, terms: frozenset[str], beside: Iterable[Quantity], found: Part) -> tuple[int, int, int]:
    """How much a part of a piece speaks of what a claim speaks of: words, kinds of value, and nothing else beside."""
    shared = _count_shared(terms, beside, found)
    return shared, len(part.kinds & found.kinds), 0 if shared else -len(found.content)


def _of_another_kind(part: Part, scope: Part | _Group, found: Part, piece: Piece) -> bool:
    """Whether the value that a piece has in a place is of another kind than the claim says.

    "It costs 5" is not confirmed by a weight of 5, nor by what a record has under a key of which the claim has no word.
    """
    if scope.terms & found.content:
        return False
    if part.kinds and found.kinds and not part.kinds & found.kinds:
        return True
    return piece.record and bool(found.content)


def _rivals(q: Quantity, other: Quantity, found: Part, part: Part) -> bool:
    """Whether evidence has a number in place of a claim's: what names or counts a thing is not an amount of money."""
    if q.kind == other.kind:
        return True
    if "" not in (q.kind, other.kind) or q.raw is None or other.raw is None:
        return False
    measured = bool(part.kinds) or q.kind.isupper()
    return not (q.kind and (_counts(other, found) or (measured and other in found.naming)))


def _counts(q: Quantity, part: Part) -> bool:
    return any(q == count for count, _ in part.counted)


def _count_shared(terms: frozenset[str], quantities: Iterable[Quantity], part: Part) -> int:
    own = part.naming
    naming = sum(
        any(same(q, other) for other in part.quantities) for q in dict.fromkeys(quantities) if q.kind in _NAMING
    )
    return len(terms & part.terms) + naming + sum(q.kind == "" and q in own for q in dict.fromkeys(quantities))


def _is_denied(part: Part, piece: Piece) -> bool | None:
    """Whether a piece denies what a part speaks of; None when it does not speak of it.

    Each word is judged where the piece has most of the part: in "widget in stock, gadget not in stock" the stock of the
    widget is not denied.
    """
    found: dict[str, tuple[int, bool]] = {}
    for other in piece.parts:
        shared = part.terms & other.terms
        score = _count_shared(part.terms, part.quantities, other)
        for term in shared:
            best, denied = found.get(term, (0, True))
            if score > best:
                found[term] = (score, other.denied)
            elif score == best:
                found[term] = (score, denied and other.denied)
    if not found:
        # No word in common: what a piece says with the same quantity is what it says of it.
        beside = [p.denied for p in piece.parts for q in part.quantities if any(same(q, o) for o in p.quantities)]
        return all(beside) if beside else None
    return any(denied for _, denied in found.values()) if found else None


def _is_opposed(part: Part, piece: Piece) -> bool:
    """Whether a piece says the opposite of a word: "failed" of what a part says succeeded."""
    for term in part.stated:
        found = [term in other.opposed for other in _nearest(part, [p for p in piece.parts if term in p.stated])]
        if found and (term in part.opposed) not in found:
            return True
    return False


def _nearest(part: Part, others: list[Part]) -> list[Part]:
    """Of some parts of a piece those that speak most of what a part of a claim speaks of."""
    scores = [_count_shared(part.terms, part.quantities, other) for other in others]
    return [other for other, score in zip(others, scores, strict=True) if score == max(scores)]


def _is_negated(word: str, known: frozenset[str]) -> bool:
    """Whether a text has a word with a prefix that denies it, or without one: "connected" and "disconnected"."""
    return any(
        f"{prefix}{word}" in known or (word.startswith(prefix) and word[len(prefix) :] in known) for prefix in _NO
    )


def _is_turned(group: _Group, piece: Piece) -> bool:
    whole = join(part.relations for part in piece.parts)
    return any(is_turned(part.relations, whole) for part in group.parts)


def _is_twisted(group: _Group, piece: Piece) -> bool:
    """Whether a piece has the words of a claim, and says with them less, or the other way round."""
    if _is_turned(group, piece):
        return True
    for part in group.parts:
        found = _nearest(part, [other for other in piece.parts if other.terms & part.terms])
        if found and all(_says_less(part, other) for other in found):
            return True
        if piece.record and _is_misplaced(part, piece):
            return True
    return False


def _says_less(part: Part, other: Part) -> bool:
    """Whether a part of a piece says less than a part of a claim with its words, or turned: "not all" is not "none"."""
    weaker = part.denied and other.denied and other.relations.share == 3 != part.relations.share
    return weaker or clash(part.relations, other.relations) or are_swapped(part.sides, other.sides)


def _is_misplaced(part: Part, piece: Piece) -> bool:
    """Whether a record has a name of a claim under another key, and another name under the key of the claim."""
    words = part.content - part.names
    for name in part.names:
        holding = [other for other in piece.parts if name in other.names]
        if not holding or any((part.terms - part.names) & other.terms for other in holding):
            continue
        for word in words:
            under = [other for other in piece.parts if word in other.terms]
            if under and all(name not in other.terms and other.names - part.terms for other in under):
                return True
    return False


def corrects(new: str, old: str) -> bool:
    """Whether a claim speaks of what another one spoke of, otherwise."""
    one, other = (_Group(parts(text, language_of(text))) for text in (new, old))
    if not one.terms or not other.terms or one == other:
        return False
    return len(one.terms & other.terms) >= _SUBJECT * len(other.terms)
