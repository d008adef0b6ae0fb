"""The labelled pairs: a claim, what a tool said, and whether the claim follows from it.

`development.jsonl` is what rules and prompts are made with. `held_out.jsonl` was written and committed before them,
about other things in other words; it is measured and never looked at to change them. `held_out_2.jsonl` and
`held_out_3.jsonl` have denials only, `held_out_4.jsonl` who does what to whom, `held_out_5.jsonl` and
`held_out_6.jsonl` both: of each the first run, before rules were changed because of it, is in
`contrib/bench/RESULTS.md`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import cattrs
from attrs import field, frozen
from attrs.validators import in_, min_len

__all__ = ["LANGUAGES", "PHENOMENA", "SETS", "Pair", "read"]

SETS: Final = ("development", "held_out", "held_out_2", "held_out_3", "held_out_4", "held_out_5", "held_out_6")
LANGUAGES: Final = ("en", "de", "fr", "es", "zh")
#: What a pair is about: what was changed in a claim that is not grounded, or could be taken for a change.
PHENOMENA: Final = (
    "negation",
    "double_negation",
    "content_word",
    "number",
    "date",
    "unit",
    "arithmetic",
    "identifier",
    "email",
    "path",
    "letter",
    "roles",
    "quantifier",
    "modality",
    "tense",
    "hedge",
    "paraphrase",
    "entity",
    "partial",
)


@frozen(kw_only=True)
class Pair:
    """A claim beside one tool result.

    Args:
        language: of both.
        phenomenon: what the pair is about.
        grounded: whether a careful reader who has only the evidence would accept the whole claim.
        claim: a sentence of an answer.
        evidence: the text of the result: prose, lines or JSON.
    """

    language: str = field(validator=in_(LANGUAGES))
    phenomenon: str = field(validator=in_(PHENOMENA))
    grounded: bool
    claim: str = field(validator=min_len(1))
    evidence: str = field(validator=min_len(1))


def read(name: str) -> tuple[Pair, ...]:
    """The pairs of a set.

    Args:
        name: one of `SETS`.
    """
    text = Path(__file__).with_name(f"{name}.jsonl").read_text(encoding="utf-8")
    found: list[Any] = [json.loads(line) for line in text.splitlines()]
    return tuple(cattrs.structure(each, Pair) for each in found)
