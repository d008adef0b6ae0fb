"""No text is expensive: the work for a kilobyte is bounded, whatever stands in it.

What Python does is the number of calls it makes, which is counted. What the engine does inside of one is CPU time,
which is held against that of a harmless text on the same machine.
"""

from __future__ import annotations

import ast
import random
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import locus_plugin_guardrails
from locus_plugin_guardrails import DEFAULT_RULES
from locus_plugin_guardrails.rule import PLACES
from locus_plugin_guardrails.scanner import Scanner

SCANNER = Scanner(DEFAULT_RULES)

#: Calls of functions, Python's and built in, that one kilobyte may cost at all four gates together: digits that could
#: be a card number wherever one begins cost most, about 50,000 at each.
PER_KILOBYTE = 4 * 60_000

FRAGMENTS = (
    "DE00 ",
    "DE89 3704 0044 0532 0130 0 ",
    "+1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 ",
    "+1",
    "4 1 1 1 1 ",
    "4111",
    "1-",
    "a@",
    "a@b.",
    "a@b.co ",
    '"@',
    "1.2.3.4 ",
    "8.8.8.8 ",
    "::2",
    "2001:",
    "2606:4700::1 ",
    "-----BEGIN PRIVATE KEY-----",
    "!",
    "eyJaaaaaaaa.",
    "ignore all ",
    "://a:",
    "Bearer ",
    "$(curl ",
    "; rm ",
    "../",
    "%2e",
    "é",
    "\\u0041",
    "&#64;",
    "' or 1",
    "`cat -",
    "sk-ant-",
    "<|",
    "[INST",
    "(415) 555-2671 ",
    "ssn 1",
    "\u200b",
    "x",
    "[redacted: ",
    "you are now ",
    "536-90-4399 ",
    "password=",
    "password: a1 ",
    "token = ",
    "authorization: basic ",
    " -u a:",
    "login a password ",
    "phone ",
    "tel 1 ",
    "passport ",
    "1 a ",
    "sk-proj-",
    "\n",
    " ",
)


def work(text: str) -> int:
    """How many calls it takes to look for everything everywhere."""
    count = 0

    def counting(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counting)
    try:
        for place in PLACES:
            SCANNER.findings(text, place)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_a_text_of_one_hostile_piece_costs_in_proportion_to_its_length(fragment: str) -> None:
    once = (fragment * 1024)[:1024]
    work(once)  # what is remembered is remembered now
    assert work(once) <= PER_KILOBYTE
    assert work((fragment * 4096)[:4096]) <= 4.4 * work(once) + 200


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=6), st.integers(1, 3))
def test_a_text_of_hostile_pieces_costs_a_bounded_amount(pieces: list[str], times: int) -> None:
    text = ("".join(pieces) * 2048)[: times * 1024]
    assert work(text) <= times * PER_KILOBYTE


def seconds(text: str) -> float:
    """CPU time of this thread, the least of three: what disturbs only adds to it."""
    times = []
    for _ in range(3):
        begin = time.thread_time()
        for place in PLACES:
            SCANNER.findings(text, place)
        times.append(time.thread_time() - begin)
    return min(times)


def test_a_kilobyte_of_no_text_takes_much_longer_than_a_kilobyte_of_prose() -> None:
    """Digits and dots, which ask most of Python, take some 300 times as long; one pattern that backtracks, millions."""
    prose = ("The quick brown fox jumps over the lazy dog; " * 400)[:16384]
    usual = seconds(prose) / 16
    dice = random.Random(4711)
    for _ in range(30):
        pieces = "".join(dice.choices(FRAGMENTS, k=dice.randint(1, 8))) or "x"
        text = (pieces * 2048)[:2048]
        assert seconds(text) / 2 < 2_000 * usual, pieces


def test_no_backtracking_engine_reads_a_text() -> None:
    """Python's own `re` is used for the names of rules, which their author writes, and for nothing else."""
    folder = Path(locus_plugin_guardrails.__file__).parent
    users = set()
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import) and any(alias.name in ("re", "regex") for alias in node.names):
                users.add(path.name)
    assert users == {"rule.py"}
