"""The options that make an agent, the same for every command that runs one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from attrs import field, fields, frozen

from locus.core.errors import ConfigError
from locus.models import ModelSettings
from locus.plugins import redact
from locus_plugin_cli.common_options import common_options, json_events_option, quiet_option
from locus_plugin_cli.parameter_types import NOT_BLANK, Amount
from locus_plugin_cli.recipe import PlainRecipe, Recipe

__all__ = [
    "AgentOptions",
    "agent_options",
    "answer_option",
    "checkpointer_option",
    "resuming_options",
    "thread_parameters",
    "turn_parameters",
]

Command = Callable[..., int]


@frozen(kw_only=True)
class AgentOptions:
    """What the command line says about the agent.

    Args:
        model: ``"provider:model"``, or None for the default.
        tools: files and modules with tools.
        system: the system prompt, or ``@FILE``.
        thread: the conversation to begin or continue, or None for a new one.
        newest: continue the newest conversation of this folder.
        checkpointer: where conversations are kept, or None for the default.
        no_keep: keep nothing.
        max_iterations: the most model calls of a run.
        temperature, max_tokens, seed: see `ModelSettings`.
        recipe: how the command makes its agents.
    """

    model: str | None = None
    tools: tuple[str, ...] = ()
    system: str | None = None
    thread: str | None = None
    newest: bool = False
    checkpointer: str | None = None
    no_keep: bool = False
    max_iterations: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    recipe: Recipe = field(factory=PlainRecipe)

    @property
    def model_settings(self) -> ModelSettings:
        """How the model is to answer."""
        return ModelSettings(temperature=self.temperature, max_tokens=self.max_tokens, seed=self.seed)

    @property
    def system_prompt(self) -> str | None:
        """The text of the system prompt; ``@FILE`` is read, ``@@`` is a plain ``@``.

        Raises:
            ConfigError: the file cannot be read.
        """
        if self.system is None or not self.system.startswith("@"):
            return self.system
        if self.system.startswith("@@"):
            return self.system[1:]
        path = Path(self.system[1:])
        try:
            return path.read_text(encoding="utf-8")
        except OSError as e:
            raise ConfigError(f"--system {self.system}: {path} cannot be read: {e.strerror or e}") from e
        except ValueError as e:
            raise ConfigError(f"--system {self.system}: {path} is not UTF-8 text: {e}") from e

    def words(self) -> list[str]:
        """The options as they would be typed, for a command that goes on with this one; without passwords."""
        said: list[str] = []
        for name, value in (
            ("--model", None if self.model is None else redact(self.model)),
            *(("--tools", each) for each in self.tools),
            ("--system", self.system),
            ("--checkpointer", None if self.checkpointer is None else redact(self.checkpointer)),
            ("--max-iterations", self.max_iterations),
            ("--temperature", self.temperature),
            ("--max-tokens", self.max_tokens),
            ("--seed", self.seed),
        ):
            if value is not None:
                said += [name, str(value)]
        return [*said, *self.recipe.words()]


def agent_options(function: Command) -> Command:
    """Give a command the options of an agent; its function gets them as ``options: AgentOptions``."""
    return _packing(function, (*_MAKING, *_KEEPING))


def resuming_options(function: Command) -> Command:
    """The same for a command on a thread that is there: nothing names it or says that it is not kept."""
    return _packing(function, (*_MAKING, checkpointer_option))


def _packing(function: Command, chosen: Sequence[Callable[[Command], Command]]) -> Command:
    names = [each.name for each in fields(AgentOptions)]

    @functools.wraps(function)
    def packed(*args: Any, **given: Any) -> int:
        options = AgentOptions(**{name: given.pop(name) for name in names if name in given})
        return function(*args, options=options, **given)

    described: Command = packed
    for option in chosen[::-1]:
        described = option(described)
    return described


#: ``--checkpointer``, for every command that looks at what is kept.
checkpointer_option: Callable[[Command], Command] = click.option(
    "--checkpointer",
    type=NOT_BLANK,
    metavar="PLUGIN:REST",
    help="Where conversations are kept; default: [agent] checkpointer, else a file of yours.",
)

#: ``--answer``, for every command that can go on with a run that waits.
answer_option: Callable[[Command], Command] = click.option(
    "--answer",
    "answers",
    metavar="[ID=]TEXT",
    multiple=True,
    help="The answer to the question that the run waits for; with ID= when several are open.",
)

_KEEPING: tuple[Callable[[Command], Command], ...] = (
    click.option("--thread", type=NOT_BLANK, metavar="ID", help="The conversation to begin or to continue."),
    click.option("-c", "--continue", "newest", is_flag=True, help="Continue the newest conversation of this folder."),
    checkpointer_option,
    click.option("--no-keep", is_flag=True, help="Keep nothing: the conversation ends with this command."),
)

_MAKING: tuple[Callable[[Command], Command], ...] = (
    click.option(
        "-m", "--model", type=NOT_BLANK, metavar="PROVIDER:NAME", help="The model; `locus models` lists what there is."
    ),
    click.option(
        "-t",
        "--tools",
        type=NOT_BLANK,
        metavar="FILE.py|MODULE",
        multiple=True,
        help="Tools: what is marked with @tool, else the functions with a docstring; repeatable.",
    ),
    click.option("-s", "--system", metavar="TEXT|@FILE", help="The system prompt."),
    click.option("--max-iterations", type=click.IntRange(min=1), metavar="N", help="At most N model calls."),
    click.option("--temperature", type=Amount(min=0), metavar="X", help="0 or more; at 0 the answers vary least."),
    click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="The most tokens of one answer."),
    click.option("--seed", type=int, metavar="N", help="For providers that can repeat an answer."),
)


@functools.cache
def turn_parameters() -> tuple[click.Parameter, ...]:
    """The options of a plugin's command that takes turns with an agent of its own, see `take_turn`.

    They are those of ``locus run``; the common options are among them, and are not passed to the command's function.
    """

    @click.command()
    @common_options
    def shared() -> None:
        """Hold the options."""

    common = tuple(shared.params)
    outcome: tuple[Callable[[Command], Command], ...] = (json_events_option, quiet_option, answer_option)
    for option in (*_MAKING, *_KEEPING, *outcome):
        option(shared)
    return (*shared.params[len(common) :], *common)


@functools.cache
def thread_parameters(*, agent: bool = False) -> tuple[click.Parameter, ...]:
    """The options that a plugin's command on a thread shares with those of this package; the same objects each time.

    Args:
        agent: with the options of an agent: the fields of `AgentOptions`. Otherwise it is ``--checkpointer`` alone.
            The common options are always among them, and are not passed to the command's function.
    """

    @click.command()
    @common_options
    def shared() -> None:
        """Hold the options."""

    for option in (*(_MAKING if agent else ()), checkpointer_option):
        option(shared)
    return tuple(shared.params)
