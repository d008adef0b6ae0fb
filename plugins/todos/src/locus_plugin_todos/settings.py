"""The settings of the plugin: the table ``[plugins.todos]``."""

from __future__ import annotations

from attrs import field, frozen
from attrs.validators import instance_of, optional

from locus_plugin_todos.todo import TodoState

__all__ = ["TodosSettings"]


@frozen(kw_only=True)
class TodosSettings:
    """How an agent's todos are kept.

    Args:
        remind: where the model answers while todos are not completed, send the answer back, once a run.
        state: shows the list of the run to the program, as it is; for an agent that makes one run at a time. What is
            in it counts for threads that have no list yet.
    """

    remind: bool = field(default=False, validator=instance_of(bool))
    state: TodoState | None = field(default=None, validator=optional(instance_of(TodoState)))
