"""The hook with which the command line asks for the commands: by reference, so that asking imports no click."""

from __future__ import annotations

from locus.plugin import hookimpl

__all__ = ["locus_register_commands"]


@hookimpl
def locus_register_commands() -> list[object]:
    """``locus eval``."""
    return ["locus_plugin_eval.commands.command:evaluate_command"]
