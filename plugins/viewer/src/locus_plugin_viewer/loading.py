"""``FILE:NAME``: the agent or the graph that a name on the command line means."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from locus import Agent
from locus.core.errors import InputError, LocusError, closest

__all__ = ["load_agent"]


def load_agent(text: str) -> Any:
    """The agent, or the compiled graph, that ``FILE:NAME`` names; a function without parameters is called for it.

    Raises:
        InputError: the file cannot be loaded, or has no such agent.
    """
    file, colon, name = text.rpartition(":")
    path = Path(file)
    if not colon or not name or not path.is_file():
        raise InputError(f"expected FILE:NAME, such as shop.py:agent, got {text!r}; {file or text!r} is not a file")
    spec = spec_from_file_location(f"locus_view_{path.stem}", path.resolve())
    if spec is None or spec.loader is None:
        raise InputError(f"{file}: expected a file of Python, such as shop.py")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # at the end: nothing here may replace what is installed
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # for annotations, which are looked up there
    try:
        spec.loader.exec_module(module)
        found = vars(module).get(name)
        if callable(found) and not isinstance(found, type | Agent) and not _is_graph(found):
            found = found()
    except LocusError:
        raise
    except Exception as e:
        raise InputError(f"{file} cannot be loaded: {type(e).__name__}: {e}") from e
    if not isinstance(found, Agent) and not _is_graph(found):
        names = [key for key, each in vars(module).items() if isinstance(each, Agent) or _is_graph(each)]
        near = closest(name, names)
        hint = f"did you mean {near!r}?" if near else f"it has {', '.join(map(repr, names)) or 'no agent'}"
        raise InputError(f"{file} has no agent {name!r}; {hint}")
    return found


def _is_graph(value: object) -> bool:
    """Whether it is a compiled graph, which another distribution makes."""
    return isinstance(getattr(value, "agent", None), Agent) and hasattr(value, "svg")
