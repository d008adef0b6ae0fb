"""What a piece of text says, for the rules: words in one form, quantities, and whether it is denied.

A text is cut into parts at commas, semicolons and conjunctions; a denial reaches as far as its part. That is no
grammar. It is what tells "in stock" from "not in stock", and the price of one thing from that of the next.
"""

from __future__ import annotations

import re
from typing import Final

from attrs import evolve, frozen

from locus_plugin_grounding.clauses import Side, Word, sides_of
from locus_plugin_grounding.languages import ENGLISH, PREPOSITION, fold, stem_in
from locus_plugin_grounding.quantities import ADDRESS, Quantity, iso_dates, read_at, use_signs
from locus_plugin_grounding.relations import NONE, Relations, relations_of
from locus_plugin_grounding.stopwords import CONTINUES, FRAME, VALUE, kinds_of

__all__ = ["Part", "parts", "words_of"]

_SMALL_WORDS = """
a about above according actually additionally after again all also although am an and any anyone are as at
based be because been before being below between both but by can could currently did do does done during either
else even every finally first for from further furthermore got had has have having he her here hers him his
how however i if in indeed into is it its itself just later least let like likely many may me might more moreover
most much must my near next now of off on once one only onto or other our ours out over own per please rather
really result results said same says see shall she should since so some still such than that the their theirs
them then there therefore these they this those though through thus to today too total unfortunately under
until up upon us user very was we were what when where whereas which while who whom whose why will with within
would yes yet you your yours
probably possibly perhaps maybe apparently possible most mostly several few sometimes always entire entirely whole
completely fully together altogether combined going shall everyone everybody everything majority usually sorry apologies
"""
_STOPWORDS: Final = frozenset(_SMALL_WORDS.split())
_NO = """
no not never none neither nor cannot without nothing nobody
nowhere noone
exclude excludes excluded excluding omit omits omitted unknown missing absent
hardly barely scarcely lacks lack lacking false null
except devoid bereft
"""
_DENIALS: Final = frozenset(_NO.split())
_UP: Final = ("increase", "increased", "increases", "grew", "grows", "rose", "rises")
_DOWN: Final = ("decrease", "decreased", "decreases", "shrank", "shrinks", "fell", "falls", "drop", "dropped", "drops")
#: What is the denial of another word.
_OPPOSITES: Final = {
    "unavailable": "available",
    "fail": "succeeded",
    "failed": "succeeded",
    "fails": "succeeded",
    "failure": "succeeded",
    "unsuccessful": "succeeded",
    "success": "succeeded",
    "successful": "succeeded",
    "succeeded": "succeeded",
    "succeeds": "succeeded",
    "disabled": "enabled",
    "closed": "open",
    "invalid": "valid",
    "inactive": "active",
    "offline": "online",
    "unconfirmed": "confirmed",
    "incorrect": "correct",
    "impossible": "possible",
    "incomplete": "complete",
    "unpaid": "paid",
    "rejected": "accepted",
    "denied": "accepted",
    "declined": "accepted",
    **dict.fromkeys(_UP, "increased"),
    **dict.fromkeys(_DOWN, "increased"),
}
#: The words that these are the opposites of.
_AFFIRMED: Final = frozenset(_OPPOSITES.values())
_POSITIVE: Final = frozenset(("success", "successful", "succeeded", "succeeds", *_UP))
#: Stands for "it is not true that", which turns a denial into its opposite.
_UNTRUE: Final = "\ue002"
#: Courtesy and hedges say nothing about the world.
_HEDGES: Final = (
    r"^\W*(?:so )?sorry\b",
    r"\bi(?:['\u2019]| a)m (?:so |very )?(?:sorry|afraid|pleased|glad|happy)\b"
    r"(?: to (?:say|tell you|report)\b)?(?: that\b)?",
    r"\b(?:i|we) (?:believe|think|guess|suppose|assume|understand|regret)(?: to (?:say|inform you))?\b(?: that\b)?",
    r"\b(?:as|so) far as i (?:can (?:tell|see)|know)\b|\bto (?:the best of )?my knowledge\b",
    r"\bit (?:seems|looks|appears)(?: like| that| as if)?\b",
    r"\b(?:good|great|bad) news\b|\bplease note(?: that)?\b|\bthank(?:s| you) for [\w ]{3,30}?(?=[:,.!])",
    r"^\W*(?:thanks|thank you|hello|hi|hey|sure|certainly|of course|apologies)\b",
)
_PHRASES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), to)
    for pattern, to in (
        ("|".join(_HEDGES), " "),
        (r"\bit(?: is|['\u2019]s) (?:not true|untrue|false|not the case) that\b", f" {_UNTRUE} "),
        (r"\b(?:takes?|took|taken|taking) place\b", "is"),
        (r"\bdegrees? celsius\b", "\u00b0C"),
        (r"\bdegrees? fahrenheit\b", "\u00b0F"),
        (r"\bcheck(?:s|ed|ing)?[ -](in|out)\b", r"check\1"),
        (r"\bpick(?:s|ed|ing)?[ -]up\b", "pickup"),
        (r"\bdrop(?:s|ped|ping)?[ -]off\b", "dropoff"),
        (r"\b(?:out of|no longer in)\s+stock\b|\bsold[ -]out\b", "not in stock"),
        (
            r"\b(?:fail(?:s|ed)?|unable|refuse[sd]?|failure|forg[eo]ts?|forgotten|neglect(?:s|ed)?|decline[sd]?|omit(?:s|ted)?"
            r"|(?:has|have|had|is|are) yet)\s+to\b",
            "not",
        ),
        (r"\bfar from\b|\b(?:stop(?:s|ped)?|quit|cease[sd]?|avoid(?:s|ed)?)\s+(?=\w+ing\b)", "not "),
        (r"\bleft(?=\s*(?:[.!,;]|$|in stock\b))", "remaining"),
        (r"\b(?:apiece|per (?:piece|unit|item))\b", "each"),
        (r"\bnot? (?:more|later) than\b", "at most"),
        (r"\bnot? (?:less|fewer|earlier) than\b", "at least"),
        (r"n['\u2019]t\b", " not"),
        (r"\bnot only\b|\bno doubt\b|\bnot just\b", ""),
        (r"\bnothing but\b", "only"),
        (r"\bwith the exception of\b|\b(?:excepting|excluding)\b|\bexcept for\b", "except"),
        (r"\b(?:any|every)thing but\b|\ball but\b", "most except"),
        (r"\b(?:all|every|everyone|everybody|everything|always|each|any)\b(?=[^.;!?\n]{0,200}\bexcept\b)", "most"),
        (r"\b(?:nearly|almost)\s+(?=\w+ed\b)", "not "),
        (
            r"\b(?:prohibit(?:s|ed)?|forbid(?:s|den)?|ban(?:s|ned)?|bar(?:s|red)|prevent(?:s|ed)?|refrain(?:s|ed)?|abstain(?:s|ed)?)"
            r"(?:\s+(?!from\b)\w+){0,3}\s+from\b",
            "not",
        ),
        (r"\bceases? to\b|\bceased to\b", " not "),
        (r"\s(?:instead of|rather than)\b", ", not"),
    )
)
_CUT = re.compile(
    r"[;\n|]|,(?=\s|$)|\s[-\u2013\u2014]\s|\s(?=except\b)|\b(?:and|but|while|whereas|although|though|however|yet|because)\b",
    re.IGNORECASE,
)
_HOLDING = re.compile("[\ue000-\ue003]")
_HELD = re.compile("\ue000([0-9]+)\ue001")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])|_+")
_VERBS = """
begin: began begun
break: broke broken
bring: brought
build: built
buy: bought buyer
choose: chose chosen
come: came
deal: dealt
drive: drove driven
fall: fell fallen
feel: felt
find: found
fly: flew flown flies
give: gave given
go: went gone goes
grow: grew grown
hold: held
keep: kept
know: knew known
lead: led
leave: left leaves
lose: lost
make: made
meet: met
pay: paid
rise: rose risen
run: ran
sell: sold seller
send: sent sender
sit: sat
speak: spoke spoken
spend: spent
stand: stood
steal: stole stolen
take: took taken
teach: taught
tell: told
think: thought
win: won winner
write: wrote written
beat: beaten
bite: bit bitten
catch: caught
fight: fought
lend: lent
overtake: overtook overtaken
owe: owed owes
strike: struck stricken
sue: sued sues
sink: sank sunk
sing: sang sung
drink: drank drunk
swim: swam swum
draw: drew drawn
eat: ate eaten
forget: forgot forgotten
freeze: froze frozen
hide: hid hidden
see: saw seen
shoot: shot
sleep: slept
throw: threw thrown
wear: wore worn
"""
#: What may come right before a number that names a thing: "order 4711", "Order #4711", "order number 4711".
_LABEL = re.compile(r"([^\W\d_]{2,})\s(?:number |no\.? |id |nr\.? )?#?$", re.IGNORECASE)
_LONGEST_LABEL: Final = 60
#: Verbs whose past, and nouns whose verb, has another stem.
_IRREGULAR: Final = {
    form: verb for verb, forms in (line.split(": ") for line in _VERBS.strip().splitlines()) for form in forms.split()
}
#: What comes right before a number that is a lower or an upper bound.
_LOWER = "at least|more than|over|above|after|from|since"
_UPPER = "at most|up to|(?:less|fewer) than|under|below|before|until|till"
_BOUND = re.compile(rf"\b(?:(?P<upper>{_UPPER})|(?P<lower>{_LOWER}))\s+(?:the\s+)?$", re.IGNORECASE)
#: Languages in which the order of words says who does it to whom: German has cases, and Chinese text has no words.
_ORDERED: Final = (ENGLISH, "fr", "es")
_COUNTED = re.compile(r"(?:\s[^\W\d_]{2,40}){1,4}")
#: Two lamps at 84.50 dollars are not two at 84.50 dollars each.
_EACH = re.compile(r"\s+each\b", re.IGNORECASE)
_SMALL: Final = _STOPWORDS | _DENIALS | FRAME | frozenset(VALUE)
_FIRST: Final = CONTINUES | FRAME | frozenset(VALUE)
_GOES_ON = re.compile(r"\s*(?:also\s+|then\s+)?(?:[a-z]+(?:ed|ing|[^s\W]s)\b|(?:It|They|Its|Their)\b)")


