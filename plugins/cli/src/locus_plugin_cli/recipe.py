"""`Recipe`: the agents of a command: how they are made, what they are called, and what a thread remembers of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

from locus import Agent
from locus.models import Model

__all__ = ["AGENT", "PlainRecipe", "Recipe"]

#: The name of the agents of this package's own commands: it distinguishes their runs from those of programs in the same
#: store.
AGENT = "locus-cli"


class Recipe(Protocol):
    """How a command makes its agents; a value, which a thread remembers."""

    @property
    def agent_id(self) -> str:
        """The name of the agents, by which their threads are found."""
        ...

    @property
    def command(self) -> str:
        """The command behind ``locus`` that takes a turn, such as ``"run"``."""
        ...

    @property
    def resuming(self) -> Sequence[str]:
        """What follows the command and the thread where an open run goes on instead."""
        ...

    def words(self) -> Sequence[str]:
        """Its options as they would be typed."""
        ...

    def remember(self) -> Mapping[str, str | bool]:
        """What a thread remembers of it, as plain data."""
        ...

    def recall(self, kept: Mapping[str, Any]) -> Self:
        """The recipe with what a thread remembers where nothing is typed now.

        Args:
            kept: as `remember` gave it, or anything: another program may have written it.
        """
        ...

    def make(self, model: Model, **options: Any) -> Agent[Any, Any]:
        """An agent.

        Args:
            model: the model.
            options: keywords of `Agent`: what the command line and the configuration say.

        Raises:
            ConfigError, PluginError: it cannot be built.
        """
        ...


class PlainRecipe:
    """The agent of ``locus run`` and ``locus chat``."""

    agent_id = AGENT
    command = "run"
    resuming: Sequence[str] = ("--resume",)

    def words(self) -> Sequence[str]:
        """No options of its own."""
        return ()

    def remember(self) -> Mapping[str, str | bool]:
        """Nothing."""
        return {}

    def recall(self, kept: Mapping[str, Any]) -> Self:
        """The same."""
        return self

    def make(self, model: Model, **options: Any) -> Agent[Any, Any]:
        """See `Recipe.make`."""
        return Agent(model, **options)
