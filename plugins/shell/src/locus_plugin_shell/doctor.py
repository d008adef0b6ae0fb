"""``locus plugins doctor shell``: says what makes the sandbox of commands, or why commands cannot run."""

from __future__ import annotations

from pathlib import Path

from locus.core.errors import ConfigError, UnknownName
from locus_plugin_shell.sandbox import Sandbox
from locus_plugin_shell.settings import ShellSettings

__all__ = ["examine"]

_SUBJECT = "sandbox"


async def examine(settings: ShellSettings, wanted: str) -> list[tuple[str, str, str]]:
    """Run a command that does nothing.

    Args:
        settings: which way to take.
        wanted: ``"sandbox"`` or ``""``; nothing else can be tried.

    Returns:
        What was tried, what is wrong or ``""``, and what is worth knowing.

    Raises:
        UnknownName: something else is wanted.
    """
    if wanted not in ("", _SUBJECT):
        raise UnknownName("part of shell", wanted, [_SUBJECT])
    return [(_SUBJECT, *_try(settings))]


def _try(settings: ShellSettings) -> tuple[str, str]:
    if settings.unsafe_host:
        return "", "none: unsafe_host is set, and a person allows each command"
    try:
        found = Sandbox.find(settings, Path(settings.root).expanduser())
    except ConfigError as e:
        return str(e), ""
    return "", f"made by {found.bwrap or 'the plugin itself, with unshare'}"
