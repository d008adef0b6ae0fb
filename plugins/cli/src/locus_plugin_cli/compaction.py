"""Keeps a conversation inside the model's window, without being asked: a summary takes the place of its older part.

What fits is not always known beforehand: few providers say how large the window is, and tokens are estimated. So a
request that is refused as too long is made again without its oldest turns, and what has been learned makes the next
turn compact earlier. What was said stays whole in the thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from attrs import evolve

from locus.core.errors import ContextOverflow
from locus.core.messages import Message, Role
from locus.core.state import AgentState
from locus.models import Model, ModelRequest, ModelResponse
from locus.plugin import Hook, RunContext, View, hookimpl
from locus_plugin_cli.lazy import resolve
from locus_plugin_cli.project import Project

__all__ = ["Compaction", "choose_compaction"]

_PLUGIN = "conversation"
_OFF = "none"

#: Tokens, where nothing says how many.
_WINDOW = 128_000

#: Below this window the tools, the answer and the error of the estimate take a large share of it.
_SMALL = 32_000


def choose_compaction(model: Model, project: Project) -> Compaction | None:
    """How conversations with a model are kept short; None where the configuration says so itself.

    Args:
        model: may have a ``context_window``, in tokens.
        project: ``[agent] conversation``, and whether the plugin with the managers is switched on.
    """
    config = project.config
    named = {*config.enabled, *config.required, *config.cli}  # a table of settings alone switches nothing on
    if config.agent.get("conversation") == _OFF:
        return None
    own = config.agent.get("conversation") is None and _PLUGIN not in named
    return Compaction(int(getattr(model, "context_window", None) or _WINDOW), manages=own)


class Compaction(Hook):
    """A conversation manager, and the hook that makes a request fit that was too long.

    Args:
        window: tokens that the model reads, as far as it is known.
        manages: whether it is the manager; else the configuration has one, and only what is too long is its business.
    """

    name = "cli"

    def __init__(self, window: int, *, manages: bool) -> None:
        self.manages = manages
        self._window = window
        self._compactors: dict[tuple[int, bool], Any] = {}
        self._is_wanted = False

    def want(self) -> None:
        """Compact with the next turn, however short the conversation is."""
        self._is_wanted = True

    async def view(self, state: AgentState, run: RunContext) -> View:
        """The conversation, its older part as a summary when it comes near the window."""
        if self._is_wanted:
            self._is_wanted = False
            # As if the conversation filled the window: then it acts.
            shown: View = await self._compactor(max(1, _tokens(state.messages)), small=True).view(state, run)
            return shown
        view: View = await self._compactor(self._window, small=self._window < _SMALL).view(state, run)
        return view

    def _compactor(self, window: int, *, small: bool) -> Any:
        if (window, small) not in self._compactors:
            shares = {"trigger": 0.6, "tail": 0.3} if small else {}
            self._compactors[window, small] = resolve("locus.memory.conversation:LLMCompactor")(window=window, **shares)
        return self._compactors[window, small]

    @hookimpl
    async def locus_wrap_model_call(
        self, call_next: Callable[[ModelRequest], Awaitable[ModelResponse]], request: ModelRequest, run: RunContext
    ) -> ModelResponse:
        """Ask again without the oldest turns where the request is too long; what one turn alone says stays."""
        while True:
            try:
                return await call_next(request)
            except ContextOverflow:
                shorter = _without_oldest_turns(request.messages)
                if shorter is None:
                    raise
                self._window = max(1, min(self._window, _tokens(request.messages) * 3 // 4))
                request = evolve(request, messages=shorter)


def _tokens(messages: tuple[Message, ...]) -> int:
    estimate = resolve("locus.memory.conversation:estimate_tokens")
    return sum(estimate(message) for message in messages)


def _without_oldest_turns(messages: tuple[Message, ...]) -> tuple[Message, ...] | None:
    """The system messages before the first turn, and the newer half of the turns; None where there is only one."""
    turns = [i for i, message in enumerate(messages) if message.role is Role.USER]
    if len(turns) < 2:
        return None
    lead = tuple(message for message in messages[: turns[0]] if message.role is Role.SYSTEM)
    return lead + messages[turns[(len(turns) + 1) // 2] :]
