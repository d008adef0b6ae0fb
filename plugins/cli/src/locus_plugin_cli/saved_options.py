"""What a conversation remembers of the command that began its last turn, so that going on needs none of it again.

It is kept in the thread's own metadata, under a name of this package. Of secrets nothing is remembered: neither the
environment nor the text of ``--checkpointer``, nor a model whose text has a password in it.

A thread may come from someone else's file or store, and its options name code to load and addresses to use. So they are
sealed with the user's own key, and without a valid seal only numbers and the system prompt are restored.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import shlex
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import evolve

from locus.core.errors import ConfigError
from locus.core.messages import Role
from locus.core.state import AgentState
from locus.plugins import redact
from locus_kit.state import state_folder
from locus_plugin_cli.common_options import CommonOptions
from locus_plugin_cli.options import AgentOptions
from locus_plugin_cli.output import say
from locus_plugin_cli.project import Project
from locus_plugin_cli.text import one_line
from locus_plugin_cli.vetting import find_vetted

__all__ = ["KEY", "options_to_save", "restore_options", "seal"]

#: The key in ``state.metadata``.
KEY = "locus.cli"

#: The command whose threads name none.
_PLAIN_COMMAND = "run"

#: The key of the seal.
_SEAL = "seal"

#: The options that count without a seal.
_HARMLESS = frozenset({"max_iterations", "temperature", "max_tokens", "seed", "system"})

_PLAIN: Mapping[str, type | tuple[type, ...]] = {
    "model": str,
    "max_iterations": int,
    "temperature": (int, float),
    "max_tokens": int,
    "seed": int,
}


def options_to_save(options: AgentOptions, project: Project, model: str, *, system: bool) -> dict[str, Any]:
    """What to keep, as plain data.

    Args:
        options: as they were typed.
        project: the configuration and the plugins.
        model: the model that was chosen, in whatever way: another shell may choose another.
        system: whether this command gave the system prompt. Its text is in the conversation.
    """
    source, recipe = project.config.source, options.recipe
    secretive = redact(model) != model
    kept = {
        "model": None if secretive else model,
        "tools": [_anywhere(reference) for reference in options.tools],
        "system": system,
        "max_iterations": options.max_iterations,
        "temperature": options.temperature,
        "max_tokens": options.max_tokens,
        "seed": options.seed,
        "plugins": list(project.switches),
        "config": str(Path(source).absolute()) if source else None,
        "folder": str(Path.cwd()),
        "command": None if recipe.command == _PLAIN_COMMAND else recipe.command,
        **{f"{recipe.command}.{name}": value for name, value in recipe.remember().items()},
    }
    return {name: value for name, value in kept.items() if value is not None and value is not False and value != []}


def seal(kept: Mapping[str, Any]) -> dict[str, Any]:
    """The options to save, sealed as written by this user's command; without a seal if no key is available."""
    try:
        key = _key(make=True)
    except (OSError, RuntimeError):  # no folder to keep it in: another command will ask for the options again
        return dict(kept)
    return {**kept, _SEAL: _sum(kept, key)}


def _is_sealed(kept: Mapping[str, Any]) -> bool:
    seal = kept.get(_SEAL)
    try:
        key = _key(make=False)
        found = _sum({name: value for name, value in kept.items() if name != _SEAL}, key)
    except (OSError, RuntimeError, TypeError, ValueError):
        return False
    return isinstance(seal, str) and hmac.compare_digest(seal.encode(errors="replace"), found.encode())


def _sum(kept: Mapping[str, Any], key: bytes) -> str:
    # A journal gives tuples back where it got lists.
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in kept.items()}
    text = json.dumps(plain, sort_keys=True)
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def _key(*, make: bool) -> bytes:
    """The user's key, from a file that the owner alone reads."""
    path = state_folder() / "seal"
    if make and not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Under its name only when it is whole, and never in place of one that another command has just made.
        handle, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(32))
        try:
            with suppress(FileExistsError):
                os.link(name, path)
        finally:
            Path(name).unlink()
    return path.read_bytes()


def _anywhere(reference: str) -> str:
    """A reference to tools that means the same in another folder; modules are looked for from the old one."""
    return str(Path(reference).absolute()) if reference.endswith(".py") else reference


