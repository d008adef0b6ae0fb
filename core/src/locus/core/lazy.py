"""Modules that are imported when they are first used: declared at the top of a file, like every import.

``import locus`` is what each program pays for, and much of the kernel is for some programs only: the plugin
machinery, tool schemas, the JSON converter. A `Lazy` takes the place of such a module; type checkers see the module
itself::

    if TYPE_CHECKING:
        from locus.core import codec
    else:
        codec = Lazy("locus.core.codec")
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import Any


class Lazy:
    """Takes the place of a module until one of its names is used.

    The standard library's ``LazyLoader`` is not safe when two threads use a module first; this is, because
    ``import_module`` is.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        module = import_module(self.__name__)
        value = getattr(module, name)
        # The next use finds it without coming here.
        self.__dict__[name] = value
        return value

    def __repr__(self) -> str:
        return f"<lazy module {self.__name__!r}>"


def exports(package: str, modules: Mapping[str, Iterable[str]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose names live in modules that are imported on first use.

    Args:
        package: the package's name.
        modules: module -> the names that the package offers of it.
    """
    homes = {name: module for module, names in modules.items() for name in names}

    def getattr_(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    def dir_() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return getattr_, dir_


def find_missing(package: str, finder: str) -> None:
    """Have another module find what is imported below a package and is not there.

    Args:
        package: the package's name.
        finder: the module, imported when something is missing; its ``find_module(fullname)`` gives a spec or None.
    """
    sys.meta_path.append(_Missing(package, finder))  # the last to be asked


class _Missing:
    """Asks a module that is imported on first use."""

    def __init__(self, package: str, finder: str) -> None:
        self._package, self._finder = package, finder

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not fullname.startswith(f"{self._package}."):
            return None
        found: ModuleSpec | None = import_module(self._finder).find_module(fullname)
        return found
