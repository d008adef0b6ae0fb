"""The settings of the plugin: the table ``[plugins.verifier]``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import Attribute, field, frozen

from locus.models import Model
from locus_kit.validators import integer, model_or_name, not_blank, optional, seconds, to_tuple

__all__ = ["DEFAULT_CRITERIA", "ENVIRONMENT", "VerifierSettings"]

#: What the judge holds a claim against unless the settings say something else.
DEFAULT_CRITERIA = """\
Everything that the user asked for is done, and the results of the agent's calls show it. What the agent says about its
own work shows nothing."""

#: The variables that a command gets unless the settings say something else.
ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "SYSTEMROOT")


def _argv(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        raise ValueError(
            f"command must be a list of arguments, got {value!r}; no shell is used, write {value.split()!r}"
        )
    return tuple(value)


def _words(_: object, attribute: Attribute[Any], value: tuple[Any, ...]) -> None:
    if not all(isinstance(each, str) and "\0" not in each for each in value) or (value and not value[0]):
        raise ValueError(f"{attribute.name} must be a list of strings, the program first, got {value!r}")


def _names(value: Any) -> tuple[str, ...] | None:
    return None if value is None else to_tuple(value)


def _check(_: object, attribute: Attribute[Any], value: object) -> None:
    if value is not None and not callable(value) and not (isinstance(value, str) and value.count(":") == 1):
        raise ValueError(f"{attribute.name} must be a function of the state or 'module:function', got {value!r}")


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
        accept_when_check_fails: accept a claim when a check raises, takes too long, or cannot be understood. It is
            reported as unchecked, not as verified.

    Raises:
        ValueError: a value is out of range, or the command is one text.
    """

    check: Callable[..., Any] | str | None = field(default=None, validator=_check)
    command: tuple[str, ...] = field(default=(), converter=_argv, validator=_words)
    model: str | Model | None = field(default=None, validator=optional(model_or_name))
    judge: bool = False
    criteria: str = field(default=DEFAULT_CRITERIA, validator=not_blank)
    cwd: str | None = None
    env: tuple[str, ...] = field(default=ENVIRONMENT, converter=to_tuple)
    timeout: float = field(default=120.0, validator=seconds)
    tail: int = field(default=2_000, validator=integer(0))
    answers: bool = True
    tools: tuple[str, ...] | None = field(default=None, converter=_names)
    refusals: int = field(default=2, validator=integer(0))
    last_calls: int = field(default=10, validator=integer(0))
    max_chars: int = field(default=4_000, validator=integer(100))
    max_tokens: int = field(default=300, validator=integer(1))
    accept_when_check_fails: bool = False