def restore_options(state: AgentState, options: AgentOptions, given: CommonOptions) -> tuple[AgentOptions, Project]:
    """The options and the project with which a thread goes on: what is typed now, else what it remembers.

    Args:
        state: the thread's.
        options: as they are typed now.
        given: the common options as they are typed now.

    Raises:
        ConfigError: the configuration file cannot be read, or is wrong; another command began the thread.
    """
    saved = state.metadata.get(KEY)
    _check_command(saved, options)
    trusted = _trusted(saved)
    kept = _checked(trusted)
    changes: dict[str, Any] = {
        name: kept[name] for name in _PLAIN if getattr(options, name) is None and kept.get(name) is not None
    }
    if not options.tools and kept["tools"]:
        changes["tools"] = kept["tools"]
    if kept["folder"] not in sys.path and any(not tool.endswith(".py") for tool in changes.get("tools", ())):
        sys.path.append(kept["folder"])
    changes["recipe"] = options.recipe.recall(_of_recipe(trusted, options.recipe.command))
    first = state.messages[0] if state.messages else None
    if options.system is None and kept["system"] and first is not None and first.role is Role.SYSTEM:
        # As it would be typed: a plain "@" at the beginning means a file.
        changes["system"] = f"@{first.text}" if first.text.startswith("@") else first.text
    return evolve(options, **changes), _project(kept, given)


def _trusted(data: Any) -> Any:
    """The saved options that may be used: without a valid seal, none that load code or name an address."""
    if not isinstance(data, Mapping) or _is_sealed(data):
        return data
    begun = str(data.get("command") or _PLAIN_COMMAND)
    left = [name for name in ("model", "tools", "plugins", "config") if data.get(name)]
    left += [f"--{one_line(name)}" for name in _of_recipe(data, begun)]
    if left:
        say(
            f"warning: this thread names its {', '.join(left)}, which are not used, because it was not begun by this "
            "command here; give them as options"
        )
    return {name: value for name, value in data.items() if name in _HARMLESS}


def _of_recipe(data: Any, command: str) -> dict[str, Any]:
    """What is remembered of the recipe of a command."""
    found: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
    begins = f"{command}."
    return {name.removeprefix(begins): found[name] for name in found if name.startswith(begins)}


def _check_command(data: Any, options: AgentOptions) -> None:
    """Refuse a thread of another command, which would go on as another agent.

    Raises:
        ConfigError: it is.
    """
    begun = data.get("command", _PLAIN_COMMAND) if isinstance(data, Mapping) else options.recipe.command
    if begun != options.recipe.command:
        words = shlex.join(["locus", one_line(str(begun)), "--thread", str(options.thread)])
        raise ConfigError(
            f"thread {options.thread!r} was begun by another command, which makes another agent; go on with: {words}"
        )


def _project(kept: Mapping[str, Any], given: CommonOptions) -> Project:
    # A conversation is data that somebody else may have written: naming a file in it does not make the file trusted.
    path, folder = kept["config"], kept["folder"]
    if path is not None and Path(path).is_file():
        file = find_vetted(given, path=path)
    else:
        file = find_vetted(given, start=folder if Path(folder).is_dir() else None)
    switches = given.switches if given.no_plugins else (*kept["plugins"], *given.switches)
    return Project.configured(file, switches, named=given.config is not None)


def _checked(data: Any) -> dict[str, Any]:
    """What is remembered, as far as it makes sense: another program may have written it."""
    found: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
    kept: dict[str, Any] = {}
    for name, kind in _PLAIN.items():
        value = found.get(name)
        kept[name] = value if isinstance(value, kind) and not isinstance(value, bool) else None
    for name in ("tools", "plugins"):
        value = found.get(name)
        listed = value if isinstance(value, list | tuple) else ()
        kept[name] = tuple(each for each in listed if isinstance(each, str))
    kept["system"] = found.get("system") is True
    kept["config"] = found["config"] if isinstance(found.get("config"), str) else None
    folder = found.get("folder")
    kept["folder"] = folder if isinstance(folder, str) else str(Path.cwd())
    return kept
