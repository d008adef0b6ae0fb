"""Modules that are imported when they are first used: declared at the top of a file, like every import.

``import locus`` is what each program pays for, and much of the kernel is for some programs only: the plugin
machinery, tool schemas, the JSON converter. A `Lazy` stands for such a module; type checkers see the module itself::

    if TYPE_CHECKING:
        from locus.core import codec
    else:
        codec = Lazy("locus.core.codec")
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["Lazy", "exports"]


class Lazy:
    """Stands for a module until one of its names is used.

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


def exports(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose names live in modules that are imported on first use.

    Args:
        package: the package's name.
        homes: name -> module that defines it.
    """

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
