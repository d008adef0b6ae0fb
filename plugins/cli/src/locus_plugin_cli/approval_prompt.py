"""Asking a person what a tool wants to know, between two segments of a run."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from locus.core.errors import InterruptMismatch, closest
from locus.core.journal import Asked
from locus_plugin_cli.output import print_text
from locus_plugin_cli.streams import standard

__all__ = ["ask_person", "is_person_present", "parse_answers"]

#: How an answer names its question: the id of an interrupt, then "=".
_NAMED = re.compile(r"(\d+/[^=]+)=(.*)", re.DOTALL)


def is_person_present() -> bool:
    """Whether input and output are both a terminal."""
    return sys.stdin.isatty() and standard().out.is_terminal


def ask_person(questions: Sequence[Asked], calls: Mapping[str, str]) -> dict[str, str]:
    """The answers by interrupt id, read from the terminal.

    Args:
        questions: what is asked.
        calls: by interrupt id the call in question, as readable text.

    Raises:
        EOFError: the person pressed Ctrl-D instead of answering.
        KeyboardInterrupt: Ctrl-C.
    """
    return {each.interrupt_id: _ask(each, calls.get(each.interrupt_id, "")) for each in questions}


def _ask(question: Asked, call: str) -> str:
    asker = f" ({question.tool_name})" if question.tool_name else ""
    print_text(f"? {question.question}{asker}\n")
    if call:
        print_text(f"  about: {call}\n")
    options = [str(option) for option in question.options]
    for number, option in enumerate(options, 1):
        print_text(f"  {number}. {option}\n")
    while True:
        try:
            with standard().prompting():
                said = input("> ").strip()
        except (EOFError, KeyboardInterrupt):
            print_text("\n")
            raise
        answer = _understood(said, options)
        if answer is not None:
            return answer
        if said:
            near = closest(said, options)
            hint = f"; did you mean {near!r}?" if near else ""
            print_text(f"{said!r} is not one of the answers: choose one by its number or its text{hint}\n")


def _understood(said: str, options: Sequence[str]) -> str | None:
    """The answer that was meant, or None."""
    if not options:
        return said or None
    if said in options:
        return said
    folded = [option for option in options if option.casefold() == said.casefold()]
    if len(folded) == 1:
        return folded[0]
    if said.isdecimal() and 1 <= int(said) <= len(options):
        return options[int(said) - 1]
    return None


def parse_answers(given: Sequence[str]) -> Any:
    """What ``--answer`` says: one plain answer, or answers by interrupt id (``ID=TEXT``), or None.

    Raises:
        InterruptMismatch: several answers, and one of them does not say which question it is for.
    """
    if not given:
        return None
    named = [_NAMED.fullmatch(each) for each in given]
    if len(given) == 1 and named[0] is None:
        return given[0]
    answers = {}
    for text, match in zip(given, named, strict=True):
        if match is None:
            raise InterruptMismatch(f"--answer {text!r} does not say which question it is for; write ID=ANSWER")
        answers[match[1]] = match[2]
    return answers