@frozen
class Part:
    """One part of a text.

    Args:
        terms: its words of content, in one form.
        names: those of them that are written as names.
        quantities: its numbers, dates, times and identifiers.
        denied: whether it is denied.
        opposed: those of its terms that are there by the word for their opposite, or are denied, but not both: of
            "failed" and of "did not succeed", success.
        stated: those of its terms that have such an opposite.
        content: those of its words that carry a fact: all but the frame, and beside a quantity all but what says which
            kind of value it is.
        kinds: the kinds of value that it names: ``"money"`` of "it costs".
        labels: the numbers that name a thing, each with its word: 4711 of "order 4711".
        counted: the numbers that count something, each with its noun, which is their unit: 2 of "2 desk lamps", lamps.
        continues: whether it speaks of what the part before it spoke of: "and was shipped", "it costs".
        relations: what its small words say.
        inner: the names but for a first word, which begins with a capital whatever it is.
        sides: what is before each of its words and what behind it, in languages whose order of words says who does it.
    """

    terms: frozenset[str]
    names: frozenset[str]
    quantities: tuple[Quantity, ...]
    denied: bool
    content: frozenset[str]
    kinds: frozenset[str]
    labels: tuple[tuple[str, Quantity], ...]
    counted: tuple[tuple[Quantity, str], ...]
    continues: bool
    opposed: frozenset[str] = frozenset()
    stated: frozenset[str] = frozenset()
    relations: Relations = NONE
    inner: frozenset[str] = frozenset()
    sides: tuple[Side, ...] = ()

    @property
    def naming(self) -> tuple[Quantity, ...]:
        """The identifiers, and the numbers that name a thing."""
        return (*(q for q in self.quantities if q.kind == "id"), *(q for _, q in self.labels))


