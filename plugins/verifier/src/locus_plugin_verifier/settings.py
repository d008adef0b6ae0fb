"""The settings of the plugin: the table ``[plugins.verifier]``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from attrs import Attribute, field, frozen

from locus.models import Model

__all__ = ["DEFAULT_CRITERIA", "ENVIRONMENT", "VerifierSettings"]

#: What the judge holds a claim against unless the settings say something else.
DEFAULT_CRITERIA = """\
Everything that the user asked for is done, and the results of the agent's calls show it. What the agent says about its
own work shows nothing."""

#: The variables that a command gets unless the settings say something else.
ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "SYSTEMROOT")


def _argv(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        raise ValueError(f"command is {value!r}; give a list of arguments, there is no shell: {value.split()!r}")
    return tuple(value)


def _words(_: object, attribute: Attribute[Any], value: tuple[Any, ...]) -> None:
    if not all(isinstance(each, str) and "\0" not in each for each in value) or (value and not value[0]):
        raise ValueError(f"{attribute.name} is {value!r}; it is a list of texts, the program first")


def _names(value: Any) -> tuple[str, ...] | None:
    return None if value is None else (value,) if isinstance(value, str) else tuple(value)


def _environment(value: Iterable[str] | str) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _seconds(_: object, attribute: Attribute[Any], value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{attribute.name} is {value!r}; it is a number of seconds, more than 0")


def _whole_from(least: int) -> Any:
    def check(_: object, attribute: Attribute[Any], value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{attribute.name} is {value!r}; it is an integer, {least} or more")

    return check


def _check(_: object, attribute: Attribute[Any], value: object) -> None:
    if value is not None and not callable(value) and not (isinstance(value, str) and value.count(":") == 1):
        raise ValueError(f"{attribute.name} is {value!r}; it is a function of the state, or 'module:function'")


def _model(_: object, attribute: Attribute[Any], value: object) -> None:
    if value is not None and not isinstance(value, str | Model):
        raise ValueError(f"{attribute.name} is {value!r}; it is 'provider:model', or an object that is a Model")


def _said(_: object, attribute: Attribute[Any], value: str) -> None:
    if not value.strip():
        raise ValueError(f"{attribute.name} is empty; say what a success is")


@frozen(kw_only=True)
class VerifierSettings:
    """What is checked, how, and how often a claim is refused.

    All checks that are given must pass, in this order; without any, the agent's own model judges.

    Args:
        check: a function of the state, sync or async, or ``"module:function"``. It returns True (verified), False, or
            what is missing as a text; ``""`` is verified.
        command: a program and its arguments, run without a shell; verified when it ends with 0.
        model: the judge, ``"provider:model"`` or a `Model`.
        judge: let the agent's own model judge where ``model`` names none.
        criteria: what the judge holds a claim against, in words.
        cwd: the directory of the command; None = the current one.
        env: the names of the variables that the command gets from the environment; no others.
        timeout: seconds that each check may take.
        tail: characters of the end of the command's output that the agent's model reads.
        answers: whether final answers are checked.
        tools: the names of tools whose call claims the end; None = the agent's ``terminal_tools``.
        refusals: how often the claims of one run are refused, at most. For answers, the agent's ``max_revisions``
            counts as well.
        last_calls: how many calls of the run the judge is shown.
        max_chars: characters of each text that the judge is shown: of a longer one the beginning and the end.
        max_tokens: of the judge's answer.
        accept_when_check_fails: let a claim stand when a check raises, takes too long, or cannot be understood. It is
            reported as unchecked, not as verified.

    Raises:
        ValueError: a value is out of range, or the command is one text.
    """

    check: Callable[..., Any] | str | None = field(default=None, validator=_check)
    command: tuple[str, ...] = field(default=(), converter=_argv, validator=_words)
    model: str | Model | None = field(default=None, validator=_model)
    judge: bool = False
    criteria: str = field(default=DEFAULT_CRITERIA, validator=_said)
    cwd: str | None = None
    env: tuple[str, ...] = field(default=ENVIRONMENT, converter=_environment)
    timeout: float = field(default=120.0, validator=_seconds)
    tail: int = field(default=2_000, validator=_whole_from(0))
    answers: bool = True
    tools: tuple[str, ...] | None = field(default=None, converter=_names)
    refusals: int = field(default=2, validator=_whole_from(0))
    last_calls: int = field(default=10, validator=_whole_from(0))
    max_chars: int = field(default=4_000, validator=_whole_from(100))
    max_tokens: int = field(default=300, validator=_whole_from(1))
    accept_when_check_fails: bool = False
