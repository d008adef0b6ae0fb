"""What is handed to an agent, looked at once: a slip is refused where it was made, and not in the middle of a run.

Types say the same to those who check them. This is for everybody else, so it knows the mistakes that are made, and
says what was meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from locus.core.errors import ConfigError, InputError
from locus.models.protocol import ModelSettings

if TYPE_CHECKING:
    from locus.loop.engine import How

__all__ = ["refuse_odd_agent", "refuse_odd_run"]


def refuse_odd_agent(
    *,
    tool_execution: object,
    max_revisions: object,
    terminal_tools: object,
    confidence_threshold: object,
    system_prompt: object,
    name: object,
    plugins: object,
    hooks: object,
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
    if not isinstance(confidence_threshold, int | float) or not 0.0 <= confidence_threshold <= 1.0:
        raise ConfigError(f"confidence_threshold is {confidence_threshold!r}; it is a number from 0.0 to 1.0")
    # A text is an iterable of texts: each of its letters would be a name.
    if isinstance(terminal_tools, str):
        raise ConfigError(f"terminal_tools is {terminal_tools!r}; give a set of names: {{{terminal_tools!r}}}")
    if isinstance(plugins, str):
        raise ConfigError(f"plugins is {plugins!r}; give a list of names: [{plugins!r}]")
    if not isinstance(hooks, Iterable):
        raise ConfigError(f"hooks is {hooks!r:.80}; give a list of Hook objects")
    for what, value in (("system_prompt", system_prompt), ("name", name)):
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"{what} is {value!r:.80}; it is text")
    if conversation_manager is not None and not callable(getattr(conversation_manager, "view", None)):
        raise ConfigError(
            f"conversation_manager is {conversation_manager!r:.80}; it needs `async view(state, run)`, as "
            "SlidingWindowManager() has"
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
        raise InputError(f"metadata is {metadata!r:.80}; it is a mapping from names to data")


def _settings(given: Any) -> None:
    if given is not None and not isinstance(given, ModelSettings):
        meant = ", ".join(f"{key}={value!r}" for key, value in given.items()) if isinstance(given, dict) else "..."
        raise ConfigError(f"model_settings is {given!r:.80}; write ModelSettings({meant:.80})")