def stem(word: str, language: str = ENGLISH) -> str:
    """A word in the form that it has in common with its plural, its past and the like."""
    word = word.casefold().removesuffix("'s").removesuffix("\u2019s")
    if language != ENGLISH:
        return stem_in(language, word)
    word = _IRREGULAR.get(word, word)
    if word.isascii():
        for ending, least in (("ation", 8), ("ies", 5), ("ing", 6), ("ed", 5), ("es", 5), ("s", 4)):
            if word.endswith(ending) and len(word) >= least and not word.endswith(("ss", "us", "is")):
                word = word.removesuffix(ending) + ("y" if ending == "ies" else "")
                break
        if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
            word = word[:-1]
        word = word.removesuffix("e") if len(word) > 3 else word
    return word


def words_of(text: str, language: str = ENGLISH) -> frozenset[str]:
    """The words of content of a text, of a name in code too: ``book_flight`` -> book, flight."""
    found = _WORD.findall(fold(_CAMEL.sub(" ", text), language))
    return frozenset(stem(word, language) for word in found if word.casefold() not in _STOPWORDS)


def _fold(text: str, language: str) -> str:
    text = fold(_CAMEL.sub(" ", text), language)
    text = iso_dates(use_signs(text))
    for pattern, replacement in _PHRASES:
        text = pattern.sub(replacement, text)
    return text


