"""Which distributions belong to Locus, and how one of them is installed here.

Hints never contain any other name: attackers register misspelled names and wait for somebody to install them.
"""

from __future__ import annotations

import json
import shlex
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

__all__ = ["LIBRARIES", "PLUGINS", "install_command", "install_hint", "install_target"]

#: The plugins, by the one name that each has.
PLUGINS = frozenset(
    {
        "anthropic",
        "approval",
        "causal",
        "cli",
        "conversation",
        "eval",
        "filesystem",
        "graph",
        "grounding",
        "guardrails",
        "instructions",
        "knowledge",
        "llamacpp",
        "logging",
        "mcp",
        "nats",
        "oci",
        "ollama",
        "openai",
        "planning",
        "postgres",
        "pricing",
        "provenance",
        "reducers",
        "reflexion",
        "retry",
        "serve",
        "shell",
        "signals",
        "skills",
        "sqlite",
        "steering",
        "subagents",
        "telemetry",
        "temporal",
        "timetravel",
        "todos",
        "toolsearch",
        "verifier",
        "viewer",
        "web",
        "worker",
        "workflow",
    }
)

#: What plugins are made of and tested with, by the name of its folder.
LIBRARIES = frozenset({"kit", "testkit", "wire"})

_SELF = "locus-plugin-cli"


def install_command(name: str, extra: str = "") -> str:
    """The command that installs a distribution of Locus in this environment.

    Args:
        name: one of `PLUGINS` or `LIBRARIES`.
        extra: an extra of it.
    """
    return f"pip install {install_target(name, extra)}"


def install_hint(name: str) -> str:
    """The end of a message about a missing plugin, which says how to install it; ``""`` for an unknown name."""
    return f"; {install_command(name)}" if name in PLUGINS else ""


def install_target(name: str, extra: str = "") -> str:
    """The argument for an installer: its folder if this command was installed from a checkout, else its name.

    Args:
        name: one of `PLUGINS` or `LIBRARIES`.
        extra: an extra of it.

    Raises:
        KeyError: no distribution of Locus has that name.
    """
    if name not in PLUGINS | LIBRARIES:
        raise KeyError(name)
    extras = f"[{extra}]" if extra else ""
    folder = f"{'plugins' if name in PLUGINS else 'contrib'}/{name}"
    origin = _origin()
    if origin is None:
        distribution = f"locus-plugin-{name}" if name in PLUGINS else f"locus-{name}"
        return shlex.quote(f"{distribution}{extras}")
    path = Path(origin, folder)
    if path.is_relative_to(Path.cwd()):
        return shlex.quote(f"./{path.relative_to(Path.cwd()).as_posix()}{extras}")
    return shlex.quote(f"{path if path.is_dir() else f'./{folder}'}{extras}")


def _origin() -> str | None:
    """The checkout that this command was installed from; ``""`` for a file of it, None where an index had it."""
    try:
        text = metadata.distribution(_SELF).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return ""
    if text is None:
        return None
    try:
        url = urlsplit(json.loads(text)["url"])
    except (ValueError, KeyError, TypeError):
        return ""
    folder = Path(url2pathname(url.path)) if url.scheme == "file" else Path()
    is_checkout = folder.name == "cli" and folder.parent.name == "plugins" and folder.is_dir()
    return str(folder.parent.parent) if is_checkout else ""
