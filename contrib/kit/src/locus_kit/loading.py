"""Tools from a file or a module, for people who start an agent without writing a program."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any
from zlib import crc32

from locus.core.errors import ToolDefinitionError
from locus.schema import safe_repr
from locus.tools import Tool, as_tool, error_text, tools_of

__all__ = ["load_tools"]


def load_tools(reference: str) -> tuple[Tool[..., Any], ...]:
    """The tools of a file or a module: all it holds, or if it marks none, its public functions with a docstring.

    Args:
        reference: a path that ends in ``.py``, or the dotted name of a module. A file runs as ``python FILE.py``
            would run it, with its own folder importable; ``__name__`` is not ``"__main__"``.

    Raises:
        ToolDefinitionError: the file or module was not found, running it raises, or it holds no tools.
    """
    is_path = reference.endswith(".py") or not {"/", os.sep}.isdisjoint(reference)
    module = _from_file(Path(reference)) if is_path else _from_module(reference)
    found = tools_of(module)
    if found:
        return found
    functions = [
        value
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and not name.startswith("_")
        and value.__module__ == module.__name__
        and value.__doc__
    ]
    if not functions:
        raise ToolDefinitionError(
            f"{reference} holds no tools; mark a function with @tool, or give it a docstring that says what it does"
        )
    return tuple(map(as_tool, functions))


def _from_file(path: Path) -> ModuleType:
    try:
        path = path.resolve(strict=True)
    except FileNotFoundError as e:
        raise ToolDefinitionError(f"file not found: {safe_repr(str(path))}") from e
    except (OSError, ValueError) as e:  # a NUL in the name is a ValueError
        raise ToolDefinitionError(f"cannot read {safe_repr(str(path))}: {error_text(e)}") from e
    if path.is_dir():
        raise ToolDefinitionError(f"{path} is a folder; name a file in it that ends in .py")
    spec = spec_from_file_location(f"locus_tools_{path.stem}_{crc32(bytes(path)):08x}", path)
    if spec is None or spec.loader is None:
        raise ToolDefinitionError(f"{path} is not a Python file; its name must end in .py")
    module = module_from_spec(spec)
    # Text annotations and dataclasses are resolved through sys.modules.
    sys.modules[spec.name] = module
    if str(path.parent) not in sys.path:
        # At the end: a file beside it must not replace a module of the standard library.
        sys.path.append(str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as e:
        del sys.modules[spec.name]
        raise ToolDefinitionError(f"{path}{_line(path, e)} cannot be loaded: {_why(e, spec.name)}") from e
    return module


def _line(path: Path, error: BaseException) -> str:
    """Where in the file it happened: the innermost of its lines; ``""`` when the error itself says so."""
    lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == str(path)]
    return f", line {lines[-1]}," if lines else ""


def _why(error: BaseException, module: str) -> str:
    """The error's text without the generated module name, which the author of the file never wrote."""
    text = str(error) if isinstance(error, ToolDefinitionError) else error_text(error)
    return text.replace(f"{module}.", "")


def _from_module(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise ToolDefinitionError(f"{name!r} is neither a file that ends in .py nor the dotted name of a module")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        own = e.name is not None and f"{name}.".startswith(f"{e.name}.")
        why = f"module {e.name!r} was not found; is it installed, or the file {name}.py?" if own else error_text(e)
        raise ToolDefinitionError(f"{name} cannot be loaded: {why}") from e
    except (Exception, SystemExit) as e:
        raise ToolDefinitionError(f"{name} cannot be loaded: {error_text(e)}") from e