def parts(text: str, language: str = ENGLISH) -> tuple[Part, ...]:
    """The parts of a text that say something.

    Args:
        text: a sentence, or a key and its value.
        language: of the text, see `language_of`.
    """
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        held.append(found[0])
        return f" \ue000{len(held) - 1}\ue001 "

    # An address is one name: it is put aside while the rest is folded and cut.
    folded = _fold(ADDRESS.sub(hold, _HOLDING.sub(" ", text)), language)
    cut = (each for part in _CUT.split(folded) for each in _cut_at_colon(part))
    made = (_part(_HELD.sub(lambda found: held[int(found[1])], each), language) for each in cut)
    return tuple(part for part in made if part.terms or part.quantities)


def _cut_at_colon(text: str) -> tuple[str, ...]:
    """A key belongs to its value; what says no before a colon says it of what is before it: "Failed: card declined"."""
    before, colon, after = text.partition(": ")
    return (before, after) if colon and _denies(before) and _denies(after) else (text,)


def _denies(text: str) -> bool:
    words = (word.casefold() for word in _WORD.findall(text))
    return any(word in _DENIALS or (word in _OPPOSITES and word not in _POSITIVE) for word in words)


def _part(text: str, language: str) -> Part:
    terms: set[str] = set()
    names: set[str] = set()
    words: list[str] = []
    order: list[Word] = []
    quantities: list[Quantity] = []
    labels: list[tuple[str, Quantity]] = []
    amounts: list[tuple[Quantity, str]] = []
    opposed: set[str] = set()
    stated: set[str] = set()
    denials, at = 0, 0
    while at < len(text):
        char = text[at]
        starts = char.isalnum() or (char in "$€£¥-\u2212./~\\" and text[at + 1 : at + 2].strip() != "")
        if starts and (at == 0 or not text[at - 1].isalnum()) and (read := read_at(text, at)) is not None:
            quantities.append(_with_bounds(read[0], text, at))
            order.append(Word(f"{read[0].kind}:{read[0].value}", content=True, value=True))
            before, at = at, max(read[1], at + 1)
            if (found := _LABEL.search(text, max(0, before - _LONGEST_LABEL), before)) and _names(found[1], read[0]):
                labels.append((stem(found[1], language), read[0]))
            elif _EACH.match(text, at):
                amounts.append((read[0], "each"))
            elif read[0].kind == "" and (found := _COUNTED.match(text, at)):
                amounts.append((read[0], _head(found[0], language)))
            continue
        word = _WORD.match(text, at)
        if word is None:
            if char == PREPOSITION:
                order.append(Word("of", content=False))
            at += 1
            continue
        at = word.end()
        words.append(word[0].casefold())
        if word[0].casefold() in _DENIALS:
            denials += 1
        elif len(word[0]) == 1 and _is_letter(text, word):
            quantities.append(Quantity("id", word[0].casefold()))
            order.append(Word(f"id:{word[0].casefold()}", content=True, value=True))
        else:
            small = word[0].casefold() in _STOPWORDS
            order.append(Word(word[0].casefold() if small else stem(word[0], language), content=not small))
            opposed |= _take(word[0], terms, names, stated, language)
    # Zero of something denies it. Two denials are one: "neither ... nor", "no ... ningún".
    negated = denials > 0 or any(q.kind == "" and q.value == 0 for q in quantities)
    negated = negated != (_UNTRUE in text)
    valued = len(quantities) > len(labels) + sum(q.kind == "id" for q in quantities)
    soft = frozenset(w for w in words if w in FRAME or (w in VALUE and (valued or (quantities and VALUE[w] == "name"))))
    bare = frozenset(stem(word, language) for word in soft)
    return Part(
        terms=frozenset(terms),
        names=frozenset(names - bare),
        quantities=tuple(quantities),
        denied=negated != (len(opposed) % 2 == 1),
        opposed=frozenset(stated - opposed if negated else opposed),
        stated=frozenset(stated),
        content=frozenset(terms - bare),
        kinds=kinds_of(frozenset(words)),
        labels=tuple(labels),
        counted=tuple((q, noun) for q, noun in amounts if noun),
        continues=bool(_GOES_ON.match(text)) or (bool(words) and words[0] in _FIRST and text.lstrip()[:1].islower()),
        relations=relations_of(text, language),
        inner=frozenset(names - bare) - {stem(words[0], language)} if words else frozenset(),
        sides=sides_of(order) if language in _ORDERED else (),
    )


