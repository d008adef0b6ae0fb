"""``shop.py:agent``: the agent that a name on a command line, or in a file, means."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

from locus import Agent
from locus.core.errors import InputError, LocusError, closest

__all__ = ["load_agent"]


def _is_agent(value: object) -> bool:
    return isinstance(value, Agent)


def load_agent(text: str, *, folder: Path | None = None, is_agent: Callable[[object], bool] = _is_agent) -> Any:
    """The agent that ``FILE.py:NAME`` or ``MODULE:NAME`` names; a function without parameters is called for it.

    Args:
        text: the reference.
        folder: where a relative file is; None = the working directory.
        is_agent: what is taken for an agent, for those who also take what is made of one, such as a graph.

    Raises:
        InputError: the file or module cannot be loaded, or has no such agent.
    """
    place, _, name = text.rpartition(":")
    if not place or not name:
        raise InputError(f"expected FILE.py:NAME, such as shop.py:agent, or MODULE:NAME, got {text!r}")
    module = _load_file(place, folder or Path.cwd()) if place.endswith(".py") else _load_module(place)
    value = vars(module).get(name)
    if inspect.isfunction(value):  # not what else can be called, such as a tool
        try:
            value = value()
        except LocusError:
            raise
        except Exception as e:
            raise InputError(f"{text}: {name}() failed: {type(e).__name__}: {e}") from e
    if is_agent(value):
        return value
    agents = sorted(key for key, each in vars(module).items() if is_agent(each))
    near = closest(name, agents)
    hint = f"did you mean {place}:{near}?" if near else f"agents in it: {', '.join(map(repr, agents)) or 'none'}"
    what = f"has no {name!r}" if name not in vars(module) else f"{name!r} is {type(value).__name__}, not an Agent"
    raise InputError(f"{place} {what}; {hint}")


def _load_module(name: str) -> ModuleType:
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


def _load_file(text: str, folder: Path) -> ModuleType:
    path = (folder / text).resolve()
    # Two files may have the same name, or that of a module which is installed: the module's name says which it is.
    spec = spec_from_file_location(f"locus_agent_{path.stem}_{crc32(bytes(path)):08x}", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise InputError(f"file not found: {text!r} in {folder}")
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
