"""Asking a person what a tool wants to know, between two segments of a run."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from locus.core.errors import InputError, InterruptMismatch, closest
from locus.core.journal import Asked
from locus.plugin import Option
from locus_plugin_cli.output import print_text
from locus_plugin_cli.streams import standard

__all__ = ["ask_person", "is_person_present", "parse_answers", "read_added"]

#: One of the answers to choose from.
Choice = str | Option

#: How an answer names its question: the id of an interrupt, then "=".
_NAMED = re.compile(r"(\d+/[^=]+)=(.*)", re.DOTALL)


def is_person_present() -> bool:
    """Whether input and output are both a terminal."""
    return sys.stdin.isatty() and standard().out.is_terminal


def ask_person(questions: Sequence[Asked], calls: Mapping[str, str]) -> dict[str, Any]:
    """The answers by interrupt id, read from the terminal.

    Args:
        questions: what is asked.
        calls: by interrupt id the call in question, as readable text.

    Raises:
        EOFError: the person pressed Ctrl-D instead of answering.
        KeyboardInterrupt: Ctrl-C.
    """
    return {each.interrupt_id: _ask(each, calls.get(each.interrupt_id, "")) for each in questions}


def _ask(question: Asked, call: str) -> Any:
    asker = f" ({question.tool_name})" if question.tool_name else ""
    print_text(f"? {question.question}{asker}\n")
    if call and call not in question.question:
        print_text(f"  about: {call}\n")
    options = [str(option) for option in question.options]
    for number, option in enumerate(options, 1):
        print_text(f"  {number}. {option}\n")
    while True:
        said = _read("> ")
        answer = _understood(said, options)
        if answer is not None:
            answer = _complete(answer, question.options)
            if answer is not None:
                return answer
        elif said:
            near = closest(said, options)
            hint = f"; did you mean {near!r}?" if near else ""
            print_text(f"{said!r} is not one of the answers: choose one by its number or its text{hint}\n")


def _read(prompt: str) -> str:
    try:
        with standard().prompting():
            return input(prompt).strip()
    except (EOFError, KeyboardInterrupt):
        print_text("\n")
        raise


def _complete(chosen: str, options: Sequence[Choice]) -> Any:
    """An answer with what the person adds to it; None when the person wants to choose anew."""
    option = next((each for each in options if str(each) == chosen), None)
    takes = option.takes if isinstance(option, Option) else ""
    if takes == "reason":
        reason = _read("why? (Enter: no reason) > ")
        return {"reason": reason} if reason else chosen
    if takes == "arguments":
        while said := _read("all arguments, as a JSON object (Enter: back) > "):
            try:
                given = json.loads(said)
            except (ValueError, RecursionError) as e:
                print_text(f"this is not JSON: {e}\n")
                continue
            if isinstance(given, dict):
                return {"arguments": given}
            print_text(f'expected a JSON object such as {{"path": "notes.md"}}, got {said:.80}\n')
        return None
    return chosen


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


def read_added(answer: Any, questions: Mapping[str, Asked]) -> Any:
    """Answers of ``--answer`` with what is added to an option, which is typed as JSON: ``{"reason": "too large"}``.

    Args:
        answer: as `parse_answers` gives it.
        questions: those that are open, by interrupt id.
    """
    if isinstance(answer, Mapping):
        return {i: read_added(each, {i: questions[i]} if i in questions else {}) for i, each in answer.items()}
    takes = {each.takes for q in questions.values() for each in q.options if isinstance(each, Option) and each.takes}
    if len(questions) != 1 or not takes or not isinstance(answer, str) or not answer.startswith("{"):
        return answer
    try:
        given = json.loads(answer)
    except (ValueError, RecursionError) as e:
        raise InputError(f"--answer {answer!r:.80} is not JSON: {e}") from None
    return given if isinstance(given, dict) and set(given) <= takes else answer