def _is_letter(text: str, word: re.Match[str]) -> bool:
    """Whether a single letter is a name ("platform B"), and no article, pronoun or initial."""
    letter, before = word[0], text[: word.start()]
    if not (letter.isascii() and letter.isupper()) or text[word.end() : word.end() + 1] in (".", "'", "\u2019"):
        return (
            letter.isascii()
            and letter.isupper()
            and letter != "I"
            and not text[word.end() + 1 :].strip()
            and bool(before)
        )
    return bool(before.strip()) and letter != "I"


def _with_bounds(q: Quantity, text: str, at: int) -> Quantity:
    found = _BOUND.search(text, max(0, at - _LONGEST_LABEL), at)
    return q if found is None else evolve(q, bound="<" if found["upper"] else ">")


def _names(word: str, q: Quantity) -> bool:
    """Whether a number right behind a word is its name, and no amount."""
    folded = word.casefold()
    plain = q.kind == "" and q.raw is not None and q.raw == q.raw.to_integral_value() and q.raw > 0
    return plain and folded not in _SMALL and not folded.endswith(("s", "ed", "ing"))


def _head(words: str, language: str) -> str:
    """Of the words right behind a number the noun that it counts: the last one before a verb or a small word."""
    head = ""
    for word in words.casefold().split():
        if word in _SMALL or word in _OPPOSITES or word.endswith(("ed", "ing")):
            break
        head = stem(word, language)
        if word.endswith("s"):
            break
    return head


def _take(word: str, terms: set[str], names: set[str], stated: set[str], language: str) -> set[str]:
    """Note a word; the term that it is the opposite of, if it is one."""
    folded = word.casefold()
    opposite = _OPPOSITES.get(folded)
    if opposite is not None or folded in _AFFIRMED:
        term = stem(opposite or folded)
        terms.add(term)
        stated.add(term)
        return set() if opposite is None or folded in _POSITIVE else {term}
    if folded in _STOPWORDS or (len(folded) == 1 and folded.isascii()):
        return set()
    form = stem(word, language)
    terms.add(form)
    if word[0].isupper():
        names.add(form)
    return set()
