"""What is found of a labelled corpus, and what of its harmless lines is touched."""

from __future__ import annotations

import pytest

from locus_plugin_guardrails import DEFAULT_RULES
from locus_plugin_guardrails.scanner import Scanner

from .corpus import Line, read

SCANNER = Scanner(DEFAULT_RULES)
HELD_OUT = [
    line for name in ("held_out", "held_out_2", "held_out_3", "held_out_4", "held_out_5") for line in read(name)
]


def is_cut_out(line: Line) -> bool:
    """Whether all that is marked would be cut out; of a harmless line, whether anything would."""
    regions = SCANNER.regions(SCANNER.findings(line.text, "prompt"))
    if not line.spans:
        return bool(regions)
    return all(any(r.start <= start and end <= r.end for r in regions) for start, end in line.spans)


@pytest.mark.parametrize(("kind", "least", "most"), [("secret", 0.95, 1.0), ("pii", 0.9, 1.0), ("harmless", 0.0, 0.02)])
def test_the_rules_find_what_they_promise_on_lines_that_they_were_not_written_for(
    kind: str, least: float, most: float
) -> None:
    lines = [line for line in HELD_OUT if line.kind == kind]
    share = sum(map(is_cut_out, lines)) / len(lines)
    assert least <= share <= most, [line.text for line in lines if is_cut_out(line) != bool(line.spans)]


def test_every_line_that_the_rules_were_written_with_is_judged_right() -> None:
    lines = [*read("rules"), *read("development")]
    assert [line.text for line in lines if is_cut_out(line) != bool(line.spans)] == []


@pytest.mark.parametrize(
    "text",
    [
        "The server moved from 93.184.216.34 to 151.101.1.69.",
        "release the lock held by 151.101.1.69",
        "4111 1111 1111 1111",
        "cards 5555 5555 5555 4444 4111 1111 1111 1111",
        "call 212-555-0198 on 2025-06-18",
        "(212) 555-0198, fax 212.555.0199",
        "room 17 212-555-0198 42 guests",
        "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
        "3782 822463 10005",
        "パスワードはsommer2024です",
        "密码是12abcd34",
    ],
)
def test_what_only_resembles_a_version_a_list_or_a_date_is_still_found(text: str) -> None:
    assert SCANNER.findings(text, "prompt")


@pytest.mark.parametrize("text", ["the path ../docs is relative", "Rock & roll; curl up"])
def test_prose_that_looks_like_an_attack_passes_as_an_argument(text: str) -> None:
    assert not SCANNER.findings(text, "arguments")
