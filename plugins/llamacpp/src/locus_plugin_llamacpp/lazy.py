"""The one place where a heavy or optional module is imported: by reference, when it is first used."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["XLLAMACPP", "resolve"]

XLLAMACPP = "xllamacpp"


def resolve(reference: str) -> Any:
    """The object behind ``"package.module"`` or ``"package.module:name"``.

    Raises:
        ImportError: the module cannot be imported.
        AttributeError: it has no such name.
    """
    module, _, name = reference.partition(":")
    found: Any = importlib.import_module(module)
    return getattr(found, name) if name else found
