"""The hook with which the command line asks for the commands: by reference, so that asking imports no click."""

from __future__ import annotations

from locus.plugin import hookimpl

__all__ = ["locus_register_commands"]

_HOME = "locus_plugin_worker.commands"


@hookimpl
def locus_register_commands() -> list[object]:
    """``locus submit``, ``worker``, ``runs``, ``queues`` and ``workers``."""
    return [
        f"{_HOME}.submission:submit",
        f"{_HOME}.working:worker",
        f"{_HOME}.runs:runs",
        f"{_HOME}.listings:queues",
        f"{_HOME}.listings:workers",
    ]
