"""What is handed to an agent, looked at once: a slip is refused where it was made, and not in the middle of a run.

Types say the same to those who check them. This is for everybody else, so it knows the mistakes that are made, and
says what was meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from locus.core.errors import ConfigError, InputError
from locus.models.protocol import ModelSettings

if TYPE_CHECKING:
    from locus.engine import How

__all__ = ["refuse_odd_agent", "refuse_odd_run"]


def refuse_odd_agent(
    *,
    tool_execution: object,
    max_revisions: object,
    terminal_tools: object,
    system_prompt: object,
    name: object,
    plugins: object,
    model_settings: object,
    conversation_manager: object,
    config: object,
) -> None:
    """Refuse arguments of `Agent` that nobody else looks at before a run.

    Raises:
        ConfigError: with the argument, its value and what it takes.
    """
    if tool_execution not in ("concurrent", "sequential"):
        raise ConfigError(f"tool_execution is {tool_execution!r}; use 'concurrent' or 'sequential'")
    if isinstance(max_revisions, bool) or not isinstance(max_revisions, int) or max_revisions < 0:
        raise ConfigError(f"max_revisions is {max_revisions!r}; it is an integer, 0 or more")
    # A text is an iterable of texts: each of its letters would be a name.
    if isinstance(terminal_tools, str):
        raise ConfigError(f"terminal_tools is {terminal_tools!r}; give a set of names: {{{terminal_tools!r}}}")
    if isinstance(plugins, str):
        raise ConfigError(f"plugins is {plugins!r}; give a list of names: [{plugins!r}]")
    for what, value in (("system_prompt", system_prompt), ("name", name)):
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"{what} is {value!r:.80}; it is text")
    if conversation_manager is not None and not callable(getattr(conversation_manager, "view", None)):
        raise ConfigError(
            f"conversation_manager is {conversation_manager!r:.80}; use one of locus.memory.conversation, such as "
            "SlidingWindowManager()"
        )
    if config is not None and not callable(getattr(config, "wanted", None)):
        raise ConfigError(f"config is {config!r:.80}; it is what locus.config.load_config(path) returns")
    _settings(model_settings)


def refuse_odd_run(how: How, metadata: object = None) -> None:
    """Refuse arguments of ``run`` and ``resume`` that would fail inside of it.

    Raises:
        ConfigError: the model settings are none.
        InputError: the metadata is no mapping.
    """
    _settings(how.settings)
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InputError(f"metadata is {metadata!r:.80}; it is a dict of plain data")


def _settings(given: Any) -> None:
    if given is not None and not isinstance(given, ModelSettings):
        meant = ", ".join(f"{key}={value!r}" for key, value in given.items()) if isinstance(given, dict) else "..."
        raise ConfigError(f"model_settings is {given!r:.80}; write ModelSettings({meant:.80})")
