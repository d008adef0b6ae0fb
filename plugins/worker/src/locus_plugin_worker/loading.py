"""``shop:agent``: the agent that a name on the command line means."""

from __future__ import annotations

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from locus import Agent
from locus.core.errors import InputError, LocusError, closest

__all__ = ["load_agent"]


def load_agent(text: str) -> Agent[Any, Any]:
    """The agent that ``MODULE:NAME`` or ``FILE.py:NAME`` names; a function without parameters is called for it.

    Raises:
        InputError: the module cannot be loaded, or has no such agent, or the agent has no name.
    """
    place, colon, name = text.rpartition(":")
    if not colon or not place or not name:
        raise InputError(f"expected MODULE:NAME, such as shop:agent, or FILE.py:NAME, got {text!r}")
    module = _file(place) if place.endswith(".py") else _module(place)
    value = vars(module).get(name)
    if callable(value) and not isinstance(value, type | Agent):
        try:
            value = value()
        except LocusError:
            raise
        except Exception as e:
            raise InputError(f"{text}: {name}() failed: {type(e).__name__}: {e}") from e
    if not isinstance(value, Agent):
        agents = sorted(key for key, each in vars(module).items() if isinstance(each, Agent))
        near = closest(name, agents)
        has = ", ".join(map(repr, agents)) or "-"
        hint = f"did you mean {place}:{near}?" if near else f"agents in it: {has}"
        what = f"has no {name!r}" if name not in vars(module) else f"{name!r} is {type(value).__name__}, not an Agent"
        raise InputError(f"{place} {what}; {hint}")
    if not value.name:
        raise InputError(
            f"{text} has no name, so a worker could not know which runs are its own; write Agent(..., name={name!r})"
        )
    return value


def _module(name: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        # A script's path begins at its own folder. At the end: nothing here may replace what is installed.
        sys.path.append(str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        if e.name is None or not (name == e.name or name.startswith(f"{e.name}.")):
            raise InputError(f"{name} cannot be loaded: {e}") from e
        near = closest(name, [path.stem for path in Path.cwd().glob("*.py")])
        hint = f"did you mean {near}?" if near else f"no such module in {Path.cwd()}, and none is installed"
        raise InputError(f"module {name!r} not found; {hint}") from e
    except LocusError:
        raise
    except Exception as e:
        raise InputError(f"{name} cannot be loaded: {type(e).__name__}: {e}") from e


def _file(text: str) -> ModuleType:
    path = Path(text).resolve()
    spec = spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise InputError(f"file not found: {text!r}")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # for annotations, which are looked up there
    try:
        spec.loader.exec_module(module)
    except LocusError:
        raise
    except Exception as e:
        del sys.modules[spec.name]
        raise InputError(f"{text} cannot be loaded: {type(e).__name__}: {e}") from e
    return module
