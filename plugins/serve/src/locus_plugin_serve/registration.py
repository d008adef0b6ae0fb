"""The hook with which the command line asks for the command: by reference, so that asking imports no click."""

from __future__ import annotations

from locus.plugin import hookimpl

__all__ = ["locus_register_commands"]


@hookimpl
def locus_register_commands() -> list[object]:
    """``locus serve``."""
    return ["locus_plugin_serve.command:serve"]
