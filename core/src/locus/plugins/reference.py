"""The one place where a dotted reference becomes an object: what is heavy is named, and imported when used.

`importlib_metadata` and `tomllib` are reached this way as well: each costs as much as a good part of the
kernel, and a program that names no plugin and has no configuration file needs neither.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from locus.core.errors import PluginLoadError, closest

__all__ = ["load", "resolve"]


def resolve(reference: str) -> Any:
    """The object behind ``"package.module"`` or ``"package.module:name.attribute"``.

    Raises:
        ImportError: the module or the name does not exist.
        Exception: whatever the module raises while it is imported.
    """
    module_name, _, path = reference.partition(":")
    found: Any = import_module(module_name)
    for name in path.split(".") if path else ():
        try:
            found = getattr(found, name)
        except AttributeError as e:
            near = closest(name, dir(found))
            hint = f"; did you mean {near!r}?" if near else ""
            raise ImportError(f"{module_name!r} has no {path!r}{hint}", name=module_name) from e
    return found


def load(plugin: str, reference: str) -> Any:
    """A part of a plugin; whatever goes wrong while it is imported is that plugin's failure.

    Raises:
        PluginLoadError: it cannot be imported; the cause is chained.
    """
    try:
        return resolve(reference)
    # A module may raise anything at import, and a script without a main guard calls sys.exit().
    except (Exception, SystemExit) as e:
        hint = f"; install what it needs: {e.name!r}" if isinstance(e, ModuleNotFoundError) else ""
        raise PluginLoadError(plugin, f"{reference} cannot be imported: {type(e).__name__}: {e}{hint}") from e
